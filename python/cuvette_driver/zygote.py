"""A Python that has already imported what sessions need, and forks a keeper for each of them.

It serves any number of servers over one Unix socket, outlives them, and ends when it has had
neither a server nor a session for a while.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import io
import os
import selectors
import shutil
import signal
import socket
import sys
import time
from typing import Any

from cuvette_driver import keeper, linux, worker
from cuvette_driver.wire import CHUNK, Lines, Malformed, Message, encode

IDLE = 60.0
QUIET = 0.03
POLL = 5.0


def main(path: str, modules: list[str]) -> None:
    gc.disable()
    listener = listen(path)
    linux.name_process("cuvette-zygote")
    zygote = Zygote(path, listener)
    has_ipython = importlib.util.find_spec("IPython") is not None
    worker.prepare(has_ipython, os.path.join(os.path.dirname(path), "ipython"))
    for name in modules:
        zygote.round(0)
        preload(name)
    gc.collect()
    gc.freeze()
    zygote.serve()


def listen(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(128)
    return listener


def preload(name: str) -> None:
    """Imports a module and uses it once, so that its lazy parts are there too. A broken one is left out."""
    try:
        importlib.import_module(name)
        warm = {"pandas": _use_pandas, "matplotlib.pyplot": _use_matplotlib}.get(name)
        if warm:
            warm()
    except Exception as error:
        print("cuvette: %s could not be loaded ahead: %s" % (name, error), file=sys.stderr)


def _use_pandas() -> None:
    import pandas

    frame = pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    repr(frame)
    frame._repr_html_()
    frame.describe()
    frame.groupby("b").sum()
    importlib.import_module("pandas.plotting._matplotlib")


def _use_matplotlib() -> None:
    import matplotlib.font_manager
    import matplotlib.pyplot

    figure, axes = matplotlib.pyplot.subplots()
    axes.plot([1, 2], [3, 4])
    axes.set_title("x")
    figure.savefig(io.BytesIO(), format="png", bbox_inches="tight")
    matplotlib.pyplot.close("all")
    # matplotlib empties this cache in every forked child; emptied once here, that costs them nothing.
    clear = getattr(getattr(matplotlib.font_manager, "_get_font", None), "cache_clear", None)
    if clear:
        clear()


class Zygote:
    def __init__(self, path: str, listener: socket.socket) -> None:
        self.path = path
        self.listener = listener
        self.servers: dict[socket.socket, Lines] = {}
        self.keepers: set[int] = set()
        self.spare: tuple[int, socket.socket] | None = None
        self.idle_since = time.monotonic()
        self.stopping = False
        self.selector = selectors.DefaultSelector()
        self.selector.register(listener, selectors.EVENT_READ)
        self.wake_read, self.wake_write = os.pipe()
        os.set_blocking(self.wake_read, False)
        os.set_blocking(self.wake_write, False)
        signal.set_wakeup_fd(self.wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        self.selector.register(self.wake_read, selectors.EVENT_READ)

    def serve(self) -> None:
        while not self.stopping:
            # A spare keeper is made in a quiet moment, so that the next session starts without a fork.
            is_quiet = self.round(QUIET if self.spare is None else POLL) == 0
            if is_quiet and self.spare is None:
                self.spare = self.make_keeper()
            if self.servers or len(self.keepers) > 1:
                self.idle_since = time.monotonic()
            if time.monotonic() - self.idle_since > IDLE or not os.path.exists(self.path):
                break
        shutil.rmtree(os.path.dirname(self.path), ignore_errors=True)

    def round(self, wait: float) -> int:
        """Serves what is there within the time; says how much it was."""
        ready = self.selector.select(wait)
        for key, _ in ready:
            source: Any = key.fileobj
            if source is self.listener:
                connection, _ = self.listener.accept()
                self.servers[connection] = Lines()
                self.selector.register(connection, selectors.EVENT_READ)
            elif source == self.wake_read:
                self.on_signal()
            else:
                self.on_server(source)
        return len(ready)

    def on_server(self, server: socket.socket) -> None:
        try:
            data = server.recv(CHUNK)
            for message in self.servers[server].feed(data):
                server.sendall(encode(self.answer(message)))
        except (OSError, Malformed):
            data = b""
        if not data:
            self.selector.unregister(server)
            del self.servers[server]
            server.close()

    def answer(self, message: Message) -> Message:
        if message.get("op") == "describe":
            return {"id": message["id"], "pid": os.getpid(), **worker.description()}
        try:
            return {"id": message["id"], "pid": self.spawn(message)}
        except Exception as error:
            return {"id": message.get("id"), "error": "%s: %s" % (type(error).__name__, error)}

    def spawn(self, request: Message) -> int:
        path = request["socket"]
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        with listen(path) as listener:
            pid, assignment = self.spare or self.make_keeper()
            self.spare = None
            with assignment:
                keeper.assign(assignment, listener, request)
        return pid

    def make_keeper(self) -> tuple[int, socket.socket]:
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            ours.close()
            self.become_keeper(theirs)
        theirs.close()
        self.keepers.add(pid)
        return pid, ours

    def become_keeper(self, assignment: socket.socket) -> None:
        try:
            signal.set_wakeup_fd(-1)
            self.selector.close()
            for inherited in (self.listener, *self.servers, *(self.spare or ())[1:]):
                inherited.close()
            os.close(self.wake_read)
            os.close(self.wake_write)
            gc.enable()
            keeper.run(assignment)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(0)

    def on_signal(self) -> None:
        try:
            numbers = os.read(self.wake_read, CHUNK)
        except BlockingIOError:
            return
        self.stopping = self.stopping or signal.SIGTERM in numbers
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.keepers.discard(pid)
            if self.spare and self.spare[0] == pid:
                self.spare = None
