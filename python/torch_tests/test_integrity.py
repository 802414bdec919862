"""Tests that a model which code has changed is refused, however it was changed."""

from __future__ import annotations

import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from types import MethodType
from typing import Any

import torch
from small_models import MODELS, VOCABULARY, make
from torch import nn
from torch.nn.modules.module import register_module_forward_hook
from transformers import AutoConfig, AutoModelForCausalLM

from cuvette_torch.captures import Captures
from cuvette_torch.engine import Engine
from cuvette_torch.errors import EngineError
from cuvette_torch.fingerprint import step_of

PROMPT = torch.tensor([1, 2, 3], dtype=torch.int32)


def run(engine: Engine, check: Any = lambda: None, tokens: torch.Tensor = PROMPT) -> torch.Tensor:
    header = dict(do="run", lengths=[len(tokens)], variants=None, taps=[], logits=[-1], surprise=False)
    return engine.answer(header, [tokens, torch.empty(0, 48)], check)[1][0]


class ChangedModel(unittest.TestCase):
    def setUp(self) -> None:
        self.model = make("llama")
        self.engine = Engine(self.model, None, Captures())
        self.before = run(self.engine)

    @contextmanager
    def refused(self, why: str) -> Iterator[None]:
        with self.assertRaisesRegex(EngineError, why):
            yield
            run(self.engine)

    def test_change_of_weights_through_data_is_refused_for_any_row_or_column(self) -> None:
        for name, weight in self.model.named_parameters():
            kept = weight.data.clone()
            changes = [kept * 5] if kept.ndim < 2 else [kept * 5, with_zeros(kept, (kept.shape[0] // 2,)), with_zeros(kept, (slice(None), kept.shape[1] // 3))]
            for changed in changes:
                with self.subTest(name), self.refused("changed the model's weights"):
                    weight.data.copy_(changed)
                weight.data.copy_(kept)
        self.assertTrue(torch.equal(run(self.engine), self.before))

    def test_change_of_the_tensor_behind_a_weight_is_refused(self) -> None:
        weight = self.model.model.layers[1].mlp.down_proj.weight
        with self.refused("changed the model's weights"):
            weight.data = weight.data * 2

    def test_change_of_a_buffer_is_refused(self) -> None:
        with self.refused("changed the model's weights"):
            self.model.model.rotary_emb.inv_freq.mul_(2)

    def test_replaced_forward_method_is_refused_until_it_is_put_back(self) -> None:
        mlp = self.model.model.layers[1].mlp
        other = MethodType(type(mlp).forward, self.model.model.layers[0].mlp)
        for forward in (lambda x: x, other):
            with self.refused(r"replaced the method forward, at model\.layers\.1\.mlp\. .*del module\.forward"):
                mlp.forward = forward
            del mlp.forward
        kept = type(mlp).forward
        with self.refused("replaced the method forward"):
            type(mlp).forward = lambda self, x: x
        type(mlp).forward = kept
        # As some versions of transformers leave it.
        mlp.forward = mlp.forward
        self.assertTrue(torch.equal(run(self.engine), self.before))

    def test_replaced_module_is_refused(self) -> None:
        with self.refused("other modules"):
            self.model.model.layers[1].mlp.act_fn = nn.ReLU()

    def test_global_hook_on_all_modules_is_refused(self) -> None:
        with self.refused("hooks on the model, at all modules"):
            self.addCleanup(register_module_forward_hook(lambda *_: None).remove)

    def test_change_during_a_request_is_refused_and_nothing_of_it_is_cached(self) -> None:
        tokens = torch.tensor([4, 5, 6], dtype=torch.int32)
        handles: list[Any] = []

        def meddle() -> None:
            if not handles:
                handles.append(self.model.model.layers[0].register_forward_hook(lambda module, args, output: output * 2))

        with self.assertRaisesRegex(EngineError, "hooks on the model"):
            run(self.engine, meddle, tokens)
        handles[0].remove()
        expected = run(Engine(make("llama"), None, Captures()), tokens=tokens)
        self.assertTrue(torch.equal(run(self.engine, tokens=tokens), expected))


class UnchangedModel(unittest.TestCase):
    def test_unchanged_models_of_every_architecture_are_accepted(self) -> None:
        for name in MODELS:
            with self.subTest(name):
                engine = Engine(make(name), None, Captures())
                for length in (3, 60):
                    run(engine, tokens=torch.arange(length, dtype=torch.int32))

    def test_model_that_recomputes_its_rotary_embedding_is_accepted(self) -> None:
        rotary = dict(rope_type="dynamic", factor=2.0, rope_theta=10000.0)
        config = {**MODELS["llama"][1], "max_position_embeddings": 16, "rope_parameters": rotary, "rope_scaling": rotary}
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model("llama", **config)).eval().requires_grad_(False)
        engine = Engine(model, None, Captures())
        before = model.model.rotary_emb.inv_freq.clone()
        for _ in range(2):
            run(engine, tokens=torch.arange(60, dtype=torch.int32))
        self.assertFalse(torch.equal(model.model.rotary_emb.inv_freq, before))

    def test_fingerprint_samples_every_row_and_column(self) -> None:
        for shape in ((48, 48), (80, 48), (48, 80), (VOCABULARY, 48), (1, 7), (7, 1), (3, 5, 8), (9,), ()):
            drawn = torch.zeros(shape)
            drawn.view(-1)[:: step_of(drawn)] = 1
            matrix = drawn.reshape(-1, shape[-1] if shape else 1)
            self.assertTrue(matrix.any(0).all() and matrix.any(1).all(), shape)


def with_zeros(tensor: torch.Tensor, where: Any) -> torch.Tensor:
    tensor = tensor.clone()
    tensor[where] = 0
    return tensor


if __name__ == "__main__":
    unittest.main()
