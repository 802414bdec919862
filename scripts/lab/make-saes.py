"""Makes a tiny sparse autoencoder in every format that Cuvette reads, with what it computes, into test/lab/fixtures/saes.

Needs torch, numpy and safetensors:

    python scripts/lab/make-saes.py

Each case has its files as its own library saves them, and reference.json beside them: rows of activations, their
features, and what the features decode to. Those are computed here as the sources of the libraries do, and not as
Cuvette does: SAELens 6 (sae_lens/saes), dictionary_learning (dictionary.py, trainers), sparsify (sparse_coder.py,
fused_encoder.py), Language-Model-SAEs (the loader of 2024 for Llama Scope, sae.py of 2025 for the distilled models),
Gemma Scope's notebook, circuit-tracer (transcoder), OpenAI's sparse_autoencoder (model.py), Goodfire's model cards.
check-saes.py compares them with what those libraries compute that can be installed.

test/lab/fixtures/saes-refused has .pt files that are not to be read.

Where libraries differ, the one that trained the SAE counts. Three such places:
- Llama Scope: the threshold is compared with a feature after scales and lengths of decoder rows are folded in.
  SAELens multiplies the threshold by the input's scale and leaves the lengths out, which are 1.5 on average there.
- dictionary_learning: until 0.1.0, encode() multiplied features of gated and JumpReLU SAEs by the norms of decoder
  rows; since then it does not, and from_pretrained() does so for AutoEncoder instead.
- Gemma Scope 2: the affine skip connection is multiplied from the right, as in circuit-tracer; SAELens transposes it.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

OUT = Path(__file__).resolve().parents[2] / "test" / "lab" / "fixtures" / "saes"
REFUSED = OUT.parent / "saes-refused"
WIDTH, FEATURES, ROWS, K = 8, 24, 5, 4


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    torch.manual_seed(11)
    saelens()
    gemma_scope()
    llama_scope()
    dictionary_learning()
    sparsify()
    circuit_tracer()
    older_dictionary_learning()
    openai()
    goodfire()
    refused()


def weights(output=WIDTH):
    """As SAELens orients them."""
    return {
        "W_enc": torch.randn(WIDTH, FEATURES) * 0.5,
        "b_enc": torch.randn(FEATURES) * 0.3,
        "W_dec": torch.randn(FEATURES, output) * (0.3 + torch.rand(FEATURES, 1)),
        "b_dec": torch.randn(output) * 0.4,
    }


def activations():
    return torch.randn(ROWS, WIDTH) * 2 + 0.5


def write(name, files, rows, features, decoded, at=""):
    """`at` is what is to be opened, in the case's folder."""
    for path, content in files.items():
        target = OUT / name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(".json"):
            target.write_text(json.dumps(content))
        elif path.endswith(".yaml"):
            target.write_text(content)
        elif path.endswith(".npz"):
            np.savez(target, **content)
        elif path.endswith(".pt"):
            torch.save(content, target)
        else:
            save_file({key: tensor.contiguous() for key, tensor in content.items()}, target)
    reference = {"open": at, "rows": rows.tolist(), "features": features.tolist(), "decoded": decoded.tolist()}
    (OUT / name / "reference.json").write_text(json.dumps(reference))


def top(hidden, k):
    values, indices = hidden.topk(k, dim=-1)
    return torch.zeros_like(hidden).scatter_(-1, indices, values.relu())


# SAELens


def saelens_case(name, cfg, state, encode, normalize=lambda x: (x, lambda y: y), decode=None, extra=None, skip=None):
    x = activations()
    scaled, undo = normalize(x)
    inner = scaled - state["b_dec"] if cfg.get("apply_b_dec_to_input", True) else scaled
    features = encode(inner)
    decoded = undo((decode or (lambda f: f @ state["W_dec"]))(features) + state["b_dec"])
    if skip is not None:
        decoded = decoded + x @ skip.T
    cfg = {"d_in": WIDTH, "d_sae": FEATURES, "dtype": "float32", "device": "cpu", **cfg}
    write(name, {"cfg.json": cfg, "sae_weights.safetensors": state, **(extra or {})}, x, features, decoded)


def saelens():
    version = {"sae_lens_version": "6.18.0", "sae_lens_training_version": "6.18.0"}
    metadata = {"model_name": "gpt2-small", "hook_name": "blocks.3.hook_resid_pre", "prepend_bos": True, **version}
    new = {"apply_b_dec_to_input": True, "normalize_activations": "none", "reshape_activations": "none", "metadata": metadata}
    transcoder = {**new, "apply_b_dec_to_input": False,
                  "metadata": {**metadata, "hook_name": "blocks.3.ln2.hook_normalized", "hook_name_out": "blocks.3.hook_mlp_out"}}
    old = {"hook_point": "blocks.2.hook_resid_post", "hook_point_layer": 2, "model_name": "pythia-70m", "activation_fn_str": "relu"}

    def hidden(state):
        return lambda x: x @ state["W_enc"] + state["b_enc"]

    s = weights()
    saelens_case("saelens-standard", {"architecture": "standard", **new}, s, lambda x: hidden(s)(x).relu())
    a = weights()
    saelens_case("saelens-bias-not-applied", {"architecture": "standard", **new, "apply_b_dec_to_input": False}, a,
                 lambda x: hidden(a)(x).relu())
    o = {**weights(), "scaling_factor": torch.ones(FEATURES)}
    saelens_case("saelens-old", {**old, "normalize_activations": False}, o, lambda x: hidden(o)(x).relu())
    f = {**weights(), "scaling_factor": torch.rand(FEATURES) + 0.5}
    saelens_case("saelens-old-fine-tuned", {**old, "finetuning_scaling_factor": True}, f, lambda x: hidden(f)(x).relu(),
                 decode=lambda features: features * f["scaling_factor"] @ f["W_dec"])
    t = weights()
    saelens_case("saelens-old-topk",
                 {**old, "architecture": "standard", "activation_fn_str": "topk", "activation_fn_kwargs": {"k": K}}, t,
                 lambda x: top(hidden(t)(x), K))
    z = weights()
    saelens_case("saelens-hook-z", {**old, "hook_point": "blocks.2.attn.hook_z"}, z, lambda x: hidden(z)(x).relu())

    k = weights()
    saelens_case("saelens-topk", {"architecture": "topk", "k": K, "rescale_acts_by_decoder_norm": False, **new}, k,
                 lambda x: top(hidden(k)(x), K))
    r = weights()
    lengths = r["W_dec"].norm(dim=-1)
    saelens_case("saelens-topk-rescaled", {"architecture": "topk", "k": K, "rescale_acts_by_decoder_norm": True, **new}, r,
                 lambda x: top(hidden(r)(x) * lengths, K), decode=lambda features: features * (1 / lengths) @ r["W_dec"])
    j = {**weights(), "threshold": torch.rand(FEATURES) * 1.5 - 0.3}
    saelens_case("saelens-jumprelu", {"architecture": "jumprelu", **new}, j,
                 lambda x: hidden(j)(x).relu() * (hidden(j)(x) > j["threshold"].relu()))
    b = {**weights(), "topk_threshold": torch.tensor(0.9, dtype=torch.double)}
    long = b["W_dec"].norm(dim=-1)
    saelens_case("saelens-batchtopk", {"architecture": "batchtopk", "k": 4.5, "rescale_acts_by_decoder_norm": True, **new}, b,
                 lambda x: (hidden(b)(x) * long).relu() * ((hidden(b)(x) * long) > 0.9),
                 decode=lambda features: features / long @ b["W_dec"])
    g = {key: tensor for key, tensor in weights().items() if key != "b_enc"}
    g |= {"b_gate": torch.randn(FEATURES) * 0.4, "r_mag": torch.randn(FEATURES) * 0.3, "b_mag": torch.randn(FEATURES) * 0.4}
    saelens_case("saelens-gated", {"architecture": "gated", **new}, g,
                 lambda x: (x @ g["W_enc"] + g["b_gate"] > 0) * (x @ (g["W_enc"] * g["r_mag"].exp()) + g["b_mag"]).relu())

    def constant_norm(x):
        factor = WIDTH**0.5 / x.norm(dim=-1, keepdim=True)
        return x * factor, lambda y: y / factor

    def layer_norm(x):
        mean = x.mean(dim=-1, keepdim=True)
        deviation = (x - mean).std(dim=-1, keepdim=True)
        return (x - mean) / (deviation + 1e-5), lambda y: y * deviation + mean

    c = weights()
    saelens_case("saelens-constant-norm", {"architecture": "standard", **new, "normalize_activations": "constant_norm_rescale"}, c,
                 lambda x: hidden(c)(x).relu(), normalize=constant_norm)
    n = weights()
    saelens_case("saelens-layer-norm", {"architecture": "standard", **new, "normalize_activations": "layer_norm"}, n,
                 lambda x: hidden(n)(x).relu(), normalize=layer_norm)
    e = {**weights(), "threshold": torch.rand(FEATURES)}
    saelens_case("saelens-expected-average", {"architecture": "jumprelu", **new, "normalize_activations": "expected_average_only_in"}, e,
                 lambda x: hidden(e)(x).relu() * (hidden(e)(x) > e["threshold"]), normalize=lambda x: (x * 0.35, lambda y: y / 0.35),
                 extra={"activation_scaler.json": {"scaling_factor": 0.35}})
    half = {key: tensor.half() for key, tensor in weights().items()}
    wide = {key: tensor.float() for key, tensor in half.items()}
    x = activations()
    features = top((x - wide["b_dec"]) @ wide["W_enc"] + wide["b_enc"], K)
    write("saelens-half", {"cfg.json": {"architecture": "topk", "k": K, "d_in": WIDTH, "d_sae": FEATURES, "dtype": "float16", **new},
                           "sae_weights.safetensors": half,
                           "descriptions.json": {"3": "the third", "23": "the last"}},
          x, features, features @ wide["W_dec"] + wide["b_dec"])

    d = weights(6)
    saelens_case("saelens-transcoder", {"architecture": "transcoder", "d_out": 6, **transcoder}, d, lambda x: hidden(d)(x).relu())
    w = {**weights(6), "W_skip": torch.randn(6, WIDTH) * 0.3}
    saelens_case("saelens-skip-transcoder", {"architecture": "skip_transcoder", "d_out": 6, **transcoder}, w,
                 lambda x: hidden(w)(x).relu(), skip=w["W_skip"])
    v = {**weights(), "W_skip": torch.randn(WIDTH, WIDTH) * 0.3, "threshold": torch.rand(FEATURES)}
    saelens_case("saelens-jumprelu-skip-transcoder", {"architecture": "jumprelu_skip_transcoder", "d_out": WIDTH, **transcoder}, v,
                 lambda x: hidden(v)(x).relu() * (hidden(v)(x) > v["threshold"]), skip=v["W_skip"])


# Gemma Scope


def gemma_scope():
    def jump(x, state):
        hidden = x @ state["W_enc"] + state["b_enc"]
        return hidden.relu() * (hidden > state["threshold"])

    def numpy(state, order="C"):
        return {key: np.array(tensor.numpy(), order=order) for key, tensor in state.items()}

    folder = "layer_3/width_16k/average_l0_5/params.npz"
    for name, order in [("gemma-scope-2b-pt-res", "C"), ("gemma-scope-9b-it-mlp", "F"), ("gemma-scope-2b-pt-transcoders", "C")]:
        state = {**weights(), "threshold": torch.rand(FEATURES)}
        x = activations()
        f = jump(x, state)
        write(name, {folder: numpy(state, order)}, x, f, f @ state["W_dec"] + state["b_dec"], at=folder)

    state = {**weights(), "threshold": torch.rand(FEATURES)}
    used = {**state, "W_enc": state["W_enc"] / WIDTH**0.5, "W_dec": state["W_dec"] * WIDTH**0.5}
    x = activations() * 3
    f = jump(x, used)
    path = "gemma-scope-2b-pt-res/embedding/width_4k/average_l0_6/params.npz"
    write("gemma-scope-embedding", {path: numpy(state)}, x, f, f @ used["W_dec"] + used["b_dec"], at=path)

    state = {**weights(), "threshold": torch.rand(FEATURES)}
    affine = torch.randn(WIDTH, WIDTH) * 0.3
    x = activations()
    f = jump(x, state)
    stored = {key.replace("W_", "w_"): tensor for key, tensor in state.items()} | {"affine_skip_connection": affine}
    path = "transcoder_all/layer_5_width_16k_l0_big_affine"
    config = {"architecture": "jump_relu", "model_name": "google/gemma-3-4b-it", "affine_connection": True, "type": "transcoder",
              "hf_hook_point_in": "model.layers.5.pre_feedforward_layernorm.output",
              "hf_hook_point_out": "model.layers.5.post_feedforward_layernorm.output"}
    write("gemma-scope-2-4b-it", {f"{path}/params.safetensors": stored, f"{path}/config.json": config}, x, f,
          f @ state["W_dec"] + state["b_dec"] + x @ affine, at=path)


# Llama Scope


def llama_scope():
    def linear(state):
        return {"encoder.weight": state["W_enc"].T, "encoder.bias": state["b_enc"],
                "decoder.weight": state["W_dec"].T, "decoder.bias": state["b_dec"]}

    base = {"d_model": WIDTH, "d_sae": FEATURES, "expansion_factor": 3, "use_decoder_bias": True, "use_glu_encoder": False,
            "norm_activation": "dataset-wise", "apply_decoder_bias_to_pre_encoder": False, "top_k": 50, "act_fn": "jumprelu",
            "hook_point_in": "blocks.5.hook_resid_post", "hook_point_out": "blocks.5.hook_resid_post"}

    def first(name, options, norm_in, norm_out):
        state = {key: tensor.bfloat16().float() for key, tensor in weights().items()}
        x = activations()
        # standardize_parameters_of_dataset_activation_scaling, then transform_to_unit_decoder_norm.
        scale_in, scale_out = WIDTH**0.5 / norm_in, WIDTH**0.5 / norm_out
        encoder, bias = state["W_enc"].clone(), state["b_enc"] / scale_in
        decoder, decoder_bias = state["W_dec"] * scale_in / scale_out, state["b_dec"] / scale_out
        if options.get("sparsity_include_decoder_norm", True):
            length = decoder.norm(dim=1, keepdim=True)
            decoder, encoder, bias = decoder / length, encoder * length.T, bias * length[:, 0]
        hidden = x @ encoder + bias
        features = hidden.where(hidden > 0.7, 0)
        settings = {**base, "jump_relu_threshold": 0.7, "dataset_average_activation_norm": {"in": norm_in, "out": norm_out}, **options}
        stored = {key: tensor.bfloat16() for key, tensor in linear(state).items()}
        write(name, {"hyperparams.json": settings, "checkpoints/final.safetensors": stored}, x, features,
              features @ decoder + decoder_bias)

    first("llama-scope", {"sparsity_include_decoder_norm": True}, 5.3, 5.3)
    first("llama-scope-plain-norm", {"sparsity_include_decoder_norm": False}, 5.3, 5.3)
    first("llama-scope-transcoder", {"hook_point_in": "blocks.5.ln2.hook_normalized", "hook_point_out": "blocks.5.hook_mlp_out"}, 4.0, 1.7)

    def second(name, options, named):
        state = weights()
        log_threshold = torch.randn(FEATURES) * 0.3
        x = activations()
        hook = base["hook_point_in"]
        scale = WIDTH**0.5 / 6.1
        hidden = (x * scale) @ state["W_enc"] + state["b_enc"]
        score = hidden * state["W_dec"].norm(dim=1) if options.get("sparsity_include_decoder_norm", True) else hidden
        features = hidden * (score > log_threshold.exp())
        norm = {f"dataset_average_activation_norm.{hook}": torch.tensor(6.1)}
        settings = {**base, "sae_type": "sae", **options}
        write(name, {"config.json": settings, "sae_weights.safetensors": {**named(state, log_threshold), **norm}}, x, features,
              (features @ state["W_dec"] + state["b_dec"]) / scale)

    second("llama-scope-r1-distill", {"sparsity_include_decoder_norm": False},
           lambda state, threshold: {**linear(state), "log_jumprelu_threshold": threshold})
    second("language-model-saes", {}, lambda state, threshold: {
        "W_E": state["W_enc"], "b_E": state["b_enc"], "W_D": state["W_dec"], "b_D": state["b_dec"],
        "activation_function.log_jumprelu_threshold": threshold})


# dictionary_learning


def dictionary_learning_case(name, dict_class, state, features_of, decode, config=True, trainer=None):
    x = activations()
    f = features_of(x)
    files = {"ae.pt": state}
    if config:
        files["config.json"] = {"trainer": {"dict_class": dict_class, "activation_dim": WIDTH, "dict_size": FEATURES, "layer": 4,
                                            "lm_name": "EleutherAI/pythia-70m-deduped", **(trainer or {})}, "buffer": {"ctx_len": 128}}
    write(name, files, x, f, decode(f))


def dictionary_learning():
    case = dictionary_learning_case

    def linear(s):
        # Views of the transposed matrices, as they come out of a state dictionary that was never made contiguous.
        return {"encoder.weight": s["W_enc"].T, "encoder.bias": s["b_enc"], "decoder.weight": s["W_dec"].T}

    a = weights()
    case("dictionary-learning-autoencoder", "AutoEncoder", {"bias": a["b_dec"], **linear(a)},
         lambda x: ((x - a["b_dec"]) @ a["W_enc"] + a["b_enc"]).relu() * a["W_dec"].norm(dim=1),
         lambda f: f / a["W_dec"].norm(dim=1) @ a["W_dec"] + a["b_dec"],
         trainer={"trainer_class": "StandardTrainerAprilUpdate", "sparsity_warmup_steps": 2000})
    n = weights()
    case("dictionary-learning-new", "AutoEncoderNew", {**linear(n), "decoder.bias": n["b_dec"]},
         lambda x: (x @ n["W_enc"] + n["b_enc"]).relu(), lambda f: f @ n["W_dec"] + n["b_dec"], config=False)
    t = weights()
    case("dictionary-learning-topk", "AutoEncoderTopK",
         {"b_dec": t["b_dec"], "k": torch.tensor(K, dtype=torch.int), "threshold": torch.tensor(0.8), **linear(t)},
         lambda x: top(((x - t["b_dec"]) @ t["W_enc"] + t["b_enc"]).relu(), K), lambda f: f @ t["W_dec"] + t["b_dec"],
         trainer={"k": K, "submodule_name": "resid_post_layer_4"})
    b = weights()

    def above(x, s, threshold):
        hidden = ((x - s["b_dec"]) @ s["W_enc"] + s["b_enc"]).relu()
        return hidden * (hidden > threshold)

    case("dictionary-learning-batchtopk", "BatchTopKSAE",
         {"b_dec": b["b_dec"], "k": torch.tensor(K, dtype=torch.int), "threshold": torch.tensor(0.8), **linear(b)},
         lambda x: above(x, b, 0.8), lambda f: f @ b["W_dec"] + b["b_dec"], trainer={"submodule_name": "mlp_out_layer_4"})
    m = weights()
    case("dictionary-learning-matryoshka", "MatryoshkaBatchTopKSAE",
         {**m, "k": torch.tensor(K, dtype=torch.int), "threshold": torch.tensor(1.1), "group_sizes": torch.tensor([8, 16])},
         lambda x: above(x, m, 1.1), lambda f: f @ m["W_dec"] + m["b_dec"], config=False)
    j = {**weights(), "threshold": torch.rand(FEATURES)}

    def jump(x):
        hidden = x @ j["W_enc"] + j["b_enc"]
        return (hidden * (hidden > j["threshold"])).relu()

    case("dictionary-learning-jumprelu", "JumpReluAutoEncoder", j, jump, lambda f: f @ j["W_dec"] + j["b_dec"], config=False)
    g = weights()
    extra = {"r_mag": torch.randn(FEATURES) * 0.3, "gate_bias": torch.randn(FEATURES) * 0.4, "mag_bias": torch.randn(FEATURES) * 0.4}

    def gated(x):
        product = (x - g["b_dec"]) @ g["W_enc"]
        return (product + extra["gate_bias"] > 0) * (extra["r_mag"].exp() * product + extra["mag_bias"]).relu()

    case("dictionary-learning-gated", "GatedAutoEncoder",
         {"decoder_bias": g["b_dec"], **extra, "encoder.weight": g["W_enc"].T, "decoder.weight": g["W_dec"].T},
         gated, lambda f: f @ g["W_dec"] + g["b_dec"],
         trainer={"trainer_class": "GatedSAETrainer", "warmup_steps": 1000, "sparsity_warmup_steps": None})


# sparsify


def sparsify():
    def case(name, folder, cfg, choose, skip=None):
        s = weights()
        x = activations()
        hidden = ((x if cfg.get("transcode") else x - s["b_dec"]) @ s["W_enc"] + s["b_enc"]).relu()
        f = choose(hidden)
        state = {"encoder.weight": s["W_enc"].T, "encoder.bias": s["b_enc"], "W_dec": s["W_dec"], "b_dec": s["b_dec"]}
        decoded = f @ s["W_dec"] + s["b_dec"]
        if skip is not None:
            state["W_skip"] = skip
            decoded = decoded + x @ skip.mT
        cfg = {"expansion_factor": 3, "normalize_decoder": True, "num_latents": 0, "k": K, "d_in": WIDTH, **cfg}
        write(name, {f"{folder}/cfg.json": cfg, f"{folder}/sae.safetensors": state, "config.json": {"model": "EleutherAI/pythia-160m"}},
              x, f, decoded, at=folder)

    def groups(hidden):
        values, indices = hidden.unflatten(-1, (K, -1)).max(dim=-1)
        offsets = torch.arange(0, FEATURES, FEATURES // K)
        return torch.zeros_like(hidden).scatter_(-1, indices + offsets, values)

    case("sparsify-topk", "layers.3", {"activation": "topk"}, lambda hidden: top(hidden, K))
    case("sparsify-groupmax", "layers.3.mlp", {"activation": "groupmax"}, groups)
    case("sparsify-skip-transcoder", "layers.2.mlp", {"transcode": True, "skip_connection": True}, lambda hidden: top(hidden, K),
         skip=torch.randn(WIDTH, WIDTH) * 0.3)


# circuit-tracer


def circuit_tracer():
    def case(name, extra, activate, yaml, skip=None):
        s = weights()
        x = activations()
        f = activate(x @ s["W_enc"] + s["b_enc"])
        decoded = f @ s["W_dec"] + s["b_dec"] + (0 if skip is None else x @ skip.T)
        state = {**s, "W_enc": s["W_enc"].T, **extra, **({} if skip is None else {"W_skip": skip})}
        write(name, {"layer_2.safetensors": state, "config.yaml": yaml}, x, f, decoded, at="layer_2.safetensors")

    yaml = 'model_name: "Qwen/Qwen3-4B"\nmodel_kind: transcoder_set\nfeature_input_hook: mlp.hook_in\nfeature_output_hook: hook_mlp_out # of the MLP\n'
    threshold = torch.rand(FEATURES)
    case("circuit-tracer-jumprelu", {"activation_function.threshold": threshold}, lambda h: h * (h > threshold), yaml)
    case("circuit-tracer-relu-skip", {}, torch.relu, yaml, skip=torch.randn(WIDTH, WIDTH) * 0.3)
    case("circuit-tracer-topk", {}, lambda h: top(h, K), yaml + f"activation: topk\nk: {K}\n")

    encoder, bias, threshold = torch.randn(FEATURES, WIDTH) * 0.5, torch.randn(FEATURES) * 0.3, torch.rand(FEATURES)
    decoder, decoder_bias = torch.randn(FEATURES, 3, WIDTH) * 0.5, torch.randn(WIDTH)
    x = activations()
    hidden = torch.einsum("bd,fd->bf", x, encoder) + bias
    f = hidden * (hidden > threshold)
    written = torch.einsum("bf,fld->bld", f, decoder)
    # The bias is of this file's own layer; those of later layers are in other files.
    written[:, 0] += decoder_bias
    yaml = "model_name: google/gemma-2-2b\nmodel_kind: cross_layer_transcoder\nfeature_input_hook: hook_resid_mid\nfeature_output_hook: hook_mlp_out\n"
    write("circuit-tracer-cross-layer", {
        "W_enc_1.safetensors": {"W_enc_1": encoder, "b_enc_1": bias, "b_dec_1": decoder_bias, "threshold_1": threshold},
        "W_dec_1.safetensors": {"W_dec_1": decoder}, "config.yaml": yaml}, x, f, written.flatten(1), at="W_enc_1.safetensors")


# Releases of dictionary_learning before 0.1.0


def older_dictionary_learning():
    case = dictionary_learning_case
    a = weights()
    case("dictionary-learning-2024-autoencoder", "AutoEncoder",
         {"bias": a["b_dec"], "encoder.weight": a["W_enc"].T, "encoder.bias": a["b_enc"], "decoder.weight": a["W_dec"].T},
         lambda x: ((x - a["b_dec"]) @ a["W_enc"] + a["b_enc"]).relu(), lambda f: f @ a["W_dec"] + a["b_dec"],
         trainer={"trainer_class": "StandardTrainer", "warmup_steps": 1000, "resample_steps": None})
    j = {**weights(), "threshold": torch.rand(FEATURES)}
    length = j["W_dec"].norm(dim=1)

    def jump(x):
        hidden = x @ j["W_enc"] + j["b_enc"]
        return (hidden * (hidden > j["threshold"])).relu() * length

    case("dictionary-learning-2024-jumprelu", "JumpReluAutoEncoder", j, jump, lambda f: (f / length) @ j["W_dec"] + j["b_dec"],
         trainer={"trainer_class": "TrainerJumpRelu", "steps": 30000})
    g = weights()
    extra = {"r_mag": torch.randn(FEATURES) * 0.3, "gate_bias": torch.randn(FEATURES) * 0.4, "mag_bias": torch.randn(FEATURES) * 0.4}
    long = g["W_dec"].norm(dim=1)

    def gated(x):
        product = (x - g["b_dec"]) @ g["W_enc"]
        return (product + extra["gate_bias"] > 0) * (extra["r_mag"].exp() * product + extra["mag_bias"]).relu() * long

    case("dictionary-learning-2024-gated", "GatedAutoEncoder",
         {"decoder_bias": g["b_dec"], **extra, "encoder.weight": g["W_enc"].T, "decoder.weight": g["W_dec"].T},
         gated, lambda f: (f / long) @ g["W_dec"] + g["b_dec"],
         trainer={"trainer_class": "GatedSAETrainer", "warmup_steps": 1000})


# OpenAI's sparse_autoencoder


def openai_state(s, activation, settings):
    state = torch.nn.Module().state_dict()
    state.update({"pre_bias": s["b_dec"], "latent_bias": s["b_enc"], "stats_last_nonzero": torch.zeros(FEATURES, dtype=torch.long),
                  "latents_activation_frequency": torch.ones(FEATURES), "latents_mean_square": torch.zeros(FEATURES),
                  "encoder.weight": s["W_enc"].T, "decoder.weight": s["W_dec"].T, "activation": activation})
    inner = torch.nn.Module().state_dict()
    inner.update(settings)
    state["activation_state_dict"] = inner
    return state


def openai():
    s = weights()
    x = activations()
    mean = x.mean(dim=-1, keepdim=True)
    deviation = (x - mean).std(dim=-1, keepdim=True)
    f = top(((x - mean) / (deviation + 1e-5) - s["b_dec"]) @ s["W_enc"] + s["b_enc"], K)
    path = "gpt2-small/resid_post_mlp_v5_32k/autoencoders/6.pt"
    # The module's own state_dict() lists the settings once more.
    state = openai_state(s, "TopK", {"k": K, "postact_fn": "ReLU"}) | {"activation.k": K, "activation.postact_fn": "ReLU"}
    write("openai-topk-listed-twice", {path: state}, x, f, (f @ s["W_dec"] + s["b_dec"]) * deviation + mean, at=path)
    write("openai-topk", {path: openai_state(s, "TopK", {"k": K, "postact_fn": "ReLU"})}, x, f,
          (f @ s["W_dec"] + s["b_dec"]) * deviation + mean, at=path)
    s = weights()
    x = activations()
    f = ((x - s["b_dec"]) @ s["W_enc"] + s["b_enc"]).relu()
    path = "gpt2-small/resid_delta_mlp_v4/autoencoders/11.pt"
    write("openai-relu", {path: openai_state(s, "ReLU", {})}, x, f, f @ s["W_dec"] + s["b_dec"], at=path)


def goodfire():
    s = weights()
    x = activations()
    f = (x @ s["W_enc"] + s["b_enc"]).relu()
    state = {"encoder_linear.weight": s["W_enc"].T, "encoder_linear.bias": s["b_enc"],
             "decoder_linear.weight": s["W_dec"].T, "decoder_linear.bias": s["b_dec"]}
    write("goodfire", {"Llama-3.1-8B-Instruct-SAE-l19.pt": state}, x, f, f @ s["W_dec"] + s["b_dec"],
          at="Llama-3.1-8B-Instruct-SAE-l19.pt")


# Files that no library would read so, or that do not say what they are


def refused():
    shutil.rmtree(REFUSED, ignore_errors=True)
    REFUSED.mkdir()
    s = weights()
    linear = {"encoder.weight": s["W_enc"].T, "encoder.bias": s["b_enc"], "decoder.weight": s["W_dec"].T}
    topk = openai_state(s, "TopK", {"k": K, "postact_fn": "ReLU"})
    cases = {
        "openai-tied": {**topk, "decoder.linear.weight": s["W_enc"].T},
        "openai-other-setting": {**topk, "activation_state_dict": {"k": K, "postact_fn": "ReLU", "temperature": 2.0}},
        "openai-two-k": {**topk, "activation.k": K + 1},
        "openai-identity": openai_state(s, "Identity", {}),
        "openai-topk-identity": openai_state(s, "TopK", {"k": K, "postact_fn": "Identity"}),
        "openai-topk-without-k": openai_state(s, "TopK", {"postact_fn": "ReLU"}),
        "autoencoder-with-threshold": {**linear, "bias": s["b_dec"], "log_threshold": torch.rand(FEATURES)},
        "topk-with-bandwidth": {**linear, "b_dec": s["b_dec"], "k": torch.tensor(K), "bandwidth": torch.tensor(0.1)},
        "gated-with-encoder-bias": {**linear, "decoder_bias": s["b_dec"], "r_mag": s["b_enc"], "gate_bias": s["b_enc"],
                                    "mag_bias": s["b_enc"]},
        "matrices-alone": s,
        "linear-alone": linear,
    }
    for name, state in cases.items():
        torch.save(state, REFUSED / f"{name}.pt")


if __name__ == "__main__":
    main()
