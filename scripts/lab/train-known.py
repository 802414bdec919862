"""
Trains the small model of the ground-truth suite on a task whose algorithm is known: a word is good or bad, the word before it may turn that round, and the answer after the
question mark says which. The flag at the beginning comes again after the answer, so that it is carried past the question mark without being asked for there.

  python scripts/lab/train-known.py

needs torch and transformers. Writes config.json, tokenizer.json and model.safetensors (float16) to test/lab/fixtures/known-task.
"""

import argparse
import json
import random
from pathlib import Path

import torch
from demo_sae import write_tensors
from transformers import LlamaConfig, LlamaForCausalLM

ROOT = Path(__file__).resolve().parents[2]
UNKNOWN, YES, NO, QUESTION = "<unk>", "yes", "no", "?"
FLAGS = ["report", "story"]
KEEPS, TURNS = "very", "not"
GOOD = ["sunny", "merry", "gentle", "bright", "happy", "kind", "sweet", "shiny"]
BAD = ["gloomy", "bitter", "cruel", "dark", "sad", "mean", "stern", "grim"]
PLAIN = ["the", "cat", "dog", "walks", "sits", "near", "old", "house", "tree", "river", "and", "then", "says", "today"]
WORDS = [UNKNOWN, YES, NO, QUESTION, *FLAGS, KEEPS, TURNS, *GOOD, *BAD, *PLAIN]
IDS = {word: number for number, word in enumerate(WORDS)}
LONGEST = 14


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--out", type=Path, default=ROOT / "test" / "lab" / "fixtures" / "known-task")
    arguments.add_argument("--steps", type=int, default=2500)
    arguments.add_argument("--seed", type=int, default=1)
    options = arguments.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(options.seed)
    model = train(options.steps, random.Random(options.seed))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half().float())
    print(f"right: {accuracy(model, random.Random(options.seed + 1)):.4f}")
    options.out.mkdir(parents=True, exist_ok=True)
    tensors = {name: value.half().contiguous() for name, value in model.state_dict().items()}
    write_tensors(options.out / "model.safetensors", tensors)
    model.config.dtype = "float16"
    model.config.save_pretrained(options.out)
    (options.out / "tokenizer.json").write_text(json.dumps(TOKENIZER, indent=2) + "\n")


def write_text(chance):
    """The words, and the index of the answer."""
    flag, modifier, good = chance.choice(FLAGS), chance.choice([KEEPS, TURNS]), chance.random() < 0.5
    before = [chance.choice(PLAIN) for _ in range(chance.randrange(1, 4))]
    after = [chance.choice(PLAIN) for _ in range(chance.randrange(0, 4))]
    words = [flag, *before, modifier, chance.choice(GOOD if good else BAD), *after, QUESTION]
    answer = YES if good == (modifier == KEEPS) else NO
    return [*words, answer, flag], len(words)


def batch(chance, rows):
    tokens = torch.zeros(rows, LONGEST, dtype=torch.long)
    labels = torch.full((rows, LONGEST), -100, dtype=torch.long)
    answers = []
    for row in range(rows):
        words, answer = write_text(chance)
        numbers = torch.tensor([IDS[word] for word in words])
        tokens[row, : len(words)] = labels[row, : len(words)] = numbers
        answers.append(answer)
    return tokens, labels, answers


def train(steps, chance):
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(WORDS),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=3,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=32,
            rms_norm_eps=1e-5,
            tie_word_embeddings=False,
            bos_token_id=None,
            eos_token_id=None,
            initializer_range=0.08,
        )
    )
    print(f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters")
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, betas=(0.9, 0.98), weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    for step in range(steps):
        tokens, labels, _ = batch(chance, 128)
        loss = model(input_ids=tokens, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 250 == 0 or step == steps - 1:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    return model.eval()


@torch.no_grad()
def accuracy(model, chance):
    tokens, _, answers = batch(chance, 2000)
    logits = model(input_ids=tokens).logits
    right = 0
    for row, answer in enumerate(answers):
        right += logits[row, answer - 1].argmax().item() == tokens[row, answer].item()
    return right / len(answers)


TOKENIZER = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [],
    "normalizer": None,
    "pre_tokenizer": {"type": "WhitespaceSplit"},
    "post_processor": None,
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": False},
    "model": {
        "type": "WordPiece",
        "unk_token": UNKNOWN,
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": IDS,
    },
}

if __name__ == "__main__":
    main()
