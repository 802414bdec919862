"""Loads a model and its tokenizer from a folder, and chooses device and precision. It never runs code that comes with a model, and reads no pickle."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from cuvette_torch.errors import EngineError
from cuvette_torch.memory_budget import is_out_of_memory

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
MOST_NAMES = 3


def load_model(folder: str, dtype: str, device: str | None, quantization: str | None) -> Any:
    transformers.utils.logging.disable_progress_bar()
    device = device or default_device()
    options: dict[str, Any] = {"dtype": choose_dtype(dtype, device), "local_files_only": True, "trust_remote_code": False, "use_safetensors": True}
    if quantization is not None:
        options["quantization_config"] = quantized(quantization)
    if is_spread(device) or quantization is not None:
        options["device_map"] = "auto" if device == "cuda" else device
    verbosity = transformers.utils.logging.get_verbosity()
    transformers.utils.logging.set_verbosity_error()
    try:
        model, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, **options)
        if "device_map" not in options:
            model = model.to(device)
    except Exception as error:
        raise load_error(folder, device, error) from error
    finally:
        transformers.utils.logging.set_verbosity(verbosity)
    missing = sorted(map(str, info.get("missing_keys", ())))
    if missing:
        names = ", ".join(missing[:MOST_NAMES]) + (" and %d more" % (len(missing) - MOST_NAMES) if len(missing) > MOST_NAMES else "")
        advice = "Weights and config.json must be of the same model; fetch both again."
        raise EngineError("bad_model", "The weights in %s lack %s, which %s needs. %s" % (folder, names, type(model).__name__, advice))
    return model.eval().requires_grad_(False)


def load_tokenizer(folder: str) -> Any:
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:
        path = os.path.join(folder, "tokenizer.json")
        if os.path.exists(path):
            return PreTrainedTokenizerFast(tokenizer_file=path)
        raise EngineError("bad_model", "The tokenizer in %s cannot be used: %s" % (folder, first_line(error))) from error


def default_device() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def choose_dtype(dtype: str, device: str) -> torch.dtype:
    if dtype != "auto":
        return DTYPES[dtype]
    return torch.bfloat16 if device.startswith("cuda") else torch.float32


def is_spread(device: str) -> bool:
    """Says whether the model goes over all GPUs: where there are several, and accelerate is installed."""
    return device == "cuda" and torch.cuda.device_count() > 1 and importlib.util.find_spec("accelerate") is not None


def quantized(bits: str) -> Any:
    lacking = [name for name in ("bitsandbytes", "accelerate") if importlib.util.find_spec(name) is None]
    if lacking:
        raise EngineError(
            "runtime_missing",
            "To load a model in %s takes %s, which %s does not have. Install it (%s -m pip install %s), or load the model in bfloat16."
            % (bits, " and ".join(lacking), sys.executable, sys.executable, " ".join(lacking)),
        )
    if bits == "8bit":
        return transformers.BitsAndBytesConfig(load_in_8bit=True)
    return transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16)


def load_error(folder: str, device: str, error: Exception) -> EngineError:
    if isinstance(error, EngineError):
        return error
    if is_out_of_memory(error):
        advice = "Load it in bfloat16, in 8bit or 4bit, or on another device."
        return EngineError("too_large", "The model in %s does not fit into the memory of %s. %s" % (folder, device, advice))
    version = transformers.__version__
    if "trust_remote_code" in str(error):
        advice = "Use a model that transformers %s knows." % version
        return EngineError("bad_model", "The model in %s comes with code of its own, which Cuvette does not run. %s" % (folder, advice))
    return EngineError("bad_model", "transformers %s cannot load the model in %s: %s" % (version, folder, first_line(error)))


def first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:500]
