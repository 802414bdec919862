"""Makes hooks that apply interventions to a whole batch, each text with its own. They compute in double precision where the device has it, and cast back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Callable

import torch

from cuvette_torch.activations import Hook, HookPoint, Hooks, fitted
from cuvette_torch.errors import EngineError
from cuvette_torch.numerics import most_precise

# A text, a position, the numbers of the vector and the source in the request's table, and a head.
Row = tuple[int, int, int, int, int]

# In place of a head's number.
ALL_HEADS = -1
# How far rounding may take the sum of a pattern's row from 1, and a weight below 0.
SUM_WITHIN = 1e-3
LEAST = -1e-5


# The number of the step, the kind, and whether it is about single heads.
Step = tuple[int, str, bool]


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
    head: int = ALL_HEADS

    @property
    def point(self) -> HookPoint:
        return (self.layer, self.site)


def hooks_for(edits: Iterable[tuple[int, int, Intervention]], vectors: torch.Tensor) -> Hooks:
    """An edit is a text of the batch, a position among those computed, and the intervention there. Interventions at one text, position and
    hook point are made in their order: the first of all such rows in one step, then the second, and so on."""
    counts: dict[tuple[HookPoint, int, int], int] = {}
    steps: dict[HookPoint, dict[Step, list[Row]]] = {}
    for text, position, intervention in edits:
        key = (intervention.point, text, position)
        order = counts.get(key, 0)
        counts[key] = order + 1
        rows = steps.setdefault(intervention.point, {}).setdefault((order, intervention.kind, intervention.head != ALL_HEADS), [])
        rows.append((text, position, intervention.vector, intervention.source, intervention.head))
    return {point: [_step(point, step, rows, vectors) for step, rows in _in_order(found)] for point, found in steps.items()}


def _in_order(steps: dict[Step, list[Row]]) -> list[tuple[Step, list[Row]]]:
    return sorted(steps.items(), key=lambda step: step[0][0])


def _step(point: HookPoint, step: Step, rows: list[Row], vectors: torch.Tensor) -> Hook:
    texts, positions, ours, sources, heads = torch.tensor(rows, dtype=torch.long, device=vectors.device).unbind(1)
    _, kind, is_of_head = step
    change = KINDS[kind]

    def hook(x: torch.Tensor) -> torch.Tensor:
        at = tuple(index.to(x.device) for index in ((texts, positions, heads) if is_of_head else (texts, positions)))
        changed = x.clone() if is_of_head or x.ndim == 3 else x.flatten(2).clone()
        dtype = most_precise(x.device)
        before = changed[at].to(dtype)
        given = (fitted(vectors[which], before.shape[-1]).to(x.device, dtype) for which in (ours, sources))
        after = change(before, *given)
        if point[1] == "pattern":
            _check_pattern(point, after, at[1] + x.shape[-1] - x.shape[1])
        changed[at] = after.to(x.dtype)
        return changed.reshape(x.shape)

    return hook


def _check_pattern(point: HookPoint, rows: torch.Tensor, positions: torch.Tensor) -> None:
    """Rejects a row that is no distribution over the tokens up to its own."""
    later = torch.arange(rows.shape[-1], device=rows.device) > positions.unsqueeze(-1)
    is_wrong = ((rows.sum(-1) - 1).abs() > SUM_WITHIN) | (rows.min(-1).values < LEAST) | ((rows != 0) & later).any(-1)
    if bool(is_wrong.any()):
        which = int(is_wrong.nonzero()[0])
        raise EngineError(
            "invalid_input",
            "A row of blocks.%d.attn.hook_pattern sums to %.4g at position %d, with %.3g as its lowest weight, and would be no distribution. "
            "Give weights of 0 or more that sum to 1; to switch a head off, set its output (hook_z) to 0."
            % (point[0], float(rows[which].sum()), int(positions[which]), float(rows[which].min())),
        )


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
