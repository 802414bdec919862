"""The most precise numbers that a device computes with."""

from __future__ import annotations

import torch


def precise(device: torch.device) -> torch.dtype:
    return torch.float32 if device.type == "mps" else torch.float64
