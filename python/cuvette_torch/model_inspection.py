"""Inspects a model before it is used, by running it on a short text: what its blocks are, and what it supports is tried, never taken on trust.

`supports_kv_cache` says that a text may be computed from its middle on, from cached keys and values; `supports_padding` that texts of a batch may be
padded at their ends, which changes nothing before there as long as attention is causal. Where that does not hold, the engine does without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache

from cuvette_torch.block_discovery import Block, find_blocks, text_config
from cuvette_torch.errors import EngineError
from cuvette_torch.forward import Forward
from cuvette_torch.head import Head
from cuvette_torch.head_discovery import find_heads
from cuvette_torch.length_regimes import LengthRegimes
from cuvette_torch.numerics import relative_difference, tolerance

LENGTH, SHORT, CUT = 7, 4, 5


@dataclass(frozen=True)
class InspectedModel:
    model: Any
    blocks: list[Block]
    forward: Forward
    head: Head
    width: int
    supports_kv_cache: bool
    supports_padding: bool
    lengths: LengthRegimes

    def batch_key(self, length: int) -> tuple[int, ...]:
        """Gives what is equal for the lengths of texts that may share a batch."""
        return self.lengths.of(length) if self.supports_padding else (length,)


@torch.inference_mode()
def inspect_model(model: Any) -> InspectedModel:
    if getattr(model.config, "is_encoder_decoder", False):
        raise EngineError("bad_model", "%s is an encoder with a decoder. The lab looks into decoders, such as Llama or GPT-2." % type(model).__name__)
    if model.get_output_embeddings() is None:
        raise EngineError("bad_model", "%s has no head that turns its last activations into logits, so the lab cannot use it." % type(model).__name__)
    vocabulary = model.get_input_embeddings().weight.shape[0]
    tokens = (torch.arange(2 * LENGTH).reshape(2, LENGTH) * 7919 + 11) % vocabulary
    whole = tokens[:1]
    blocks = find_blocks(model, whole.to(model.get_input_embeddings().weight.device))
    lengths = LengthRegimes(model)
    forward = Forward(model, blocks, lengths)
    forward.heads = find_heads(model, blocks, whole.to(forward.device))
    last = forward(whole, {})
    if last is None or last.shape[:2] != whole.shape:
        raise EngineError("bad_model", "The head of %s is not given one activation for each token, so the lab cannot use the model." % type(model).__name__)
    logits = model(input_ids=whole.to(forward.device), use_cache=False).logits
    head = Head(model, last[0], logits[0])
    width = text_config(model).hidden_size
    return InspectedModel(model, blocks, forward, head, width, supports_kv_cache(forward, whole, last), supports_padding(forward, tokens, last), lengths)


def supports_padding(forward: Forward, tokens: torch.Tensor, last: torch.Tensor) -> bool:
    short = forward(tokens[1:, :SHORT], {})
    padded = forward(torch.cat([tokens[:1], torch.cat([tokens[1:, :SHORT], torch.zeros(1, LENGTH - SHORT, dtype=torch.long)], 1)]), {})
    if short is None or padded is None:
        return False
    limit = tolerance(last.dtype)
    return relative_difference(padded[0], last[0]) <= limit and relative_difference(padded[1, :SHORT], short[0]) <= limit


def supports_kv_cache(forward: Forward, whole: torch.Tensor, last: torch.Tensor) -> bool:
    """Tries two texts that share a prefix, as variants of a prompt do."""
    try:
        past = DynamicCache()
        forward(whole, {}, past)
        begun = cache_of([(keys[:, :, :CUT].repeat(2, 1, 1, 1), values[:, :, :CUT].repeat(2, 1, 1, 1)) for keys, values in layers_of(past)])
        rest = forward(whole[:, CUT:].repeat(2, 1), {}, begun)
    except Exception:
        return False
    return rest is not None and rest.shape[1] == LENGTH - CUT and relative_difference(rest, last[:, CUT:].repeat(2, 1, 1)) <= tolerance(last.dtype)


Layers = list[tuple[torch.Tensor, torch.Tensor]]


def layers_of(cache: Any) -> Layers:
    """Gives keys and values of the layers that have been computed: texts × heads × positions × width."""
    return [(layer.keys, layer.values) for layer in cache.layers]


def cache_of(layers: Layers) -> DynamicCache:
    cache = DynamicCache()
    for number, (keys, values) in enumerate(layers):
        cache.update(keys, values, number)
    return cache
