"""Compares the references in test/lab/fixtures/saes with what the libraries themselves compute from those files.

Needs torch and safetensors, and the libraries without what they depend on, best in an environment of its own:

    pip install --no-deps dictionary-learning==0.1.0 sae-lens==6.54.12 eai-sparsify==1.3.3 circuit-tracer==0.5.0
    pip install einops natsort simple-parsing docstring-parser packaging requests
    python scripts/lab/check-saes.py [path of OpenAI's sparse_autoencoder/model.py]

Each case is opened by its library's own loader, encoded and decoded by its own methods. What has no library on an
index (OpenAI's package, Llama Scope's, Goodfire's) and what belongs to other releases is listed as not compared.
"""

import importlib.metadata
import importlib.util
import json
import logging
import os
import sys
import types
from pathlib import Path

import torch

CASES = Path(__file__).resolve().parents[2] / "test" / "lab" / "fixtures" / "saes"
TOLERANCE = 2e-5


def main():
    for name in ("transformer_lens", "transformer_lens.hook_points", "transformer_lens.HookedTransformer"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["transformer_lens.hook_points"].HookPoint = torch.nn.Identity
    sys.modules["transformer_lens.HookedTransformer"].HookedRootModule = HookedRootModule
    worst, compared, left = 0.0, 0, []
    for case in sorted(CASES.iterdir()):
        reference = json.loads((case / "reference.json").read_text())
        rows = torch.tensor(reference["rows"])
        with torch.no_grad():
            answer = ask(case, case / reference["open"], rows)
        if answer is None:
            left.append(case.name)
            continue
        errors = [float((torch.tensor(reference[key]) - numbers).abs().max()) for key, numbers in zip(("features", "decoded"), answer)]
        worst, compared = max(worst, *errors), compared + 1
        print(f"{case.name}: features {errors[0]:.1e}, decoded {errors[1]:.1e}")
    print(f"{compared} compared, the largest difference is {worst:.1e}. Not compared: {', '.join(left)}.")
    if worst > TOLERANCE:
        sys.exit(1)


class HookedRootModule(torch.nn.Module):
    """Stands for transformer_lens', of which SAELens uses nothing here."""

    def setup(self):
        pass


def ask(case, path, rows):
    """Features and reconstruction, or None where there is no library to ask."""
    if case.name.startswith("dictionary-learning") and "2024" not in case.name:
        return of_dictionary_learning(path, rows)
    if case.name.startswith("saelens"):
        return of_saelens(path, rows)
    if case.name.startswith("sparsify"):
        return of_sparsify(path, rows)
    if case.name.startswith("circuit-tracer") and case.name != "circuit-tracer-cross-layer" or "transcoders" in case.name or case.name == "gemma-scope-2-4b-it":
        return of_circuit_tracer(path, rows)
    if case.name.startswith("openai") and len(sys.argv) > 1:
        return of_openai(path, rows)
    return None


def package(name):
    """The package without its __init__, which would import what is not needed here."""
    if name not in sys.modules:
        module = types.ModuleType(name)
        module.__path__ = list(importlib.util.find_spec(name).submodule_search_locations)
        sys.modules[name] = module
    return sys.modules[name]


def of_dictionary_learning(path, rows):
    package("dictionary_learning")
    sys.modules.setdefault("nnsight", types.ModuleType("nnsight"))
    from dictionary_learning import dictionary
    trainers = types.ModuleType("dictionary_learning.trainers")
    trainers.__path__ = [str(Path(dictionary.__file__).parent / "trainers")]
    sys.modules["dictionary_learning.trainers"] = trainers
    from dictionary_learning.trainers import batch_top_k, matryoshka_batch_top_k, top_k

    file = path / "ae.pt"
    config = path / "config.json"
    kind = json.loads(config.read_text())["trainer"]["dict_class"] if config.exists() else {
        "dictionary-learning-new": "AutoEncoderNew",
        "dictionary-learning-matryoshka": "MatryoshkaBatchTopKSAE",
        "dictionary-learning-jumprelu": "JumpReluAutoEncoder",
    }[path.name]
    found = [getattr(module, kind) for module in (top_k, batch_top_k, matryoshka_batch_top_k, dictionary) if hasattr(module, kind)]
    model = found[0].from_pretrained(str(file))
    features = model.encode(rows)
    return features, model.decode(features)


def of_saelens(path, rows):
    cfg = json.loads((path / "cfg.json").read_text())
    # A transcoder reads at one place, a checkpoint of a training has another class, and a scale is folded in by the user.
    if cfg.get("architecture") == "batchtopk" or cfg.get("finetuning_scaling_factor"):
        return None
    package("sae_lens").logger = logging.getLogger("sae_lens")
    package("sae_lens").__version__ = importlib.metadata.version("sae-lens")
    saes = types.ModuleType("sae_lens.saes")
    saes.__path__ = [str(Path(sys.modules["sae_lens"].__path__[0]) / "saes")]
    sys.modules.setdefault("sae_lens.saes", saes)
    from sae_lens.saes.sae import SAE
    register_saelens()
    sae = SAE.load_from_disk(path, device="cpu", dtype="float32")
    if cfg.get("normalize_activations") == "expected_average_only_in":
        sae.fold_activation_norm_scaling_factor(json.loads((path / "activation_scaler.json").read_text())["scaling_factor"])
    # Heads are flattened beforehand, as they are in the rows.
    sae.turn_off_forward_pass_hook_z_reshaping()
    features = sae.encode(rows)
    decoded = sae.decode(features)
    return features, decoded if "W_skip" not in dict(sae.named_parameters()) else decoded + rows @ sae.W_skip.T


def register_saelens():
    from sae_lens import registry
    from sae_lens.saes import gated_sae, jumprelu_sae, standard_sae, topk_sae, transcoder
    if registry.SAE_CLASS_REGISTRY:
        return
    for name, module, cls in [("standard", standard_sae, "StandardSAE"), ("gated", gated_sae, "GatedSAE"), ("topk", topk_sae, "TopKSAE"),
                              ("jumprelu", jumprelu_sae, "JumpReLUSAE"), ("transcoder", transcoder, "Transcoder"),
                              ("skip_transcoder", transcoder, "SkipTranscoder"),
                              ("jumprelu_skip_transcoder", transcoder, "JumpReLUSkipTranscoder")]:
        registry.register_sae_class(name, getattr(module, cls), getattr(module, f"{cls}Config"))


def of_sparsify(path, rows):
    os.environ["SPARSIFY_DISABLE_TRITON"] = "1"
    package("sparsify")
    # Only its training moves tensors between devices.
    accelerate = types.ModuleType("accelerate.utils")
    accelerate.send_to_device = None
    sys.modules.setdefault("accelerate", types.ModuleType("accelerate"))
    sys.modules.setdefault("accelerate.utils", accelerate)
    from sparsify.sparse_coder import SparseCoder
    coder = SparseCoder.load_from_disk(path)
    output = coder.encode(rows)
    features = torch.zeros(len(rows), coder.num_latents).scatter_(-1, output.top_indices, output.top_acts)
    decoded = coder.decode(output.top_acts, output.top_indices)
    return features, decoded if coder.W_skip is None else decoded + rows @ coder.W_skip.mT


def of_circuit_tracer(path, rows):
    package("circuit_tracer")
    utils = types.ModuleType("circuit_tracer.utils")
    utils.get_default_device = lambda: torch.device("cpu")
    sys.modules["circuit_tracer.utils"] = utils
    transcoders = types.ModuleType("circuit_tracer.transcoder")
    transcoders.__path__ = [str(Path(sys.modules["circuit_tracer"].__path__[0]) / "transcoder")]
    sys.modules["circuit_tracer.transcoder"] = transcoders
    from circuit_tracer.transcoder import activation_functions, single_layer_transcoder as one
    if path.suffix == ".npz":
        transcoder = one.load_gemma_scope_transcoder(str(path), 3)
    elif path.suffix == "":
        transcoder = one.load_gemma_scope_2_transcoder(str(path / "params.safetensors"), 5)
    else:
        transcoder = one.load_relu_transcoder(str(path), 2, lazy_encoder=False, lazy_decoder=False)
    if "topk" in str(path):
        transcoder.activation_function = activation_functions.TopK(4)
    features = transcoder.encode(rows)
    return features, transcoder.decode(features, rows)


def of_openai(path, rows):
    spec = importlib.util.spec_from_file_location("openai_model", sys.argv[1])
    model = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(model)
    # Its from_state_dict() refuses the second mention of the settings that its state_dict() makes.
    state = {key: value for key, value in torch.load(path).items() if not key.startswith("activation.")}
    autoencoder = model.Autoencoder.from_state_dict(state)
    features, info = autoencoder.encode(rows)
    return features, autoencoder.decode(features, info)


if __name__ == "__main__":
    main()
