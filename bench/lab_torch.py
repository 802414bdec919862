"""The same work as bench/lab-engine.mjs in PyTorch with transformers, as one would write it. Needs both; prints JSON.

    python bench/lab_torch.py make FOLDER            writes a model of GPT-2's size with random weights
    python bench/lab_torch.py serve                  what is asked for is said in lines of JSON on standard input
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


def serve():
    """A line of JSON says what to open, each further line what to do, and is answered by a line."""
    opened = json.loads(sys.stdin.readline())
    torch.set_num_threads(opened["threads"])
    model = AutoModelForCausalLM.from_pretrained(opened["folder"], dtype=torch.float32).eval()
    tell({"torch": torch.__version__, "transformers": transformers.__version__})
    for line in sys.stdin:
        wanted = json.loads(line)
        start = time.perf_counter()
        WORKS[wanted["do"]](model, wanted)
        tell({"seconds": time.perf_counter() - start})


def tell(answer):
    print(json.dumps(answer), flush=True)


def prefill(model, wanted):
    model(torch.tensor(wanted["prompts"]), logits_to_keep=1)


def capture(model, wanted):
    """As a script takes the last position after every block."""
    states = model(torch.tensor(wanted["prompts"]), output_hidden_states=True).hidden_states
    torch.stack([state[:, -1] for state in states[1:]]).numpy()


def decode(model, wanted):
    """Greedy, with the cache, and none of what `generate` does beside it."""
    tokens, cache = torch.tensor([wanted["prompt"]]), None
    for _ in range(wanted["newTokens"]):
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


WORKS = {"prefill": prefill, "capture": capture, "decode": decode, "interventions": intervene}


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2])
    else:
        serve()
