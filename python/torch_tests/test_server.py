"""Tests that the server answers proper peers, and survives those that are not."""

from __future__ import annotations

import os
import socket
import stat
import struct
import tempfile
import unittest
from typing import Any, Callable

import torch
from small_models import make

from cuvette_torch import wire
from cuvette_torch.captures import Captures
from cuvette_torch.engine import Engine
from cuvette_torch.server import Server


class EngineServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.folder.name, "sock")
        cls.engine = Engine(make("llama"), None, Captures())
        Server(cls.engine, cls.path).start()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.folder.cleanup()

    def connect(self) -> socket.socket:
        peer = socket.socket(socket.AF_UNIX)
        peer.settimeout(30)
        peer.connect(self.path)
        self.addCleanup(peer.close)
        header, _ = wire.receive(peer)
        self.assertEqual(header["model"]["architecture"], "LlamaForCausalLM")
        return peer

    def ask(self, peer: socket.socket, id: int) -> None:
        header = dict(id=id, do="run", lengths=[3], variants=None, taps=[], logits=[-1], surprise=False)
        wire.send(peer, header, [torch.tensor([1, 2, 3], dtype=torch.int32), torch.empty(0, 48)])

    def test_socket_is_readable_by_its_owner_only(self) -> None:
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o600)

    def test_requests_are_answered_in_order_with_tensors(self) -> None:
        peer = self.connect()
        for id in (4, 7):
            self.ask(peer, id)
        for id in (4, 7):
            header, tensors = wire.receive(peer)
            self.assertEqual((header["id"], list(tensors[0].shape)), (id, [1, 200]))

    def test_request_cancelled_before_its_turn_is_not_computed(self) -> None:
        peer = self.connect()
        wire.send(peer, {"cancel": 5})
        self.ask(peer, 5)
        self.assertIn("Nobody waits", wire.receive(peer)[0]["failed"]["message"])

    def test_failed_request_is_reported_and_the_next_one_answered(self) -> None:
        peer = self.connect()
        wire.send(peer, {"id": 1, "do": "something else"})
        self.assertIn("AttributeError", wire.receive(peer)[0]["failed"]["message"])
        self.ask(peer, 2)
        self.assertEqual(wire.receive(peer)[0]["id"], 2)

    def answers(self, answer: Callable[..., Any]) -> None:
        """Has the engine do this instead, for one request."""

        def once(*given: Any) -> Any:
            del self.engine.answer
            return answer(*given)

        self.engine.answer = once

    def test_answer_that_cannot_be_encoded_is_reported_as_a_failure(self) -> None:
        peer = self.connect()
        for id, answer in enumerate([({"tokens": torch.ones(2)}, []), ({}, [torch.ones(2, dtype=torch.bfloat16)])]):
            self.answers(lambda *_, answer=answer: answer)
            self.ask(peer, id)
            header, _ = wire.receive(peer)
            self.assertEqual((header["id"], header["failed"]["code"]), (id, "internal"))
            self.assertIn("TypeError", header["failed"]["message"])
        self.ask(peer, 9)
        self.assertIn("answer", wire.receive(peer)[0])

    def test_failure_to_clear_memory_is_reported_as_a_failure(self) -> None:
        def fail(*_: Any) -> None:
            raise RuntimeError("CUDA error: device-side assert triggered")

        def run_out(*_: Any) -> None:
            raise torch.OutOfMemoryError("CUDA out of memory")

        self.engine.budget.clear = fail
        self.addCleanup(self.engine.budget.__dict__.pop, "clear", None)
        peer = self.connect()
        self.answers(run_out)
        self.ask(peer, 1)
        self.assertIn("device-side assert", wire.receive(peer)[0]["failed"]["message"])
        self.ask(peer, 2)
        self.assertIn("answer", wire.receive(peer)[0])

    def test_peer_that_cannot_be_answered_is_disconnected_and_others_are_served(self) -> None:
        class Unspeakable(Exception):
            def __str__(self) -> str:
                raise Unspeakable

        def fail(*_: Any) -> None:
            raise Unspeakable

        peer = self.connect()
        self.answers(fail)
        self.ask(peer, 1)
        self.assertIsNone(wire.receive(peer))
        other = self.connect()
        self.ask(other, 2)
        self.assertIn("answer", wire.receive(other)[0])

    def test_server_survives_malformed_messages(self) -> None:
        length = lambda text: struct.pack("<I", len(text)) + text  # noqa: E731
        for nonsense in (b"\xff\xff\xff\xff", length(b"not json"), length(b"[]"), length(b"{}"), length(b'{"id":1,"do":"run","tensors":[["object",[1]]]}')):
            peer = self.connect()
            peer.sendall(nonsense)
            peer.shutdown(socket.SHUT_WR)
        peer = self.connect()
        self.ask(peer, 1)
        self.assertEqual(wire.receive(peer)[0]["id"], 1)


if __name__ == "__main__":
    unittest.main()
