"""Starts the engine from an interpreter's startup code: loads the model, serves it, and gives back what code is to have as variables."""

from __future__ import annotations

from typing import Any

import torch

from cuvette_torch.captures import Captures
from cuvette_torch.engine import Engine
from cuvette_torch.loading import load_model, load_tokenizer
from cuvette_torch.server import Server


def start(
    folder: str, socket: str, dtype: str = "auto", device: str | None = None, quantization: str | None = None, threads: int | None = None
) -> tuple[Any, Any, Captures]:
    """Gives the model, its tokenizer, and the lab's captures."""
    if threads is not None:
        torch.set_num_threads(threads)
    model = load_model(folder, dtype, device, quantization)
    tokenizer = load_tokenizer(folder)
    captures = Captures()
    Server(Engine(model, tokenizer, captures), socket).start()
    return model, tokenizer, captures
