"""Makes a tiny random model of every kind of decoder that transformers has, as far as its config can be made small by the names of its fields."""

from __future__ import annotations

from typing import Any

import small_models  # noqa: F401  (sets the path, the threads and the verbosity)
import torch
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

VOCABULARY = 100
WINDOW = 6
LARGEST = 3_000_000
CAUSAL_TYPES = sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)

# What is set of it is what the config has.
SIZES: dict[str, Any] = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "word_embed_proj_dim", "embedding_size", "attention_hidden_size", "lru_width"), 64),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "n_inner", "d_inner", "decoder_ffn_dim", "encoder_ffn_dim", "dense_ffn_size", "ffn_hidden_size"), 64),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", "encoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads", "encoder_attention_heads"), 4),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads"), 2),
    **dict.fromkeys(("head_dim", "v_head_dim", "attention_head_dim", "swa_head_dim"), 16),
    **dict.fromkeys(("vocab_size", "num_embeddings"), VOCABULARY),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length", "context_length", "max_sequence_length"), 64),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_routed_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "num_selected_experts"), 2),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size", "moe_ffn_hidden_size", "shared_intermediate_size"), 32),
    **dict.fromkeys(("q_lora_rank", "kv_lora_rank", "o_lora_rank"), 16),
    **dict.fromkeys(("qk_rope_head_dim", "qk_nope_head_dim", "rotary_dim"), 8),
    **dict.fromkeys(("n_group", "topk_group", "n_shared_experts", "moe_num_shared_experts", "o_groups"), 1),
    **dict.fromkeys(("sliding_window", "window_size", "attention_window_size", "attention_chunk_size", "local_attention"), WINDOW),
    **dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), 0),
    **dict.fromkeys(("vocab_size_per_layer_input",), VOCABULARY),
    "hidden_size_per_layer_input": 8,
    "query_pre_attn_scalar": 16,
    "state_size": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "mamba_d_state": 8,
    "mamba_n_heads": 8,
    "mamba_d_head": 16,
    "mamba_head_dim": 16,
    "mamba_num_heads": 8,
    "n_mamba_heads": 4,
    "mamba_dt_rank": 4,
    "is_decoder": True,
    "add_cross_attention": False,
    "use_cache": True,
    "use_sliding_window": True,
    "max_window_layers": 1,
}


# What the names of fields do not tell.
OPTIONS: dict[str, dict[str, Any]] = {
    **{kind: dict(head_dim=16) for kind in ("hunyuan_v1_dense", "hunyuan_v1_moe", "ministral")},
    **{kind: dict(head_dim=8) for kind in ("deepseek_v3", "glm4_moe_lite", "minicpm3", "youtu", "axk1")},
    "nemotron": dict(num_key_value_heads=2),
    "gpt_neo": dict(attention_types=[[["global", "local"], 1]]),
    "zaya": dict(num_experts_per_tok=1),
    "mamba2": dict(num_heads=8, head_dim=16),
    "falcon_h1": dict(mamba_d_ssm=128),
}


@torch.no_grad()
def build(kind: str, **options: Any) -> Any:
    """Raises whatever the config or the model raises that cannot be made so small."""
    text = CONFIG_MAPPING[kind]().get_text_config(decoder=True)
    sizes = {name: size for name, size in SIZES.items() if is_set(text, name)}
    config = type(text)(**{**sizes, **OPTIONS.get(kind, {}), **options})
    with torch.device("meta"):
        count = AutoModelForCausalLM.from_config(config).num_parameters()
    if count > LARGEST:
        raise ValueError("%s has %d parameters, although its config was made small" % (kind, count))
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.ndim >= 2:
            parameter.copy_(torch.randn_like(parameter) * parameter.shape[-1] ** -0.5)
    return model


def is_set(config: Any, name: str) -> bool:
    if isinstance(getattr(type(config), name, None), property):
        return False
    try:
        return getattr(config, name, None) is not None
    except Exception:
        return True
