"""Says how precisely a device computes, and when two results count as the same: in float32 nearly to the bit, in half precision as far as that goes."""

from __future__ import annotations

import torch


def most_precise(device: torch.device) -> torch.dtype:
    return torch.float32 if device.type == "mps" else torch.float64


def relative_difference(a: torch.Tensor, b: torch.Tensor) -> float:
    """Gives the length of the difference, relative to the length of the second."""
    a, b = a.to("cpu", torch.float64).reshape(-1), b.to("cpu", torch.float64).reshape(-1)
    error = float((a - b).norm() / b.norm().clamp_min(1e-30))
    return error if error == error else float("inf")


def tolerance(dtype: torch.dtype) -> float:
    return 1e-3 if dtype in (torch.float32, torch.float64) else 0.1
