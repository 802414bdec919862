"""Finds the lengths at which a model computes all of a text differently, so that only texts that are computed alike share a batch or a KV cache.

Some rotary embeddings choose their frequencies by the longest text of the batch: longrope has one set up to the original context and another beyond it,
and dynamic NTK scaling has another set for every length beyond the context, which it also keeps for shorter texts that come later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn


class LengthRegimes:
    def __init__(self, model: nn.Module) -> None:
        self.thresholds: set[int] = set()
        self.dynamic: list[tuple[Any, str]] = []
        for module, prefix, kind, parameters in rotary_embeddings(model):
            if kind == "longrope":
                self.thresholds.add(int(parameters["original_max_position_embeddings"]))
            elif "dynamic" in kind:
                self.dynamic.append((module, prefix))
        self.context = min((module.original_max_seq_len for module, _ in self.dynamic), default=None)

    def of(self, length: int) -> tuple[int, ...]:
        """Gives what is equal for the lengths of texts that are computed alike."""
        scaled = length if self.context is not None and length > self.context else 0
        return (sum(length > threshold for threshold in self.thresholds), scaled)

    def reset(self) -> None:
        """Makes dynamic scaling forget the longest text that it has met."""
        for module, prefix in self.dynamic:
            original = getattr(module, prefix + "original_inv_freq")
            current = getattr(module, prefix + "inv_freq")
            module.register_buffer(prefix + "inv_freq", original.to(current.device), persistent=False)
            setattr(module, prefix + "max_seq_len_cached", module.original_max_seq_len)


def rotary_embeddings(model: nn.Module) -> Iterator[tuple[Any, str, str, dict[str, Any]]]:
    """Yields modules with a kind of scaling: the module, the prefix of its attributes, the kind, its parameters. Some have one for each kind of layer."""
    for module in model.modules():
        kinds = getattr(module, "rope_type", None)
        parameters = getattr(getattr(module, "config", None), "rope_parameters", None) or {}
        if isinstance(kinds, str):
            yield module, "", kinds, parameters
        elif isinstance(kinds, dict):
            for layer_type, kind in kinds.items():
                yield module, "%s_" % layer_type, kind, parameters.get(layer_type) or {}
