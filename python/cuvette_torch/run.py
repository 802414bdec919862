"""Answers a run request: computes each prompt once, and its variants only from their first change on, in batches."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Callable

import torch
from transformers import DynamicCache

from cuvette_torch import positions
from cuvette_torch.activations import HookPoint, Hooks
from cuvette_torch.head_discovery import ATTENTION_SITES
from cuvette_torch.interventions import ALL_HEADS, hooks_for
from cuvette_torch.memory_budget import Cost, MemoryBudget
from cuvette_torch.model_inspection import InspectedModel, layers_of
from cuvette_torch.outputs import Table, add_hook
from cuvette_torch.predictions import Predictions, Wanted
from cuvette_torch.prefix_cache import CachedBatch, PrefixCache, bytes_per_token, last_of, past_of
from cuvette_torch.prompts import Prompt, PromptVariant, batch_of, prompts_of
from cuvette_torch.requests import RunRequest, Tap

ORDER = {"resid_pre": 0, "pattern": 1, "z": 2, "attn_out": 3, "mlp_out": 4, "resid_post": 5}


class Run:
    """Computes one request into tables: the activations of each tap, logits, log-probabilities, divergences."""

    def __init__(self, model_info: InspectedModel, budget: MemoryBudget, prefixes: PrefixCache, request: RunRequest, check: Callable[[], None]) -> None:
        self.model_info = model_info
        self.budget = budget
        self.prefixes = prefixes
        self.request = request
        self.check = check
        self.vectors = request.vectors.to(model_info.forward.device)
        self.until = None if request.logits is not None or request.surprise else last_point(request)
        self.prompts = prompts_of(request.prompts, request.variants, model_info.supports_kv_cache)
        vocabulary = model_info.head.vocabulary
        self.predictions = Predictions(model_info.head, vocabulary, budget.logits, check)
        lengths = [len(request.prompts[variant.prompt]) for variant in request.variants]

        def counts(asked: Any) -> list[int]:
            return [len(positions.resolve(asked, length)) for length in lengths]

        self.taps = [Table(counts(tap.positions), self.width_of(tap)) for tap in request.taps]
        columns = vocabulary if request.tokens is None else len(request.tokens)
        self.logits = Table(counts(request.logits) if request.logits is not None else [], columns)
        self.log_probabilities = Table([length - 1 for length in lengths] if request.surprise else [], 1)
        self.divergences = Table(lengths if request.surprise else [], 1)

    def width_of(self, tap: Tap) -> int:
        """A pattern has a weight for each token, and so as many columns as the longest prompt has."""
        layer, site = tap.point
        if site not in ATTENTION_SITES:
            return self.model_info.width
        heads = self.model_info.forward.heads_at(layer, site)
        if site == "pattern":
            return max(map(len, self.request.prompts))
        return heads.width if tap.head != ALL_HEADS else heads.count * heads.width

    def tables(self) -> list[torch.Tensor]:
        """Computes what is asked for, and nothing where nothing is."""
        if self.request.taps or self.request.logits is not None or self.request.surprise:
            for prompts in self.in_lengths(self.prompts):
                self.budget.in_batches(prompts, [(lambda prompt: len(prompt.tokens), self.budget.tokens)], self.run_prompts, "the prompts")
        return [table.data for table in (*self.taps, self.logits, self.log_probabilities, self.divergences)]

    def in_lengths(self, prompts: Sequence[Prompt]) -> list[list[Prompt]]:
        """Groups prompts that may be computed in one batch."""
        prompts = sorted(prompts, key=lambda prompt: len(prompt.tokens))
        return [list(group) for _, group in itertools.groupby(prompts, key=lambda prompt: self.model_info.batch_key(len(prompt.tokens)))]

    def run_prompts(self, prompts: Sequence[Prompt]) -> None:
        self.compute_bases(prompts)
        changed = sorted((variant for prompt in prompts for variant in prompt.variants if variant.is_changed), key=self.group_of)
        for _, group in itertools.groupby(changed, key=self.group_of):
            variants = list(group)
            batch = variants[0].prompt.computed.batch if variants[0].first > 0 else None
            size = bytes_per_token(batch) if batch else 0
            self.budget.in_batches(variants, self.costs(size), self.run_changed, "the variants of a prompt")
        for prompt in prompts:
            prompt.cached = None
        self.prefixes.evict(self.budget.kept)

    def costs(self, bytes_per_token: int) -> list[Cost[PromptVariant]]:
        return [
            (lambda variant: len(variant.prompt.tokens) - variant.first, self.budget.tokens),
            (lambda variant: bytes_per_token * len(variant.prompt.tokens), self.budget.cache),
        ]

    def group_of(self, variant: PromptVariant) -> tuple[int, ...]:
        """Variants may be computed in one batch if they begin at the same position."""
        return (variant.first, *self.model_info.batch_key(len(variant.prompt.tokens)))

    # -- prompts as they are ----------------------------------------------------------------------

    def compute_bases(self, prompts: Sequence[Prompt]) -> None:
        needs_past = any(variant.first > 0 and variant.is_changed for prompt in prompts for variant in prompt.variants)
        needed = [prompt for prompt in prompts if needs_past or self.request.surprise or not all(variant.is_changed for variant in prompt.variants)]
        if not needed:
            return
        hooks = self.base_hooks(needed)
        for prompt in needed:
            prompt.cached = None if hooks else self.prefixes.get(prompt, needs_past)
        if not all(prompt.cached is not None and prompt.cached.batch.last is not None for prompt in needed):
            past = DynamicCache() if needs_past else None
            last = self.compute(batch_of(prompt.tokens for prompt in needed), hooks, past)
            self.prefixes.put(needed, CachedBatch(layers_of(past) if needs_past else None, last))
        if self.request.logits is not None or self.request.surprise:
            self.predict_bases(needed)

    def base_hooks(self, prompts: Sequence[Prompt]) -> Hooks:
        hooks: Hooks = {}
        for tap, table in zip(self.request.taps, self.taps):
            wanted = [
                (row, position, table.slot(variant.number, i))
                for row, prompt in enumerate(prompts)
                for variant in prompt.variants
                for i, position in enumerate(positions.resolve(tap.positions, len(prompt.tokens)))
                if position < variant.first
            ]
            if wanted:
                add_hook(hooks, tap.point, table.reading(wanted, tap.head))
        return hooks

    def predict_bases(self, prompts: Sequence[Prompt]) -> None:
        """Predicts for prompts that may come from several batches, each with its own rows."""
        for batch in {prompt.computed.batch: None for prompt in prompts}:
            ours = [prompt for prompt in prompts if prompt.computed.batch is batch]
            if self.request.logits is not None:
                wanted = [one for prompt in ours for one in self.base_logits(prompt)]
                self.predictions.logits(batch.last, wanted, self.request.tokens, self.logits)
            if self.request.surprise:
                found = [one for prompt in ours for one in self.base_surprise(prompt)]
                self.predictions.log_probabilities(batch.last, found, self.log_probabilities)

    def base_logits(self, prompt: Prompt) -> list[Wanted]:
        slots: dict[int, list[int]] = {}
        for variant in prompt.variants:
            for i, position in enumerate(positions.resolve(self.request.logits, len(prompt.tokens))):
                if position < variant.first:
                    slots.setdefault(position, []).append(self.logits.slot(variant.number, i))
        return [Wanted(prompt.computed.row, position, found) for position, found in slots.items()]

    def base_surprise(self, prompt: Prompt) -> list[tuple[Wanted, int]]:
        table = self.log_probabilities
        found: list[tuple[Wanted, int]] = []
        for position, token in enumerate(prompt.tokens[1:]):
            slots = [table.slot(variant.number, position) for variant in prompt.variants if position < variant.first]
            if slots:
                found.append((Wanted(prompt.computed.row, position, slots), token))
        return found

    # -- variants ---------------------------------------------------------------------------------

    def run_changed(self, variants: Sequence[PromptVariant]) -> None:
        first = variants[0].first
        variants = sorted(variants, key=lambda variant: id(variant.prompt.computed.batch)) if first > 0 else variants
        edits = ((row, position - first, one) for row, variant in enumerate(variants) for position, one in variant.edits(first, len(variant.prompt.tokens)))
        hooks = hooks_for(edits, self.vectors)
        for tap, table in zip(self.request.taps, self.taps):
            wanted = [(row, position - first, table.slot(variant.number, i)) for row, variant, i, position in own(variants, tap.positions)]
            if wanted:
                add_hook(hooks, tap.point, table.reading(wanted, tap.head))
        past = past_of([variant.prompt.computed for variant in variants], first) if first > 0 else None
        last = self.compute(batch_of(variant.prompt.tokens[first:] for variant in variants), hooks, past)
        if last is not None:
            self.predict_changed(variants, first, last)

    def predict_changed(self, variants: Sequence[PromptVariant], first: int, last: torch.Tensor) -> None:
        if self.request.logits is not None:
            wanted = [Wanted(row, position - first, [self.logits.slot(variant.number, i)]) for row, variant, i, position in own(variants, self.request.logits)]
            self.predictions.logits(last, wanted, self.request.tokens, self.logits)
        if not self.request.surprise:
            return
        found = []
        for row, variant, _, position in own(variants, {"from": 0}):
            following = variant.prompt.tokens[position + 1 : position + 2]
            slots = [self.log_probabilities.slot(variant.number, position)] if following else []
            found.append((Wanted(row, position - first, slots), *(following or [None]), self.divergences.slot(variant.number, position)))
        base = last_of((variant.prompt.computed, position) for _, variant, _, position in own(variants, {"from": 0}))
        self.predictions.compare(last, base, found, (self.log_probabilities, self.divergences))

    def compute(self, tokens: torch.Tensor, hooks: Hooks, past: Any) -> torch.Tensor | None:
        for table in self.taps:
            table.forget()
        last = self.model_info.forward(tokens, hooks, past, self.until, self.check)
        for table in self.taps:
            table.flush()
        return last


def own(variants: Sequence[PromptVariant], asked: Any) -> Iterator[tuple[int, PromptVariant, int, int]]:
    """Yields, of the positions asked for, those that variants compute themselves: the row, the variant, the number of the position, the position."""
    for row, variant in enumerate(variants):
        for i, position in enumerate(positions.resolve(asked, len(variant.prompt.tokens))):
            if position >= variant.first:
                yield row, variant, i, position


def last_point(request: RunRequest) -> HookPoint | None:
    points = [tap.point for tap in request.taps]
    return max(points, key=lambda point: (point[0], ORDER[point[1]]), default=None)
