"""How much is computed at a time, and what is done when that was too much for the device."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Callable, TypeVar

import torch

from cuvette_torch.errors import Problem

T = TypeVar("T")
MIB = 2**20


class Room:
    """Of one device: how many `tokens` are computed at a time, in how many bytes of keys and values (`cache`), and how many numbers of `logits` are held.

    As many bytes as `kept` stay for later requests.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        # Lets go of what is kept without need.
        self.release: Callable[[], None] = lambda: None
        whole = torch.cuda.get_device_properties(device).total_memory if device.type == "cuda" else 2048 * MIB
        self.tokens = 16384 if device.type == "cuda" else 2048
        self.cache = whole // 8
        self.kept = whole // 8
        self.logits = 16 * MIB if device.type == "cuda" else 8 * MIB

    def in_parts(self, items: Sequence[T], costs: Sequence[tuple[Callable[[T], float], float]], work: Callable[[Sequence[T]], None], what: str) -> None:
        """Does the work on as many items at a time as fit; for each cost, what they cost together stays below its limit. If the device has no room for that
        many, it is tried again with half of them. The work must not mind being done twice."""
        waiting = parts(items, costs)
        while waiting:
            part = waiting.pop(0)
            try:
                work(part)
            except BaseException as error:
                if not is_out_of_memory(error):
                    raise
                if len(part) == 1:
                    raise self.too_large(what) from error
            else:
                continue
            # Here, the error and with it the tensors of the frames that it passed are gone.
            self.clear()
            half = (len(part) + 1) // 2
            waiting = [part[:half], part[half:], *waiting]

    def clear(self) -> None:
        self.release()
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def too_large(self, what: str) -> Problem:
        free = "" if self.device.type != "cuda" else " (%d MiB of it are free)" % (torch.cuda.mem_get_info(self.device)[0] // MIB)
        return Problem(
            "too_large",
            "The memory of %s%s is not enough for %s, even for one at a time. Use shorter prompts, load the model in bfloat16, 8bit or 4bit, "
            "or delete tensors that code of yours holds there." % (self.device, free, what),
        )


def parts(items: Sequence[T], costs: Sequence[tuple[Callable[[T], float], float]]) -> list[Sequence[T]]:
    """One after the other, as many as fit together, but at least one."""
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
