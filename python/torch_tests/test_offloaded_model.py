"""Tests a model that accelerate has offloaded: some of its blocks stay on disk, and are loaded as they are needed."""

from __future__ import annotations

import importlib.util
import tempfile
import unittest

import torch
from small_models import make
from test_architectures import PLACES, generate, prompts, run

from cuvette_torch.captures import Captures
from cuvette_torch.engine import Engine
from cuvette_torch.errors import EngineError


@unittest.skipIf(importlib.util.find_spec("accelerate") is None, "accelerate is not installed")
class OffloadedModel(unittest.TestCase):
    def setUp(self) -> None:
        from accelerate import dispatch_model

        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.whole = Engine(make("llama"), None, Captures())
        places = {"model.layers.1": "disk", "model.layers.2": "disk"}
        places.update(dict.fromkeys(("model.embed_tokens", "model.rotary_emb", "model.layers.0", "model.norm", "lm_head"), "cpu"))
        spread = dispatch_model(make("llama"), places, main_device="cpu", offload_dir=folder.name, force_hooks=True)
        self.engine = Engine(spread.eval().requires_grad_(False), None, Captures())

    def test_offloaded_model_describes_its_devices(self) -> None:
        self.assertEqual(self.engine.describe()["device"], "cpu, offloaded")

    def test_offloaded_model_answers_as_the_whole_model_does(self) -> None:
        texts = prompts(6, 9, 4)
        vectors = torch.randn(1, self.whole.model_info.width, generator=torch.Generator().manual_seed(1))
        steered = [[text, [[2, "resid_post", "add", [-1], 0, -1]]] for text in range(3)]
        asked = dict(taps=[[layer, place, [0, -1]] for layer in range(3) for place in PLACES], logits=[-1], surprise=True)
        for variants in (None, steered):
            ours = run(self.engine, texts, variants=variants, vectors=vectors, **asked)
            theirs = run(self.whole, texts, variants=variants, vectors=vectors, **asked)
            self.assertEqual(len(ours), len(theirs))
            for one, other in zip(ours, theirs):
                torch.testing.assert_close(one, other, rtol=0, atol=1e-5)
        self.assertEqual(generate(self.engine, texts, 5), generate(self.whole, texts, 5))

    def test_offloaded_model_is_accepted_until_its_weights_are_changed(self) -> None:
        run(self.engine, prompts(5), logits=[-1])
        self.engine.integrity.check()
        self.engine.integrity.check_numbers()
        with torch.no_grad():
            self.engine.model.model.layers[0].mlp.up_proj.weight.mul_(2)
        with self.assertRaises(EngineError):
            self.engine.integrity.check()


if __name__ == "__main__":
    unittest.main()
