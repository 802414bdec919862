"""Tests that caches stay within their budget, and that what is too much at once is computed in batches."""

from __future__ import annotations

import unittest

import torch
from small_models import make

from cuvette_torch.captures import Captures
from cuvette_torch.engine import Engine
from cuvette_torch.errors import EngineError
from cuvette_torch.memory_budget import MemoryBudget, is_out_of_memory, parts
from cuvette_torch.prefix_cache import CachedBatch, PrefixCache
from cuvette_torch.prompts import Prompt
from cuvette_torch.sae_encoders import SaeEncoders

CPU = torch.device("cpu")


class MemoryBudgets(unittest.TestCase):
    def test_batches_stay_below_every_limit_and_have_at_least_one_item(self) -> None:
        self.assertEqual(parts([3, 3, 3, 9, 1], [(lambda item: item, 6)]), [[3, 3], [3], [9], [1]])
        self.assertEqual(parts([3, 3, 3], [(lambda item: item, 100), (lambda item: 1, 2)]), [[3, 3], [3]])
        self.assertEqual(parts([], [(lambda item: item, 6)]), [])

    def test_batch_that_does_not_fit_is_halved_until_it_does(self) -> None:
        budget, done, released = MemoryBudget(CPU), [], []
        budget.release = lambda: released.append(True)

        def work(items: list[int]) -> None:
            if len(items) > 2:
                raise torch.OutOfMemoryError("CUDA out of memory")
            done.append(items)

        budget.in_batches(list(range(7)), [(lambda item: 1, 7)], work, "the items")
        self.assertEqual(done, [[0, 1], [2, 3], [4, 5], [6]])
        self.assertTrue(released)

    def test_item_that_does_not_fit_alone_is_refused_and_other_errors_are_raised(self) -> None:
        def fail(items: list[int]) -> None:
            raise MemoryError

        with self.assertRaisesRegex(EngineError, "The memory of cpu is not enough for the items, even for one at a time") as caught:
            MemoryBudget(CPU).in_batches([1, 2], [(lambda item: 1, 2)], fail, "the items")
        self.assertEqual(caught.exception.code, "too_large")
        with self.assertRaises(ZeroDivisionError):
            MemoryBudget(CPU).in_batches([1], [(lambda item: 1, 2)], lambda items: 1 / 0, "the items")

    def test_out_of_memory_error_of_the_cpu_is_recognised(self) -> None:
        with self.assertRaises(RuntimeError) as caught:
            torch.empty(1 << 55)
        self.assertTrue(is_out_of_memory(caught.exception))

    def test_least_recently_used_prompts_are_evicted_with_their_whole_batch(self) -> None:
        cache = PrefixCache()
        texts = [Prompt((number,)) for number in range(4)]
        cache.put(texts[:2], CachedBatch(None, torch.zeros(2, 1, 100)))
        cache.put(texts[2:], CachedBatch(None, torch.zeros(2, 1, 100)))
        self.assertIsNotNone(cache.get(texts[0], False))
        cache.evict(900)
        self.assertEqual([cache.get(text, False) is not None for text in texts], [True, True, False, False])

    def test_cached_prompt_gives_the_same_result_as_a_new_one(self) -> None:
        engine = Engine(make("llama"), None, Captures())
        header = dict(do="run", lengths=[4], variants=[[0, [[1, "resid_post", "add", [-1], 0, -1]]]], taps=[], logits=[0, -1], surprise=True)
        tensors = [torch.tensor([5, 6, 7, 8], dtype=torch.int32), torch.ones(1, engine.model_info.width)]
        first = engine.answer(header, tensors, lambda: None)[1]
        calls = []
        engine.model.register_forward_pre_hook(lambda *_: calls.append(True))
        engine.integrity.check = lambda: None
        again = engine.answer(header, tensors, lambda: None)[1]
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(first, again)))
        self.assertEqual(len(calls), 1)

    def test_evicted_sae_encoder_is_reported_as_missing(self) -> None:
        budget = MemoryBudget(CPU)
        budget.kept = 1000
        encoders = SaeEncoders(CPU, budget)
        for number in range(3):
            encoders.add(number, torch.ones(10, 10))
        rows = torch.ones(2, 10)
        self.assertIsNone(encoders.products(0, rows))
        self.assertTrue(torch.equal(encoders.products(2, rows), torch.full((2, 10), 10.0)))


if __name__ == "__main__":
    unittest.main()
