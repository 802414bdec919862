"""Trains a small SAE of every kind, for the tests of the fit check, into test/lab/fixtures/sae-fit.

Needs torch, transformers, numpy and safetensors, and Node for the corpus:

    python scripts/lab/make-fit-saes.py

There are two sets of activations: the shipped model's residual stream, and sums of planted sparse features. Of each,
rows that were not trained on are kept with the SAEs, as float16. Each kind is trained by its own paper's loss: ReLU with
an L1 penalty, TopK, BatchTopK with one threshold, JumpReLU with an L0 penalty, Gated; a TopK on normalised rows as OpenAI's.
"""

import importlib.util
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from transformers import LlamaForCausalLM

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "test" / "lab" / "fixtures" / "sae-fit"
STEPS, BATCH, HELD_OUT = 1500, 512, 192


def main():
    torch.set_num_threads(1)
    torch.manual_seed(5)
    OUT.mkdir(parents=True, exist_ok=True)
    for name, rows, features, k in [("demo", demo_rows(), 160, 8), ("planted", planted_rows(), 96, 6)]:
        order = torch.randperm(len(rows))
        held_out, training = rows[order[:HELD_OUT]], rows[order[HELD_OUT:]]
        tensors = {"rows": held_out}
        for kind in KINDS:
            sae = train(kind, training, features, k)
            fvu, l0 = measure(sae, kind, held_out)
            print(f"{name} {kind}: FVU {fvu:.3f}, L0 {l0:.1f}", flush=True)
            tensors |= {f"{kind}.{key}": value for key, value in sae.items()}
        save_file({key: tensor.half().contiguous() for key, tensor in tensors.items()}, OUT / f"{name}.safetensors")
        (OUT / f"{name}.safetensors").chmod(0o644)


def demo_rows():
    sys.path.insert(0, str(ROOT / "scripts" / "lab"))
    spec = importlib.util.spec_from_file_location("train_demo", ROOT / "scripts" / "lab" / "train-demo.py")
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    with tempfile.TemporaryDirectory() as folder:
        corpus = demo.read_corpus(Path(folder), 3000)
    model = LlamaForCausalLM.from_pretrained(ROOT / "models" / "demo", dtype=torch.float32).eval()
    tokenizer = Tokenizer.from_file(str(ROOT / "models" / "demo" / "tokenizer.json"))
    return demo.residuals(model, demo.tokenize(tokenizer, corpus["train"]))


def planted_rows(width=24, features=72, count=40000):
    directions = torch.nn.functional.normalize(torch.randn(features, width), dim=1)
    frequency = torch.logspace(-2.3, -0.7, features)
    active = torch.rand(count, features) < frequency
    return (active * (0.5 + torch.rand(count, features) * 2)) @ directions + torch.randn(width) * 2 + torch.randn(count, width) * 0.08


KINDS = ["relu", "topk", "normalized", "batchtopk", "jumprelu", "gated"]


def train(kind, rows, features, k):
    width = rows.shape[1]
    decoder = torch.nn.functional.normalize(torch.randn(features, width), dim=1)
    p = {"W_dec": decoder, "W_enc": decoder.T.clone(), "b_dec": prepare(kind, rows)[0].mean(0)}
    if kind == "gated":
        p |= {name: torch.zeros(features) for name in ("b_gate", "b_mag", "r_mag")}
    else:
        p["b_enc"] = torch.zeros(features)
    if kind == "jumprelu":
        p["threshold"] = torch.full((features,), 0.1)
    p = {name: tensor.clone().requires_grad_() for name, tensor in p.items()}
    optimizer = torch.optim.Adam(p.values(), lr=2e-3)
    variance = prepare(kind, rows)[0].var(0).sum()
    penalty, seen, idle = 0.02, [], torch.zeros(features)
    # A penalty on sizes makes features too small, so that it takes more of them.
    wanted = 2 * k if kind == "relu" else k
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = 2e-3 * min(1, 4 * (1 - step / STEPS))
        x, _ = prepare(kind, rows[torch.randint(len(rows), (BATCH,))])
        f, extra = encode(p, kind, x, k, training=True)
        error = x - (f @ p["W_dec"] + p["b_dec"])
        loss = error.square().sum(1).mean() / variance + penalty * extra
        if kind == "gated":
            # The gate has to reconstruct by itself, too.
            gate = ((x - p["b_dec"].detach()) @ p["W_enc"] + p["b_gate"]).relu()
            loss = loss + (x - (gate @ p["W_dec"].detach() + p["b_dec"].detach())).square().sum(1).mean() / variance
        idle = torch.where((f > 0).any(0), 0, idle + 1)
        if kind in ("topk", "normalized", "batchtopk") and (idle > 100).any():
            hidden = ((x - p["b_dec"]) @ p["W_enc"] + p["b_enc"]).masked_fill(idle <= 100, -1e9)
            loss = loss + (keep(hidden, min(8, int((idle > 100).sum()))) @ p["W_dec"] - error.detach()).square().sum(1).mean() / variance / 32
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            p["W_dec"].copy_(torch.nn.functional.normalize(p["W_dec"], dim=1))
            if kind == "jumprelu":
                p["threshold"].clamp_(min=1e-3)
            l0 = (f > 0).float().sum(1).mean().item()
            # The penalty that gives about k active features, whichever kind of penalty it is.
            if kind in ("relu", "jumprelu", "gated") and step < 0.7 * STEPS:
                penalty *= 1.01 if l0 > 1.25 * wanted else 1 / 1.01 if l0 < 0.9 * wanted else 1
            if kind == "batchtopk" and step > STEPS - 300:
                seen.append(f[f > 0].min())
    sae = {name: tensor.detach().half().float() for name, tensor in p.items()}
    if kind == "batchtopk":
        sae["threshold"] = torch.stack(seen).mean().expand(features).clone()
    if kind in ("topk", "normalized", "batchtopk"):
        sae["k"] = torch.tensor([float(k)])
    return sae


def prepare(kind, x):
    if kind != "normalized":
        return x, lambda y: y
    mean = x.mean(-1, keepdim=True)
    deviation = (x - mean).std(-1, keepdim=True)
    return (x - mean) / (deviation + 1e-5), lambda y: y * deviation + mean


class Step(torch.autograd.Function):
    """1 above the threshold; its gradient is of a window of this width around it."""

    WINDOW = 0.1

    @staticmethod
    def forward(ctx, x, threshold):
        ctx.save_for_backward(x, threshold)
        return (x > threshold).float()

    @staticmethod
    def backward(ctx, gradient):
        x, threshold = ctx.saved_tensors
        near = ((x - threshold).abs() < Step.WINDOW / 2).float()
        return torch.zeros_like(x), (-near / Step.WINDOW * gradient).sum(0)


def encode(p, kind, x, k, training=False):
    product = (x - p["b_dec"]) @ p["W_enc"]
    if kind == "gated":
        gate = product + p["b_gate"]
        f = (gate > 0) * (product * p["r_mag"].exp() + p["b_mag"]).relu()
        return f, gate.relu().sum(1).mean()
    hidden = product + p["b_enc"]
    if kind == "relu":
        f = hidden.relu()
        return f, f.sum(1).mean()
    if kind in ("topk", "normalized"):
        return keep(hidden, k), 0
    if kind == "batchtopk" and training:
        f = hidden.relu()
        least = f.flatten().topk(k * len(x)).values[-1]
        return f * (f >= least), 0
    if kind == "batchtopk":
        return hidden.relu() * (hidden > p["threshold"]), 0
    open_ = Step.apply(hidden, p["threshold"])
    return hidden.relu() * open_, open_.sum(1).mean() / 5


def keep(hidden, k):
    values, places = hidden.topk(k, dim=-1)
    return torch.zeros_like(hidden).scatter(-1, places, values.relu())


@torch.no_grad()
def measure(sae, kind, rows):
    x, undo = prepare(kind, rows)
    f, _ = encode(sae, kind, x, int(sae["k"]) if "k" in sae else 0)
    error = rows - undo(f @ sae["W_dec"] + sae["b_dec"])
    return (error.square().sum() / (rows - rows.mean(0)).square().sum()).item(), (f > 0).float().sum(1).mean().item()


if __name__ == "__main__":
    main()
