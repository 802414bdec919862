"""Runs user code: the worker process takes one request at a time from the keeper and answers it.

Everything that user code can break (streams, signal handlers, descriptors) is put right before each execution.
"""

from __future__ import annotations

import builtins
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
import types
from typing import Any, Callable, Protocol

from cuvette_driver import execution_usage, figures, fork_hooks, imports, inspection, linux, plain_shell, questions, variables, workspace_mount
from cuvette_driver.display import Publisher, message_of
from cuvette_driver.streams import Streams, move_up, wait_before_children, wait_until_read
from cuvette_driver.wire import Channel, Message

SAME_INTERRUPT = 1.0
PYTHON = "%d.%d.%d" % sys.version_info[:3]


class Shell(Protocol):
    """Runs cells in a namespace of variables, and publishes what they show."""

    is_ipython: bool

    @property
    def namespace(self) -> dict[str, Any]: ...

    def attach(self, publisher: Publisher) -> None: ...

    def warm(self) -> None:
        """Uses once what every cell uses, so that a freshly forked process owns those pages of memory."""

    def is_hidden(self, name: str) -> bool:
        """Says whether a variable is the shell's own."""

    def is_user_code(self, filename: str) -> bool: ...

    def run(self, code: str, number: int) -> Message | None:
        """Runs a cell; gives how it ended, or None if it went well."""

    def completions(self, code: str, cursor: int) -> Message | None:
        """How code can go on at the cursor, as the shell itself knows; None if it does not."""


# The shell is made in the zygote, so that a forked worker has it ready.
shell: Shell


def prepare(with_ipython: bool, ipython_dir: str) -> None:
    """Makes the shell that every forked worker inherits: IPython's where it is installed, else our own."""
    global shell
    if with_ipython:
        from cuvette_driver import ipython_shell

        shell = ipython_shell.make(ipython_dir)
    else:
        shell = plain_shell.PlainShell()
    imports.watch_matplotlib()
    wait_before_children()
    builtins.input = no_input


def description() -> Message:
    return {
        "python": PYTHON,
        "executable": sys.executable,
        "asks": list(questions.ANSWERS),
        "ipython": getattr(sys.modules.get("IPython"), "__version__", None) if shell.is_ipython else None,
    }


def main(control: socket.socket, out: int, err: int) -> None:
    if sys.platform == "linux":
        linux.die_with_parent()
    linux.name_process("cuvette-python")
    control = socket.socket(fileno=move_up(control.detach()))
    worker = Worker(Channel(control), Streams(out, err))
    try:
        worker.serve()
    except BaseException:
        pass
    # User code has broken the driver. The keeper sees the end of the channel, and kills this process.
    try:
        control.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    time.sleep(1)


class Worker:
    def __init__(self, channel: Channel, streams: Streams) -> None:
        self.channel = channel
        self.streams = streams
        self.in_user_code = False
        self.is_sending = False
        self.sending = threading.Lock()
        self.was_interrupted = False
        self.interrupted_at = 0.0
        self.is_interrupt_due = False
        self.is_forked_copy = False
        self.is_answering = False
        self.is_new = True
        self.has_args = False
        self.publisher = Publisher(self.publish)
        self.startup: str | None = None
        self.warning: str | None = None
        self.postponed: list[Message] = []
        self.repair()
        fork_hooks.release()
        reset_random_state()
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN if number == signal.SIGPIPE else signal.SIG_DFL)
        os.register_at_fork(after_in_child=self.on_fork)
        shell.attach(self.publisher)
        imports.install_missing(shell.is_user_code, self.ask_for_package)
        shell.warm()
        execution_usage.since(execution_usage.begin())
        kept_processes()
        self.send({"ev": "ready"})

    def serve(self) -> None:
        while (message := self.postponed.pop(0) if self.postponed else self.channel.receive()) is not None:
            op = message.get("op")
            if op == "enter":
                self.startup = message.get("startup")
                self.warning = enter(message)
            elif op == "execute":
                self.execute(message)
            elif op == "variables":
                self.send({"ev": "variables", "id": message["id"], "variables": variables.describe(shell)})
            elif op in questions.ANSWERS:
                self.answer(message)
            # An answer to an install request that was interrupted comes too late, and is dropped.

    def execute(self, message: Message) -> None:
        inspection.forget()
        self.repair()
        self.was_interrupted = self.is_interrupt_due = False
        before = execution_usage.begin()
        ending = self.run_guarded(lambda: self.run(message))
        if figures.are_open():
            shown = self.run_guarded(figures.show)
            ending = ending or shown
        figures.forget_shown()
        self.streams.flush()
        if self.is_forked_copy:
            os._exit(exit_code(ending))  # This is a forked child of user code that has reached the end of the cell.
        wait_until_read()
        used = execution_usage.since(before)
        self.send({"ev": "done", **(ending or {"status": "ok"}), "interrupted": self.was_interrupted, "kept": kept_processes(), **used})
        if self.is_new:
            self.is_new = False
            linux.use_default_time_slices()

    def answer(self, message: Message) -> None:
        """Answers a question about the session. Objects' own code may run, but nothing that it shows is seen."""
        self.repair()
        self.was_interrupted = self.is_interrupt_due = False
        said: Message = {"problem": questions.TOO_LONG}
        self.is_answering = True
        try:
            with self.streams.muted():
                try:
                    self.in_user_code = True
                    said = questions.answer(shell, message)
                finally:
                    self.in_user_code = False
        except KeyboardInterrupt:
            self.in_user_code = False  # It came just after the answer was there, or before it was begun.
        self.is_answering = False
        if self.is_forked_copy:
            os._exit(0)
        self.repair()
        self.send({"ev": "answered", "id": message["id"], **said, "kept": kept_processes()})

    def run(self, message: Message) -> Message | None:
        startup, self.startup = self.startup, None
        warning, self.warning = self.warning, None
        if warning is not None:
            print(warning, file=sys.stderr)
        if startup is not None and (ending := shell.run(startup, 0)):
            return ending
        if "args" in message or self.has_args:
            sys.argv[1:] = message.get("args", [])
            self.has_args = "args" in message
        return shell.run(message["code"], message["cell"])

    def run_guarded(self, run: Callable[[], Message | None]) -> Message | None:
        """Runs user code; whatever it throws, at whatever moment, ends here as a message."""
        try:
            try:
                self.in_user_code = True
                return run()
            finally:
                self.in_user_code = False
        except BaseException as error:
            self.in_user_code = False  # Set again, because an interrupt may have kept the line above from running.
            if isinstance(error, SystemExit):
                return exit_message(error)
            self.publisher.error(error)
            return {"status": "error", "ename": type(error).__name__}

    def publish(self, event: Message) -> None:
        if self.is_answering and threading.current_thread() is threading.main_thread():
            return
        wait_until_read()
        self.send(event)

    def send(self, message: Message) -> None:
        """Sends a whole message: a lock keeps threads apart, and an interrupt waits until the message is out."""
        is_main = threading.current_thread() is threading.main_thread()
        with self.sending:
            self.is_sending = is_main
            try:
                self.channel.send(message)
            finally:
                self.is_sending = False
        if is_main and self.is_interrupt_due:
            self.is_interrupt_due = False
            self.on_interrupt()

    def ask_for_package(self, name: str) -> Message:
        if self.is_answering:
            return {}
        self.publish({"ev": "install", "name": name})
        while (message := self.channel.receive()) is not None:
            if message.get("op") != "answer":
                self.postponed.append(message)
            elif message.get("name", name) == name:
                return message
        return {}

    def repair(self) -> None:
        self.streams.repair()
        signal.signal(signal.SIGINT, self.on_interrupt)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})

    def on_interrupt(self, *_: Any) -> None:
        """Raises KeyboardInterrupt in user code, once: the keeper repeats an interrupt in case that one is lost."""
        now = time.monotonic()
        if not self.in_user_code or (self.was_interrupted and now - self.interrupted_at < SAME_INTERRUPT):
            return
        if self.is_sending:
            self.is_interrupt_due = True
            return
        self.was_interrupted = True
        self.interrupted_at = now
        raise KeyboardInterrupt

    def on_fork(self) -> None:
        if os.getpid() == self.publisher.pid:
            return
        self.is_forked_copy = True
        self.publisher.silence()
        self.channel.sock.close()


def enter(request: Message) -> str | None:
    """Takes the session's folder and environment in place of the zygote's; gives a warning for the user where that fails."""
    zone = os.environ.get("TZ")
    os.environ.clear()
    os.environ.update(request["env"])
    if os.environ.get("TZ") != zone:
        time.tzset()
    own = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder and folder not in sys.path]
    sys.path[:0] = ["", *own]
    sys.argv = [""]
    try:
        if request.get("place"):
            workspace_mount.enter(request["cwd"])
        else:
            os.chdir(request["cwd"])
    except OSError as error:
        return "The session's folder cannot be entered (%s), so code runs in %s." % (error, os.getcwd())
    return None


def reset_random_state() -> None:
    """Reseeds the random generators whose state forked siblings would share. `random` and OpenSSL do so themselves after a fork."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.set_state(("MT19937", memoryview(os.urandom(624 * 4)).cast("I"), 624))
    uuid: types.ModuleType | None = sys.modules.get("uuid")
    if uuid is not None:
        vars(uuid)["_last_timestamp"] = None


def kept_processes() -> list[int]:
    """Lists the processes that Python itself keeps for later calls: process pools and their helpers outlive the call."""
    pids = [child.pid for child in multiprocessing.active_children() if child.pid]
    for name, attribute in (("multiprocessing.resource_tracker", "_resource_tracker"), ("multiprocessing.forkserver", "_forkserver")):
        helper = getattr(sys.modules.get(name), attribute, None)
        pids.extend(pid for pid in (getattr(helper, "_pid", None), getattr(helper, "_forkserver_pid", None)) if pid)
    return pids


def no_input(prompt: object = "", /) -> str:
    raise EOFError("input() has nobody to answer it here: put the value into the code")


def exit_message(exit: SystemExit) -> Message:
    """Reads sys.exit's argument as Python does: nothing is success, a number is the code, anything else is printed."""
    if exit.code is None or isinstance(exit.code, int):
        return {"status": "exit", "code": int(exit.code or 0) & 0xFF}
    try:
        print(message_of(exit), file=sys.stderr)
    except BaseException:
        pass  # User code has replaced the stream by something that cannot be written to.
    return {"status": "exit", "code": 1}


def exit_code(ending: Message | None) -> int:
    return 0 if ending is None else ending.get("code", 1)
