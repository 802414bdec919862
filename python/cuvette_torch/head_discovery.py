"""Finds the heads of a model's attention by what they do: their output is attention weights times values, and a projection takes all of them together.

A short text is run once with attention computed step by step ("eager"), so that the weights come out of a softmax. The projection of a block is the module
that is given these weights times the cached values, and whose product is what the attention of the block adds to the residual stream. Both are computed
again here and compared; where they do not agree, the block has no head sites, and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Callable

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from transformers import DynamicCache

from cuvette_torch import activations
from cuvette_torch.block_discovery import Block
from cuvette_torch.numerics import relative_difference, tolerance

ATTENTION_SITES = ("pattern", "z")
SOFTMAX = (torch.softmax, torch.Tensor.softmax, nn.functional.softmax, torch.special.softmax)


@dataclass(frozen=True)
class AttentionHeads:
    """The heads of one block."""

    # Is given the outputs of all heads side by side.
    projection: nn.Module
    count: int
    # Of the output of one head.
    width: int
    # Why its weights cannot be used as patterns; None where they can.
    pattern_problem: str | None


def find_heads(model: Any, blocks: Sequence[Block], tokens: torch.Tensor) -> list[AttentionHeads | None]:
    """`tokens` is one text."""
    records = [_Record() for _ in blocks]
    past = DynamicCache()
    try:
        _run_recorded(model, blocks, tokens, past, records)
        values = [layer.values for layer in past.layers]
    except Exception:
        # A model that cannot be run in this way has no heads that could be verified.
        return [None] * len(blocks)
    if len(values) != len(blocks):
        return [None] * len(blocks)
    found = [_heads_of(block, record, value) for block, record, value in zip(blocks, records, values)]
    shapes = {(heads.count, heads.width) for heads in found if heads is not None}
    # Requests name heads and widths once for the whole model.
    return _compared(model, tokens, found, records) if len(shapes) == 1 else [None] * len(blocks)


def _compared(model: Any, tokens: torch.Tensor, found: list[AttentionHeads | None], records: list[_Record]) -> list[AttentionHeads | None]:
    """Compares the outputs of heads with those that the model computes in its usual way: some models compute another thing step by step."""
    usual: dict[nn.Module, torch.Tensor] = {}
    projections = [heads.projection for heads in found if heads is not None]
    handles = [module.register_forward_pre_hook(lambda module, args: usual.update({module: args[0]})) for module in projections]
    try:
        model(input_ids=tokens, use_cache=False)
    finally:
        for handle in handles:
            handle.remove()

    def checked(heads: AttentionHeads | None, record: _Record) -> AttentionHeads | None:
        if heads is None or heads.pattern_problem is not None:
            return heads
        [stepwise] = [given for module, given in record.inputs if module is heads.projection]
        is_same = relative_difference(stepwise, usual[heads.projection]) <= tolerance(stepwise.dtype)
        return heads if is_same else replace(heads, pattern_problem="attention that is computed step by step gives other numbers than the model's own")

    return [checked(heads, record) for heads, record in zip(found, records)]


def are_weights(weights: torch.Tensor, shape: Sequence[int]) -> bool:
    """Says whether these are texts × heads × positions × at least as many positions, and so attention weights."""
    return weights.ndim == 4 and weights.shape[0] == shape[0] and weights.shape[2] == shape[1] and weights.shape[3] >= shape[1]


@contextmanager
def eager_attention(model: Any) -> Iterator[None]:
    """Has attention computed step by step for a while. That is the same but for rounding, also for code that uses the model meanwhile."""
    configs: dict[int, Any] = {id(config): config for module in model.modules() if (config := getattr(module, "config", None)) is not None}
    before = [(config, config._attn_implementation) for config in configs.values() if hasattr(config, "_attn_implementation")]
    try:
        for config, _ in before:
            config._attn_implementation = "eager"
        yield
    finally:
        for config, name in before:
            config._attn_implementation = name


class SoftmaxHook(TorchFunctionMode):
    """Shows what each softmax of this thread gives, and may replace it."""

    def __init__(self, hook: Callable[[torch.Tensor], torch.Tensor | None]) -> None:
        super().__init__()
        self.hook = hook

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = func(*args, **(kwargs or {}))
        if func not in SOFTMAX or not isinstance(given, torch.Tensor):
            return given
        changed = self.hook(given)
        return given if changed is None else changed


class _Record:
    """What one block computed."""

    def __init__(self) -> None:
        self.weights: list[torch.Tensor] = []
        # Modules without parts, with what they were given.
        self.inputs: list[tuple[nn.Module, torch.Tensor]] = []
        # What the part that adds attention gave.
        self.added: torch.Tensor | None = None


def _run_recorded(model: Any, blocks: Sequence[Block], tokens: torch.Tensor, past: Any, records: list[_Record]) -> None:
    now: list[_Record] = []

    def on_softmax(weights: torch.Tensor) -> None:
        if now and are_weights(weights, tokens.shape):
            now[-1].weights.append(weights)

    handles = [handle for block, record in zip(blocks, records) for handle in _record_hooks(block, record, now)]
    try:
        with eager_attention(model), SoftmaxHook(on_softmax):
            model(input_ids=tokens, past_key_values=past, use_cache=True)
    finally:
        for handle in handles:
            handle.remove()


def _record_hooks(block: Block, record: _Record, now: list[_Record]) -> Iterator[Any]:
    yield block.module.register_forward_pre_hook(lambda module, args: now.append(record))
    for module in block.module.modules():
        if next(module.children(), None) is None:
            yield module.register_forward_pre_hook(lambda module, args: record.inputs.append((module, args[0])) if args else None)

    def on_added(module: nn.Module, args: Any, output: Any) -> None:
        record.added = activations.of_output(output)

    if block.attention is not None:
        yield block.attention.module.register_forward_hook(on_added)


def _heads_of(block: Block, record: _Record, values: torch.Tensor) -> AttentionHeads | None:
    if len(record.weights) != 1 or record.added is None or block.attention is None:
        return None
    [weights] = record.weights
    tokens, width = values.shape[2:]
    count = weights.shape[1]
    if count % values.shape[1] != 0:
        return None
    # Several heads of queries may share the values of one.
    shared = values.repeat_interleave(count // values.shape[1], 1)
    z = (weights[..., :tokens].double() @ shared.to(weights.device).double()).transpose(1, 2).reshape(tokens, count * width)
    limit = tolerance(values.dtype)
    for module, given in record.inputs:
        if not isinstance(given, torch.Tensor) or given.numel() != z.numel() or relative_difference(given, z) > limit:
            continue
        product = module(z.to(given.device, given.dtype).reshape(given.shape))
        if _is_added(block.attention.module, product, record.added, limit):
            return AttentionHeads(
                module, count, width, None if _are_distributions(weights, tokens, limit) else "its attention weights do not sum to 1 over the tokens"
            )
    return None


def _is_added(part: nn.Module, product: Any, added: torch.Tensor, limit: float) -> bool:
    """Says whether the product is what attention adds, by itself or by way of a norm behind it."""
    if not isinstance(product, torch.Tensor) or product.numel() != added.numel():
        return False
    if relative_difference(product, added) <= limit:
        return True
    return next(part.children(), None) is None and relative_difference(part(product.reshape(added.shape)), added) <= limit


def _are_distributions(weights: torch.Tensor, tokens: int, limit: float) -> bool:
    """Says whether each row sums to 1 over the tokens up to its own: not where some weight goes to a sink that is no token."""
    if weights.shape[-1] != tokens:
        return False
    later = torch.ones(weights.shape[-2:], dtype=torch.bool, device=weights.device).triu(1)
    return bool((weights.sum(-1) - 1).abs().max() <= limit) and bool((weights >= 0).all()) and not bool(weights[..., later].any())
