"""Finds and replaces activations in the inputs and outputs of transformers' modules: among other arguments, or in tuples."""

from __future__ import annotations

from typing import Any, Callable, Optional

import torch

# A layer, from 0, and a site in its block, such as "attn_out". Activations are texts × positions × width; at "z" and "pattern", × heads before that.
HookPoint = tuple[int, str]
# Sees an activation, and may give back another to go on with.
Hook = Callable[[torch.Tensor], Optional[torch.Tensor]]
Hooks = dict[HookPoint, list[Hook]]


def fitted(rows: torch.Tensor, width: int) -> torch.Tensor:
    """Cuts rows to a width, or fills them up with zeros: a table has rows of several widths."""
    return rows[..., :width] if rows.shape[-1] >= width else torch.nn.functional.pad(rows, (0, width - rows.shape[-1]))


def of_output(output: Any) -> torch.Tensor | None:
    """Gives the activation of a module's output, which is the first thing in it."""
    first = output[0] if isinstance(output, (tuple, list)) and output else output
    return first if isinstance(first, torch.Tensor) else None


def with_output(output: Any, activation: torch.Tensor) -> Any:
    if not isinstance(output, (tuple, list)):
        return activation
    return type(output)([activation, *output[1:]])


def of_input(args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor | None:
    """Gives the residual stream that a block is called with."""
    found = args[0] if args else kwargs.get("hidden_states")
    return found if isinstance(found, torch.Tensor) else None


def with_input(args: tuple[Any, ...], kwargs: dict[str, Any], activation: torch.Tensor) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if args:
        return (activation, *args[1:]), kwargs
    return args, {**kwargs, "hidden_states": activation}
