"""Prompts and their variants, as they are computed: each different prompt once, and a variant only from its first change on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from cuvette_torch import positions
from cuvette_torch.interventions import Intervention
from cuvette_torch.requests import Variant


@dataclass(eq=False)
class Text:
    tokens: tuple[int, ...]
    works: list[Work] = field(default_factory=list)
    # Once it has been computed as it is.
    base: Any = None


@dataclass(eq=False)
class Work:
    """One variant, with its place among the results."""

    number: int
    text: Text
    interventions: list[Intervention]
    # The first position that it computes itself; its length if it is the prompt as it is.
    first: int

    @property
    def is_changed(self) -> bool:
        return self.first < len(self.text.tokens)

    def sites(self, start: int, end: int) -> Iterator[tuple[int, Intervention]]:
        """Where something is done, from one position to before another, which may be behind the prompt's end."""
        length = len(self.text.tokens)
        for intervention in self.interventions:
            found = positions.resolve(intervention.positions, length)
            if positions.goes_on(intervention.positions):
                found = [*found, *range(length, end)]
            yield from ((position, intervention) for position in found if start <= position < end)


def texts_of(prompts: Sequence[tuple[int, ...]], variants: Sequence[Variant], resumes: bool) -> list[Text]:
    texts: dict[tuple[int, ...], Text] = {}
    for number, variant in enumerate(variants):
        tokens = prompts[variant.prompt]
        text = texts.setdefault(tokens, Text(tokens))
        text.works.append(Work(number, text, variant.interventions, first_change(variant, len(tokens), resumes)))
    return list(texts.values())


def first_change(variant: Variant, length: int, resumes: bool) -> int:
    changed = [position for one in variant.interventions for position in positions.resolve(one.positions, length)]
    return min(changed) * resumes if changed else length


def batch_of(rows: Iterable[Sequence[int]]) -> torch.Tensor:
    """Filled up at their ends, which nothing before there sees."""
    rows = list(rows)
    longest = max(map(len, rows))
    return torch.tensor([[*row, *([0] * (longest - len(row)))] for row in rows])
