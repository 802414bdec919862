"""Runs: prompts are computed once as they are, and their variants only from their first change on, many of them together."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Callable

import torch
from transformers import DynamicCache

from cuvette_torch import positions
from cuvette_torch.activations import Point, Visits
from cuvette_torch.interventions import changes
from cuvette_torch.memory_budget import Room
from cuvette_torch.model_inspection import Examined, layers_of
from cuvette_torch.outputs import Table, add_visit
from cuvette_torch.predictions import Predictions, Wanted
from cuvette_torch.prefix_cache import BaseBatch, BaseRuns, bytes_per_token, last_of, past_of
from cuvette_torch.prompts import Text, Work, batch_of, texts_of
from cuvette_torch.requests import RunRequest

ORDER = {"resid_pre": 0, "attn_out": 1, "mlp_out": 2, "resid_post": 3}


class Run:
    """One request. What it computes goes to tables: activations of each tap, logits, log-probabilities, divergences."""

    def __init__(self, subject: Examined, room: Room, bases: BaseRuns, request: RunRequest, check: Callable[[], None]) -> None:
        self.subject = subject
        self.room = room
        self.bases = bases
        self.request = request
        self.check = check
        self.vectors = request.vectors.to(subject.forward.device)
        self.until = None if request.logits is not None or request.surprise else last_point(request)
        self.texts = texts_of(request.prompts, request.variants, subject.resumes)
        vocabulary = subject.head.vocabulary
        self.predictions = Predictions(subject.head, vocabulary, room.logits, check)
        lengths = [len(request.prompts[variant.prompt]) for variant in request.variants]
        counts = lambda asked: [len(positions.resolve(asked, length)) for length in lengths]  # noqa: E731
        self.taps = [Table(counts(tap.positions), subject.width) for tap in request.taps]
        columns = vocabulary if request.tokens is None else len(request.tokens)
        self.logits = Table(counts(request.logits) if request.logits is not None else [], columns)
        self.log_probabilities = Table([length - 1 for length in lengths] if request.surprise else [], 1)
        self.divergences = Table(lengths if request.surprise else [], 1)

    def tables(self) -> list[torch.Tensor]:
        """Nothing is computed where nothing is asked for."""
        if self.request.taps or self.request.logits is not None or self.request.surprise:
            for texts in self.in_lengths(self.texts):
                self.room.in_parts(texts, [(lambda text: len(text.tokens), self.room.tokens)], self.run_texts, "the prompts")
        return [table.data for table in (*self.taps, self.logits, self.log_probabilities, self.divergences)]

    def in_lengths(self, texts: Sequence[Text]) -> list[list[Text]]:
        """Texts that may be computed together."""
        texts = sorted(texts, key=lambda text: len(text.tokens))
        if self.subject.pads:
            return [texts]
        return [list(group) for _, group in itertools.groupby(texts, key=lambda text: len(text.tokens))]

    def run_texts(self, texts: Sequence[Text]) -> None:
        self.compute_bases(texts)
        changed = sorted((work for text in texts for work in text.works if work.is_changed), key=self.group_of)
        for _, group in itertools.groupby(changed, key=self.group_of):
            works = list(group)
            batch = works[0].text.base.batch if works[0].first > 0 else None
            size = bytes_per_token(batch) if batch else 0
            costs = [(lambda work: len(work.text.tokens) - work.first, self.room.tokens), (lambda work: size * len(work.text.tokens), self.room.cache)]
            self.room.in_parts(works, costs, self.run_changed, "the variants of a prompt")
        for text in texts:
            text.base = None
        self.bases.trim(self.room.kept)

    def group_of(self, work: Work) -> tuple[int, ...]:
        """Variants that may be computed together begin at the same position."""
        return (work.first,) if self.subject.pads else (work.first, len(work.text.tokens))

    # -- prompts as they are ----------------------------------------------------------------------

    def compute_bases(self, texts: Sequence[Text]) -> None:
        needs_past = any(work.first > 0 and work.is_changed for text in texts for work in text.works)
        needed = [text for text in texts if needs_past or self.request.surprise or not all(work.is_changed for work in text.works)]
        if not needed:
            return
        visits = self.base_readings(needed)
        for text in needed:
            text.base = None if visits else self.bases.recall(text, needs_past)
        if not all(text.base is not None and text.base.batch.last is not None for text in needed):
            past = DynamicCache() if needs_past else None
            last = self.compute(batch_of(text.tokens for text in needed), visits, past)
            self.bases.keep(needed, BaseBatch(layers_of(past) if needs_past else None, last))
        if self.request.logits is not None or self.request.surprise:
            self.predict_bases(needed)

    def base_readings(self, texts: Sequence[Text]) -> Visits:
        visits: Visits = {}
        for tap, table in zip(self.request.taps, self.taps):
            wanted = [
                (row, position, table.slot(work.number, i))
                for row, text in enumerate(texts)
                for work in text.works
                for i, position in enumerate(positions.resolve(tap.positions, len(text.tokens)))
                if position < work.first
            ]
            if wanted:
                add_visit(visits, tap.point, table.reading(wanted))
        return visits

    def predict_bases(self, texts: Sequence[Text]) -> None:
        """Prompts may come from several batches, each with its own rows."""
        for batch in {text.base.batch: None for text in texts}:
            ours = [text for text in texts if text.base.batch is batch]
            if self.request.logits is not None:
                wanted = [one for text in ours for one in self.base_logits(text)]
                self.predictions.logits(batch.last, wanted, self.request.tokens, self.logits)
            if self.request.surprise:
                found = [one for text in ours for one in self.base_surprise(text)]
                self.predictions.log_probabilities(batch.last, found, self.log_probabilities)

    def base_logits(self, text: Text) -> list[Wanted]:
        slots: dict[int, list[int]] = {}
        for work in text.works:
            for i, position in enumerate(positions.resolve(self.request.logits, len(text.tokens))):
                if position < work.first:
                    slots.setdefault(position, []).append(self.logits.slot(work.number, i))
        return [Wanted(text.base.row, position, found) for position, found in slots.items()]

    def base_surprise(self, text: Text) -> list[tuple[Wanted, int]]:
        table = self.log_probabilities
        nexts = enumerate(text.tokens[1:])
        found = [(position, token, [table.slot(work.number, position) for work in text.works if position < work.first]) for position, token in nexts]
        return [(Wanted(text.base.row, position, slots), token) for position, token, slots in found if slots]

    # -- variants ---------------------------------------------------------------------------------

    def run_changed(self, works: Sequence[Work]) -> None:
        first = works[0].first
        works = sorted(works, key=lambda work: id(work.text.base.batch)) if first > 0 else works
        sites = ((row, position - first, one) for row, work in enumerate(works) for position, one in work.sites(first, len(work.text.tokens)))
        visits = changes(sites, self.vectors)
        for tap, table in zip(self.request.taps, self.taps):
            wanted = [(row, position - first, table.slot(work.number, i)) for row, work, i, position in own(works, tap.positions)]
            if wanted:
                add_visit(visits, tap.point, table.reading(wanted))
        past = past_of([work.text.base for work in works], first) if first > 0 else None
        last = self.compute(batch_of(work.text.tokens[first:] for work in works), visits, past)
        if last is not None:
            self.predict_changed(works, first, last)

    def predict_changed(self, works: Sequence[Work], first: int, last: torch.Tensor) -> None:
        if self.request.logits is not None:
            wanted = [Wanted(row, position - first, [self.logits.slot(work.number, i)]) for row, work, i, position in own(works, self.request.logits)]
            self.predictions.logits(last, wanted, self.request.tokens, self.logits)
        if not self.request.surprise:
            return
        found = []
        for row, work, _, position in own(works, {"from": 0}):
            following = work.text.tokens[position + 1 : position + 2]
            slots = [self.log_probabilities.slot(work.number, position)] if following else []
            found.append((Wanted(row, position - first, slots), *(following or [None]), self.divergences.slot(work.number, position)))
        base = last_of((work.text.base, position) for _, work, _, position in own(works, {"from": 0}))
        self.predictions.compare(last, base, found, (self.log_probabilities, self.divergences))

    def compute(self, tokens: torch.Tensor, visits: Visits, past: Any) -> torch.Tensor | None:
        for table in self.taps:
            table.forget()
        last = self.subject.forward(tokens, visits, past, self.until, self.check)
        for table in self.taps:
            table.flush()
        return last


def own(works: Sequence[Work], asked: Any) -> Any:
    """What variants compute themselves of the positions asked for: the row, the variant, the number of the position, the position."""
    for row, work in enumerate(works):
        for i, position in enumerate(positions.resolve(asked, len(work.text.tokens))):
            if position >= work.first:
                yield row, work, i, position


def last_point(request: RunRequest) -> Point | None:
    points = [tap.point for tap in request.taps]
    return max(points, key=lambda point: (point[0], ORDER[point[1]]), default=None)
