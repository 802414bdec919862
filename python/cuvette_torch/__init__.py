"""Runs the lab's torch engine inside of a Cuvette interpreter: a transformers model with taps and interventions, which answers over a socket.

It needs torch, transformers and safetensors, and nothing else. The interpreter's startup code calls `start`.
"""

from cuvette_torch import matrix_unit

matrix_unit.avoid_if_broken()  # Before torch computes anything.

from cuvette_torch.startup import start  # noqa: E402

__all__ = ["start"]
