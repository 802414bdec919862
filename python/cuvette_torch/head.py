"""Computes logits from what a model's head is given: of all tokens, or of some, for which some rows of the head are enough."""

from __future__ import annotations

import threading
from typing import Any, Callable

import torch
from torch import nn

from cuvette_torch.block_discovery import text_config
from cuvette_torch.numerics import relative_difference

Finish = Callable[[torch.Tensor], torch.Tensor]


class Head:
    def __init__(self, model: Any, rows: torch.Tensor, logits: torch.Tensor) -> None:
        """`logits` are the model's own for these rows: from them it is learned what the model does to the head's products."""
        self.model = model
        self.head = model.get_output_embeddings()
        self.vocabulary = logits.shape[-1]
        self.finish = self.find_finish(rows, logits)

    def logits(self, rows: torch.Tensor, tokens: torch.Tensor | None = None) -> torch.Tensor:
        """Rows × tokens, in float32."""
        return self.finish(self.products(rows, tokens)).float()

    def products(self, rows: torch.Tensor, tokens: torch.Tensor | None) -> torch.Tensor:
        rows = rows.to(self.device)
        if tokens is None:
            return self.head(rows)
        tokens = tokens.to(self.device)
        if not self.is_plain:
            return self.head(rows)[:, tokens]
        # Few tokens are computed in float32, which costs little.
        weight = self.head.weight[tokens].float()
        bias = None if self.head.bias is None else self.head.bias[tokens].float()
        return nn.functional.linear(rows.float(), weight, bias)

    @property
    def is_plain(self) -> bool:
        return type(self.head) is nn.Linear and self.head.weight.dtype.is_floating_point and self.head.weight.device.type != "meta"

    @property
    def device(self) -> torch.device:
        return self.head.weight.device if self.is_plain else self.model.get_input_embeddings().weight.device

    def find_finish(self, rows: torch.Tensor, logits: torch.Tensor) -> Finish:
        """Finds what the model does to the head's products: nothing, a factor, or a soft cap, whichever comes as close as rounding allows."""
        products = self.products(rows, None)
        scale = float((products.double() * logits.double()).sum() / products.double().square().sum())
        caps = [value for name, value in vars(text_config(self.model)).items() if "soft" in name and type(value) is float and value > 0]
        known: list[Finish] = [lambda x: x, lambda x: x * scale, *(lambda x, cap=cap: torch.tanh(x / cap) * cap for cap in caps)]
        errors = [relative_difference(finish(products), logits) for finish in known]
        least = min(errors)
        return known[errors.index(least)] if least <= max(1e-5, torch.finfo(logits.dtype).eps / 4) else self.finish_in_model

    def finish_in_model(self, products: torch.Tensor) -> torch.Tensor:
        """Has the model itself finish the products: runs it on one token, with these products in place of its head's."""
        thread = threading.get_ident()
        token = torch.zeros(1, 1, dtype=torch.long, device=self.model.get_input_embeddings().weight.device)
        replace = lambda *_: products.unsqueeze(0) if threading.get_ident() == thread else None  # noqa: E731
        handle = self.head.register_forward_hook(replace)
        try:
            return self.model(input_ids=token, use_cache=False).logits[0]
        finally:
            handle.remove()
