"""Resolves positions in a prompt as requests name them: a list in which negative ones count from the end, or all from one on."""

from __future__ import annotations

from typing import Any


def resolve(positions: Any, length: int) -> list[int]:
    if isinstance(positions, dict):
        return list(range(from_end(positions["from"], length), length))
    return [from_end(position, length) for position in positions]


def goes_on(positions: Any) -> bool:
    """Says whether they go on into what is generated."""
    return isinstance(positions, dict)


def from_end(position: int, length: int) -> int:
    return position + length if position < 0 else position
