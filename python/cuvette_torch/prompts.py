"""Groups a request's variants by prompt, so that each different prompt is computed once, and a variant only from its first change on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from cuvette_torch import positions
from cuvette_torch.interventions import Intervention
from cuvette_torch.requests import Variant

if TYPE_CHECKING:
    from cuvette_torch.prefix_cache import CachedPrompt


@dataclass(eq=False)
class Prompt:
    tokens: tuple[int, ...]
    variants: list[PromptVariant] = field(default_factory=list)
    # Set once the prompt has been computed without changes.
    cached: CachedPrompt | None = None

    @property
    def computed(self) -> CachedPrompt:
        if self.cached is None:
            raise RuntimeError("the prompt has not been computed yet")
        return self.cached


@dataclass(eq=False)
class PromptVariant:
    """One variant of a prompt, with its number among the results."""

    number: int
    prompt: Prompt
    interventions: list[Intervention]
    # The first position that it computes itself; the prompt's length if it changes nothing.
    first: int

    @property
    def is_changed(self) -> bool:
        return self.first < len(self.prompt.tokens)

    def edits(self, start: int, end: int) -> Iterator[tuple[int, Intervention]]:
        """Yields each intervention with its position, from `start` to before `end`, which may be behind the prompt's end."""
        length = len(self.prompt.tokens)
        for intervention in self.interventions:
            found = positions.resolve(intervention.positions, length)
            if positions.goes_on(intervention.positions):
                found = [*found, *range(length, end)]
            yield from ((position, intervention) for position in found if start <= position < end)


def prompts_of(rows: Sequence[tuple[int, ...]], variants: Sequence[Variant], supports_kv_cache: bool) -> list[Prompt]:
    """`rows` are the tokens of the request's prompts."""
    prompts: dict[tuple[int, ...], Prompt] = {}
    for number, variant in enumerate(variants):
        tokens = rows[variant.prompt]
        prompt = prompts.setdefault(tokens, Prompt(tokens))
        prompt.variants.append(PromptVariant(number, prompt, variant.interventions, first_change(variant, len(tokens), supports_kv_cache)))
    return list(prompts.values())


def first_change(variant: Variant, length: int, supports_kv_cache: bool) -> int:
    changed = [position for one in variant.interventions for position in positions.resolve(one.positions, length)]
    return min(changed) * supports_kv_cache if changed else length


def batch_of(rows: Iterable[Sequence[int]]) -> torch.Tensor:
    """Pads the rows at their ends, which nothing before there attends to."""
    rows = list(rows)
    longest = max(map(len, rows))
    return torch.tensor([[*row, *([0] * (longest - len(row)))] for row in rows])
