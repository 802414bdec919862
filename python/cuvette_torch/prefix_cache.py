"""Caches prompts that were computed without changes, as prefixes that variants of them go on from. Evicts the least recently used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from cuvette_torch.model_inspection import cache_of
from cuvette_torch.prompts import Prompt


@dataclass(eq=False)
class CachedBatch:
    """Prompts that were computed in one batch."""

    # For each layer keys and values: prompts × heads × positions × width. None where no variant was to go on from them.
    layers: Any
    # What the head was given: prompts × positions × width. None where the pass ended before the head.
    last: torch.Tensor | None

    @property
    def size(self) -> int:
        tensors = [tensor for pair in self.layers or [] for tensor in pair]
        return sum(tensor.numel() * tensor.element_size() for tensor in [*tensors, *([] if self.last is None else [self.last])])

    def last_at(self, rows: list[int], positions: list[int]) -> torch.Tensor:
        if self.last is None:
            raise RuntimeError("the batch was not computed up to the head")
        return self.last[torch.tensor(rows, device=self.last.device), torch.tensor(positions, device=self.last.device)]


@dataclass(frozen=True)
class CachedPrompt:
    batch: CachedBatch
    row: int


class PrefixCache:
    def __init__(self) -> None:
        # In the order of their last use.
        self._known: dict[tuple[int, ...], CachedPrompt] = {}

    def get(self, prompt: Prompt, needs_past: bool) -> CachedPrompt | None:
        base = self._known.pop(prompt.tokens, None)
        if base is not None:
            self._known[prompt.tokens] = base
        return None if base is None or (needs_past and base.batch.layers is None) else base

    def put(self, prompts: Sequence[Prompt], batch: CachedBatch) -> None:
        for row, prompt in enumerate(prompts):
            prompt.cached = CachedPrompt(batch, row)
            if batch.last is not None:
                self._known.pop(prompt.tokens, None)
                self._known[prompt.tokens] = prompt.cached

    def evict(self, room: int) -> None:
        """Keeps the batches used last that fit into that many bytes. A batch is evicted as a whole, since its prompts share their memory."""
        kept: dict[CachedBatch, int] = {}
        for base in reversed(self._known.values()):
            if base.batch not in kept and sum(kept.values()) + base.batch.size <= room:
                kept[base.batch] = base.batch.size
        self._known = {tokens: base for tokens, base in self._known.items() if base.batch in kept}


def past_of(bases: Sequence[CachedPrompt], length: int) -> Any:
    """Makes a KV cache of the prefixes of that length, one for each prompt; those of one batch should stand together."""
    runs: list[tuple[CachedBatch, list[int]]] = []
    for base in bases:
        if not runs or runs[-1][0] is not base.batch:
            runs.append((base.batch, []))
        runs[-1][1].append(base.row)

    def join(layer: int, side: int) -> torch.Tensor:
        found = [batch.layers[layer][side][:, :, :length] for batch, _ in runs]
        return torch.cat([tensor[torch.tensor(rows, device=tensor.device)] for tensor, (_, rows) in zip(found, runs)])

    return cache_of([(join(layer, 0), join(layer, 1)) for layer in range(len(runs[0][0].layers))])


def last_of(wanted: Iterable[tuple[CachedPrompt, int]]) -> torch.Tensor:
    """Gives what the head was given at these positions, a row for each."""
    found: dict[CachedBatch, list[tuple[int, int, int]]] = {}
    for number, (base, position) in enumerate(wanted):
        found.setdefault(base.batch, []).append((number, base.row, position))
    rows = [batch.last_at([row for _, row, _ in ours], [position for _, _, position in ours]) for batch, ours in found.items()]
    order = torch.tensor([number for ours in found.values() for number, _, _ in ours], device=rows[0].device)
    return torch.cat(rows)[order.argsort()]


def bytes_per_token(batch: CachedBatch) -> int:
    return sum(tensor.shape[1] * tensor.shape[3] * tensor.element_size() for pair in batch.layers or [] for tensor in pair)
