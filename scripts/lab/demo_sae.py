"""The sparse autoencoder beside the shipped model: trains it on the residual stream, names its features, writes it as SAELens does.

scripts/lab/train-demo.py uses it.
"""

import json
import math

import torch
from safetensors.torch import save_file

FEATURES = 256
ACTIVE = 8
STEPS = 4000
ROWS = 2048
DEAD_AFTER = 200


class TopKSae(torch.nn.Module):
    """x̂ = decode(top k of relu(encode(x − b_dec))), with rows of the decoder kept at length 1."""

    def __init__(self, width, centre):
        super().__init__()
        decoder = torch.nn.functional.normalize(torch.randn(FEATURES, width), dim=1)
        self.W_dec = torch.nn.Parameter(decoder)
        self.W_enc = torch.nn.Parameter(decoder.T.clone())
        self.b_enc = torch.nn.Parameter(torch.zeros(FEATURES))
        self.b_dec = torch.nn.Parameter(centre.clone())

    def products(self, rows):
        return (rows - self.b_dec) @ self.W_enc + self.b_enc

    def encode(self, rows):
        return keep_largest(self.products(rows), ACTIVE)

    def forward(self, rows):
        return self.encode(rows) @ self.W_dec + self.b_dec


def train_sae(rows):
    sae = TopKSae(rows.shape[1], rows.mean(0))
    optimizer = torch.optim.Adam(sae.parameters(), betas=(0.9, 0.999))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 2.0 * min(1, 5 * (1 - step / STEPS)))
    idle = torch.zeros(FEATURES)
    variance = (rows - rows.mean(0)).square().sum(1).mean()
    for step in range(STEPS):
        batch = rows[torch.randint(len(rows), (ROWS,))]
        products = sae.products(batch)
        features = keep_largest(products, ACTIVE)
        error = batch - (features @ sae.W_dec + sae.b_dec)
        loss = error.square().sum(1).mean() / variance
        idle = torch.where((features > 0).any(0), 0.0, idle + 1)
        loss = loss + revive(sae, products, error.detach(), idle > DEAD_AFTER, variance) / 32
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            sae.W_dec.copy_(torch.nn.functional.normalize(sae.W_dec, dim=1))
        if step % 500 == 0 or step == STEPS - 1:
            print(f"SAE step {step}: loss {loss.item():.4f}, {int((idle > DEAD_AFTER).sum())} idle", flush=True)
    with torch.no_grad():
        for parameter in sae.parameters():
            parameter.copy_(parameter.half().float())
    return sae.eval()


def revive(sae, products, error, idle, variance):
    """Features that have not been active for long learn from what the others leave."""
    if not idle.any():
        return torch.zeros(())
    guess = keep_largest(products.masked_fill(~idle, -math.inf), min(16, int(idle.sum()))) @ sae.W_dec
    return (guess - error).square().sum(1).mean() / variance


def keep_largest(products, count):
    values, places = products.topk(count, dim=-1)
    return torch.zeros_like(products).scatter(-1, places, values.relu())


@torch.no_grad()
def measure_sae(sae, rows):
    features = sae.encode(rows)
    error = rows - sae(rows)
    return {
        "fvu": (error.square().sum() / (rows - rows.mean(0)).square().sum()).item(),
        "l0": (features > 0).sum(1).float().mean().item(),
        "features": FEATURES,
        "alive": int((features > 0).any(0).sum()),
    }


def save_sae(sae, folder, hook_name, context):
    """As SAELens 6 writes a TopK SAE; it reads weights of any precision into `dtype`."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: value.half().contiguous() for name, value in sae.state_dict().items()}
    write_tensors(folder / "sae_weights.safetensors", tensors)
    settings = {
        "architecture": "topk",
        "d_in": sae.W_dec.shape[1],
        "d_sae": FEATURES,
        "k": ACTIVE,
        "rescale_acts_by_decoder_norm": False,
        "dtype": "float32",
        "device": "cpu",
        "apply_b_dec_to_input": True,
        "normalize_activations": "none",
        "reshape_activations": "none",
        "metadata": {
            "model_name": "cuvette-demo",
            "hook_name": hook_name,
            "context_size": context,
            "prepend_bos": True,
        },
    }
    (folder / "cfg.json").write_text(json.dumps(settings, indent=2) + "\n")


def write_tensors(path, tensors):
    save_file(tensors, path, metadata={"format": "pt"})
    # The library makes files that only their owner can read.
    path.chmod(0o644)


@torch.no_grad()
def describe_features(sae, states, rows, words):
    """What each feature is active on, what comes next there, and which earlier words it goes with.

    `states` are of all tokens of the rows but the last of each.
    """
    features = sae.encode(states)
    current = torch.tensor([token for row in rows for token in row[:-1]])
    following = torch.tensor([token for row in rows for token in row[1:]])
    earlier = torch.cat([came_before(row, len(words)) for row in rows])
    weight = features.sum(0).clamp(min=1e-9)[:, None]
    on = torch.zeros(FEATURES, len(words)).index_add_(1, current, features.T) / weight
    before = torch.zeros(FEATURES, len(words)).index_add_(1, following, features.T) / weight
    after = features.T @ earlier / weight
    next_usual, earlier_usual = torch.bincount(following, minlength=len(words)) / len(following), earlier.mean(0)
    descriptions = {}
    for feature in (features > 0).any(0).nonzero().flatten().tolist():
        parts = [f"on {listed(on[feature], words, on[feature] > 0.06)}"]
        telling = (before[feature] > 0.15) & (before[feature] > 2 * next_usual)
        if telling.any():
            parts.append(f"before {listed(before[feature], words, telling)}")
        marked = (after[feature] > 0.4) & (after[feature] > 2.5 * earlier_usual)
        if marked.any():
            parts.append(f"after {listed(after[feature] / earlier_usual.clamp(min=1e-4), words, marked)}")
        share = (features[:, feature] > 0).float().mean().item()
        descriptions[str(feature)] = f"{'; '.join(parts)} ({100 * share:.2g} % of tokens)"
    return descriptions


def came_before(row, vocabulary):
    """For each token of a text but the last, which tokens of the vocabulary stand before it."""
    seen = torch.zeros(len(row) - 1, vocabulary)
    for place, token in enumerate(row[:-2]):
        seen[place + 1 :, token] = 1
    return seen


def listed(scores, words, chosen, most=4):
    places = scores.masked_fill(~chosen, -1).topk(min(most, len(words))).indices.tolist()
    return ", ".join(f"“{words[place].strip()}”" for place in places if chosen[place]) or "many words"
