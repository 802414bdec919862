"""Answers requests with one model and its tokenizer. Only one thread may use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable

import torch

from cuvette_torch.attribution import Attribution
from cuvette_torch.block_discovery import text_config
from cuvette_torch.captures import Captures
from cuvette_torch.generation import Generation
from cuvette_torch.integrity import Integrity
from cuvette_torch.memory_budget import MemoryBudget
from cuvette_torch.model_inspection import inspect_model
from cuvette_torch.prefix_cache import PrefixCache
from cuvette_torch.requests import attribution_request, generate_request, run_request
from cuvette_torch.run import Run
from cuvette_torch.sae_encoders import SaeEncoders

# The names that configs have for the context length; a model with none of them has no known limit.
CONTEXT = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
NO_LIMIT = 1 << 20


class Engine:
    def __init__(self, model: Any, tokenizer: Any, captures: Captures) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.captures = captures
        self.model_info = inspect_model(model)
        self.integrity = Integrity(model)
        self.budget = MemoryBudget(self.model_info.forward.device)
        self.prefixes = PrefixCache()
        self.budget.release = lambda: self.prefixes.evict(0)
        self.encoders = SaeEncoders(self.model_info.forward.device, self.budget)

    def describe(self) -> dict[str, Any]:
        config = text_config(self.model)
        first = next(self.model.parameters())
        quantization = getattr(self.model.config, "quantization_config", None)
        bits = "" if quantization is None else ("4bit, " if getattr(quantization, "load_in_4bit", False) else "8bit, ")
        return {
            "architecture": (self.model.config.architectures or [type(self.model).__name__])[0],
            "layers": len(self.model_info.blocks),
            "width": self.model_info.width,
            "heads": config.num_attention_heads if hasattr(config, "num_attention_heads") else 0,
            **self.head_width(),
            "vocabulary": self.model_info.head.vocabulary,
            "context": self.context,
            "parameters": self.model.num_parameters(),
            "dtype": bits + str(self.model.dtype if first.dtype.is_floating_point else first.dtype).replace("torch.", ""),
            "device": ", ".join(sorted({device_of(parameter) for parameter in self.model.parameters()})),
        }

    def head_width(self) -> dict[str, int]:
        found = [heads for heads in self.model_info.forward.heads if heads is not None]
        return {"headWidth": found[0].width} if found else {}

    @property
    def context(self) -> int:
        config = text_config(self.model)
        return next((value for value in (getattr(config, name, None) for name in CONTEXT) if isinstance(value, int)), NO_LIMIT)

    @property
    def end_tokens(self) -> list[int]:
        generation = getattr(self.model.generation_config, "eos_token_id", None)
        found = generation if generation is not None else getattr(text_config(self.model), "eos_token_id", None)
        return [] if found is None else [found] if isinstance(found, int) else list(found)

    @torch.inference_mode()
    def answer(self, header: Any, tensors: list[torch.Tensor], check: Callable[[], None]) -> Any:
        return getattr(self, "do_" + header["do"])(header, tensors, check)

    def do_run(self, header: Any, tensors: list[torch.Tensor], check: Callable[[], None]) -> Any:
        with self.unchanged():
            return {}, Run(self.model_info, self.budget, self.prefixes, run_request(header, tensors), check).tables()

    def do_attribute(self, header: Any, tensors: list[torch.Tensor], check: Callable[[], None]) -> Any:
        with self.unchanged(), torch.inference_mode(False), torch.enable_grad():
            return {}, Attribution(self.model_info, self.budget, attribution_request(header, tensors), check).tables()

    def do_generate(self, header: Any, tensors: list[torch.Tensor], check: Callable[[], None]) -> Any:
        with self.unchanged():
            limits = (self.context, self.end_tokens)
            generation = Generation(self.model_info, self.budget, self.prefixes, generate_request(header, tensors), limits, check)
            return {"generated": generation.tokens()}, []

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Refuses what is computed with a model that code has changed, before or meanwhile, and evicts what was cached from it. The fingerprint, which takes
        longer, is compared only at the end: weights that are the same then were the same before."""
        self.integrity.check()
        try:
            yield
        finally:
            try:
                self.integrity.check()
                self.integrity.check_numbers()
            except BaseException:
                self.prefixes.evict(0)
                raise

    def do_encode(self, header: Any, tensors: list[torch.Tensor], check: Callable[[], None]) -> Any:
        """Encodes rows by an SAE; the request brings the encoder along when it may have been evicted here."""
        rows, *encoder = tensors
        if encoder:
            self.encoders.add(header["sae"], encoder[0])
        products = self.encoders.products(header["sae"], rows)
        return {"has": products is not None}, [] if products is None else [products]

    def do_tokenize(self, header: Any, tensors: list[torch.Tensor], check: Callable[[], None]) -> Any:
        return {"tokens": [self.tokenizer.encode(text, add_special_tokens=header["special"]) for text in header["texts"]]}, []

    def do_detokenize(self, header: Any, tensors: list[torch.Tensor], check: Callable[[], None]) -> Any:
        text = self.tokenizer.decode(header["tokens"], skip_special_tokens=not header["special"], clean_up_tokenization_spaces=False)
        return {"text": text}, []

    def do_captures(self, header: Any, tensors: list[torch.Tensor], check: Callable[[], None]) -> Any:
        self.captures.folder = header["folder"]
        return {}, []


def device_of(parameter: torch.Tensor) -> str:
    """Names the device of a weight; one that did not fit is offloaded, and loaded as it is needed."""
    return "offloaded" if parameter.is_meta else str(parameter.device)
