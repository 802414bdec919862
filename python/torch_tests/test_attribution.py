"""Tests attribution patching: that it is the slope of what replacing an activation does, in every architecture, and all of it where a model is linear."""

from __future__ import annotations

import unittest
from types import SimpleNamespace
from typing import Any

import torch
from small_models import MODELS, make
from test_architectures import prompts, run
from torch import nn

from cuvette_torch.captures import Captures
from cuvette_torch.engine import Engine
from cuvette_torch.errors import EngineError

POSITIVE, NEGATIVE = [3, 5], [7]
SITES = ("resid_pre", "pattern", "z", "attn_out", "mlp_out", "resid_post")


def attribute(engine: Engine, texts: list[list[int]], pairs: list[list[int]], site: str, positions: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    header = dict(do="attribute", lengths=[len(text) for text in texts], pairs=pairs, place=site, positions=positions, positive=POSITIVE, negative=NEGATIVE)
    tokens = torch.tensor([token for text in texts for token in text], dtype=torch.int32)
    changes, margins = engine.answer(header, [tokens], lambda: None)[1]
    return changes, margins


def margins_of(engine: Engine, texts: list[list[int]], variants: Any, vectors: Any = None) -> torch.Tensor:
    header = dict(do="run", lengths=[len(text) for text in texts], variants=variants, taps=[], logits=[-1], surprise=False)
    tokens = torch.tensor([token for text in texts for token in text], dtype=torch.int32)
    chosen = torch.tensor([*POSITIVE, *NEGATIVE], dtype=torch.int32)
    vectors = torch.empty(0, 0) if vectors is None else vectors
    logits = engine.answer(header, [tokens, vectors, chosen], lambda: None)[1][0].double()
    return logits[:, : len(POSITIVE)].mean(-1) - logits[:, len(POSITIVE) :].mean(-1)


def difference_at(engine: Engine, texts: list[list[int]], layer: int, site: str, position: int, head: int) -> torch.Tensor:
    """Of the first text's activation to the second's."""
    first, second = run(engine, texts, taps=[[layer, site, [position], head]])[0]
    return second - first


def smooth(model: Any) -> Any:
    """Without the kinks of ReLU, at which there is no slope."""
    for module in list(model.modules()):
        for name, part in module.named_children():
            if isinstance(part, nn.ReLU):
                setattr(module, name, nn.GELU())
    return model


class Attributions(unittest.TestCase):
    def test_estimate_is_the_slope_of_the_real_change_in_every_architecture(self) -> None:
        step = 0.02
        for name, (_, _, parts) in MODELS.items():
            engine = Engine(smooth(make(name)), None, Captures())
            texts = prompts(7, 7)
            for site in SITES:
                heads = engine.model_info.forward.heads[1]
                if (parts is None and not site.startswith("resid")) or (site == "pattern" and (heads is None or heads.pattern_problem is not None)):
                    continue
                head = 2 if site in ("z", "pattern") else -1
                changes, margins = attribute(engine, texts, [[0, 1]], site, [-3, -1])
                difference = difference_at(engine, texts, 1, site, -3, head)
                moved = [[0, []], *([0, [[1, site, "add", [-3], which, -1, head]]] for which in (0, 1))]
                # Towards the other activation, where a pattern stays a distribution.
                base, whole, half = margins_of(engine, texts[:1], moved, torch.stack([difference * step, difference * step / 2]))
                with self.subTest(name, site=site):
                    self.assertAlmostEqual(float(margins[0]), float(base), delta=1e-4)
                    slope = float((4 * half - whole - 3 * base) / step)
                    self.assertAlmostEqual(float(changes[0, 1, max(head, 0), 0]), slope, delta=5e-4 + 1e-2 * abs(slope))

    def test_estimate_is_the_whole_change_where_the_model_is_linear(self) -> None:
        engine = Engine(LinearModel().eval().requires_grad_(False), None, Captures())
        texts = prompts(6, 6, 4, 5)
        pairs = [[0, 1], [2, 3]]
        for site in ("resid_pre", "attn_out", "mlp_out", "resid_post"):
            changes, _ = attribute(engine, texts, pairs, site, [0, -2, -1])
            found, expected = [], []
            for pair, (first, second) in enumerate(pairs):
                for row, (own, other) in enumerate(((first, second), (second, first))):
                    for layer in range(3):
                        for which, position in enumerate((0, -2, -1)):
                            source = run(engine, [texts[other]], taps=[[layer, site, [position]]])[0]
                            set_it = [[0, []], [0, [[layer, site, "set", [position], 0, -1]]]]
                            base, patched = margins_of(engine, [texts[own]], set_it, source)
                            expected.append(float(patched - base))
                            found.append(float(changes[2 * pair + row, layer, 0, which]))
            with self.subTest(site):
                self.assertGreater(max(map(abs, expected)), 0.1)
                self.assertLess(max(abs(a - b) for a, b in zip(found, expected)), 1e-4)

    def test_estimate_does_not_depend_on_what_shares_a_batch(self) -> None:
        engine = Engine(make("llama"), None, Captures())
        texts = prompts(9, 9, 4, 6, 12, 12)
        pairs = [[0, 1], [2, 3], [4, 5]]
        together, margins = attribute(engine, texts, pairs, "z", [-1, -3])
        engine.budget.tokens = 1
        alone, same = attribute(engine, texts, pairs, "z", [-1, -3])
        self.assertLess(float((together - alone).abs().max()), 5e-5)
        self.assertLess(float((margins - same).abs().max()), 5e-5)
        self.assertEqual(tuple(together.shape), (6, 3, 4, 2))

    def test_error_names_the_model_whose_heads_cannot_be_told_apart(self) -> None:
        with self.assertRaisesRegex(EngineError, "MambaForCausalLM"):
            attribute(Engine(make("mamba"), None, Captures()), prompts(4, 4), [[0, 1]], "z", [-1])


class LinearModel(nn.Module):
    """A decoder without norms and activation functions: each token's attention is the mean of all up to it."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.config = SimpleNamespace(hidden_size=16, num_hidden_layers=3, num_attention_heads=1, architectures=None)
        self.embedding = nn.Embedding(200, 16)
        self.blocks = nn.ModuleList(LinearBlock() for _ in range(3))
        self.unembedding = nn.Linear(16, 200, bias=False)

    def forward(self, input_ids: torch.Tensor, past_key_values: Any = None, use_cache: bool = False) -> Any:
        if past_key_values is not None:
            raise ValueError("There is no KV cache.")
        x = self.embedding(input_ids)
        for block in self.blocks:
            x = block(x)
        return SimpleNamespace(logits=self.unembedding(x))

    def get_input_embeddings(self) -> nn.Module:
        return self.embedding

    def get_output_embeddings(self) -> nn.Module:
        return self.unembedding


class LinearBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = MeanAttention()
        self.mlp = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(x)
        return x + self.mlp(x)


class MeanAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.output = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        counts = torch.arange(1, x.shape[1] + 1, device=x.device).unsqueeze(-1)
        return self.output(x.cumsum(1) / counts)


if __name__ == "__main__":
    unittest.main()
