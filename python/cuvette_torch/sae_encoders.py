"""Keeps SAE encoders on the model's device and evicts the least recently used. Only the dense product is computed here; the caller does the rest."""

from __future__ import annotations

import torch

from cuvette_torch.memory_budget import MemoryBudget


class SaeEncoders:
    def __init__(self, device: torch.device, budget: MemoryBudget) -> None:
        self.device = device
        self.budget = budget
        self._held: dict[int, torch.Tensor] = {}

    def add(self, number: int, encoder: torch.Tensor) -> None:
        """Adds an encoder, features × width; others may be evicted for it."""
        self._held.pop(number, None)
        size = encoder.numel() * encoder.element_size()
        while self._held and sum(one.numel() * one.element_size() for one in self._held.values()) + size > self.budget.kept:
            self._held.pop(next(iter(self._held)))
        self._held[number] = encoder.to(self.device)

    def products(self, number: int, rows: torch.Tensor) -> torch.Tensor | None:
        """Gives rows × features; None if the encoder has been evicted."""
        encoder = self._held.pop(number, None)
        if encoder is None:
            return None
        self._held[number] = encoder
        products = torch.empty(len(rows), len(encoder))
        at_once = max(1, self.budget.logits // len(encoder))
        for start in range(0, len(rows), at_once):
            some = rows[start : start + at_once].to(self.device)
            products[start : start + at_once] = (some @ encoder.T).cpu()
        return products
