"""Runs the zygote's front: takes requests for sessions from servers, and hands each to a keeper that the template has forked.

It serves any number of servers over one Unix socket, outlives them, and ends when it has had neither a server nor
a session for a while. It forks nothing itself: the template does, which otherwise stands still (see template.py).
"""

from __future__ import annotations

import collections
import os
import shutil
import signal
import socket
import sys
import time

from cuvette_driver import linux, processes, template
from cuvette_driver.assignment import assign
from cuvette_driver.isolation import Isolation
from cuvette_driver.poller import Poller
from cuvette_driver.wire import CHUNK, Lines, Malformed, Message, encode

IDLE = 60.0
QUIET = 0.03
# Seconds between two keepers; making one takes a processor for about half of that.
PACE = 0.04 / (os.cpu_count() or 1)
PROGRAM_PACE = 0.008 / (os.cpu_count() or 1)
CLEANING = 0.01
# For the kernel to let go of the processes that have just ended: on a busy machine that takes long.
LAST_CLEANING = 15.0
TEMPLATE_ENDS = 1.0
POLL = 5.0


def main(path: str, modules: list[str], policy: str | None = None) -> None:
    """The process that was started becomes the template; the front is forked off while it is still small."""
    isolation = Isolation()
    if policy is not None:
        from cuvette_driver.confinement import Confiner, read_policy

        isolation = Confiner(read_policy(policy), modules == [template.FOR_PROGRAMS])
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(128)
    ours, theirs = socket.socketpair()
    template_pid = os.getpid()
    if os.fork() == 0:
        theirs.close()
        linux.name_process("cuvette-zygote")
        front = Zygote(path, listener, ours, PROGRAM_PACE if modules == [template.FOR_PROGRAMS] else PACE, isolation)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())
        try:
            front.serve()
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            end_template(template_pid)
            front.end()
            isolation.close()
            shutil.rmtree(os.path.dirname(path), ignore_errors=True)
            os._exit(0)
    listener.close()
    ours.close()
    template.main(theirs, os.path.join(os.path.dirname(path), "ipython"), modules, isolation)


def end_template(pid: int) -> None:
    """Ends the template, which may still be importing and writing to the folder that is about to be removed."""
    if os.getppid() != pid:
        return
    deadline = time.monotonic() + TEMPLATE_ENDS
    processes.send(pid, signal.SIGSTOP)  # Stopped, it starts no further process while its children are listed.
    helpers = [one for one in processes.descendants(pid) if one != os.getpid() and is_of_our_group(one)]
    for one in (*helpers, pid):
        processes.send(one, signal.SIGKILL)
    while (os.getppid() == pid or any(map(processes.is_alive, helpers))) and time.monotonic() < deadline:
        time.sleep(0.001)


def is_of_our_group(pid: int) -> bool:
    """Is true for processes that libraries started while they were imported; keepers have groups of their own."""
    try:
        return os.getpgid(pid) == os.getpgid(0)
    except OSError:
        return False


class Zygote:
    def __init__(self, path: str, listener: socket.socket, forks: socket.socket, pace: float, isolation: Isolation) -> None:
        self.path = path
        self.pace = pace
        self.isolation = isolation
        self.names: dict[socket.socket, str] = {}
        self.to_clean: list[str] = []
        self.listener = listener
        self.template = forks
        self.servers: dict[socket.socket, Lines] = {}
        self.waiting: collections.deque[tuple[socket.socket, Message]] = collections.deque()
        # The keeper that is being made, the one that waits for a session, and those that have one, each by its own socket.
        self.pending: socket.socket | None = None
        self.spare: tuple[socket.socket, int] | None = None
        self.keepers: set[socket.socket] = set()
        self.idle_since = time.monotonic()
        self.watch = Poller()
        self.watch.add(listener, self.on_connect)
        self.watch.add(forks, self.on_template)
        self.has_template = True
        self.is_loaded = False
        self.is_dismissed = False
        self.ordered_at = 0.0

    def serve(self) -> None:
        while self.has_template and os.path.exists(self.path) and not self.is_idle():
            was_asked = self.watch.wait(min(self.timeout(), CLEANING) if self.to_clean else self.timeout())
            self.to_clean = [name for name in self.to_clean if not self.isolation.clean_up(name)]
            self.assign_keepers()
            if self.lacks_spare() and self.may_order(is_quiet=not was_asked):
                self.ordered_at = time.monotonic()
                self.pending = self.order_keeper()
            if self.servers or self.keepers:
                self.idle_since = time.monotonic()

    def end(self) -> None:
        """Ends the keepers that will get no session, and cleans up after all that have ended, whether they came to say their name or not."""
        without_session = [one for one in (self.pending, self.spare and self.spare[0]) if one is not None]
        for assignment in without_session:
            assignment.shutdown(socket.SHUT_WR)
        living = {self.names[assignment] for assignment in self.keepers if assignment in self.names}
        deadline = time.monotonic() + LAST_CLEANING
        while time.monotonic() < deadline:
            without_session = [one for one in without_session if not has_hung_up(one)]
            if self.isolation.clean_up_all_but(living) and not without_session:
                return
            time.sleep(CLEANING)

    def is_idle(self) -> bool:
        """Is true when nobody has used the zygote for a while, or those who did have said that nobody will."""
        if self.is_dismissed and not self.servers and not self.keepers:
            return True
        return time.monotonic() - self.idle_since >= IDLE

    def lacks_spare(self) -> bool:
        return self.spare is None and self.pending is None

    def timeout(self) -> float:
        if not self.lacks_spare():
            return POLL
        return max(0.0, self.ordered_at + self.pace - time.monotonic()) if self.waiting else QUIET

    def may_order(self, is_quiet: bool) -> bool:
        """Lets keepers be made one at a time, at an even pace, and in a quiet moment unless somebody waits, so that running sessions are not slowed down."""
        if self.waiting:
            return time.monotonic() >= self.ordered_at + self.pace
        return self.is_loaded and is_quiet

    # -- servers ----------------------------------------------------------------------------------

    def on_connect(self, listener: socket.socket) -> None:
        server, _ = listener.accept()
        self.servers[server] = Lines()
        self.is_dismissed = False
        self.watch.add(server, self.on_server)

    def on_server(self, server: socket.socket) -> None:
        try:
            data = server.recv(CHUNK)
            for message in self.servers[server].messages(data):
                if message.get("op") == "dismiss":
                    self.is_dismissed = True
                else:
                    self.waiting.append((server, message))
        except (OSError, Malformed):
            data = b""
        if not data:
            del self.servers[server]
            self.waiting = collections.deque(item for item in self.waiting if item[0] is not server)
            self.close(server)

    def answer(self, server: socket.socket, message: Message) -> None:
        try:
            server.sendall(encode(message))
        except OSError:
            pass  # The server is gone, which is noticed where it is read.

    # -- keepers ----------------------------------------------------------------------------------

    def order_keeper(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        socket.send_fds(self.template, [b"\n"], [theirs.fileno()])
        theirs.close()
        self.watch.add(ours, self.on_keeper)
        return ours

    def on_keeper(self, assignment: socket.socket) -> None:
        """Notes that a keeper is ready, which it says once, or that it has ended."""
        try:
            data = assignment.recv(CHUNK)
        except OSError:
            data = b""
        if data[:1].isdigit() and self.pending is assignment:
            pid, _, name = data.decode().partition(" ")
            self.pending, self.spare = None, (assignment, int(pid))
            if name:
                self.names[assignment] = name
            return
        if data.startswith(b"!"):
            self.refuse_all(data[1:].decode("utf-8", "replace"))
        name = self.names.pop(assignment, "")
        if name:
            self.to_clean.append(name)
        self.keepers.discard(assignment)
        if self.pending is assignment:
            self.pending = None
        if self.spare and self.spare[0] is assignment:
            self.spare = None
        self.close(assignment)

    def refuse_all(self, problem: str) -> None:
        """Refuses all who wait, because a keeper could not even be made: another try would end the same way."""
        while self.waiting:
            server, request = self.waiting.popleft()
            self.answer(server, {"id": request.get("id"), "error": problem})

    def assign_keepers(self) -> None:
        while self.spare and self.waiting:
            server, request = self.waiting.popleft()
            try:
                with listen(request["socket"]) as listener:
                    assign(self.spare[0], listener, request)
            except Exception as error:
                self.answer(server, {"id": request.get("id"), "error": "%s: %s" % (type(error).__name__, error)})
                continue
            self.answer(server, {"id": request.get("id"), "pid": self.spare[1]})
            self.keepers.add(self.spare[0])
            self.spare = None

    def on_template(self, forks: socket.socket) -> None:
        """Notes that the template has imported everything, which it says once, or that it has ended."""
        self.has_template = self.is_loaded = bool(forks.recv(1))

    def close(self, source: socket.socket) -> None:
        self.watch.remove(source)
        source.close()


def has_hung_up(assignment: socket.socket) -> bool:
    """Says whether no process holds the other end any more."""
    try:
        return assignment.recv(CHUNK, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def listen(path: str) -> socket.socket:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(128)
    return listener
