"""Generates tokens: computes prompts as in a run, then extends all variants of one length together, token by token, under their interventions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Callable

import torch
from transformers import DynamicCache

from cuvette_torch.interventions import hooks_for
from cuvette_torch.memory_budget import Cost, MemoryBudget
from cuvette_torch.model_inspection import InspectedModel, cache_of, layers_of
from cuvette_torch.prefix_cache import CachedBatch, PrefixCache, bytes_per_token, last_of, past_of
from cuvette_torch.prompts import Prompt, PromptVariant, batch_of, prompts_of
from cuvette_torch.requests import GenerateRequest


class Generation:
    def __init__(
        self,
        model_info: InspectedModel,
        budget: MemoryBudget,
        prefixes: PrefixCache,
        request: GenerateRequest,
        limits: tuple[int, Sequence[int]],
        check: Callable[[], None],
    ) -> None:
        """`limits` are how many tokens fit into the model, and the tokens that end a generation."""
        self.model_info = model_info
        self.budget = budget
        self.prefixes = prefixes
        self.request = request
        self.context, self.end_tokens = limits
        self.check = check
        self.vectors = request.vectors.to(model_info.forward.device)

    def tokens(self) -> list[list[int]]:
        """Gives the new tokens of each variant, without the one that ended it."""
        generated: dict[int, list[int]] = {}
        prompts = prompts_of(self.request.prompts, self.request.variants, self.model_info.supports_kv_cache)
        variants = sorted((variant for prompt in prompts for variant in prompt.variants), key=length_of)
        for length, group in itertools.groupby(variants, key=length_of):
            new = min(self.request.new_tokens, self.context - length)
            if new <= 0:
                continue
            generated.update(self.grow_in_batches(list(group), length, new))
            self.prefixes.evict(self.budget.kept)
        return [generated.get(number, []) for number in range(len(self.request.variants))]

    def grow_in_batches(self, variants: Sequence[PromptVariant], length: int, new: int) -> dict[int, list[int]]:
        generated: dict[int, list[int]] = {}
        costs: list[Cost[PromptVariant]] = [
            (lambda variant: length, self.budget.tokens),
            (lambda variant: self.bytes_of(variant) * (length + new), self.budget.cache),
        ]
        self.budget.in_batches(variants, costs, lambda part: generated.update(self.grow(part, new)), "what is generated")
        return generated

    def bytes_of(self, variant: PromptVariant) -> int:
        return bytes_per_token(variant.prompt.cached.batch) if variant.prompt.cached else 0

    def grow(self, variants: Sequence[PromptVariant], new: int) -> dict[int, list[int]]:
        kind = CachedGeneration if self.model_info.supports_kv_cache else UncachedGeneration
        growing: CachedGeneration | UncachedGeneration = kind(self, variants)
        generated: dict[int, list[int]] = {variant.number: [] for variant in variants}
        alive = growing.variants
        last = growing.begin()
        for turn in range(new):
            chosen = self.choose(self.model_info.head.logits(last), [variant.number for variant in alive], turn)
            stays = [i for i, token in enumerate(chosen) if token not in self.end_tokens]
            for i in stays:
                generated[alive[i].number].append(chosen[i])
            if not stays or turn == new - 1:
                return generated
            last = growing.step(stays, [chosen[i] for i in stays])
            alive = growing.variants
        return generated

    def choose(self, logits: torch.Tensor, numbers: list[int], turn: int) -> list[int]:
        if self.request.temperature == 0:
            return logits.argmax(-1).tolist()
        logits = logits.to("cpu", torch.float64)
        weights = ((logits - logits.max(-1, keepdim=True).values) / self.request.temperature).exp().cumsum(-1)
        drawn = self.request.draws[torch.tensor(numbers), turn].to(torch.float64).unsqueeze(-1) * weights[:, -1:]
        return torch.searchsorted(weights, drawn, right=True).squeeze(-1).clamp_max(logits.shape[-1] - 1).tolist()

    def forward(self, variants: Sequence[PromptVariant], rows: Sequence[Sequence[int]], first: int, past: Any) -> torch.Tensor:
        """Gives what the head is given at the last position of each row."""
        end = first + len(rows[0])
        edits = ((row, position - first, one) for row, variant in enumerate(variants) for position, one in variant.edits(first, end))
        last = self.model_info.forward(batch_of(rows), hooks_for(edits, self.vectors), past, None, self.check)
        assert last is not None
        return last[:, -1]


class CachedGeneration:
    """Extends variants of one length by their KV cache."""

    def __init__(self, generation: Generation, variants: Sequence[PromptVariant]) -> None:
        self.generation = generation
        # Sorted, so that variants which begin to change at the same position are one batch.
        self.variants = sorted(variants, key=lambda variant: variant.first)
        self.length = length_of(variants[0])
        self.rows = [list(variant.prompt.tokens) for variant in self.variants]
        self.past: Any = None

    def begin(self) -> torch.Tensor:
        self.compute_bases(list({variant.prompt: None for variant in self.variants}))
        lasts, layers = [], []
        for first, group in itertools.groupby(self.variants, key=lambda variant: variant.first):
            variants = list(group)
            past = past_of([variant.prompt.computed for variant in variants], first) if first > 0 else DynamicCache()
            if first < self.length:
                lasts.append(self.generation.forward(variants, [variant.prompt.tokens[first:] for variant in variants], first, past))
            else:
                lasts.append(last_of((variant.prompt.computed, self.length - 1) for variant in variants))
            layers.append(layers_of(past))
        for variant in self.variants:
            variant.prompt.cached = None
        self.past = cache_of([tuple(torch.cat(side) for side in zip(*same)) for same in zip(*layers)])
        return torch.cat(lasts)

    def compute_bases(self, prompts: Sequence[Prompt]) -> None:
        prefixes = self.generation.prefixes
        for prompt in prompts:
            prompt.cached = prefixes.get(prompt, True)
        missing = [prompt for prompt in prompts if prompt.cached is None]
        if missing:
            past = DynamicCache()
            last = self.generation.model_info.forward(batch_of(prompt.tokens for prompt in missing), {}, past, None, self.generation.check)
            prefixes.put(missing, CachedBatch(layers_of(past), last))

    def step(self, stays: list[int], tokens: list[int]) -> torch.Tensor:
        lengths = self.generation.model_info.lengths
        is_alike = lengths.of(self.length) == lengths.of(self.length + 1)
        self.rows = [[*self.rows[i], token] for i, token in zip(stays, tokens)]
        self.variants = [self.variants[i] for i in stays]
        self.length += 1
        if not is_alike:
            # Of a text of this length, everything is computed differently, and what is cached was computed for a shorter one.
            self.past = DynamicCache()
            return self.generation.forward(self.variants, self.rows, 0, self.past)
        if len(stays) < layers_of(self.past)[0][0].shape[0]:
            self.past = cache_of([tuple(side[torch.tensor(stays, device=side.device)] for side in pair) for pair in layers_of(self.past)])
        return self.generation.forward(self.variants, [[token] for token in tokens], self.length - 1, self.past)


class UncachedGeneration:
    """Extends variants of a model without a usable KV cache: the whole row is computed again for each token."""

    def __init__(self, generation: Generation, variants: Sequence[PromptVariant]) -> None:
        self.generation = generation
        self.variants = list(variants)
        self.rows = [list(variant.prompt.tokens) for variant in variants]

    def begin(self) -> torch.Tensor:
        return self.generation.forward(self.variants, self.rows, 0, None)

    def step(self, stays: list[int], tokens: list[int]) -> torch.Tensor:
        self.variants = [self.variants[i] for i in stays]
        self.rows = [[*self.rows[i], token] for i, token in zip(stays, tokens)]
        return self.begin()


def length_of(variant: PromptVariant) -> int:
    return len(variant.prompt.tokens)
