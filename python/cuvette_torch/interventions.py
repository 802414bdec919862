"""What interventions do to the activations of a whole batch, each text with its own. Computed in double precision where the device has it, and cast back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Callable

import torch

from cuvette_torch.activations import Point, Visit, Visits
from cuvette_torch.precision import precise


@dataclass(frozen=True)
class Intervention:
    layer: int
    place: str
    # add, set, project-out, along, rest.
    kind: str
    positions: Any
    # Numbers of rows in the request's table of vectors.
    vector: int
    source: int = -1

    @property
    def point(self) -> Point:
        return (self.layer, self.place)


def changes(sites: Iterable[tuple[int, int, Intervention]], vectors: torch.Tensor) -> Visits:
    """Visits that make the interventions. A site is a text of the batch, a position among those computed, and what is done there; at one site,
    interventions are made in their order. A step does all that come at the same turn."""
    turns: dict[Any, int] = {}
    steps: dict[Point, dict[tuple[int, str], list[Any]]] = {}
    for text, position, intervention in sites:
        site = (intervention.point, text, position)
        turn = turns.get(site, 0)
        turns[site] = turn + 1
        rows = steps.setdefault(intervention.point, {}).setdefault((turn, intervention.kind), [])
        rows.append((text, position, intervention.vector, intervention.source))
    in_order = lambda found: sorted(found.items(), key=lambda step: step[0][0])  # noqa: E731
    return {point: [_step(kind, rows, vectors) for (_, kind), rows in in_order(found)] for point, found in steps.items()}


def _step(kind: str, rows: list[Any], vectors: torch.Tensor) -> Visit:
    texts, positions, ours, sources = torch.tensor(rows, dtype=torch.long, device=vectors.device).unbind(1)
    change = KINDS[kind]

    def visit(x: torch.Tensor) -> torch.Tensor:
        at = (texts.to(x.device), positions.to(x.device))
        dtype = precise(x.device)
        after = change(x[at].to(dtype), vectors[ours].to(x.device, dtype), vectors[sources].to(x.device, dtype))
        x = x.clone()
        x[at] = after.to(x.dtype)
        return x

    return visit


def _component(x: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
    """How often the direction is in each row."""
    return ((x * direction).sum(-1) / (direction * direction).sum(-1)).unsqueeze(-1)


KINDS: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add": lambda x, vector, _: x + vector,
    "set": lambda x, vector, _: vector,
    "project-out": lambda x, direction, _: x - _component(x, direction) * direction,
    "along": lambda x, direction, source: x + (_component(source, direction) - _component(x, direction)) * direction,
    "rest": lambda x, direction, source: source - (_component(source, direction) - _component(x, direction)) * direction,
}
