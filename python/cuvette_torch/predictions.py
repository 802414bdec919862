"""Computes predictions: logits at chosen positions, log-probabilities of the tokens that came next, and divergences between predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Callable, TypeVar

import torch

from cuvette_torch.head import Head
from cuvette_torch.numerics import most_precise
from cuvette_torch.outputs import Table

T = TypeVar("T")


@dataclass(frozen=True)
class Wanted:
    """A position of a text of the batch, and the slots for what is found there."""

    text: int
    position: int
    slots: list[int]


class Predictions:
    def __init__(self, head: Head, vocabulary: int, most_numbers: int, check: Callable[[], None]) -> None:
        self.head = head
        self.at_once = max(1, most_numbers // vocabulary)
        self.check = check

    def logits(self, last: torch.Tensor, wanted: Sequence[Wanted], tokens: torch.Tensor | None, table: Table) -> None:
        for some in self.portions(wanted):
            logits = self.head.logits(rows_of(last, some), tokens)
            copies = [i for i, one in enumerate(some) for _ in one.slots]
            table.hold([slot for one in some for slot in one.slots], logits[torch.tensor(copies, device=logits.device)])
            table.flush()

    def log_probabilities(self, last: torch.Tensor, wanted: Sequence[tuple[Wanted, int]], table: Table) -> None:
        """With each position comes the token that followed it."""
        for some in self.portions(wanted):
            logs = self.logs(rows_of(last, [one for one, _ in some]))
            self.put_next(logs, [(one.slots, token) for one, token in some], table)

    def compare(self, last: torch.Tensor, base: torch.Tensor, wanted: Sequence[tuple[Wanted, int | None, int]], to: tuple[Table, Table]) -> None:
        """Compares with the predictions from `base`, which has a row for each position. With each position comes the token that followed, None for the
        last of a text, and the slot of the divergence."""
        probabilities, divergences = to
        done = 0
        for some in self.portions(wanted):
            ours = self.logs(rows_of(last, [one for one, _, _ in some]))
            theirs = self.logs(base[done : done + len(some)])
            done += len(some)
            self.put_next(ours, [(one.slots, token) for one, token, _ in some], probabilities)
            # The divergence of equal predictions is 0 but for rounding, which may make it negative.
            divergence = (theirs.exp() * (theirs - ours)).sum(-1, keepdim=True).clamp_min(0)
            divergences.hold([slot for _, _, slot in some], divergence)
            divergences.flush()

    def logs(self, rows: torch.Tensor) -> torch.Tensor:
        logits = self.head.logits(rows)
        return logits.to(most_precise(logits.device)).log_softmax(-1)

    def put_next(self, logs: torch.Tensor, wanted: Sequence[tuple[list[int], int | None]], table: Table) -> None:
        found = [(i, token, slot) for i, (slots, token) in enumerate(wanted) if token is not None for slot in slots]
        if not found:
            return
        rows, tokens, slots = ([one[i] for one in found] for i in range(3))
        table.hold(slots, logs[torch.tensor(rows, device=logs.device), torch.tensor(tokens, device=logs.device)].unsqueeze(-1))
        table.flush()

    def portions(self, wanted: Sequence[T]) -> Iterator[Sequence[T]]:
        for start in range(0, len(wanted), self.at_once):
            self.check()
            yield wanted[start : start + self.at_once]


def rows_of(last: torch.Tensor, wanted: Sequence[Wanted]) -> torch.Tensor:
    texts = torch.tensor([one.text for one in wanted], device=last.device)
    return last[texts, torch.tensor([one.position for one in wanted], device=last.device)]
