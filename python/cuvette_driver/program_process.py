"""Starts one program of another language in a process whose output is captured."""

from __future__ import annotations

import os
import resource
import signal
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cuvette_driver import workspace_mount
from cuvette_driver.output_pipe import OutputPipe
from cuvette_driver.wire import Message

if TYPE_CHECKING:
    from cuvette_driver.confinement import Confinement

CANNOT_RUN = 127
LIMITS = {"memory": resource.RLIMIT_AS, "cpu": resource.RLIMIT_CPU}


class ProgramProcess:
    """Has the interface of a worker, without a channel: a program says nothing but what it prints."""

    pipes: Sequence[OutputPipe]
    channel: socket.socket | None = None
    is_mid_message = False

    def __init__(self, step: Message, program: Message, confinement: Confinement | None = None) -> None:
        self.pipes = (OutputPipe("stdout"), OutputPipe("stderr"))
        given = open_input(program.get("stdin"))
        self.pid = os.fork()
        if self.pid == 0:
            try:
                exec_program(step, program, confinement, given, *(pipe.writer for pipe in self.pipes))
            except BaseException as error:
                os.write(2, ("%s cannot be run: %s\n" % (step["argv"][0], error)).encode())
            finally:
                os._exit(CANNOT_RUN)
        os.close(given)
        for pipe in self.pipes:
            pipe.close_writer()

    def send(self, line: bytes) -> None:
        """Does nothing: a program takes no messages."""

    def close(self) -> None:
        for pipe in self.pipes:
            pipe.close()


class NoProgram(ProgramProcess):
    """Stands for the time between two programs."""

    pid = 0
    pipes = ()

    def __init__(self) -> None:
        pass


def exec_program(step: Message, program: Message, confinement: Confinement | None, given: int, out: int, err: int) -> None:
    """Turns the forked process into the program, with its input, output, folder and limits."""
    for fd, target in ((given, 0), (out, 1), (err, 2)):
        os.dup2(fd, target)
    os.setsid()
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    if confinement is not None:
        confinement.show_program(program["folder"])
        os.chdir(program["cwd"])
    elif program.get("place"):
        workspace_mount.enter(program["cwd"], program.get("folder"))
    else:
        os.chdir(program["cwd"])
    close_descriptors_on_exec()
    limits = {LIMITS[name]: value for name, value in program.get("limits", {}).items()}
    if confinement is not None:
        confinement.drop_privileges_as_program(limits)
    else:
        for limit, value in limits.items():
            resource.setrlimit(limit, (value, value))
    os.execvpe(step["argv"][0], step["argv"], {**program["env"], **step.get("env", {})})


def close_descriptors_on_exec() -> None:
    """Marks all descriptors but the standard ones close-on-exec: a program inherits none of the driver's, nor of whoever started the server."""
    for fd in map(int, os.listdir("/dev/fd")):
        if fd > 2:
            try:
                os.set_inheritable(fd, False)
            except OSError:
                pass


def open_input(text: str | None) -> int:
    """Opens a descriptor from which the program reads the given text; it is empty where none was given."""
    if not text:
        return os.open(os.devnull, os.O_RDONLY)
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("stdin", 0)
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    data = memoryview(text.encode("utf-8", "surrogatepass"))
    while data:
        data = data[os.write(fd, data) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
