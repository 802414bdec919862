"""Bounds how much is computed at a time, and tries again with less when that was too much for the device."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Callable, TypeVar

import torch

from cuvette_torch.errors import EngineError

T = TypeVar("T")
# What an item costs, and the limit of what the items of a batch cost together.
Cost = tuple[Callable[[T], float], float]
MIB = 2**20


class MemoryBudget:
    """The limits of one device: the `tokens` that are computed at a time, the bytes of their KV cache (`cache`), and the numbers of `logits` that are held.

    Up to `kept` bytes stay cached for later requests.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        # Evicts what is cached.
        self.release: Callable[[], None] = lambda: None
        whole = torch.cuda.get_device_properties(device).total_memory if device.type == "cuda" else 2048 * MIB
        self.tokens = 16384 if device.type == "cuda" else 2048
        self.cache = whole // 8
        self.kept = whole // 8
        self.logits = 16 * MIB if device.type == "cuda" else 8 * MIB

    def in_batches(self, items: Sequence[T], costs: Sequence[Cost[T]], work: Callable[[Sequence[T]], None], what: str) -> None:
        """Does the work on as many items at a time as fit; for each cost, what they cost together stays below its limit. When the device runs out of
        memory, it tries again with half of the items; so the work must not mind being done twice."""
        waiting = parts(items, costs)
        while waiting:
            part = waiting.pop(0)
            try:
                work(part)
            except BaseException as error:
                if not is_out_of_memory(error):
                    raise
                if len(part) == 1:
                    raise self.too_large_error(what) from error
            else:
                continue
            # Outside of the except block, the error and with it the tensors of its frames are freed.
            self.clear()
            half = (len(part) + 1) // 2
            waiting = [part[:half], part[half:], *waiting]

    def clear(self) -> None:
        self.release()
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def too_large_error(self, what: str) -> EngineError:
        free = "" if self.device.type != "cuda" else " (%d MiB of it are free)" % (torch.cuda.mem_get_info(self.device)[0] // MIB)
        return EngineError(
            "too_large",
            "The memory of %s%s is not enough for %s, even for one at a time. Use shorter prompts, load the model in bfloat16, 8bit or 4bit, "
            "or delete tensors that code of yours holds there." % (self.device, free, what),
        )


def parts(items: Sequence[T], costs: Sequence[Cost[T]]) -> list[Sequence[T]]:
    """Splits the items in their order: as many as fit together, but at least one."""
    found: list[list[T]] = []
    sums = [0.0] * len(costs)
    for item in items:
        sums = [total + cost(item) for total, (cost, _) in zip(sums, costs)]
        if not found or any(total > limit for total, (_, limit) in zip(sums, costs)):
            found.append([])
            sums = [cost(item) for cost, _ in costs]
        found[-1].append(item)
    return list(found)


def is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and ("can't allocate memory" in str(error) or "out of memory" in str(error).lower())
