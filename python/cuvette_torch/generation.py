"""Generating: prompts are computed as in a run, then all texts of one length grow together, token by token, with their interventions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Callable

import torch
from transformers import DynamicCache

from cuvette_torch.interventions import changes
from cuvette_torch.memory_budget import Room
from cuvette_torch.model_inspection import Examined, cache_of, layers_of
from cuvette_torch.prefix_cache import BaseBatch, BaseRuns, bytes_per_token, last_of, past_of
from cuvette_torch.prompts import Text, Work, batch_of, texts_of
from cuvette_torch.requests import GenerateRequest


class Generation:
    def __init__(
        self, subject: Examined, room: Room, bases: BaseRuns, request: GenerateRequest, limits: tuple[int, Sequence[int]], check: Callable[[], None]
    ) -> None:
        """`limits` are how many tokens fit into the model, and those that end a text."""
        self.subject = subject
        self.room = room
        self.bases = bases
        self.request = request
        self.context, self.end_tokens = limits
        self.check = check
        self.vectors = request.vectors.to(subject.forward.device)

    def tokens(self) -> list[list[int]]:
        """The new ones of each variant, without the one that ended it."""
        generated: dict[int, list[int]] = {}
        works = [work for text in texts_of(self.request.prompts, self.request.variants, self.subject.resumes) for work in text.works]
        works.sort(key=length_of)
        for length, group in itertools.groupby(works, key=length_of):
            new = min(self.request.new_tokens, self.context - length)
            if new <= 0:
                continue
            costs = [(lambda work: length, self.room.tokens), (lambda work: self.bytes_of(work) * (length + new), self.room.cache)]
            self.room.in_parts(list(group), costs, lambda part: generated.update(self.grow(part, new)), "what is generated")
            self.bases.trim(self.room.kept)
        return [generated.get(number, []) for number in range(len(self.request.variants))]

    def bytes_of(self, work: Work) -> int:
        return bytes_per_token(work.text.base.batch) if work.text.base else 0

    def grow(self, works: Sequence[Work], new: int) -> dict[int, list[int]]:
        growing = Growing(self, works) if self.subject.resumes else Recomputing(self, works)
        generated: dict[int, list[int]] = {work.number: [] for work in works}
        alive = growing.works
        last = growing.begin()
        for turn in range(new):
            chosen = self.choose(self.subject.head.logits(last), [work.number for work in alive], turn)
            stays = [i for i, token in enumerate(chosen) if token not in self.end_tokens]
            for i in stays:
                generated[alive[i].number].append(chosen[i])
            if not stays or turn == new - 1:
                return generated
            last = growing.step(stays, [chosen[i] for i in stays])
            alive = growing.works
        return generated

    def choose(self, logits: torch.Tensor, numbers: list[int], turn: int) -> list[int]:
        if self.request.temperature == 0:
            return logits.argmax(-1).tolist()
        logits = logits.to("cpu", torch.float64)
        weights = ((logits - logits.max(-1, keepdim=True).values) / self.request.temperature).exp().cumsum(-1)
        drawn = self.request.draws[torch.tensor(numbers), turn].to(torch.float64).unsqueeze(-1) * weights[:, -1:]
        return torch.searchsorted(weights, drawn, right=True).squeeze(-1).clamp_max(logits.shape[-1] - 1).tolist()

    def forward(self, works: Sequence[Work], rows: Sequence[Sequence[int]], first: int, past: Any) -> torch.Tensor:
        """What the head is given at the last position of each."""
        end = first + len(rows[0])
        sites = ((row, position - first, one) for row, work in enumerate(works) for position, one in work.sites(first, end))
        last = self.subject.forward(batch_of(rows), changes(sites, self.vectors), past, None, self.check)
        assert last is not None
        return last[:, -1]


class Growing:
    """Texts of one length whose keys and values are kept as they grow."""

    def __init__(self, generation: Generation, works: Sequence[Work]) -> None:
        self.generation = generation
        # Those that begin to change at the same position stand together.
        self.works = sorted(works, key=lambda work: work.first)
        self.length = length_of(works[0])
        self.past: Any = None

    def begin(self) -> torch.Tensor:
        self.compute_bases(list({work.text: None for work in self.works}))
        lasts, layers = [], []
        for first, group in itertools.groupby(self.works, key=lambda work: work.first):
            works = list(group)
            past = past_of([work.text.base for work in works], first) if first > 0 else DynamicCache()
            if first < self.length:
                lasts.append(self.generation.forward(works, [work.text.tokens[first:] for work in works], first, past))
            else:
                lasts.append(last_of((work.text.base, self.length - 1) for work in works))
            layers.append(layers_of(past))
        for work in self.works:
            work.text.base = None
        self.past = cache_of([tuple(torch.cat(side) for side in zip(*same)) for same in zip(*layers)])
        return torch.cat(lasts)

    def compute_bases(self, texts: Sequence[Text]) -> None:
        bases = self.generation.bases
        for text in texts:
            text.base = bases.recall(text, True)
        missing = [text for text in texts if text.base is None]
        if missing:
            past = DynamicCache()
            last = self.generation.subject.forward(batch_of(text.tokens for text in missing), {}, past, None, self.generation.check)
            bases.keep(missing, BaseBatch(layers_of(past), last))

    def step(self, stays: list[int], tokens: list[int]) -> torch.Tensor:
        if len(stays) < len(self.works):
            self.works = [self.works[i] for i in stays]
            self.past = cache_of([tuple(side[torch.tensor(stays, device=side.device)] for side in pair) for pair in layers_of(self.past)])
        self.length += 1
        return self.generation.forward(self.works, [[token] for token in tokens], self.length - 1, self.past)


class Recomputing:
    """Texts of a model that cannot go on from kept keys and values: all of them is computed again for each token."""

    def __init__(self, generation: Generation, works: Sequence[Work]) -> None:
        self.generation = generation
        self.works = list(works)
        self.rows = [list(work.text.tokens) for work in works]

    def begin(self) -> torch.Tensor:
        return self.generation.forward(self.works, self.rows, 0, None)

    def step(self, stays: list[int], tokens: list[int]) -> torch.Tensor:
        self.works = [self.works[i] for i in stays]
        self.rows = [[*self.rows[i], token] for i, token in zip(stays, tokens)]
        return self.begin()


def length_of(work: Work) -> int:
    return len(work.text.tokens)
