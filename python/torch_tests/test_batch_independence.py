"""Tests that no result depends on which prompts share a batch, nor on what was asked before, over every decoder of transformers that can be built tiny."""

from __future__ import annotations

import unittest
from typing import Any

import torch
from test_architectures import generate, run
from tiny_models import CAUSAL_TYPES, VOCABULARY, WINDOW, build

from cuvette_torch.captures import Captures
from cuvette_torch.engine import Engine

# Rounding depends on the shape of a batch; what is computed differently is off by far more.
CLOSE = 1e-4
# On both sides of windows and of chunks.
LENGTHS = (1, 3, WINDOW - 1, WINDOW, WINDOW + 1, 9, 13, 20)
# So many of transformers 5 can be built, and looked into, at least.
LEAST = 140
ORIGINAL = 8
HALF = 8
LONGROPE: dict[str, Any] = dict(
    rope_type="longrope",
    rope_theta=10000.0,
    original_max_position_embeddings=ORIGINAL,
    short_factor=[1.0] * HALF,
    long_factor=[1.0 + i for i in range(HALF)],
    factor=8.0,
    short_mscale=1.1,
    long_mscale=1.3,
)
BY_LAYER = dict(
    layer_types=["sliding_attention", "full_attention"],
    rope_parameters=dict(
        sliding_attention=dict(rope_type="default", rope_theta=10000.0), full_attention={k: v for k, v in LONGROPE.items() if "mscale" not in k}
    ),
)
PHI = dict(original_max_position_embeddings=ORIGINAL, rope_parameters=LONGROPE)
PLAIN = dict(rope_parameters={name: value for name, value in LONGROPE.items() if "mscale" not in name})
DYNAMIC = dict(max_position_embeddings=ORIGINAL, rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, factor=2.0))
LENGTH_DEPENDENT: list[tuple[str, dict[str, Any]]] = [
    ("phi3", PHI),
    ("phimoe", PHI),
    ("llama", PLAIN),
    ("mixtral", {**PLAIN, "head_dim": 16}),
    ("gemma3_text", BY_LAYER),
    ("llama", DYNAMIC),
    ("stablelm", {**DYNAMIC, "partial_rotary_factor": 1.0}),
]


def prompts(*lengths: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(11)
    return [torch.randint(1, VOCABULARY, [length], generator=generator).tolist() for length in lengths]


class BatchIndependence(unittest.TestCase):
    def taps(self, engine: Engine) -> list[Any]:
        return [[layer, "resid_post", {"from": 0}] for layer in range(len(engine.model_info.blocks))]

    def alone(self, engine: Engine, text: list[int]) -> torch.Tensor:
        engine.prefixes.evict(0)
        return self.joined(run(engine, [text], taps=self.taps(engine), logits={"from": 0}))

    def joined(self, tables: list[torch.Tensor]) -> torch.Tensor:
        """Rows of all taps side by side, each divided by its largest number."""
        return torch.cat([table / table.abs().max().clamp_min(1e-9) for table in tables if table.numel() > 0 and table.shape[1] > 1], 1)

    def check(self, engine: Engine, texts: list[list[int]], expected: dict[int, torch.Tensor]) -> None:
        """Compares a batch of texts with each of them alone, by its length."""
        engine.prefixes.evict(0)
        tables = run(engine, texts, taps=self.taps(engine), logits={"from": 0})
        start = 0
        for text in texts:
            ours = self.joined([table[start : start + len(text)] for table in tables if table.shape[0] > 0])
            self.assertLess(float((ours - expected[len(text)]).abs().max()), CLOSE, "%d tokens among %s" % (len(text), [len(one) for one in texts]))
            start += len(text)

    def check_batches(self, engine: Engine, lengths: tuple[int, ...] = LENGTHS) -> None:
        texts = prompts(*lengths)
        expected = {len(text): self.alone(engine, text) for text in texts}
        self.check(engine, texts, expected)
        self.check(engine, texts[::-2], expected)
        for pair in zip(texts, texts[3:]):
            self.check(engine, list(pair), expected)

    def check_generation(self, engine: Engine) -> None:
        """What is generated passes from one side of a threshold to the other, beside texts that are on either side of it already."""
        texts = [*prompts(ORIGINAL - 2, ORIGINAL - 2), *prompts(ORIGINAL, 3)]
        vector = torch.randn(1, engine.model_info.width, generator=torch.Generator().manual_seed(3))
        steer = [0, "resid_post", "add", {"from": 1}, 0, -1]
        variants = [[i, edits] for i in range(len(texts)) for edits in ([], [steer])]
        together = generate(engine, texts, 5, variants, vector)
        for (i, edits), tokens in zip(variants, together):
            engine.prefixes.evict(0)
            self.assertEqual(generate(engine, [texts[i]], 5, [[0, edits]], vector), [tokens])
            so_far = list(texts[i])
            for token in tokens:
                engine.prefixes.evict(0)
                logits = run(engine, [so_far], [[0, edits]], logits=[-1], vectors=vector)[0]
                self.assertEqual(int(logits[0].argmax()), token, "after %d tokens" % len(so_far))
                so_far.append(token)

    def test_every_decoder_computes_a_prompt_alone_as_in_any_batch(self) -> None:
        built = []
        for kind in CAUSAL_TYPES:
            try:
                engine = Engine(build(kind), None, Captures())
            except Exception:
                continue  # It cannot be made small, or not be looked into.
            built.append(kind)
            with self.subTest(kind):
                self.check_batches(engine)
        self.assertGreaterEqual(len(built), LEAST, built)

    def test_decoders_that_compute_in_chunks_do_so_across_their_bounds(self) -> None:
        for kind in ("bamba", "falcon_h1", "granitemoehybrid", "jamba", "minimax", "nemotron_h", "olmo_hybrid", "qwen3_next", "zaya"):
            with self.subTest(kind):
                self.check_batches(Engine(build(kind, max_position_embeddings=300), None, Captures()), (31, 63, 64, 65, 130, 257))

    def test_length_dependent_rotary_embeddings_take_the_length_of_each_text(self) -> None:
        for kind, options in LENGTH_DEPENDENT:
            with self.subTest(kind, rope=options["rope_parameters"].get("rope_type", "by layer")):
                engine = Engine(build(kind, **options), None, Captures())
                self.check_batches(engine)
                for text in prompts(ORIGINAL, ORIGINAL + 1, 20):
                    own = build(kind, **options)(input_ids=torch.tensor([text])).logits[0]
                    engine.model(input_ids=torch.tensor(prompts(30)))
                    engine.prefixes.evict(0)
                    ours = run(engine, [text], logits={"from": 0})[0]
                    self.assertLess(float((ours - own).abs().max()), CLOSE * float(own.abs().max()))

    def test_length_dependent_rotary_embeddings_change_what_is_computed(self) -> None:
        """The lengths of the tests are such that a wrong choice would show."""
        for kind, options in LENGTH_DEPENDENT:
            with self.subTest(kind):
                model = build(kind, **options)
                text = prompts(20)[0]
                short, long = (model(input_ids=torch.tensor([some])).logits[0, :5] for some in (text[:ORIGINAL], text))
                self.assertGreater(float((short - long).abs().max()), 100 * CLOSE * float(long.abs().max()))

    def test_variant_of_a_prompt_has_the_frequencies_of_its_own_length(self) -> None:
        vectors = torch.randn(1, 64, generator=torch.Generator().manual_seed(1))
        for kind, options in LENGTH_DEPENDENT:
            with self.subTest(kind, rope=options["rope_parameters"].get("rope_type", "by layer")):
                engine = Engine(build(kind, **options), None, Captures())
                texts = prompts(ORIGINAL - 1, ORIGINAL, ORIGINAL + 1, 20)
                edit = [0, "resid_post", "add", [3], 0, -1]
                asked: dict[str, Any] = dict(taps=[[1, "resid_post", [-1]]], logits=[-1], surprise=True, vectors=vectors)
                together = run(engine, texts, [[i, [edit]] for i in range(len(texts))], **asked)
                for i, text in enumerate(texts):
                    engine.prefixes.evict(0)
                    alone = run(engine, [text], [[0, [edit]]], **asked)
                    for table, own in zip(together[:2], alone):
                        self.assertLess(float((table[i] - own[0]).abs().max()), CLOSE * float(own.abs().max()))

    def test_generation_beyond_a_threshold_equals_whole_runs(self) -> None:
        for kind, options in LENGTH_DEPENDENT:
            if options.get("max_position_embeddings") == ORIGINAL:
                continue  # Nothing is generated beyond the context.
            with self.subTest(kind):
                self.check_generation(Engine(build(kind, **options), None, Captures()))

    def test_generation_equals_whole_runs_where_windows_end(self) -> None:
        for kind in ("gemma2", "mistral", "gpt_oss", "bloom", "mpt", "mixtral", "qwen3_next", "llama4_text", "opt"):
            with self.subTest(kind):
                self.check_generation(Engine(build(kind), None, Captures()))


if __name__ == "__main__":
    unittest.main()
