"""Runs one forward pass with hooks. The hooks act in its own thread only, so that user code that calls the model meanwhile is not affected."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable

import torch
from torch import nn

from cuvette_torch import activations
from cuvette_torch.activations import Hook, HookPoint, Hooks
from cuvette_torch.block_discovery import Block, Part
from cuvette_torch.errors import EngineError
from cuvette_torch.head_discovery import ATTENTION_SITES, AttentionHeads, SoftmaxHook, are_weights, eager_attention
from cuvette_torch.length_regimes import LengthRegimes

PARTS = {"attn_out": "attention", "mlp_out": "MLP"}


class Forward:
    def __init__(self, model: Any, blocks: list[Block], lengths: LengthRegimes) -> None:
        self.model = model
        self.blocks = blocks
        self.lengths = lengths
        self.device = model.get_input_embeddings().weight.device
        # For each block; found once the blocks can be run.
        self.heads: list[AttentionHeads | None] = [None] * len(blocks)

    def __call__(
        self,
        tokens: torch.Tensor,
        hooks: Hooks,
        past: Any = None,
        until: HookPoint | None = None,
        check: Callable[[], None] = lambda: None,
        has_gradients: bool = False,
    ) -> torch.Tensor | None:
        """Tokens are texts × positions; what is in the KV cache `past` comes before them, and they are added to it. Gives what the head is given, unless
        nothing is wanted behind the hook point `until`. `check` is called before each block, and may raise. With `has_gradients`, what comes out can be
        differentiated by activations that hooks have made."""
        self.lengths.reset()
        passing = _Pass(self, tokens.shape, hooks, until, check)
        with passing, passing.seeing_patterns(), torch.enable_grad() if has_gradients else torch.inference_mode():
            try:
                self.model(input_ids=tokens.to(self.device), past_key_values=past, use_cache=past is not None)
            except _Enough:
                return None
        return passing.last

    def part(self, layer: int, site: str) -> Part:
        block = self.blocks[layer]
        part = block.attention if site == "attn_out" else block.mlp
        if part is None:
            raise EngineError(
                "bad_model",
                "What the %s of block %d adds to the residual stream cannot be told apart in %s: no two parts of the block make up what it adds. "
                "Use resid_pre or resid_post there." % (PARTS[site], layer, type(self.model).__name__),
            )
        return part

    def heads_at(self, layer: int, site: str) -> AttentionHeads:
        heads = self.heads[layer]
        why = "no part of it is given attention weights times values" if heads is None else heads.pattern_problem if site == "pattern" else None
        if heads is None or why is not None:
            what = "The heads of block %d" if heads is None else "The attention patterns of block %d"
            raise EngineError(
                "bad_model", "%s cannot be used in %s: %s. Use hook_attn_out, or the residual stream." % (what % layer, type(self.model).__name__, why)
            )
        return heads


class _Enough(BaseException):
    """Stops a pass once everything that was asked for has been computed."""


class _Pass:
    """The hooks of one pass."""

    def __init__(self, forward: Forward, shape: torch.Size, hooks: Hooks, until: HookPoint | None, check: Callable[[], None]) -> None:
        self.forward = forward
        self.shape = shape
        self.hooks = hooks
        self.until = until
        self.check = check
        self.thread = threading.get_ident()
        self.last: torch.Tensor | None = None
        # The block that is being computed.
        self.layer = -1
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
            self.before(block.module, self.hooks.get((layer, "resid_pre"), []), layer == stop_before, layer)
            for site in ATTENTION_SITES:
                if hooks := self.hooks.get((layer, site)):
                    heads = self.forward.heads_at(layer, site)
                    if site == "z":
                        self.before_projection(heads, hooks)
            for site in PARTS:
                if hooks := self.hooks.get((layer, site)):
                    part = self.forward.part(layer, site)
                    self.after(part.module, hooks, part.factor, False)
            if (hooks := self.hooks.get((layer, "resid_post"), [])) or layer == stop_after:
                self.after(block.module, hooks, 1.0, layer == stop_after)
        head = self.forward.model.get_output_embeddings()
        self.handles.append(head.register_forward_pre_hook(self.take_last))

    def stops(self) -> tuple[int, int]:
        if self.until is None:
            return -1, -1
        layer, site = self.until
        return (layer, -1) if site == "resid_pre" else (-1, layer)

    def before(self, module: nn.Module, hooks: list[Hook], is_last: bool, layer: int) -> None:
        def hook(module: nn.Module, args: Any, kwargs: Any) -> Any:
            if threading.get_ident() != self.thread:
                return None
            self.check()
            self.layer = layer
            given = activations.of_input(args, kwargs)
            changed = self.apply(hooks, given, 1.0) if given is not None else None
            if is_last:
                raise _Enough
            return None if changed is None else activations.with_input(args, kwargs, changed)

        self.handles.append(module.register_forward_pre_hook(hook, with_kwargs=True))

    def before_projection(self, heads: AttentionHeads, hooks: list[Hook]) -> None:
        def hook(module: nn.Module, args: Any) -> Any:
            if threading.get_ident() != self.thread:
                return None
            changed = self.apply(hooks, args[0], 1.0, (heads.count, heads.width))
            return None if changed is None else (changed, *args[1:])

        self.handles.append(heads.projection.register_forward_pre_hook(hook))

    @contextmanager
    def seeing_patterns(self) -> Iterator[None]:
        """Has attention weights computed, and hooks applied to them, where there are hooks on them."""
        if not any(site == "pattern" for _, site in self.hooks):
            yield
            return
        with eager_attention(self.forward.model), SoftmaxHook(self.on_softmax):
            yield

    def on_softmax(self, weights: torch.Tensor) -> torch.Tensor | None:
        hooks = self.hooks.get((self.layer, "pattern"))
        if not hooks or not are_weights(weights, self.shape):
            return None
        x = weights.transpose(1, 2)
        changed = self.apply(hooks, x, 1.0, x.shape[2:])
        return None if changed is None else changed.transpose(1, 2)

    def after(self, module: nn.Module, hooks: list[Hook], factor: float, is_last: bool) -> None:
        def hook(module: nn.Module, args: Any, output: Any) -> Any:
            if threading.get_ident() != self.thread:
                return None
            given = activations.of_output(output)
            changed = self.apply(hooks, given, factor) if given is not None else None
            if is_last:
                raise _Enough
            return None if changed is None else activations.with_output(output, changed)

        self.handles.append(module.register_forward_hook(hook))

    def apply(self, hooks: list[Hook], given: torch.Tensor, factor: float, each: tuple[int, ...] = (-1,)) -> torch.Tensor | None:
        """Applies hooks to what is added to the residual stream, as texts × positions × width, or to what has another shape at each position."""
        x = given.reshape(*self.shape, *each)
        if factor != 1.0:
            x = x * factor
        is_changed = False
        for hook in hooks:
            changed = hook(x)
            if changed is not None:
                x, is_changed = changed, True
        if not is_changed:
            return None
        return (x / factor if factor != 1.0 else x).reshape(given.shape)

    def take_last(self, module: nn.Module, args: Any) -> Any:
        """Takes what the head is given, and leaves the head a single position: logits are computed later, only where they are wanted."""
        if threading.get_ident() != self.thread:
            return None
        self.last = args[0]
        return (args[0][..., :1, :], *args[1:])
