"""Parses requests that come over the socket. Whoever sends them has validated them already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from cuvette_torch.activations import HookPoint
from cuvette_torch.interventions import ALL_HEADS, Intervention


@dataclass(frozen=True)
class Variant:
    prompt: int
    interventions: list[Intervention]


@dataclass(frozen=True)
class Tap:
    point: HookPoint
    positions: Any
    # Of "z" and "pattern"; ALL_HEADS of "z" is the outputs of all heads side by side.
    head: int = ALL_HEADS


@dataclass(frozen=True)
class PromptRequest:
    """What requests have in common. The default variants are each prompt once, without changes."""

    prompts: list[tuple[int, ...]]
    variants: list[Variant]
    vectors: torch.Tensor


@dataclass(frozen=True)
class RunRequest(PromptRequest):
    taps: list[Tap]
    # Positions, and the tokens whose logits are wanted if not all are.
    logits: Any
    tokens: torch.Tensor | None
    surprise: bool


@dataclass(frozen=True)
class GenerateRequest(PromptRequest):
    new_tokens: int
    temperature: float
    # Variants × new tokens, random numbers from 0 to 1 that the caller has drawn.
    draws: torch.Tensor


@dataclass(frozen=True)
class AttributionRequest:
    prompts: list[tuple[int, ...]]
    pairs: list[tuple[int, int]]
    site: str
    positions: list[int]
    # Tokens.
    positive: list[int]
    negative: list[int]


def run_request(header: dict[str, Any], tensors: list[torch.Tensor]) -> RunRequest:
    return RunRequest(
        *prompts_of(header, tensors),
        taps=[Tap((layer, site), *rest) for layer, site, *rest in header["taps"]],
        logits=header["logits"],
        tokens=tensors[2].long() if len(tensors) > 2 else None,
        surprise=header["surprise"],
    )


def generate_request(header: dict[str, Any], tensors: list[torch.Tensor]) -> GenerateRequest:
    return GenerateRequest(
        *prompts_of(header, tensors),
        new_tokens=header["newTokens"],
        temperature=header["temperature"],
        draws=tensors[2],
    )


def attribution_request(header: dict[str, Any], tensors: list[torch.Tensor]) -> AttributionRequest:
    pairs = [(first, second) for first, second in header["pairs"]]
    return AttributionRequest(rows_of(header, tensors), pairs, header["place"], header["positions"], header["positive"], header["negative"])


def rows_of(header: dict[str, Any], tensors: list[torch.Tensor]) -> list[tuple[int, ...]]:
    return [tuple(part.tolist()) for part in tensors[0].split(header["lengths"])]


def prompts_of(header: dict[str, Any], tensors: list[torch.Tensor]) -> tuple[list[tuple[int, ...]], list[Variant], torch.Tensor]:
    prompts = rows_of(header, tensors)
    return prompts, variants_of(header, len(prompts)), tensors[1]


def variants_of(header: dict[str, Any], prompts: int) -> list[Variant]:
    if header["variants"] is None:
        return [Variant(prompt, []) for prompt in range(prompts)]
    return [Variant(prompt, [Intervention(*one) for one in interventions]) for prompt, interventions in header["variants"]]
