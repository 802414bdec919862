"""The torch engine of the lab, inside a Python interpreter of Cuvette: a model of transformers with taps and interventions, asked over a socket.

Needs torch, transformers and safetensors, and nothing else. `start` is what the interpreter's startup code calls.
"""

from cuvette_torch.startup import start

__all__ = ["start"]
