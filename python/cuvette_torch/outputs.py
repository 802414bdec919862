"""Gathers results: one table for each thing asked for, with the rows of all variants one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from cuvette_torch.activations import Hook, HookPoint, Hooks, fitted
from cuvette_torch.interventions import ALL_HEADS


class Table:
    def __init__(self, counts: Sequence[int], columns: int) -> None:
        """`counts` are the rows of each variant."""
        self.starts = [0]
        for count in counts:
            self.starts.append(self.starts[-1] + count)
        self.columns = columns
        self.data = torch.zeros(self.starts[-1], columns)
        self._held: list[tuple[list[int], torch.Tensor]] = []

    def slot(self, variant: int, row: int) -> int:
        return self.starts[variant] + row

    def hold(self, slots: list[int], rows: torch.Tensor) -> None:
        """Leaves rows on their device until `flush`: to fetch them now would make the device wait."""
        self._held.append((slots, rows))

    def flush(self) -> None:
        for slots, rows in self._held:
            self.data[torch.tensor(slots)] = rows.to("cpu", torch.float32)
        self._held = []

    def forget(self) -> None:
        self._held = []

    def reading(self, wanted: Sequence[tuple[int, int, int]], head: int = ALL_HEADS) -> Hook:
        """Makes a hook that reads activations: (text of the batch, position among those computed, slot). At points with heads, it reads one or all."""
        texts, columns, slots = ([one[i] for one in wanted] for i in range(3))

        def hook(x: torch.Tensor) -> None:
            at = (torch.tensor(texts, device=x.device), torch.tensor(columns, device=x.device))
            rows = x[at] if head == ALL_HEADS else x[at][:, head]
            self.hold(slots, fitted(rows.flatten(1), self.columns))

        return hook


def add_hook(hooks: Hooks, point: HookPoint, hook: Hook) -> None:
    hooks.setdefault(point, []).append(hook)
