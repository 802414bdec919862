"""Answers requests over a Unix socket, one after the other, in a thread of its own beside the one that user code runs in."""

from __future__ import annotations

import os
import queue
import socket
import threading
import traceback
from typing import Any

from cuvette_torch import wire
from cuvette_torch.engine import Engine
from cuvette_torch.errors import Cancelled, EngineError
from cuvette_torch.memory_budget import is_out_of_memory


class Server:
    def __init__(self, engine: Engine, path: str) -> None:
        self.engine = engine
        self.waiting: queue.Queue[Any] = queue.Queue()
        if os.path.exists(path):
            os.unlink(path)
        before = os.umask(0o177)
        try:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(path)
        finally:
            os.umask(before)
        self.listener.listen(8)

    def start(self) -> None:
        for work in (self.accept, self.serve):
            threading.Thread(target=work, name="cuvette-lab", daemon=True).start()

    def accept(self) -> None:
        while True:
            peer, _ = self.listener.accept()
            threading.Thread(target=self.listen, args=(peer,), name="cuvette-lab", daemon=True).start()

    def listen(self, peer: socket.socket) -> None:
        """Queues the requests of one peer, and cancels those that it cancels, or all when it is gone."""
        cancelled: set[int] = set()
        gone = threading.Event()
        try:
            wire.send(peer, {"model": self.engine.describe()})
            while (message := wire.receive(peer)) is not None:
                header, tensors = message
                if "cancel" in header:
                    cancelled.add(header["cancel"])
                else:
                    self.waiting.put((peer, header["id"], header, tensors, cancelled, gone))
        except Exception:
            pass  # The peer does not follow the protocol, and is disconnected.
        finally:
            gone.set()
            peer.close()

    def serve(self) -> None:
        while True:
            peer, id, header, tensors, cancelled, gone = self.waiting.get()

            def check(id: Any = id, cancelled: set[Any] = cancelled, gone: threading.Event = gone) -> None:
                if id in cancelled or gone.is_set():
                    raise Cancelled

            try:
                self.respond(peer, id, header, tensors, check)
            except BaseException:
                hang_up(peer)
            cancelled.discard(id)
            # Frees the tensors of the request while the next one is waited for.
            header = tensors = None

    def respond(self, peer: socket.socket, id: int, header: Any, tensors: Any, check: Any) -> None:
        """Sends the answer, or what failed: also where the answer cannot be sent, or the handling of a failure fails in turn."""
        try:
            answer, results = self.reply(header, tensors, check)
            wire.send(peer, {"id": id, **answer}, results)
        except OSError:
            raise
        except BaseException as error:
            answer, results = unexpected(error)
            wire.send(peer, {"id": id, **answer}, results)

    def reply(self, header: Any, tensors: Any, check: Any) -> Any:
        try:
            check()
            answer, results = self.engine.answer(header, tensors, check)
            return {"answer": answer}, results
        except Cancelled:
            return failed("internal", "Nobody waits for it any more.")
        except EngineError as problem:
            return failed(problem.code, problem.message)
        except BaseException as error:
            if is_out_of_memory(error):
                self.engine.budget.clear()
                too_large = self.engine.budget.too_large_error("what was asked for")
                return failed(too_large.code, too_large.message)
            return unexpected(error)


def hang_up(peer: socket.socket) -> None:
    """Shuts the connection down, so that the peer and the thread that reads from it learn of it: a close alone would wait for that thread."""
    try:
        peer.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # The peer is gone.


def unexpected(error: BaseException) -> Any:
    where = traceback.extract_tb(error.__traceback__)[-1]
    message = "The torch engine failed: %s: %s (%s, line %s). %s" % (
        type(error).__name__,
        error,
        os.path.basename(where.filename),
        where.lineno,
        "The model and the variables of code are still there. If it fails again, reset the interpreter: the model is then loaded again.",
    )
    return failed("internal", message)


def failed(code: str, message: str) -> Any:
    return {"failed": {"code": code, "message": message}}, []
