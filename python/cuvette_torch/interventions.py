"""Makes hooks that apply interventions to a whole batch, each text with its own. They compute in double precision where the device has it, and cast back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Callable

import torch

from cuvette_torch.activations import Hook, HookPoint, Hooks
from cuvette_torch.numerics import most_precise

# A text, a position, and the numbers of the vector and the source in the request's table.
Row = tuple[int, int, int, int]


@dataclass(frozen=True)
class Intervention:
    layer: int
    site: str
    # add, set, project-out, along, rest.
    kind: str
    positions: Any
    # Numbers of rows in the request's table of vectors.
    vector: int
    source: int = -1

    @property
    def point(self) -> HookPoint:
        return (self.layer, self.site)


def hooks_for(edits: Iterable[tuple[int, int, Intervention]], vectors: torch.Tensor) -> Hooks:
    """An edit is a text of the batch, a position among those computed, and the intervention there. Interventions at one text, position and
    hook point are made in their order: the first of all such rows in one step, then the second, and so on."""
    counts: dict[tuple[HookPoint, int, int], int] = {}
    steps: dict[HookPoint, dict[tuple[int, str], list[Row]]] = {}
    for text, position, intervention in edits:
        key = (intervention.point, text, position)
        order = counts.get(key, 0)
        counts[key] = order + 1
        rows = steps.setdefault(intervention.point, {}).setdefault((order, intervention.kind), [])
        rows.append((text, position, intervention.vector, intervention.source))
    return {point: [_step(kind, rows, vectors) for (_, kind), rows in _in_order(found)] for point, found in steps.items()}


def _in_order(steps: dict[tuple[int, str], list[Row]]) -> list[tuple[tuple[int, str], list[Row]]]:
    return sorted(steps.items(), key=lambda step: step[0][0])


def _step(kind: str, rows: list[Row], vectors: torch.Tensor) -> Hook:
    texts, positions, ours, sources = torch.tensor(rows, dtype=torch.long, device=vectors.device).unbind(1)
    change = KINDS[kind]

    def hook(x: torch.Tensor) -> torch.Tensor:
        at = (texts.to(x.device), positions.to(x.device))
        dtype = most_precise(x.device)
        after = change(x[at].to(dtype), vectors[ours].to(x.device, dtype), vectors[sources].to(x.device, dtype))
        x = x.clone()
        x[at] = after.to(x.dtype)
        return x

    return hook


def _component(x: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
    """Gives the component of each row along the direction."""
    return ((x * direction).sum(-1) / (direction * direction).sum(-1)).unsqueeze(-1)


KINDS: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add": lambda x, vector, _: x + vector,
    "set": lambda x, vector, _: vector,
    "project-out": lambda x, direction, _: x - _component(x, direction) * direction,
    "along": lambda x, direction, source: x + (_component(source, direction) - _component(x, direction)) * direction,
    "rest": lambda x, direction, source: source - (_component(source, direction) - _component(x, direction)) * direction,
}
