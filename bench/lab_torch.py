"""The same work as bench/lab-engine.mjs in PyTorch with transformers, as one would write it. Needs both; prints JSON.

    python bench/lab_torch.py make FOLDER            writes a model of GPT-2's size with random weights
    python bench/lab_torch.py measure FOLDER         what is asked for is said in JSON on standard input
"""

import json
import sys
import time

import torch
import transformers
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

torch.set_grad_enabled(False)
transformers.logging.set_verbosity_error()


def make(folder):
    torch.manual_seed(0)
    GPT2LMHeadModel(GPT2Config()).save_pretrained(folder)


def times(work, rounds):
    work()
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return taken


def measure(folder, wanted):
    torch.set_num_threads(wanted["threads"])
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    answer = {"torch": torch.__version__, "transformers": transformers.__version__}
    if "prefill" in wanted:
        batch = torch.tensor(wanted["prefill"])
        answer["prefill"] = times(lambda: model(batch, logits_to_keep=1), wanted["rounds"])
    if "decode" in wanted:
        answer["decode"] = times(lambda: decode(model, wanted["decode"], wanted["newTokens"]), wanted["rounds"])
    if "interventions" in wanted:
        answer["interventions"] = times(lambda: intervene(model, wanted["interventions"]), 1)
    print(json.dumps(answer))


def decode(model, prompt, count):
    """Greedy, with the cache, and none of what `generate` does beside it."""
    tokens, cache = torch.tensor([prompt]), None
    for _ in range(count):
        out = model(tokens, past_key_values=cache, use_cache=True, logits_to_keep=1)
        cache, tokens = out.past_key_values, out.logits[:, -1].argmax(-1, keepdim=True)


def intervene(model, wanted):
    """A random direction is added at the last position after a block: for each direction, all prompts of one length in a batch."""
    blocks = model.model.layers
    directions = torch.randn(wanted["directions"], model.config.hidden_size)
    for direction in directions:

        def add(module, inputs, output, direction=direction):
            hidden = output[0] if isinstance(output, tuple) else output
            hidden[:, -1] += direction
            return output

        handle = blocks[wanted["layer"]].register_forward_hook(add)
        for batch in wanted["batches"]:
            model(torch.tensor(batch), logits_to_keep=1)
        handle.remove()


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2])
    else:
        measure(sys.argv[2], json.load(sys.stdin))
