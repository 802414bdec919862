"""Samples numbers from a model's weights and buffers, to tell whether they are still those that were loaded: all of them are too many to compare with
every request. Each row and each column of a matrix gives at least one, up to a limit. A change to single numbers elsewhere is missed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from cuvette_torch.block_discovery import text_config

# The most samples of one tensor: of a tensor with more rows, only some rows are sampled.
MOST = 1 << 16
# The integer types that numbers are compared as, by their size in bytes, so that NaN equals itself.
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Fingerprint:
    def __init__(self, model: Any) -> None:
        self.drawn = draw(model)

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fingerprint) or self.drawn.keys() != other.drawn.keys():
            return False
        return all(torch.equal(numbers, other.drawn[kind]) for kind, numbers in self.drawn.items())


@torch.inference_mode()
def draw(model: Any) -> dict[Any, torch.Tensor]:
    """Samples by device and dtype: one comparison for all tensors of a device takes much less time than one for each."""
    found: dict[Any, list[torch.Tensor]] = {}
    for tensor in tensors_of(model):
        flat = tensor.detach().flatten()
        found.setdefault((tensor.device, tensor.dtype), []).append(flat[:: step_of(tensor)].view(BITS[tensor.element_size()]))
    return {kind: torch.cat(some) for kind, some in found.items()}


def tensors_of(model: Any) -> Iterator[torch.Tensor]:
    buffers = () if remakes_buffers(model) else model.buffers()
    for tensor in (*model.parameters(), *buffers):
        # Offloaded weights have no numbers here, and tensor subclasses keep theirs in other tensors.
        if tensor.numel() > 0 and not tensor.is_meta and not hasattr(tensor, "__tensor_flatten__") and not tensor.is_complex():
            yield tensor


def step_of(tensor: torch.Tensor) -> int:
    """Gives a step that has no factor in common with the length of rows, so that the samples move through all columns."""
    columns = tensor.shape[-1] if tensor.ndim > 0 else 1
    rows = tensor.numel() // columns
    step = tensor.numel() // min(max(rows, columns), MOST)
    while math.gcd(step, columns) > 1:
        step -= 1
    return step


def remakes_buffers(model: Any) -> bool:
    """Says whether the model itself recomputes its rotary embedding for longer texts."""
    config = text_config(model)
    rotary = str(getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None))
    return "dynamic" in rotary or "longrope" in rotary
