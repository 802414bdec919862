"""Tests that taps and interventions mean the same in every architecture: by their definitions, and against the model itself."""

from __future__ import annotations

import functools
import unittest
from typing import Any

import torch
from small_models import MODELS, VOCABULARY, make

from cuvette_torch.captures import Captures
from cuvette_torch.engine import Engine
from cuvette_torch.errors import EngineError
from cuvette_torch.model_inspection import inspect_model

CLOSE = 2e-4
PLACES = ("resid_pre", "attn_out", "mlp_out", "resid_post")


def prompts(*lengths: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(7)
    return [torch.randint(1, VOCABULARY, [length], generator=generator).tolist() for length in lengths]


def run(
    engine: Engine, texts: list[list[int]], variants: Any = None, taps: Any = (), logits: Any = None, surprise: bool = False, vectors: Any = None
) -> list[torch.Tensor]:
    header = dict(do="run", lengths=[len(text) for text in texts], variants=variants, taps=list(taps), logits=logits, surprise=surprise)
    tokens = torch.tensor([token for text in texts for token in text], dtype=torch.int32)
    vectors = torch.empty(0, engine.model_info.width) if vectors is None else vectors
    return engine.answer(header, [tokens, vectors], lambda: None)[1]


def generate(engine: Engine, texts: list[list[int]], count: int, variants: Any = None, vectors: Any = None) -> list[list[int]]:
    header = dict(do="generate", lengths=[len(text) for text in texts], variants=variants, newTokens=count, temperature=0)
    tokens = torch.tensor([token for text in texts for token in text], dtype=torch.int32)
    vectors = torch.empty(0, engine.model_info.width) if vectors is None else vectors
    return engine.answer(header, [tokens, vectors, torch.empty(0)], lambda: None)[0]["generated"]


def of_each_model(test: Any) -> Any:
    """The test gets an engine, the model's name, and whether attention and MLP can be told apart."""

    @functools.wraps(test)
    def run_all(self: unittest.TestCase) -> None:
        for name, (_, _, parts) in MODELS.items():
            with self.subTest(name):
                test(self, Engine(make(name), None, Captures()), name, parts is not None)

    return run_all


class Architectures(unittest.TestCase):
    def close(self, a: torch.Tensor, b: torch.Tensor, within: float = CLOSE) -> None:
        self.assertEqual(a.shape, b.shape)
        self.assertLess(float((a - b).abs().max() / b.abs().max().clamp_min(1)), within)

    @of_each_model
    def test_attention_and_mlp_are_found_in_every_architecture(self, engine: Engine, name: str, has_parts: bool) -> None:
        for block in engine.model_info.blocks:
            found = None if block.attention is None else (block.attention.path, block.mlp.path)
            self.assertEqual(found, MODELS[name][2])

    @of_each_model
    def test_same_parts_are_found_in_bfloat16(self, engine: Engine, name: str, has_parts: bool) -> None:
        blocks = inspect_model(engine.model.to(torch.bfloat16)).blocks
        self.assertEqual(
            [block.attention and block.attention.path for block in blocks], [block.attention and block.attention.path for block in engine.model_info.blocks]
        )

    @of_each_model
    def test_block_output_is_the_sum_of_its_input_and_its_parts(self, engine: Engine, name: str, has_parts: bool) -> None:
        (text,) = prompts(9)
        layers = len(engine.model_info.blocks)
        places = PLACES if has_parts else ("resid_pre", "resid_post")
        taps = [[layer, place, {"from": 0}] for layer in range(layers) for place in places]
        tables = run(engine, [text], taps=taps)
        read = {(layer, place): table for (layer, place, _), table in zip(taps, tables)}
        hidden = engine.model(input_ids=torch.tensor([text]), output_hidden_states=True).hidden_states
        for layer in range(layers):
            # Mamba's own record begins behind the first block.
            if name != "mamba":
                self.close(read[layer, "resid_pre"], hidden[layer][0])
            if layer > 0:
                self.assertTrue(torch.equal(read[layer, "resid_pre"], read[layer - 1, "resid_post"]))
            if has_parts:
                total = read[layer, "resid_pre"] + read[layer, "attn_out"] + read[layer, "mlp_out"]
                self.close(total, read[layer, "resid_post"])

    @of_each_model
    def test_logits_equal_the_models_in_a_batch_of_different_lengths(self, engine: Engine, name: str, has_parts: bool) -> None:
        texts = prompts(9, 4, 12, 1)
        logits = run(engine, texts, logits={"from": 0})[0]
        own = torch.cat([engine.model(input_ids=torch.tensor([text])).logits[0] for text in texts])
        self.close(logits, own)

    @of_each_model
    def test_intervention_changes_its_own_position_and_what_comes_after(self, engine: Engine, name: str, has_parts: bool) -> None:
        (text,) = prompts(9)
        vector = torch.randn(1, engine.model_info.width, generator=torch.Generator().manual_seed(1))
        for place in PLACES if has_parts else ("resid_pre", "resid_post"):
            set_it = [1, place, "set", [-3], 0, -1]
            tables = run(engine, [text], [[0, []], [0, [set_it]]], [[1, place, {"from": 0}], [2, "resid_post", {"from": 0}]], {"from": 0}, vectors=vector)
            here, later, logits = (table.reshape(2, len(text), -1) for table in tables[:3])
            self.close(here[1, -3], vector[0])
            for before, after in (here, later, logits):
                self.assertTrue(torch.equal(before[:-3], after[:-3]))
            self.assertGreater(float((later[0, -3:] - later[1, -3:]).abs().min(1).values.max()), 0)
            self.assertGreater(float((logits[0, -1] - logits[1, -1]).abs().max()), 1e-4)

    @of_each_model
    def test_variant_computed_from_its_cached_prompt_equals_the_one_computed_whole(self, engine: Engine, name: str, has_parts: bool) -> None:
        texts = prompts(9, 12, 9, 5)
        vectors = torch.randn(6, engine.model_info.width, generator=torch.Generator().manual_seed(1))
        place = "attn_out" if has_parts else "resid_pre"
        kinds = ("add", "set", "project-out", "along", "rest")
        variants = [[i % 4, [[1, place, kind, [-1 - i % 3], i, 5]]] for i, kind in enumerate(kinds)]
        variants += [[1, [[0, "resid_post", "add", {"from": 4}, 0, -1], [0, "resid_post", "set", [-1], 1, -1]]], [2, []]]
        asked = dict(taps=[[2, "resid_post", [0, -1]]], logits=[1, -1], surprise=True, vectors=vectors)
        together = run(engine, texts, variants, **asked)
        alone = [run(whole(engine), [texts[variant[0]]], [[0, variant[1]]], **asked) for variant in variants]
        for table, tables in zip(together, zip(*alone)):
            self.close(table, torch.cat(tables), 1e-3)

    @of_each_model
    def test_generation_equals_the_models_own(self, engine: Engine, name: str, has_parts: bool) -> None:
        texts = prompts(5, 8, 5)
        generated = generate(engine, texts, 6)
        for text, tokens in zip(texts, generated):
            expected = engine.model.generate(torch.tensor([text]), max_new_tokens=6, do_sample=False, pad_token_id=0)[0, len(text) :].tolist()
            self.assertEqual(tokens, [token for token in expected if token not in engine.end_tokens])

    @of_each_model
    def test_steered_generation_equals_a_whole_run_with_the_intervention(self, engine: Engine, name: str, has_parts: bool) -> None:
        (text,) = prompts(5)
        vector = 3 * torch.randn(1, engine.model_info.width, generator=torch.Generator().manual_seed(2))
        steer = [1, "resid_post", "add", {"from": -2}, 0, -1]
        (tokens,) = generate(engine, [text], 4, [[0, [steer]]], vector)
        so_far = list(text)
        for token in tokens:
            logits = run(engine, [so_far], [[0, [[*steer[:3], {"from": len(text) - 2}, *steer[4:]]]]], logits=[-1], vectors=vector)[0]
            self.assertEqual(int(logits[0].argmax()), token)
            so_far.append(token)

    def test_error_names_the_site_that_cannot_be_found(self) -> None:
        engine = Engine(make("mamba"), None, Captures())
        with self.assertRaisesRegex(EngineError, "What the attention of block 1 adds .* MambaForCausalLM"):
            run(engine, prompts(3), taps=[[1, "attn_out", [0]]])


def whole(engine: Engine) -> Engine:
    """The same model, without any of the ways around computing everything."""
    other = Engine(engine.model, None, Captures())
    other.model_info = type(other.model_info)(**{**vars(other.model_info), "supports_kv_cache": False, "supports_padding": False})
    return other


if __name__ == "__main__":
    unittest.main()
