"""Tests that heads and attention patterns mean the same in every architecture: by their definitions, and against the model's own attention weights."""

from __future__ import annotations

import functools
import unittest
from typing import Any

import torch
from small_models import MODELS, make
from test_architectures import generate, prompts, run

from cuvette_torch.captures import Captures
from cuvette_torch.engine import Engine
from cuvette_torch.errors import EngineError
from cuvette_torch.head_discovery import eager_attention
from cuvette_torch.model_inspection import inspect_model

CLOSE = 5e-5
WITHOUT_HEADS = ("opt with norms behind", "mamba")
# Attention sinks, and alibi that transformers scales in one way with eager attention and in another with its own.
WITHOUT_PATTERNS = ("gpt-oss", "falcon, serial with alibi")
LAYER = 1


def of_each_model_with_heads(test: Any) -> Any:
    @functools.wraps(test)
    def run_all(self: unittest.TestCase) -> None:
        for name in MODELS:
            if name not in WITHOUT_HEADS:
                with self.subTest(name):
                    test(self, Engine(make(name), None, Captures()), name)

    return run_all


def heads_of(engine: Engine) -> Any:
    return engine.model_info.forward.heads_at(LAYER, "z")


def patterns_of(engine: Engine, text: list[int]) -> torch.Tensor:
    """The attention weights that transformers itself gives: layers × heads × positions × positions."""
    with torch.no_grad(), eager_attention(engine.model):
        found = engine.model(input_ids=torch.tensor([text]), output_attentions=True).attentions
    return torch.stack([weights[0, ..., : len(text)] for weights in found])


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


class Heads(unittest.TestCase):
    def close(self, a: torch.Tensor, b: torch.Tensor, within: float = CLOSE) -> None:
        self.assertEqual(a.shape, b.shape)
        self.assertLess(float((a - b).abs().max() / b.abs().max().clamp_min(1)), within)

    def test_heads_are_found_in_every_architecture_that_has_them(self) -> None:
        for name in MODELS:
            with self.subTest(name):
                found = inspect_model(make(name)).forward.heads
                self.assertEqual([heads is not None for heads in found], [name not in WITHOUT_HEADS] * len(found))
                patterns = name not in WITHOUT_PATTERNS
                self.assertTrue(all(heads is None or (heads.count == 4 and (heads.pattern_problem is None) == patterns) for heads in found))

    @of_each_model_with_heads
    def test_same_heads_are_found_in_bfloat16(self, engine: Engine, name: str) -> None:
        before = [(heads.projection, heads.width) for heads in engine.model_info.forward.heads if heads]
        found = inspect_model(engine.model.to(torch.bfloat16)).forward.heads
        self.assertEqual([(heads.projection, heads.width) for heads in found if heads], before)

    @of_each_model_with_heads
    def test_patterns_are_those_of_transformers_also_in_a_batch_of_different_lengths(self, engine: Engine, name: str) -> None:
        if name in WITHOUT_PATTERNS:
            return
        texts = prompts(9, 4, 12)
        for head in (0, 3):
            table = run(engine, texts, taps=[[LAYER, "pattern", {"from": 0}, head]])[0]
            for text, rows in zip(texts, table.split([9, 4, 12])):
                self.close(rows[:, : len(text)], patterns_of(engine, text)[LAYER, head])
                self.assertFalse(rows[:, len(text) :].any())
                self.close(rows.sum(-1), torch.ones(len(text)))

    @of_each_model_with_heads
    def test_projection_of_all_heads_is_what_attention_adds(self, engine: Engine, name: str) -> None:
        (text,) = prompts(9)
        z, added = run(engine, [text], taps=[[LAYER, "z", {"from": 0}], [LAYER, "attn_out", {"from": 0}]])[:2]
        heads = heads_of(engine)
        part = engine.model_info.blocks[LAYER].attention
        product = heads.projection(z.reshape(1, len(text), -1))
        # Behind the projection may be a norm, which is the part itself.
        own = part.module(product) if next(part.module.children(), None) is None and part.module is not heads.projection else product
        self.close(own[0] * part.factor, added)
        each = torch.cat(run(engine, [text], taps=[[LAYER, "z", {"from": 0}, head] for head in range(heads.count)])[: heads.count], 1)
        self.assertTrue(torch.equal(each, z))

    @of_each_model_with_heads
    def test_output_of_a_head_is_its_pattern_times_the_values(self, engine: Engine, name: str) -> None:
        if name in WITHOUT_PATTERNS:
            return
        (text,) = prompts(9)
        heads = heads_of(engine)
        weights = patterns_of(engine, text)[LAYER]
        for head in (0, 3):
            # A row with one weight of 1 gives that token's values, by which all others are mixed.
            one_hot = torch.eye(len(text))
            sets = [[0, [[LAYER, "pattern", "set", [-1], key, -1, head]]] for key in range(len(text))]
            values = run(engine, [text], sets, [[LAYER, "z", [-1], head]], vectors=one_hot)[0]
            z = run(engine, [text], taps=[[LAYER, "z", {"from": 0}, head]])[0]
            self.close(weights[head] @ values, z)
            self.assertEqual(values.shape, (len(text), heads.width))

    @of_each_model_with_heads
    def test_head_is_changed_alone_and_as_the_model_itself_computes_it(self, engine: Engine, name: str) -> None:
        (text,) = prompts(9)
        heads = heads_of(engine)
        vectors = random(2, heads.width)
        for kind in ("set", "add", "project-out", "along", "rest"):
            variants = [[0, []], [0, [[LAYER, "z", kind, [-3], 0, 1, 2]]]]
            tables = run(engine, [text], variants, [[LAYER, "z", {"from": 0}], [LAYER, "attn_out", {"from": 0}]], {"from": 0}, vectors=vectors)
            z, added, logits = (table.reshape(2, len(text), -1) for table in tables[:3])
            by_head = z.reshape(2, len(text), heads.count, heads.width)
            self.assertTrue(torch.equal(by_head[0, :-3], by_head[1, :-3]))
            self.close(by_head[0, -3, [0, 1, 3]], by_head[1, -3, [0, 1, 3]])
            self.assertGreater(float((by_head[0, -3, 2] - by_head[1, -3, 2]).abs().max()), 1e-3)
            self.assertTrue(torch.equal(added[0, :-3], added[1, :-3]))

            def replace(module: Any, args: Any, z: torch.Tensor = z) -> Any:
                return (z[1].reshape(args[0].shape), *args[1:])

            handle = heads.projection.register_forward_pre_hook(replace)
            with torch.no_grad():
                own = engine.model(input_ids=torch.tensor([text])).logits[0]
            handle.remove()
            self.close(logits[1], own, 2e-4)

    @of_each_model_with_heads
    def test_pattern_that_is_set_to_itself_changes_nothing_and_another_does(self, engine: Engine, name: str) -> None:
        if name in WITHOUT_PATTERNS:
            return
        (text,) = prompts(9)
        row = patterns_of(engine, text)[LAYER, 1, -2]
        moved = row.roll(3) if name not in ("qwen2", "mistral", "gemma 2", "gemma 3") else row.flip(0)
        moved[-1] = 0
        moved = moved / moved.sum()
        sets = [[0, []], *([0, [[LAYER, "pattern", "set", [-2], which, -1, 1]]] for which in (0, 1)), [0, [[LAYER, "pattern", "add", [-2], 2, -1, 1]]]]
        vectors = torch.stack([row, moved, moved - row])
        tables = run(engine, [text], sets, [[LAYER, "pattern", {"from": 0}, 1]], {"from": 0}, vectors=vectors)
        pattern, logits = (table.reshape(4, len(text), -1) for table in tables[:2])
        self.close(logits[1], logits[0])
        self.assertGreater(float((logits[2, -1] - logits[0, -1]).abs().max()), 1e-3)
        self.close(logits[3], logits[2])
        self.close(pattern[2, -2], moved)
        self.assertTrue(torch.equal(pattern[0, :-2], pattern[2, :-2]))

    def test_row_that_is_no_distribution_is_refused(self) -> None:
        engine = Engine(make("llama"), None, Captures())
        (text,) = prompts(5)
        vectors = torch.tensor([[0.5, 0.5, 0.5, 0, 0], [2.0, -1, 0, 0, 0], [0, 0, 0, 0, 1.0]])
        for which, told in ((0, "sums to 1.5"), (1, "-1 as its lowest"), (2, "would be no distribution")):
            with self.assertRaisesRegex(EngineError, told):
                run(engine, [text], [[0, [[LAYER, "pattern", "set", [-2], which, -1, 0]]]], logits=[-1], vectors=vectors)

    def test_generation_with_a_head_switched_off_equals_whole_runs_with_it(self) -> None:
        engine = Engine(make("llama"), None, Captures())
        (text,) = prompts(6)
        off = [LAYER, "z", "set", {"from": 2}, 0, -1, 3]
        vector = torch.zeros(1, heads_of(engine).width)
        (tokens,) = generate(engine, [text], 4, [[0, [off]]], vector)
        so_far = list(text)
        for token in tokens:
            logits = run(engine, [so_far], [[0, [off]]], logits=[-1], vectors=vector)[0]
            self.assertEqual(int(logits[0].argmax()), token)
            so_far.append(token)

    def test_error_names_the_model_whose_heads_cannot_be_told_apart(self) -> None:
        for name, site, told in (
            ("mamba", "z", "The heads of block 1 cannot be used in MambaForCausalLM"),
            ("gpt-oss", "pattern", "The attention patterns of block 1 cannot be used in GptOssForCausalLM: its attention weights do not sum"),
            ("falcon, serial with alibi", "pattern", "FalconForCausalLM: attention that is computed step by step gives other numbers"),
        ):
            with self.subTest(name), self.assertRaisesRegex(EngineError, told):
                run(Engine(make(name), None, Captures()), prompts(3), taps=[[LAYER, site, [0], 0]])


if __name__ == "__main__":
    unittest.main()
