"""What is asked for, as the other side of the socket says it. The other side has checked that it makes sense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from cuvette_torch.activations import Point
from cuvette_torch.interventions import Intervention


@dataclass(frozen=True)
class Variant:
    prompt: int
    interventions: list[Intervention]


@dataclass(frozen=True)
class Tap:
    point: Point
    positions: Any


@dataclass(frozen=True)
class RunRequest:
    prompts: list[tuple[int, ...]]
    variants: list[Variant]
    vectors: torch.Tensor
    taps: list[Tap]
    # Positions, and the tokens whose logits are wanted if not all are.
    logits: Any
    tokens: torch.Tensor | None
    surprise: bool


@dataclass(frozen=True)
class GenerateRequest:
    prompts: list[tuple[int, ...]]
    variants: list[Variant]
    vectors: torch.Tensor
    new_tokens: int
    temperature: float
    # Variants × new tokens, from 0 to 1: chance comes from the other side.
    draws: torch.Tensor


def run_request(header: dict[str, Any], tensors: list[torch.Tensor]) -> RunRequest:
    prompts = split(tensors[0], header["lengths"])
    return RunRequest(
        prompts=prompts,
        variants=variants_of(header, len(prompts)),
        vectors=tensors[1],
        taps=[Tap((layer, place), positions) for layer, place, positions in header["taps"]],
        logits=header["logits"],
        tokens=tensors[2].long() if len(tensors) > 2 else None,
        surprise=header["surprise"],
    )


def generate_request(header: dict[str, Any], tensors: list[torch.Tensor]) -> GenerateRequest:
    prompts = split(tensors[0], header["lengths"])
    return GenerateRequest(
        prompts=prompts,
        variants=variants_of(header, len(prompts)),
        vectors=tensors[1],
        new_tokens=header["newTokens"],
        temperature=header["temperature"],
        draws=tensors[2],
    )


def split(tokens: torch.Tensor, lengths: list[int]) -> list[tuple[int, ...]]:
    return [tuple(part.tolist()) for part in tokens.split(lengths)]


def variants_of(header: dict[str, Any], prompts: int) -> list[Variant]:
    """By default each prompt once, as it is."""
    if header["variants"] is None:
        return [Variant(prompt, []) for prompt in range(prompts)]
    return [Variant(prompt, [Intervention(*one) for one in interventions]) for prompt, interventions in header["variants"]]
