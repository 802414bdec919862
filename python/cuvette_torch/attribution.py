"""Computes attribution patching: estimates, for all layers, heads and positions at once, how much replacing an activation by that of a counterfactual would
change a difference of logits. The estimate is the difference of the activations times the gradient, by one forward and one backward pass for a batch."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Callable

import torch

from cuvette_torch import positions
from cuvette_torch.activations import Hook, Hooks
from cuvette_torch.head_discovery import ATTENTION_SITES
from cuvette_torch.memory_budget import MemoryBudget
from cuvette_torch.model_inspection import InspectedModel
from cuvette_torch.outputs import add_hook
from cuvette_torch.prompts import batch_of
from cuvette_torch.requests import AttributionRequest

# What a pass with gradients keeps of a token, in relation to one without.
GRADIENT_COST = 4


class Attribution:
    def __init__(self, model_info: InspectedModel, budget: MemoryBudget, request: AttributionRequest, check: Callable[[], None]) -> None:
        self.model_info = model_info
        self.budget = budget
        self.request = request
        self.check = check
        self.layers = len(model_info.blocks)
        has_heads = request.site in ATTENTION_SITES
        self.heads = max(model_info.forward.heads_at(layer, request.site).count for layer in range(self.layers)) if has_heads else 1
        # Of each pair the first prompt, then the second.
        self.changes = torch.zeros(2 * len(request.pairs), self.layers, self.heads, len(request.positions))
        self.margins = torch.zeros(2 * len(request.pairs))

    def tables(self) -> list[torch.Tensor]:
        def cost(pair: int) -> float:
            return GRADIENT_COST * sum(len(self.request.prompts[prompt]) for prompt in self.request.pairs[pair])

        self.budget.in_batches(range(len(self.request.pairs)), [(cost, self.budget.tokens)], self.run_pairs, "the prompts of a pair with gradients")
        return [self.changes, self.margins]

    def run_pairs(self, pairs: Sequence[int]) -> None:
        texts = sorted({prompt for pair in pairs for prompt in self.request.pairs[pair]}, key=lambda text: len(self.request.prompts[text]))
        found: dict[int, tuple[torch.Tensor, torch.Tensor, float]] = {}
        for _, group in itertools.groupby(texts, key=lambda text: self.model_info.batch_key(len(self.request.prompts[text]))):
            found.update(self.differentiate(list(group)))
        for pair in pairs:
            first, second = self.request.pairs[pair]
            for row, (own, other) in enumerate(((first, second), (second, first))):
                activation, gradient, margin = found[own]
                self.changes[2 * pair + row] = ((found[other][0] - activation) * gradient).sum(-1)
                self.margins[2 * pair + row] = margin

    def differentiate(self, texts: list[int]) -> dict[int, tuple[torch.Tensor, torch.Tensor, float]]:
        """Gives for each text its activations, layers × heads × positions × width, the gradient of its margin by them, and the margin."""
        rows = [self.request.prompts[text] for text in texts]
        seen: dict[int, torch.Tensor] = {}
        hooks: Hooks = {}
        # The weights have no gradients: the graph begins here.
        add_hook(hooks, (0, "resid_pre"), lambda x: x.detach().requires_grad_(True))
        for layer in range(self.layers):
            add_hook(hooks, (layer, self.request.site), keep_in(seen, layer))
        last = self.model_info.forward(batch_of(rows), hooks, None, None, self.check, has_gradients=True)
        assert last is not None
        margins = self.margins_of(last, [len(row) - 1 for row in rows])
        gradients = torch.autograd.grad(margins.sum(), [seen[layer] for layer in range(self.layers)])
        kept = [(self.at_positions(seen[layer].detach(), rows), self.at_positions(gradients[layer], rows)) for layer in range(self.layers)]
        activations, slopes = (torch.stack(side, 1) for side in zip(*kept))
        return {text: (activations[i], slopes[i], float(margins[i].detach())) for i, text in enumerate(texts)}

    def margins_of(self, last: torch.Tensor, ends: list[int]) -> torch.Tensor:
        positive, negative = self.request.positive, self.request.negative
        chosen = last[torch.arange(len(ends), device=last.device), torch.tensor(ends, device=last.device)]
        logits = self.model_info.head.logits(chosen, torch.tensor([*positive, *negative]))
        return logits[:, : len(positive)].mean(-1) - logits[:, len(positive) :].mean(-1)

    def at_positions(self, x: torch.Tensor, rows: Sequence[Sequence[int]]) -> torch.Tensor:
        """Texts × heads × positions × width, in double precision."""
        wanted = torch.tensor([positions.resolve(self.request.positions, len(row)) for row in rows], device=x.device)
        chosen = x[torch.arange(len(rows), device=x.device).unsqueeze(-1), wanted]
        each = chosen.unsqueeze(2) if chosen.ndim == 3 else chosen
        return each.transpose(1, 2).to("cpu", torch.float64)


def keep_in(seen: dict[int, torch.Tensor], layer: int) -> Hook:
    def hook(x: torch.Tensor) -> torch.Tensor:
        seen[layer] = x
        # The model goes on with what is given back, so that the gradient by `x` is not 0; a copy, since some models add to it in place.
        return x.clone()

    return hook
