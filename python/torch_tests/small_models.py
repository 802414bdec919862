"""Makes small random models of many architectures, by transformers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
torch.set_num_threads(1)
transformers.utils.logging.set_verbosity_error()

VOCABULARY = 200
LLAMA = dict(
    hidden_size=48,
    intermediate_size=80,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=128,
    vocab_size=VOCABULARY,
    pad_token_id=0,
    bos_token_id=0,
    eos_token_id=0,
)
GPT2 = dict(n_embd=48, n_layer=3, n_head=4, n_positions=128, vocab_size=VOCABULARY, bos_token_id=0, eos_token_id=0)
OPT = dict(hidden_size=48, ffn_dim=80, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=128, vocab_size=VOCABULARY, word_embed_proj_dim=48)
FALCON = dict(hidden_size=48, num_hidden_layers=3, num_attention_heads=4, vocab_size=VOCABULARY, bos_token_id=0, eos_token_id=0)
HEADS = dict(head_dim=12)

# By name: the model type, its config, and where attention and MLP are added to the residual stream; None where they cannot be told apart.
MODELS: dict[str, tuple[str, dict[str, Any], tuple[str, str] | None]] = {
    "llama": ("llama", LLAMA, ("self_attn", "mlp")),
    "gpt2": ("gpt2", GPT2, ("attn", "mlp")),
    "gpt-neox": ("gpt_neox", LLAMA, ("attention", "mlp")),
    "gemma": ("gemma", {**LLAMA, **HEADS}, ("self_attn", "mlp")),
    "gemma 2": ("gemma2", {**LLAMA, **HEADS, "sliding_window": 4}, ("post_attention_layernorm", "post_feedforward_layernorm")),
    "gemma 3": ("gemma3_text", {**LLAMA, **HEADS, "sliding_window": 4}, ("post_attention_layernorm", "post_feedforward_layernorm")),
    "qwen2": ("qwen2", {**LLAMA, "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1}, ("self_attn", "mlp")),
    "qwen3": ("qwen3", LLAMA, ("self_attn", "mlp")),
    "mistral": ("mistral", {**LLAMA, "sliding_window": 4}, ("self_attn", "mlp")),
    "mixtral": ("mixtral", {**LLAMA, "num_local_experts": 4}, ("self_attn", "mlp")),
    "phi": ("phi", LLAMA, ("self_attn", "mlp")),
    "phi3": ("phi3", LLAMA, ("self_attn", "mlp")),
    "opt": ("opt", OPT, ("self_attn", "fc2")),
    "opt with norms behind": ("opt", {**OPT, "do_layer_norm_before": False}, None),
    "falcon": ("falcon", FALCON, ("self_attention", "mlp")),
    "falcon, serial with alibi": ("falcon", {**FALCON, "parallel_attn": False, "alibi": True}, ("self_attention", "mlp")),
    "bloom": ("bloom", dict(hidden_size=48, n_layer=3, n_head=4, vocab_size=VOCABULARY), ("self_attention.dense", "mlp.dense_4h_to_h")),
    "mpt": ("mpt", dict(d_model=48, n_heads=4, n_layers=3, vocab_size=VOCABULARY, max_seq_len=128), ("attn", "ffn.down_proj")),
    "gpt-j": ("gptj", {**GPT2, "rotary_dim": 4}, ("attn", "mlp")),
    "stablelm": ("stablelm", {**LLAMA, "hidden_size": 64}, ("self_attn", "mlp")),
    "olmo": ("olmo", LLAMA, ("self_attn", "mlp")),
    "olmo2": ("olmo2", LLAMA, ("post_attention_layernorm", "post_feedforward_layernorm")),
    "granite": ("granite", {**LLAMA, "residual_multiplier": 0.22, "logits_scaling": 4.0}, ("self_attn", "mlp")),
    "cohere": ("cohere", {**LLAMA, "logit_scale": 0.25}, ("self_attn", "mlp")),
    "gpt-oss": ("gpt_oss", {**LLAMA, **HEADS, "num_local_experts": 4, "sliding_window": 4, "num_experts_per_tok": 2}, ("self_attn", "mlp")),
    "mamba": ("mamba", dict(hidden_size=48, num_hidden_layers=3, vocab_size=VOCABULARY), None),
}


@torch.no_grad()
def make(name: str) -> Any:
    kind, config, _ = MODELS[name]
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **config)).eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.ndim >= 2:
            parameter.copy_(torch.randn_like(parameter) * parameter.shape[-1] ** -0.5)
    return model
