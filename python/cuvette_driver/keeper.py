"""The keeper of one session's interpreter: a process beside the worker that user code runs in.

It owns the socket that the server talks to, drains the worker's output pipes whatever the worker does,
enforces the time limit, learns how the worker died and starts another, and ends what user code left running.
It outlives the server, and waits for the next one. It never runs user code.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import time
from typing import Any

from cuvette_driver import linux, processes, worker
from cuvette_driver.capture import Pipe
from cuvette_driver.outbox import Outbox
from cuvette_driver.running import Running
from cuvette_driver.wire import CHUNK, Channel, Lines, Malformed, Message, encode

POLL_WITHOUT_SERVER = 2.0


def run(assignment: socket.socket) -> None:
    """Makes a worker ready, waits to be given a session, and serves it until it is told to stop or nobody needs it."""
    os.setsid()
    linux.adopt_orphans()
    linux.name_process("cuvette-keeper")
    keeper = Keeper()
    try:
        if keeper.take(assignment):
            keeper.serve()
    finally:
        keeper.close()


def assign(assignment: socket.socket, listener: socket.socket, request: Message) -> None:
    """The zygote's side of `take`: hands the session's listening socket and its description to a waiting keeper."""
    socket.send_fds(assignment, [b"\n"], [listener.fileno()])
    assignment.sendall(encode(request))


class Keeper:
    def __init__(self) -> None:
        self.request: Message = {}
        self.linger = 0.0
        self.listener: socket.socket | None = None
        self.server: socket.socket | None = None
        self.server_lines = Lines()
        self.outbox = Outbox()
        self.running: Running | None = None
        self.last_id: str | None = None
        self.alone_since = time.monotonic()
        self.owner: tuple[int, str] | None = None
        self.generation = 0
        self.stopping = False
        self.oom_kills = processes.out_of_memory_kills()

        self.watched: set[Any] = set()
        self.selector = selectors.DefaultSelector()
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_read, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        self.wake_fds = (wake_read, wake_write)
        self.selector.register(wake_read, selectors.EVENT_READ, self.on_signal)
        self.start_worker()

    def take(self, assignment: socket.socket) -> bool:
        """Waits for a session; False if the zygote ends before it has one for us."""
        _, fds, _, _ = socket.recv_fds(assignment, 1, 1)
        request = Channel(assignment).receive() if fds else None
        assignment.close()
        if request is None:
            return False
        self.request = request
        self.linger = request["linger"]
        self.listener = socket.socket(fileno=fds[0])
        self.selector.register(self.listener, selectors.EVENT_READ, self.on_connect)
        self.tell_worker({"op": "enter", **request})
        return True

    # -- the loop ---------------------------------------------------------------------------------

    def serve(self) -> None:
        while not self.stopping:
            self.watch_worker(not self.outbox.is_full)
            ready = self.selector.select(self.next_wait())
            # The worker's messages come before its pipes: it lets the pipes run dry before it sends one.
            for key, _ in sorted(ready, key=lambda item: isinstance(item[0].fileobj, Pipe)):
                if self.is_open(key.fileobj):
                    key.data(key.fileobj)
            self.on_time()
            self.send()

    def is_open(self, source: Any) -> bool:
        """False for what an earlier handler of the same round has closed."""
        return source in self.watched or source is self.server or source in (self.listener, self.wake_fds[0])

    def watch_worker(self, wanted: bool) -> None:
        """Backpressure: while the server has too much to acknowledge, the worker is not read."""
        if not wanted:
            for source in list(self.watched):
                self.unwatch(source)
            return
        for pipe in self.pipes:
            if not pipe.ended:
                self.watch(pipe, self.on_output)
        if self.control is not None:
            self.watch(self.control, self.on_worker)

    def watch(self, source: Any, handler: Any) -> None:
        if source not in self.watched:
            self.watched.add(source)
            self.selector.register(source, selectors.EVENT_READ, handler)

    def unwatch(self, source: Any) -> None:
        if source in self.watched:
            self.watched.remove(source)
            self.selector.unregister(source)

    def next_wait(self) -> float | None:
        waits = [] if self.server else [POLL_WITHOUT_SERVER]
        if self.running and (deadline := self.running.next_deadline()) is not None:
            waits.append(max(0.0, deadline - time.monotonic()))
        return min(waits, default=None)

    def on_time(self) -> None:
        if self.running:
            self.running.climb()
        if self.server is None and not self.running and self.nobody_comes():
            self.stopping = True

    def nobody_comes(self) -> bool:
        alone = time.monotonic() - self.alone_since
        if self.owner and not processes.is_same(*self.owner):
            return alone > POLL_WITHOUT_SERVER
        return alone > self.linger or not os.path.exists(self.request["socket"])

    # -- the server -------------------------------------------------------------------------------

    def on_connect(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        connection.setblocking(False)
        self.drop_server()
        self.server = connection
        self.server_lines = Lines()
        self.owner = None
        self.selector.register(connection, selectors.EVENT_READ, self.on_server)
        self.outbox.start_over(self.greeting())

    def greeting(self) -> Message:
        return {
            "ev": "hello",
            "pid": os.getpid(),
            "worker": self.worker_pid,
            "generation": self.generation,
            "running": self.running.id if self.running else None,
            **worker.description(),
        }

    def on_server(self, connection: socket.socket) -> None:
        try:
            data = connection.recv(CHUNK)
            for message in self.server_lines.feed(data):
                self.obey(message)
        except BlockingIOError:
            return
        except (OSError, Malformed):
            data = b""
        if not data:
            self.drop_server()

    def obey(self, message: Message) -> None:
        op = message.get("op")
        if op == "ack":
            self.outbox.acknowledge(message["seq"])
        elif op == "execute":
            self.execute(message)
        elif op == "interrupt":
            if self.running and message.get("id") in (None, self.running.id):
                self.running.interrupt(message["reason"])
        elif op in ("variables", "answer"):
            self.tell_worker(message)
        elif op == "reset":
            self.reset(message)
        elif op == "leave":
            self.linger = message["linger"]
            self.owner = (message["owner"][0], message["owner"][1]) if message.get("owner") else None
        elif op == "stop":
            self.stopping = True

    def drop_server(self) -> None:
        if self.server is None:
            return
        self.selector.unregister(self.server)
        self.server.close()
        self.server = None
        self.alone_since = time.monotonic()

    def send(self) -> None:
        if self.server is None:
            return
        try:
            self.outbox.send(self.server)
        except OSError:
            self.drop_server()
            return
        interest = selectors.EVENT_READ | (selectors.EVENT_WRITE if self.outbox.has_unsent else 0)
        self.selector.modify(self.server, interest, self.on_server)

    # -- executions -------------------------------------------------------------------------------

    def execute(self, message: Message) -> None:
        self.running = Running(message, self.worker_pid)
        self.last_id = self.running.id
        self.tell_worker(message)

    def finish(self, ending: Message) -> None:
        """The one place where an execution ends: what it started is ended, the pipes are emptied, the record goes out."""
        if self.running is None:
            return
        kept = frozenset(pid for pid in ending.pop("kept", ()) if isinstance(pid, int))
        ended = processes.kill_below(os.getpid(), self.worker_pid, kept)
        for pipe in self.pipes:
            self.emit(pipe, pipe.read_all())
        outcome = self.running.outcome(ending)
        self.outbox.add({"ev": "done", "id": self.running.id, **outcome, "ended": [command or str(pid) for pid, command in ended]})
        self.running = None

    def reset(self, message: Message) -> None:
        self.restart_worker()
        self.outbox.add({"ev": "reset", "id": message["id"], "worker": self.worker_pid, "generation": self.generation})

    # -- the worker -------------------------------------------------------------------------------

    def start_worker(self) -> None:
        self.generation += 1
        ours, theirs = socket.socketpair()
        out, err = Pipe("stdout"), Pipe("stderr")
        pid = os.fork()
        if pid == 0:
            self.become_worker(theirs, ours, out, err)
        theirs.close()
        ours.setblocking(False)
        for pipe in (out, err):
            pipe.close_writer()
        self.worker_pid = pid
        self.control: socket.socket | None = ours
        self.control_lines = Lines()
        self.pipes = [out, err]
        if self.request:
            self.tell_worker({"op": "enter", **self.request})

    def become_worker(self, control: socket.socket, other: socket.socket, out: Pipe, err: Pipe) -> None:
        signal.set_wakeup_fd(-1)
        other.close()
        self.selector.close()
        for inherited in (self.listener, self.server):
            if inherited is not None:
                inherited.close()
        for fd in (*self.wake_fds, out.reader, err.reader):
            os.close(fd)
        worker.main(control, out.writer, err.writer)
        os._exit(0)

    def restart_worker(self) -> None:
        self.forget_worker()
        start = time.monotonic()
        processes.kill_below(os.getpid(), 0)
        while processes.is_alive(self.worker_pid) and time.monotonic() - start < 5:
            time.sleep(0.001)
        self.reap()
        self.start_worker()

    def forget_worker(self) -> None:
        if self.control is not None:
            self.unwatch(self.control)
            self.control.close()
            self.control = None
        for pipe in self.pipes:
            self.unwatch(pipe)
            pipe.close()
        self.pipes = []

    def tell_worker(self, message: Message) -> None:
        if self.control is None:
            return
        data = encode(message)
        self.control.setblocking(True)
        try:
            self.control.sendall(data)
        except OSError:
            return  # It is dying; on_signal will tell of it.
        self.control.setblocking(False)

    def on_worker(self, control: socket.socket) -> None:
        try:
            data = control.recv(CHUNK)
            messages = list(self.control_lines.feed(data))
        except BlockingIOError:
            return
        except (OSError, Malformed):
            data, messages = b"", []
        for message in messages:
            self.hear(message)
        if not data and self.control is control:
            # Either it is dead, and is reaped in a moment, or user code broke the channel: then it ends here.
            self.unwatch(control)
            control.close()
            self.control = None
            self.kill_worker("channel")

    def hear(self, message: Message) -> None:
        kind = message.get("ev")
        if kind == "done":
            self.finish(message)
        elif kind == "variables":
            self.outbox.add(message)
        elif kind in ("display", "result", "error", "install") and self.last_id is not None:
            if not self.running or self.running.admits(len(str(message.get("data", "")))):
                self.outbox.add({**message, "id": self.last_id})

    def on_output(self, pipe: Pipe) -> None:
        self.emit(pipe, pipe.read())
        if pipe.ended:
            self.unwatch(pipe)

    def emit(self, pipe: Pipe, text: str) -> None:
        if not text or self.last_id is None:
            return
        if not self.running or self.running.admits(len(text)):
            self.outbox.add({"ev": "stream", "id": self.last_id, "name": pipe.name, "text": text})

    def on_signal(self, fd: int) -> None:
        try:
            numbers = os.read(fd, CHUNK)
        except BlockingIOError:
            return
        if signal.SIGTERM in numbers:
            self.stopping = True
        self.reap()

    def reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if os.WIFSTOPPED(status):
                if pid == self.worker_pid:
                    os.kill(pid, signal.SIGCONT)  # Code that stops itself would never answer again.
            elif pid == self.worker_pid and not self.stopping:
                self.on_death(status, usage)

    def kill_worker(self, cause: str) -> None:
        if self.running:
            self.running.cause = cause
        try:
            os.kill(self.worker_pid, signal.SIGKILL)
        except OSError:
            pass

    def on_death(self, status: int, usage: Any) -> None:
        oom_kills = processes.out_of_memory_kills()
        death = {
            "exit": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
            "signal": signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else None,
            "oom": oom_kills > self.oom_kills,
            "cpu": usage.ru_utime + usage.ru_stime,
            "peak": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        }
        self.oom_kills = oom_kills
        if self.running and death["signal"] != "SIGKILL":
            self.running.cause = None  # It died by itself; the channel broke because of that.
        idle = self.running is None
        if self.control is not None:
            self.last_words(self.control)
        self.finish({"death": death})
        self.forget_worker()
        self.start_worker()
        self.outbox.add({"ev": "restarted", "worker": self.worker_pid, "generation": self.generation, "idle": idle, "death": death})

    def last_words(self, control: socket.socket) -> None:
        """Displays that the worker sent just before it died; its `done`, if any, no longer counts."""
        try:
            while data := control.recv(CHUNK):
                for message in self.control_lines.feed(data):
                    if message.get("ev") != "done":
                        self.hear(message)
        except (OSError, Malformed):
            pass

    # -- the end ----------------------------------------------------------------------------------

    def close(self) -> None:
        self.stopping = True
        processes.kill_below(os.getpid(), 0)
        self.drop_server()
        if not self.request:
            return
        for remove, path in ((os.unlink, self.request["socket"]), (os.rmdir, os.path.dirname(self.request["socket"]))):
            try:
                remove(path)
            except OSError:
                pass
