"""The process that user code runs in: takes one request at a time from the keeper and answers it.

Everything that user code can break (streams, signal handlers, descriptors) is put right before each execution.
"""

from __future__ import annotations

import builtins
import multiprocessing
import os
import platform
import signal
import socket
import sys
import types
from typing import Any

from cuvette_driver import figures, imports, linux, plain_shell, usage, variables
from cuvette_driver.display import Publisher, message_of
from cuvette_driver.streams import Streams
from cuvette_driver.wire import Channel, Message

# The shell is made in the zygote, so that a forked worker has it ready.
shell: Any = None


def prepare(with_ipython: bool, ipython_dir: str) -> None:
    """Makes the shell that every forked worker inherits: IPython's where it is installed, else our own."""
    global shell
    if with_ipython:
        from cuvette_driver import ipython_shell

        shell = ipython_shell.make(ipython_dir)
    else:
        shell = plain_shell.PlainShell()
    imports.watch_matplotlib()


def description() -> Message:
    return {
        "python": platform.python_version(),
        "executable": sys.executable,
        "ipython": getattr(sys.modules.get("IPython"), "__version__", None) if shell.is_ipython else None,
    }


def main(control: socket.socket, out: int, err: int) -> None:
    if sys.platform == "linux":
        linux.die_with_parent()
    linux.name_process("cuvette-python")
    Worker(Channel(control), Streams(out, err)).serve()


class Worker:
    def __init__(self, channel: Channel, streams: Streams) -> None:
        self.channel = channel
        self.streams = streams
        self.in_user_code = False
        self.interrupted = False
        self.is_forked_copy = False
        self.publisher = Publisher(self.publish)
        self.startup: str | None = None
        become_somebody_else()
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN if number == signal.SIGPIPE else signal.SIG_DFL)
        os.register_at_fork(after_in_child=self.on_fork)
        builtins.input = no_input
        shell.attach(self.publisher)
        imports.install_missing(shell.is_user_code, self.ask_for_package)
        shell.warm()

    def serve(self) -> None:
        while (message := self.channel.receive()) is not None:
            op = message.get("op")
            if op == "enter":
                self.startup = message.get("startup")
                enter(message)
            elif op == "execute":
                self.execute(message)
            elif op == "variables":
                self.channel.send({"ev": "variables", "id": message["id"], "variables": variables.describe(shell)})
            # An answer to a question that was interrupted comes too late, and is dropped.

    def execute(self, message: Message) -> None:
        self.repair()
        self.interrupted = False
        before = usage.begin()
        ending = self.guarded(self.run_startup) or self.guarded(lambda: shell.run(message["code"], message["cell"]))
        self.streams.flush()
        if self.is_forked_copy:
            os._exit(0)  # A copy that user code forked off has come to the end of the cell.
        self.channel.send({"ev": "done", **(ending or {"status": "ok"}), "interrupted": self.interrupted, "kept": kept_processes(), **usage.since(before)})

    def run_startup(self) -> Message | None:
        if self.startup is None:
            return None
        script, self.startup = self.startup, None
        return shell.run(script, 0)

    def guarded(self, run: Any) -> Message | None:
        """Runs user code; whatever it throws, at whatever moment, ends here as a message."""
        try:
            self.in_user_code = True
            try:
                ending = run()
                figures.show_all(self.publisher)
                return ending
            finally:
                self.in_user_code = False
        except SystemExit as exit:
            return exit_message(exit)
        except BaseException as error:
            self.publisher.error(error)
            return {"status": "error", "ename": type(error).__name__}

    def publish(self, event: Message) -> None:
        self.streams.settle()
        self.channel.send(event)

    def ask_for_package(self, name: str) -> Message:
        self.publish({"ev": "install", "name": name})
        return self.channel.receive() or {}

    def repair(self) -> None:
        self.streams.repair()
        signal.signal(signal.SIGINT, self.on_interrupt)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})

    def on_interrupt(self, *_: Any) -> None:
        if not self.in_user_code:
            return
        self.interrupted = True
        raise KeyboardInterrupt

    def on_fork(self) -> None:
        if os.getpid() == self.publisher.pid:
            return
        self.is_forked_copy = True
        self.publisher.silence()
        self.channel.sock.close()


def enter(request: Message) -> None:
    """Takes the session's folder and environment in place of the zygote's."""
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    sys.path[:0] = [""]
    sys.argv = [""]


def become_somebody_else() -> None:
    """What forked siblings must not share: the state of their random generators.

    `random` and OpenSSL see to it themselves after a fork.
    """
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.set_state(("MT19937", memoryview(os.urandom(624 * 4)).cast("I"), 624))
    uuid: types.ModuleType | None = sys.modules.get("uuid")
    if uuid is not None:
        vars(uuid)["_last_timestamp"] = None


def kept_processes() -> list[int]:
    """Workers that Python itself keeps for later calls: process pools and their helpers outlive the call."""
    pids = [child.pid for child in multiprocessing.active_children() if child.pid]
    for name, attribute in (("multiprocessing.resource_tracker", "_resource_tracker"), ("multiprocessing.forkserver", "_forkserver")):
        helper = getattr(sys.modules.get(name), attribute, None)
        pids.extend(pid for pid in (getattr(helper, "_pid", None), getattr(helper, "_forkserver_pid", None)) if pid)
    return pids


def no_input(prompt: object = "", /) -> str:
    raise EOFError("input() has nobody to answer it here: put the value into the code")


def exit_message(exit: SystemExit) -> Message:
    """As Python itself reads sys.exit's argument: nothing is success, a number is the code, anything else is printed."""
    if exit.code is None or isinstance(exit.code, int):
        return {"status": "exit", "code": int(exit.code or 0) & 0xFF}
    print(message_of(exit), file=sys.stderr)
    return {"status": "exit", "code": 1}
