"""Encoders of SAEs on the model's device: those that were used last stay there. What is around the dense product is done on the other side of the socket."""

from __future__ import annotations

import torch

from cuvette_torch.memory_budget import Room


class SaeEncoders:
    def __init__(self, device: torch.device, room: Room) -> None:
        self.device = device
        self.room = room
        self._held: dict[int, torch.Tensor] = {}

    def add(self, number: int, encoder: torch.Tensor) -> None:
        """Features × width; others may have to go."""
        self._held.pop(number, None)
        size = encoder.numel() * encoder.element_size()
        while self._held and sum(one.numel() * one.element_size() for one in self._held.values()) + size > self.room.kept:
            self._held.pop(next(iter(self._held)))
        self._held[number] = encoder.to(self.device)

    def products(self, number: int, rows: torch.Tensor) -> torch.Tensor | None:
        """Rows × features; None if the encoder has had to go."""
        encoder = self._held.pop(number, None)
        if encoder is None:
            return None
        self._held[number] = encoder
        products = torch.empty(len(rows), len(encoder))
        at_once = max(1, self.room.logits // len(encoder))
        for start in range(0, len(rows), at_once):
            some = rows[start : start + at_once].to(self.device)
            products[start : start + at_once] = (some @ encoder.T).cpu()
        return products
