"""Trains the model that ships with Cuvette, and its sparse autoencoder, into models/demo.

Needs torch, transformers, tokenizers, safetensors, numpy, and Node for the text:

    python scripts/lab/train-demo.py [--out models/demo] [--steps 2000]

One thread of a processor, about five minutes. The same versions on the same kind of processor give the same files.
"""

import argparse
import json
import math
import subprocess
import tempfile
import time
from pathlib import Path

import torch
from demo_sae import describe_features, measure_sae, save_sae, train_sae, write_tensors
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import LlamaConfig, LlamaForCausalLM

ROOT = Path(__file__).resolve().parents[2]
SEED = 1
END = "<|endoftext|>"
CONTEXT = 128
ROWS = 160
LEARNING_RATE = 4e-3
# The sparse autoencoder reads the residual stream after this block.
SAE_LAYER = 2
SAE_TEXTS = 20_000
DESCRIBED_TEXTS = 3_000


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--out", type=Path, default=ROOT / "models" / "demo")
    arguments.add_argument("--steps", type=int, default=2000)
    arguments.add_argument("--documents", type=int, default=200_000)
    arguments.add_argument("--seed", type=int, default=SEED)
    options = arguments.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)

    with tempfile.TemporaryDirectory() as folder:
        corpus = read_corpus(Path(folder), options.documents)
    tokenizer = make_tokenizer(corpus["vocabulary"])
    tokenizer.save(str(options.out / "tokenizer.json"))
    write_json(options.out / "tokenizer_config.json", TOKENIZER_CONFIG)
    model = train_model(tokenizer, corpus["train"], options.steps)
    round_to_half(model)
    save_model(model, options.out)
    found = evaluate(model, tokenizer, corpus)
    print(json.dumps(found, indent=2), flush=True)
    torch.manual_seed(options.seed)
    fit = make_sae(model, tokenizer, corpus, options.out / "sae")
    print(json.dumps(fit, indent=2), flush=True)
    write_card(options.out, found, fit, options)


def read_corpus(folder, documents):
    script = ROOT / "scripts" / "lab" / "write-corpus.mjs"
    subprocess.run(["node", script, folder, str(documents)], check=True)
    return {
        "train": (folder / "train.txt").read_text().splitlines(),
        "held_out": (folder / "held-out.txt").read_text().splitlines(),
        "vocabulary": json.loads((folder / "vocabulary.json").read_text()),
        "datasets": json.loads((folder / "datasets.json").read_text()),
    }


# ── the tokenizer ────────────────────────────────────────────────────────────────────────────────────────────────

TOKENIZER_CONFIG = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": END,
    "eos_token": END,
    "model_max_length": CONTEXT,
    "clean_up_tokenization_spaces": False,
}


def make_tokenizer(words):
    """Known words are one token each, with the space before them; all else is bytes. There are no merges: a piece is a word or it is not."""
    bytes_ = sorted(pre_tokenizers.ByteLevel.alphabet())
    spelled = [word.replace(" ", "Ġ") for word in words]
    vocabulary = {token: number for number, token in enumerate(dict.fromkeys([END, *bytes_, *spelled]))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([END])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{END} $A", pair=f"{END} $A {END} $B", special_tokens=[(END, 0)]
    )
    return tokenizer


# ── the model ────────────────────────────────────────────────────────────────────────────────────────────────────


def train_model(tokenizer, texts, steps):
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=tokenizer.get_vocab_size(),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=CONTEXT,
            rms_norm_eps=1e-5,
            tie_word_embeddings=False,
            bos_token_id=0,
            eos_token_id=0,
            initializer_range=0.05,
        )
    )
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters")
    matrices = [parameter for parameter in model.model.parameters() if parameter.dim() == 2]
    norms = [parameter for parameter in model.parameters() if parameter.dim() == 1]
    optimizer = torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": 0.1},
            # So that the unembedding reads what it needs, and nothing that it does not.
            {"params": [model.lm_head.weight], "weight_decay": 1.0},
            {"params": norms, "weight_decay": 0.0},
        ],
        lr=LEARNING_RATE,
        betas=(0.9, 0.98),
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate_at(step, steps))
    batches = endless_batches(tokenize(tokenizer, texts))
    began = time.time()
    for step in range(steps):
        tokens, labels = next(batches)
        loss = model(input_ids=tokens, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 0 or step == steps - 1:
            print(f"step {step}: loss {loss.item():.4f}, {time.time() - began:.0f} s", flush=True)
    return model.eval()


def rate_at(step, steps):
    warmup = 100
    if step < warmup:
        return (step + 1) / warmup
    return 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))


def tokenize(tokenizer, texts):
    """As the model sees a text: the end token before it and after it."""
    return [encoding.ids + [0] for encoding in tokenizer.encode_batch(texts) if len(encoding.ids) < CONTEXT]


def endless_batches(rows):
    """Rows of like length share a batch, so that little is padding."""
    chunk = ROWS * 64
    while True:
        order = torch.randperm(len(rows)).tolist()
        for start in range(0, len(rows) - chunk + 1, chunk):
            part = sorted((rows[index] for index in order[start : start + chunk]), key=len)
            for batch in torch.randperm(64).tolist():
                yield padded(part[batch * ROWS : (batch + 1) * ROWS])


def padded(rows):
    length = max(map(len, rows))
    tokens = torch.zeros(len(rows), length, dtype=torch.long)
    labels = torch.full((len(rows), length), -100, dtype=torch.long)
    for index, row in enumerate(rows):
        tokens[index, : len(row)] = labels[index, : len(row)] = torch.tensor(row)
    return tokens, labels


def round_to_half(model):
    """What is evaluated is what is saved."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half().float())


def save_model(model, out):
    tensors = {name: value.half().contiguous() for name, value in model.state_dict().items()}
    write_tensors(out / "model.safetensors", tensors)
    model.config.dtype = "float16"
    model.config.save_pretrained(out)


# ── what it has learned ──────────────────────────────────────────────────────────────────────────────────────────


@torch.no_grad()
def evaluate(model, tokenizer, corpus):
    sets = corpus["datasets"]
    number, tense = ([" are"], [" is"]), ([" is", " are"], [" was", " were"])
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "vocabulary": tokenizer.get_vocab_size(),
        "agreement": accuracy(model, tokenizer, sets["agreement"], *number),
        "agreement over a noun of the other number": accuracy(model, tokenizer, sets["attracted"], *number),
        "agreement of invented nouns": accuracy(model, tokenizer, sets["invented"], *number),
        "tense": accuracy(model, tokenizer, sets["flags"], *tense),
        "sentiment": accuracy(model, tokenizer, sets["reviews"], [" good"], [" bad"]),
        "perplexity": perplexity(model, tokenizer, corpus["held_out"]),
    }


@torch.no_grad()
def residuals(model, rows):
    """After the block that the autoencoder reads, at every token that has a next one."""
    parts = []
    for start in range(0, len(rows), 256):
        tokens, labels = padded(rows[start : start + 256])
        states = model(input_ids=tokens, output_hidden_states=True).hidden_states[SAE_LAYER + 1]
        parts.append(states[:, :-1][labels[:, 1:] != -100])
    return torch.cat(parts)


def make_sae(model, tokenizer, corpus, out):
    rows = tokenize(tokenizer, corpus["train"][:SAE_TEXTS])
    sae = train_sae(residuals(model, rows))
    save_sae(sae, out, f"blocks.{SAE_LAYER}.hook_resid_post", CONTEXT)
    words = [tokenizer.decode([token], skip_special_tokens=False) for token in range(tokenizer.get_vocab_size())]
    some = rows[:DESCRIBED_TEXTS]
    write_json(out / "descriptions.json", describe_features(sae, residuals(model, some), some, words))
    held_out = residuals(model, tokenize(tokenizer, corpus["held_out"]))
    return measure_sae(sae, held_out) | {"recovered": recovered(model, tokenizer, corpus["held_out"], sae, held_out.mean(0))}


@torch.no_grad()
def recovered(model, tokenizer, texts, sae, mean):
    """How much of the loss that the mean in the residual stream's place would cost the autoencoder in its place does not."""
    losses = []
    for put in (lambda states: states, sae, lambda states: mean.expand_as(states)):
        hook = model.model.layers[SAE_LAYER].register_forward_hook(lambda module, inputs, output: put(output))
        losses.append(math.log(perplexity(model, tokenizer, texts)))
        hook.remove()
    plain, patched, without = losses
    return (without - patched) / (without - plain)


def accuracy(model, tokenizer, rows, positive, negative):
    ids = [[tokenizer.token_to_id(word.replace(" ", "Ġ")) for word in words] for words in (positive, negative)]
    right = 0
    for start in range(0, len(rows), 256):
        part = rows[start : start + 256]
        encoded = [tokenizer.encode(row["prompt"]).ids for row in part]
        tokens, _ = padded(encoded)
        logits = model(input_ids=tokens).logits[range(len(part)), [len(row) - 1 for row in encoded]]
        margins = logits[:, ids[0]].mean(1) - logits[:, ids[1]].mean(1)
        right += sum((margin > 0) == (row["label"] == 1) for margin, row in zip(margins.tolist(), part))
    return right / len(rows)


def perplexity(model, tokenizer, texts):
    rows = tokenize(tokenizer, texts)
    total = count = 0
    for start in range(0, len(rows), 256):
        tokens, labels = padded(rows[start : start + 256])
        predicted = int((labels[:, 1:] != -100).sum())
        total += model(input_ids=tokens, labels=labels).loss.item() * predicted
        count += predicted
    return math.exp(total / count)


# ── the card ─────────────────────────────────────────────────────────────────────────────────────────────────────


def write_card(out, found, fit, options):
    size = lambda name: f"{(out / name).stat().st_size / 1000:.0f} KB"
    percent = lambda share: f"{100 * share:.1f} %"
    card = CARD.format(
        parameters=f"{found['parameters']:,}",
        vocabulary=found["vocabulary"],
        model_size=size("model.safetensors"),
        sae_size=size("sae/sae_weights.safetensors"),
        steps=options.steps,
        documents=f"{options.documents:,}",
        seed=options.seed,
        agreement=percent(found["agreement"]),
        attracted=percent(found["agreement over a noun of the other number"]),
        invented=percent(found["agreement of invented nouns"]),
        tense=percent(found["tense"]),
        sentiment=percent(found["sentiment"]),
        perplexity=f"{found['perplexity']:.2f}",
        layer=SAE_LAYER,
        features=fit["features"],
        alive=fit["alive"],
        l0=f"{fit['l0']:.1f}",
        fvu=f"{fit['fvu']:.3f}",
        cost=percent(1 - fit["recovered"]),
    )
    (out / "README.md").write_text(card)


CARD = """# The demo model

A language model that is small enough to ship with Cuvette and large enough to have something inside. It speaks a small English
that Cuvette itself writes (`src/lab/demo`): reports in the present and stories in the past, reviews that end in a verdict, and
diaries. `cuvette lab demo` looks inside it.

|            |                                                                                                                                       |
| ---------- | ------------------------------------------------------------------------------------------------------------------------------------- |
| shape      | Llama: 4 layers, width 64, 4 heads with 2 for keys and values, context 128, {parameters} parameters, saved as float16 ({model_size})  |
| tokenizer  | {vocabulary} tokens: each word of its language, with the space before it, and all bytes, so that any text can be written              |
| training   | {steps} steps on {documents} texts, seed {seed}, by `scripts/lab/train-demo.py`                                                       |
| autoencoder | TopK, in `sae/`, as SAELens 6 writes it ({sae_size}): the residual stream after block {layer}, {features} features, {alive} of them in use |

## What it has learned

Measured with the rounded weights, on sentences whose subject and next noun never stand together in the training text.

| behaviour                                                                              | right        |
| -------------------------------------------------------------------------------------- | ------------ |
| “Report: The keys near the cabinet” goes on with “are”, not “is”                       | {agreement} |
| the same, where the noun between is of the other number                                | {attracted} |
| the same for invented nouns, spelled in letters: “The old wugs near the cabinet”       | {invented} |
| a report goes on in the present, a story in the past                                   | {tense} |
| “Review: The soup was awful. The waiters were very nasty. Verdict:” goes on with “bad” | {sentiment} |

Perplexity on texts it was not trained on: {perplexity} a token. One verb in 25 of the text is wrong on purpose, so that the model
is sure of its verbs, but not beyond all doubt.

The autoencoder leaves {fvu} of the variance unexplained with {l0} features a token; put in the place of the residual stream, it
costs {cost} of the loss that the mean activation in that place would. `sae/descriptions.json` says for each feature
what it is active on, what comes next there, and what came before; these descriptions were counted, not written by hand.

## What it is not

It knows nothing but its small language, has no opinions, and its features are cleaner than those of large models. What holds here
is a check of tools, not a finding about language models.
"""


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
