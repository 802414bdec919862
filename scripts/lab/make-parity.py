"""Makes a small random model of every family, and what transformers computes with it, into test/lab/fixtures/parity.

Needs torch, transformers, tokenizers and safetensors:

    python scripts/lab/make-parity.py [model...]

Each folder is a model as Hugging Face lays it out, with two more files: reference.json (prompts, tokens, generated
tokens, texts through the tokenizer) and reference.safetensors (activations and logits, computed in float32 from the
weights as they are stored). With names, only those models are made again. rotary.json has inverse frequencies for more kinds of scaling than the models use.
"""

import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

import parity_tokenizers

OUT = Path(__file__).resolve().parents[2] / "test" / "lab" / "fixtures" / "parity"
PROMPT = "The keys to the old cabinet are on the table."
NEW_TOKENS = 8
# Angles of rotary positions differ by their rounding only far into a text.
LONG = 700

ODD_TEXTS = [
    "",
    " ",
    "  leading and trailing  ",
    "tabs\tand\n\nnewlines\r\n",
    "Don't we'll I'VE they're",
    "numbers 1 22 333 4444 3.14159",
    "punctuation... (really?!) --> [x] , spaced .",
    "naïve café Ångström e\u0301 vs é ﬁne",
    "Привет мир, 你好世界, こんにちは, مرحبا",
    "emoji 👍🏽 family 👨‍👩‍👧 flag 🇮🇹",
    "zero\u200bwidth and nbsp\u00a0here",
    "before<|endoftext|>after",
    "<s>text</s> <unk>",
    "▁already ▁▁marked",
    "a" * 40,
]
CHATS = [
    "<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n\n\n\nYes  and   no",
    "<|user|>\n Hello there<|end|>\n<|assistant|> the keys<|end|>",
    "<|im_start|>user\nHi<|im_end|>",
]

SMALL = dict(
    hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=1024)
GEMMA = dict(SMALL, num_hidden_layers=3, num_key_value_heads=2, head_dim=16, pad_token_id=0)
# So that the prompt is within it, and eight tokens more are not.
LONGROPE_CONTEXT = 18


def specifications():
    """A config, the tokenizer's kind, how weights are stored, and what is done to the folder afterwards."""
    return {
        "gpt2": dict(
            config=dict(model_type="gpt2", n_embd=48, n_layer=3, n_head=4, n_positions=64, n_inner=80),
            tokenizer=parity_tokenizers.gpt2(), dtype=torch.float16,
        ),
        # Attention scaled by the layer's number, no prefix, and masks among the tensors, as old files have them.
        "gpt2-bare": dict(
            config=dict(model_type="gpt2", n_embd=32, n_layer=2, n_head=2, n_positions=64,
                        scale_attn_by_inverse_layer_idx=True, activation_function="relu"),
            tokenizer=parity_tokenizers.gpt2(), dtype=torch.float16, after=strip_prefix,
        ),
        "gpt-neox": dict(
            config=dict(model_type="gpt_neox", **SMALL, rotary_pct=0.25, hidden_act="gelu"),
            tokenizer=parity_tokenizers.neox(), dtype=torch.float16, after=with_buffers,
        ),
        "gpt-neox-serial": dict(
            config=dict(model_type="gpt_neox", **SMALL, rotary_pct=0.5, rotary_emb_base=5000, hidden_act="gelu_fast",
                        use_parallel_residual=False),
            tokenizer=parity_tokenizers.neox(), dtype=torch.bfloat16, after=older_config,
        ),
        "llama": dict(
            config=dict(model_type="llama", **SMALL, num_key_value_heads=2, attention_bias=True, mlp_bias=True,
                        tie_word_embeddings=True,
                        rope_parameters=dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0,
                                             high_freq_factor=4.0, original_max_position_embeddings=16)),
            tokenizer=parity_tokenizers.llama3(), dtype=torch.float16, shard="60KB",
        ),
        "mistral": dict(
            config=dict(model_type="mistral", **SMALL, num_key_value_heads=2, sliding_window=6),
            tokenizer=parity_tokenizers.fallback(), dtype=torch.float16,
        ),
        "smollm": dict(
            config=dict(model_type="llama", **{**SMALL, "hidden_size": 36, "num_attention_heads": 3},
                        num_key_value_heads=1, tie_word_embeddings=True, rope_theta=100000.0, rms_norm_eps=1e-5),
            tokenizer=parity_tokenizers.smollm(), dtype=torch.bfloat16, after=older_config,
        ),
        "qwen2": dict(
            config=dict(model_type="qwen2", **{**SMALL, "hidden_size": 32}, num_key_value_heads=2,
                        use_sliding_window=True, sliding_window=5, max_window_layers=1),
            tokenizer=parity_tokenizers.qwen(), dtype=torch.float32, after=older_config,
        ),
        "qwen3": dict(
            config=dict(model_type="qwen3", **SMALL, num_key_value_heads=2, head_dim=16, tie_word_embeddings=True,
                        rope_parameters=dict(rope_type="yarn", rope_theta=1000000.0, factor=4.0,
                                             original_max_position_embeddings=256)),
            tokenizer=parity_tokenizers.metaspace(), dtype=torch.float16,
        ),
        # Caps so low that scores and logits meet them, and a scale that is not the root of the head's width.
        "gemma2": dict(
            config=dict(model_type="gemma2", **GEMMA, query_pre_attn_scalar=7, sliding_window=6,
                        attn_logit_softcapping=1.5, final_logit_softcapping=2.0),
            tokenizer=parity_tokenizers.gemma(), dtype=torch.bfloat16, after=older_config,
        ),
        "gemma3": dict(
            config=dict(model_type="gemma3_text", **GEMMA, query_pre_attn_scalar=7, sliding_window=6,
                        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                        rope_parameters=dict(
                            full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1000000.0),
                            sliding_attention=dict(rope_type="default", rope_theta=500.0))),
            tokenizer=parity_tokenizers.gemma(), dtype=torch.float16,
        ),
        "gemma3-older": dict(
            config=dict(model_type="gemma3_text", **GEMMA, query_pre_attn_scalar=16, sliding_window=7,
                        sliding_window_pattern=3, rope_theta=1000000.0, rope_local_base_freq=10000.0,
                        final_logit_softcapping=3.0),
            tokenizer=parity_tokenizers.gemma(), dtype=torch.bfloat16, after=older_gemma3_config, seed=101,
        ),
        "phi3": dict(
            config=dict(model_type="phi3", **SMALL, num_key_value_heads=2, sliding_window=7, pad_token_id=0),
            tokenizer=parity_tokenizers.phi3(), dtype=torch.bfloat16, after=older_config,
        ),
        # What is generated begins within the original context, and ends beyond it.
        "phi3-longrope": dict(
            config=dict(model_type="phi3", **{**SMALL, "hidden_size": 64}, num_key_value_heads=1, tie_word_embeddings=True,
                        pad_token_id=0, original_max_position_embeddings=LONGROPE_CONTEXT,
                        rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, partial_rotary_factor=0.75,
                                             short_factor=[1.0, 1.0, 1.1, 1.25, 1.5, 2.0],
                                             long_factor=[1.1, 1.5, 3.0, 9.0, 20.0, 40.0])),
            tokenizer=parity_tokenizers.phi3(), dtype=torch.float16,
        ),
        "olmo2": dict(
            config=dict(model_type="olmo2", **SMALL, num_key_value_heads=2, rope_theta=500000.0, pad_token_id=0),
            tokenizer=parity_tokenizers.qwen(), dtype=torch.float16,
        ),
        "granite": dict(
            config=dict(model_type="granite", **SMALL, num_key_value_heads=2, tie_word_embeddings=True,
                        embedding_multiplier=12.0, attention_multiplier=0.35, residual_multiplier=0.22,
                        logits_scaling=8.0, attention_bias=True, mlp_bias=True),
            tokenizer=parity_tokenizers.gpt2(), dtype=torch.bfloat16, after=older_config,
        ),
        "stablelm": dict(
            config=dict(model_type="stablelm", **SMALL, num_key_value_heads=4, use_qkv_bias=True,
                        partial_rotary_factor=0.5),
            tokenizer=parity_tokenizers.stablelm(), dtype=torch.float16,
        ),
        "stablelm-parallel": dict(
            config=dict(model_type="stablelm", **{**SMALL, "hidden_size": 64}, num_key_value_heads=2,
                        qk_layernorm=True, use_parallel_residual=True),
            tokenizer=parity_tokenizers.stablelm(), dtype=torch.bfloat16, after=older_config,
        ),
    }


def main():
    torch.set_num_threads(1)
    for number, (name, specification) in enumerate(specifications().items()):
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        shutil.rmtree(OUT / name, ignore_errors=True)
        torch.manual_seed(specification.pop("seed", number))
        make(OUT / name, **specification)
    (OUT / "rotary.json").write_text(json.dumps(rotary_references()) + "\n")
    total = sum(path.stat().st_size for path in OUT.rglob("*") if path.is_file())
    print(f"{total / 1e6:.2f} MB in {OUT}")


def make(folder, config, tokenizer, dtype, shard="1GB", after=None):
    folder.mkdir(parents=True)
    tokenizer, special = tokenizer
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **special}) + "\n")
    # Which class of tokenizer transformers takes depends on the kind of model.
    (folder / "config.json").write_text(json.dumps({"model_type": config["model_type"]}) + "\n")
    tokenizer = AutoTokenizer.from_pretrained(folder)

    # Models have more embeddings than tokenizers have tokens, often.
    config = dict(config, vocab_size=len(tokenizer) + 3, bos_token_id=0, eos_token_id=0)
    config = AutoConfig.for_model(config.pop("model_type"), **config)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    randomise(model, dtype)
    reference, arrays = compute(model, tokenizer)
    model.to(dtype).save_pretrained(folder, max_shard_size=shard)
    (folder / "generation_config.json").unlink(missing_ok=True)
    if after:
        after(folder)
    save_file(arrays, folder / "reference.safetensors")
    (folder / "reference.json").write_text(json.dumps(reference, ensure_ascii=False) + "\n")
    for path in folder.iterdir():
        path.chmod(0o644)
    sizes = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{folder.name}: {sum(p.numel() for p in model.parameters())} parameters, {sizes / 1e3:.0f} KB")


@torch.no_grad()
def randomise(model, dtype):
    """Every number matters: norms are not 1, and biases are not 0."""
    for name, parameter in model.named_parameters():
        random = torch.randn_like(parameter)
        if parameter.ndim == 2 and ("wte" in name or "wpe" in name or "embed" in name or "lm_head" in name):
            parameter.copy_(random * 0.3)
        elif parameter.ndim == 2:
            inner = parameter.shape[0] if model.config.model_type == "gpt2" else parameter.shape[1]
            parameter.copy_(random * inner**-0.5)
        elif "norm" in name or "ln_" in name:
            # Gemma adds 1 to the weights of its norms itself.
            usual = 1 if name.endswith("weight") and "gemma" not in model.config.model_type else 0
            parameter.copy_(random * 0.2 + usual)
        else:
            parameter.copy_(random * 0.2)
        parameter.copy_(parameter.to(dtype).float())
    model.tie_weights()


# What transformers computes.


def compute(model, tokenizer):
    blocks = Blocks(model)
    tokens = tokenizer(PROMPT).input_ids
    width = model.config.hidden_size
    with torch.no_grad():
        arrays = blocks.activations(tokens)
        long = torch.randint(len(tokenizer), [min(LONG, model.config.max_position_embeddings)]).tolist()
        arrays["long"] = blocks.logits(long)[-2:].clone()
        vector, direction, source = torch.randn(3, width).unbind()
        arrays |= {"vector": vector, "direction": direction, "source": source}
        interventions = [
            dict(kind="add", layer=0, place="resid_post", positions=[3]),
            dict(kind="set", layer=1, place="attn_out", positions=[-1]),
            dict(kind="project-out", layer=0, place="mlp_out", positions={"from": 2}),
            dict(kind="interchange", part="along", layer=1, place="resid_pre", positions=[-2]),
            dict(kind="interchange", part="rest", layer=1, place="resid_post", positions=[1, -1]),
        ]
        for number, intervention in enumerate(interventions):
            change = changing(intervention, vector, direction, source)
            with blocks.hooked(intervention["layer"], intervention["place"], change):
                arrays[f"intervention.{number}"] = blocks.logits(tokens)[-3:].clone()
        plain = greedy(blocks, tokens)
        assert len(plain) == NEW_TOKENS, "the text ends early: use another seed"
        steering, steered = steer(blocks, tokens, vector, plain)
        generated = model.generate(torch.tensor([tokens]), max_new_tokens=NEW_TOKENS, do_sample=False)[0, len(tokens):]
        assert generated.tolist()[: len(plain)] == plain, (generated.tolist(), plain)
    reference = dict(
        prompt=PROMPT, tokens=tokens, longTokens=long, interventions=interventions,
        generation=dict(maxNewTokens=NEW_TOKENS, plain=plain, steered=steered, **steering),
        tokenizer=through(tokenizer),
    )
    return reference, {name: array.float().contiguous() for name, array in arrays.items()}


class Blocks:
    """A model's blocks by the names of hook points, whatever the family calls them."""

    def __init__(self, model):
        self.model = model
        base = model.base_model
        self.blocks = base.h if hasattr(base, "h") else base.layers

    def logits(self, tokens):
        return self.model(torch.tensor([tokens])).logits[0]

    def activations(self, tokens):
        """At every place of every layer, and the logits, at all positions."""
        taken = {}
        hooks = []
        for layer in range(len(self.blocks)):
            for place in ["resid_pre", "attn_out", "mlp_out", "resid_post"]:
                def keep(activation, name=f"blocks.{layer}.hook_{place}"):
                    taken[name] = activation[0].clone()
                    return activation

                hooks.append(self.hooked(layer, place, keep))
        taken["logits"] = self.logits(tokens)
        for hook in hooks:
            hook.remove()
        return {name: value for name, value in taken.items() if "resid_pre" not in name or ".0." in name}

    def hooked(self, layer, place, change):
        block = self.blocks[layer]
        if place == "resid_pre":
            return block.register_forward_pre_hook(lambda module, given: (change(given[0]), *given[1:]))
        attention = next(getattr(block, name) for name in ["attn", "attention", "self_attn"] if hasattr(block, name))
        mlp, factor = block.mlp, 1
        # Attention's and the MLP's output is what is added to the residual stream: behind a norm, or times a factor.
        if hasattr(block, "post_feedforward_layernorm"):
            attention, mlp = block.post_attention_layernorm, block.post_feedforward_layernorm
        if place != "resid_post" and hasattr(block, "residual_multiplier"):
            factor = block.residual_multiplier
        module = {"attn_out": attention, "mlp_out": mlp, "resid_post": block}[place]

        def hook(module, given, output):
            if isinstance(output, tuple):
                return (change(output[0] * factor) / factor, *output[1:])
            return change(output * factor) / factor

        return module.register_forward_hook(hook)


def changing(intervention, vector, direction, source):
    """The definition of each kind of intervention, for an activation [1, positions, width]."""
    positions = intervention["positions"]
    unit = direction / direction.norm()

    def along(activation):
        return (activation @ unit)[..., None] * unit

    def change(activation):
        which = slice(positions["from"], None) if isinstance(positions, dict) else positions
        activation = activation.clone()
        chosen = activation[0, which]
        if intervention["kind"] == "add":
            chosen = chosen + vector
        elif intervention["kind"] == "set":
            chosen = vector.expand_as(chosen)
        elif intervention["kind"] == "project-out":
            chosen = chosen - along(chosen)
        elif intervention["part"] == "along":
            chosen = chosen - along(chosen) + along(source)
        else:
            chosen = along(chosen) + source - along(source)
        activation[0, which] = chosen
        return activation

    return change


def steer(blocks, tokens, vector, plain):
    """By the least that changes what is generated, in what is generated too."""
    steering = dict(layer=0, positions={"from": 4})
    for factor in [0.5, 1, 2, 4, 8, 16]:
        change = changing(dict(kind="add", **steering), factor * vector, vector, vector)
        with blocks.hooked(0, "resid_post", change):
            steered = greedy(blocks, tokens)
        if steered != plain:
            return dict(steering, factor=factor), steered
    raise AssertionError("nothing changes: use another seed")


def greedy(blocks, tokens):
    """Without a cache. Refuses ties that rounding could break."""
    made = []
    while len(made) < NEW_TOKENS:
        logits = blocks.logits(tokens + made)[-1]
        first, second = logits.topk(2).values
        assert first - second > 1e-3, "too close to call: use another seed"
        token = int(logits.argmax())
        if token == blocks.model.config.eos_token_id:
            break
        made.append(token)
    return made


def through(tokenizer):
    """Texts to tokens and back, and every token by itself."""
    chats = [text for text in CHATS if text.split(">")[0] + ">" in tokenizer.get_vocab()]
    texts = [PROMPT, *ODD_TEXTS, *chats]
    rows = []
    for text in texts:
        tokens = tokenizer(text).input_ids
        rows.append(dict(
            text=text, tokens=tokens, plainTokens=tokenizer(text, add_special_tokens=False).input_ids,
            decoded=tokenizer.decode(tokens, skip_special_tokens=True), decodedWithSpecial=tokenizer.decode(tokens)))
    return dict(texts=rows, single=[tokenizer.decode([token]) for token in range(len(tokenizer))])


# What is done to folders, so that they look like those in the wild.


def rewrite(folder, change):
    path = folder / "model.safetensors"
    save_file(change(load_file(path)), path, metadata={"format": "pt"})


def strip_prefix(folder):
    def change(tensors):
        tensors = {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
        return tensors | {"h.0.attn.bias": torch.ones(1, 1, 4, 4).tril().bool()}

    rewrite(folder, change)


def with_buffers(folder):
    def change(tensors):
        tensors = {name.replace("lm_head.", "embed_out."): tensor for name, tensor in tensors.items()}
        attention = "gpt_neox.layers.0.attention"
        buffers = {"masked_bias": torch.tensor(-1e9), "rotary_emb.inv_freq": torch.ones(2)}
        return tensors | {f"{attention}.{name}": tensor for name, tensor in buffers.items()}

    rewrite(folder, change)


def older_config(folder):
    """As transformers before 5 wrote it."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    rope = config.pop("rope_parameters")
    config |= {"rope_scaling": None, "torch_dtype": config.pop("dtype")}
    if config["model_type"] == "gpt_neox":
        config |= {"rotary_pct": rope["partial_rotary_factor"], "rotary_emb_base": rope["rope_theta"]}
    else:
        config |= {name: rope[name] for name in ["rope_theta", "partial_rotary_factor"] if name in rope}
    config.pop("layer_types", None)
    path.write_text(json.dumps(config, indent=2) + "\n")


def older_gemma3_config(folder):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    rope = config.pop("rope_parameters")
    config |= {
        "rope_scaling": None, "rope_theta": rope["full_attention"]["rope_theta"],
        "rope_local_base_freq": rope["sliding_attention"]["rope_theta"], "sliding_window_pattern": 3}
    config.pop("layer_types")
    path.write_text(json.dumps(config, indent=2) + "\n")


# Rotary positions.


def rotary_references():
    base = dict(rope_theta=10000.0)
    llama3 = dict(rope_type="llama3", factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0)
    yarn = dict(rope_type="yarn", factor=8.0, original_max_position_embeddings=256)
    longrope = dict(
        rope_type="longrope", original_max_position_embeddings=256,
        short_factor=[1 + i / 32 for i in range(32)], long_factor=[1 + i for i in range(32)])
    kinds = [
        dict(rope_type="default", rope_theta=500000.0),
        dict(rope_type="linear", factor=3.0, **base),
        dict(rope_type="dynamic", factor=2.0, **base),
        dict(llama3, rope_theta=500000.0, original_max_position_embeddings=512),
        dict(yarn, **base),
        dict(yarn, beta_fast=16, beta_slow=2, truncate=False, **base),
        dict(yarn, mscale=1.0, mscale_all_dim=0.7, **base),
        dict(yarn, attention_factor=1.5, **base),
        dict(longrope, **base),
        dict(longrope, factor=4.0, **base),
        dict(longrope, attention_factor=1.25, **base),
    ]
    rows = []
    for parameters in kinds:
        config = LlamaConfig(
            hidden_size=256, num_attention_heads=4, max_position_embeddings=2048, rope_parameters=dict(parameters))
        rotary = LlamaRotaryEmbedding(config)
        frequencies = rotary.inv_freq.double().tolist()
        row = dict(parameters=parameters, inverseFrequencies=frequencies, scale=float(rotary.attention_scaling))
        if parameters["rope_type"] == "longrope":
            rotary(torch.zeros(1), torch.arange(257)[None])
            row |= dict(beyond=256, longFrequencies=rotary.inv_freq.double().tolist())
        rows.append(row)
    return dict(rotated=64, context=2048, rows=rows)


if __name__ == "__main__":
    main()
