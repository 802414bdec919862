"""Prompts computed as they are: what variants of them go on from. The latest are kept for later requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from cuvette_torch.model_inspection import cache_of
from cuvette_torch.prompts import Text


@dataclass(eq=False)
class BaseBatch:
    """Several prompts that were computed together."""

    # For each layer keys and values: prompts × heads × positions × width. None where nobody was to go on from them.
    layers: Any
    # What the head was given: prompts × positions × width. None where it was not got to.
    last: torch.Tensor | None

    @property
    def size(self) -> int:
        tensors = [tensor for pair in self.layers or [] for tensor in pair]
        return sum(tensor.numel() * tensor.element_size() for tensor in [*tensors, *([] if self.last is None else [self.last])])


@dataclass(frozen=True)
class Base:
    batch: BaseBatch
    row: int


class BaseRuns:
    def __init__(self) -> None:
        # The ones used last come last.
        self._known: dict[tuple[int, ...], Base] = {}

    def recall(self, text: Text, needs_past: bool) -> Base | None:
        base = self._known.pop(text.tokens, None)
        if base is not None:
            self._known[text.tokens] = base
        return None if base is None or (needs_past and base.batch.layers is None) else base

    def keep(self, texts: Sequence[Text], batch: BaseBatch) -> None:
        for row, text in enumerate(texts):
            text.base = Base(batch, row)
            if batch.last is not None:
                self._known.pop(text.tokens, None)
                self._known[text.tokens] = text.base

    def trim(self, room: int) -> None:
        """A batch is let go as a whole: its prompts share their memory."""
        kept: dict[BaseBatch, int] = {}
        for base in reversed(self._known.values()):
            if base.batch not in kept and sum(kept.values()) + base.batch.size <= room:
                kept[base.batch] = base.batch.size
        self._known = {tokens: base for tokens, base in self._known.items() if base.batch in kept}


def past_of(bases: Sequence[Base], length: int) -> Any:
    """A cache with the beginnings of that length, one for each; those of one batch should stand together."""
    runs: list[tuple[BaseBatch, list[int]]] = []
    for base in bases:
        if not runs or runs[-1][0] is not base.batch:
            runs.append((base.batch, []))
        runs[-1][1].append(base.row)

    def join(layer: int, side: int) -> torch.Tensor:
        found = [batch.layers[layer][side][:, :, :length] for batch, _ in runs]
        return torch.cat([tensor[torch.tensor(rows, device=tensor.device)] for tensor, (_, rows) in zip(found, runs)])

    return cache_of([(join(layer, 0), join(layer, 1)) for layer in range(len(runs[0][0].layers))])


def last_of(wanted: Iterable[tuple[Base, int]]) -> torch.Tensor:
    """What the head was given at these positions, a row for each."""
    found: dict[BaseBatch, list[tuple[int, int, int]]] = {}
    for number, (base, position) in enumerate(wanted):
        found.setdefault(base.batch, []).append((number, base.row, position))
    rows = [batch.last[tuple(torch.tensor([one[i] for one in ours], device=batch.last.device) for i in (1, 2))] for batch, ours in found.items()]
    order = torch.tensor([number for ours in found.values() for number, _, _ in ours], device=rows[0].device)
    return torch.cat(rows)[order.argsort()]


def bytes_per_token(batch: BaseBatch) -> int:
    return sum(tensor.shape[1] * tensor.shape[3] * tensor.element_size() for pair in batch.layers or [] for tensor in pair)
