"""Finds the parts of a model by what they do, not by what they are called.

A short text is run once while the output of every module inside the blocks is recorded. The blocks are the list of modules that the residual
stream passes through; attention and MLP are the two outputs in a block whose sum, times a constant where the model has one, is what
the block adds to the residual stream. That holds for norms after attention (Gemma 2, OLMo 2), parallel blocks (GPT-NeoX, Falcon),
residuals that are added inside (BLOOM) and scaled ones (Granite). Where no two outputs fit, the block has no attention and MLP sites, and says so.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from cuvette_torch import activations
from cuvette_torch.errors import EngineError

ATTENTION = re.compile(r"attn|attention|mixer|mamba|recurrent", re.IGNORECASE)
# An output with a smaller factor in the sum is not a part of it.
LEAST_FACTOR = 0.01
# How close a factor must be to one that the model's config names, to be taken for it.
SAME_FACTOR = 0.02
# Two outputs with a larger squared cosine are one and the same part.
SAME_OUTPUT = 0.9999


@dataclass(frozen=True)
class Part:
    """A module whose output, times the factor, is added to the residual stream."""

    module: nn.Module
    path: str
    factor: float


@dataclass(frozen=True)
class Block:
    module: nn.Module
    attention: Part | None
    mlp: Part | None


@dataclass
class Record:
    """The inputs and outputs of one block and of its modules in one forward pass."""

    module: nn.Module
    before: torch.Tensor | None = None
    after: torch.Tensor | None = None

    def __post_init__(self) -> None:
        # By module path, in the order in which the modules ended; only of modules that were called once.
        self.outputs: dict[str, torch.Tensor] = {}
        self.called: set[str] = set()

    @property
    def input(self) -> torch.Tensor:
        return present(self.before)

    @property
    def output(self) -> torch.Tensor:
        return present(self.after)


def present(tensor: torch.Tensor | None) -> torch.Tensor:
    if tensor is None:
        raise RuntimeError("the block has passed on no residual stream")
    return tensor


def text_config(model: nn.Module) -> Any:
    config: Any = model.config
    return config.get_text_config(decoder=True) if hasattr(config, "get_text_config") else config


def find_blocks(model: Any, tokens: torch.Tensor) -> list[Block]:
    config = text_config(model)
    lists = [one for one in model.modules() if isinstance(one, nn.ModuleList) and len(one) == config.num_hidden_layers]
    for blocks in sorted(lists, key=parameters_of, reverse=True):
        records = run_recorded(model, blocks, tokens, config.hidden_size)
        if all(record.before is not None and record.after is not None for record in records):
            return name_parts(records, config)
    raise EngineError(
        "bad_model",
        "The blocks of %s cannot be found: no list of %d modules passes on a residual stream of width %d. The lab cannot look inside this model."
        % (type(model).__name__, config.num_hidden_layers, config.hidden_size),
    )


def parameters_of(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


# -- recording ------------------------------------------------------------------------------------


def run_recorded(model: Any, blocks: nn.ModuleList, tokens: torch.Tensor, width: int) -> list[Record]:
    records = [Record(block) for block in blocks]
    shape = (*tokens.shape, width)
    handles = [handle for record in records for handle in record_hooks(record, shape)]
    try:
        model(input_ids=tokens, use_cache=False)
    finally:
        for handle in handles:
            handle.remove()
    return records


def record_hooks(record: Record, shape: tuple[int, ...]) -> Iterator[Any]:
    def copy(found: torch.Tensor | None) -> torch.Tensor | None:
        if found is None or found.shape[-1] != shape[-1] or found.numel() != torch.Size(shape).numel():
            return None
        return found.detach().to("cpu", torch.float64).reshape(-1, shape[-1])

    def begin(module: nn.Module, args: Any, kwargs: Any) -> None:
        record.before = copy(activations.of_input(args, kwargs))

    def end(module: nn.Module, args: Any, output: Any) -> None:
        record.after = copy(activations.of_output(output))

    yield record.module.register_forward_pre_hook(begin, with_kwargs=True)
    yield record.module.register_forward_hook(end)
    for path, module in record.module.named_modules():
        if path == "":
            continue

        def on_output(module: nn.Module, args: Any, output: Any, path: str = path) -> None:
            found = copy(activations.of_output(output))
            record.outputs.pop(path, None)
            if found is not None and path not in record.called:
                record.outputs[path] = found
            record.called.add(path)

        yield module.register_forward_hook(on_output)


# -- telling parts apart --------------------------------------------------------------------------


def name_parts(records: list[Record], config: Any) -> list[Block]:
    """Finds the parts of all blocks. Blocks of one kind are fitted together: what rounding hides in one of them, the others show."""
    kinds: dict[tuple[str, ...], list[Record]] = collections.defaultdict(list)
    for record in records:
        kinds[(type(record.module).__name__, *record.outputs)].append(record)
    factors = [1.0, *(value for value in vars(config).values() if type(value) is float and value > 0)]
    found = {kind: find_parts(alike, factors) for kind, alike in kinds.items()}

    def block_of(record: Record) -> Block:
        pair = found[(type(record.module).__name__, *record.outputs)]
        if pair is None:
            return Block(record.module, None, None)
        parts = [Part(record.module.get_submodule(path), path, factor) for path, factor in pair]
        return Block(record.module, *parts)

    return [block_of(record) for record in records]


def find_parts(records: list[Record], factors: list[float]) -> tuple[tuple[str, float], tuple[str, float]] | None:
    """Finds the paths of attention and MLP with their factors."""
    paths = list(records[0].outputs)
    added = weighed([(record, record.output - record.input) for record in records])
    outputs = {path: weighed([(record, record.outputs[path]) for record in records]) for path in paths}
    fits = [fit for i, first in enumerate(paths) for second in paths[i + 1 :] if (fit := fit_of(added, outputs, (first, second), factors))]
    least = min((fit.error for fit in fits), default=float("inf"))
    # The residual stream is rounded at each addition: an error of that size says nothing.
    rounding = 2 * unit_of(records[0].module) * sum(len(record.input) for record in records) ** 0.5
    most = min(max(rounding, 1e-3 * float(added.norm())), 0.5 * float(added.norm()))
    if not least <= most:
        return None
    # A module that only passes on the output of another fits as well as that one does; the outermost is taken, and of those the first.
    same = [fit for fit in fits if fit.error <= 1.01 * least + 1e-9 * float(added.norm())]
    best = min(same, key=lambda fit: sum(path.count(".") for path in fit.paths))
    (first, second), (a, b) = best.paths, best.factors
    is_reversed = ATTENTION.search(second) and not ATTENTION.search(first)
    return ((second, b), (first, a)) if is_reversed else ((first, a), (second, b))


@dataclass(frozen=True)
class Fit:
    error: float
    paths: tuple[str, str]
    factors: tuple[float, float]


def fit_of(added: torch.Tensor, outputs: dict[str, torch.Tensor], paths: tuple[str, str], factors: list[float]) -> Fit | None:
    first, second = (outputs[path] for path in paths)
    solved = solve(added, first, second)
    if solved is None:
        return None
    a, b = (known_factor(factor, factors) for factor in solved)
    return Fit(float((added - a * first - b * second).norm()), paths, (a, b))


def weighed(recorded: list[tuple[Record, torch.Tensor]]) -> torch.Tensor:
    """Concatenates all positions of all tensors, each divided by the length of its residual stream: some are a thousand times as long as others."""
    return torch.cat([(tensor / lengths(record)).reshape(-1) for record, tensor in recorded])


def lengths(record: Record) -> torch.Tensor:
    return torch.maximum(record.input.norm(dim=1), record.output.norm(dim=1)).clamp_min(1e-30).unsqueeze(1)


def solve(added: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> tuple[float, float] | None:
    """Solves for the factor of each in the sum, by least squares; None if one of them hardly counts, or both are the same."""
    aa, bb, ab = float(first @ first), float(second @ second), float(first @ second)
    if aa == 0 or bb == 0 or ab * ab > SAME_OUTPUT * aa * bb:
        return None
    ya, yb = float(added @ first), float(added @ second)
    determinant = aa * bb - ab * ab
    a, b = (ya * bb - yb * ab) / determinant, (yb * aa - ya * ab) / determinant
    return (a, b) if min(a, b) > LEAST_FACTOR else None


def known_factor(factor: float, known: list[float]) -> float:
    return next((one for one in known if abs(factor - one) <= SAME_FACTOR * one), factor)


def unit_of(module: nn.Module) -> float:
    """Gives the relative rounding error of one number."""
    kinds = {parameter.dtype for parameter in module.parameters() if parameter.dtype.is_floating_point}
    return max((torch.finfo(kind).eps for kind in kinds), default=torch.finfo(torch.bfloat16).eps)
