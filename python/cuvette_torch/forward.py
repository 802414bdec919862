"""One pass through the model, with visits at hook points. Nobody else who calls the model meanwhile, as user code may, notices anything of it."""

from __future__ import annotations

import threading
from typing import Any, Callable

import torch
from torch import nn

from cuvette_torch import activations
from cuvette_torch.activations import Point, Visit, Visits
from cuvette_torch.block_discovery import Block, Part
from cuvette_torch.errors import Problem

PARTS = {"attn_out": "attention", "mlp_out": "MLP"}


class Forward:
    def __init__(self, model: Any, blocks: list[Block]) -> None:
        self.model = model
        self.blocks = blocks
        self.device = model.get_input_embeddings().weight.device

    def __call__(
        self,
        tokens: torch.Tensor,
        visits: Visits,
        past: Any = None,
        until: Point | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> torch.Tensor | None:
        """Tokens are texts × positions; what is in `past` comes before them, and they are added to it. Gives what the head is given, unless
        nothing is wanted behind the point `until`. `check` is called before each block, and may raise."""
        passing = _Pass(self, tokens.shape, visits, until, check)
        with passing, torch.inference_mode():
            try:
                self.model(input_ids=tokens.to(self.device), past_key_values=past, use_cache=past is not None)
            except _Enough:
                return None
        return passing.last

    def part(self, layer: int, place: str) -> Part:
        block = self.blocks[layer]
        part = block.attention if place == "attn_out" else block.mlp
        if part is None:
            raise Problem(
                "bad_model",
                "What the %s of block %d adds to the residual stream cannot be told apart in %s: no two parts of the block make up what it adds. "
                "Use resid_pre or resid_post there." % (PARTS[place], layer, type(self.model).__name__),
            )
        return part


class _Enough(BaseException):
    """Everything that was asked for has been passed."""


class _Pass:
    """The hooks of one pass. They do something in its thread only."""

    def __init__(self, forward: Forward, shape: torch.Size, visits: Visits, until: Point | None, check: Callable[[], None]) -> None:
        self.forward = forward
        self.shape = shape
        self.visits = visits
        self.until = until
        self.check = check
        self.thread = threading.get_ident()
        self.last: torch.Tensor | None = None
        self.handles: list[Any] = []

    def __enter__(self) -> None:
        try:
            self.register()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        for handle in self.handles:
            handle.remove()

    def register(self) -> None:
        stop_before, stop_after = self.stops()
        for layer, block in enumerate(self.forward.blocks):
            self.before(block.module, self.visits.get((layer, "resid_pre"), []), layer == stop_before)
            for place in PARTS:
                if visits := self.visits.get((layer, place)):
                    part = self.forward.part(layer, place)
                    self.after(part.module, visits, part.factor, False)
            if (visits := self.visits.get((layer, "resid_post"), [])) or layer == stop_after:
                self.after(block.module, visits, 1.0, layer == stop_after)
        head = self.forward.model.get_output_embeddings()
        self.handles.append(head.register_forward_pre_hook(self.take_last))

    def stops(self) -> tuple[int, int]:
        if self.until is None:
            return -1, -1
        layer, place = self.until
        return (layer, -1) if place == "resid_pre" else (-1, layer)

    def before(self, module: nn.Module, visits: list[Visit], is_last: bool) -> None:
        def hook(module: nn.Module, args: Any, kwargs: Any) -> Any:
            if threading.get_ident() != self.thread:
                return None
            self.check()
            given = activations.of_input(args, kwargs)
            changed = self.visit(visits, given, 1.0) if given is not None else None
            if is_last:
                raise _Enough
            return None if changed is None else activations.with_input(args, kwargs, changed)

        self.handles.append(module.register_forward_pre_hook(hook, with_kwargs=True))

    def after(self, module: nn.Module, visits: list[Visit], factor: float, is_last: bool) -> None:
        def hook(module: nn.Module, args: Any, output: Any) -> Any:
            if threading.get_ident() != self.thread:
                return None
            given = activations.of_output(output)
            changed = self.visit(visits, given, factor) if given is not None else None
            if is_last:
                raise _Enough
            return None if changed is None else activations.with_output(output, changed)

        self.handles.append(module.register_forward_hook(hook))

    def visit(self, visits: list[Visit], given: torch.Tensor, factor: float) -> torch.Tensor | None:
        """Visits see what is added to the residual stream, as texts × positions × width."""
        x = given.reshape(*self.shape, -1)
        if factor != 1.0:
            x = x * factor
        is_changed = False
        for visit in visits:
            changed = visit(x)
            if changed is not None:
                x, is_changed = changed, True
        if not is_changed:
            return None
        return (x / factor if factor != 1.0 else x).reshape(given.shape)

    def take_last(self, module: nn.Module, args: Any) -> Any:
        """The head is left to work on a single position: logits are computed from what it was given, where they are wanted."""
        if threading.get_ident() != self.thread:
            return None
        self.last = args[0]
        return (args[0][..., :1, :], *args[1:])
