"""Runs a Python of the user's choice in a confined session, as any program is run there, with a keeper of its own that is confined with it.

Nothing of it is trusted. All that it gets from outside is the session's listening socket, and the request that says what to run.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from typing import TYPE_CHECKING, Callable

from cuvette_driver import processes
from cuvette_driver.assignment import assign
from cuvette_driver.program_process import close_descriptors_on_exec, open_input
from cuvette_driver.wire import Message, decode, encode

if TYPE_CHECKING:
    from cuvette_driver.confinement import Confinement

LISTENER = 3
EVERY = 0.2
CANNOT_RUN = 127


def host(confinement: Confinement, listener: socket.socket, request: Message, is_wanted: Callable[[], bool]) -> None:
    """Starts it from the session's trusted keeper, watches what it uses, and returns when it has ended or is not wanted any more."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    given = open_input(encode(request).decode())
    confinement.monitor.begin()
    pid = os.fork()
    if pid == 0:
        try:
            exec_interpreter(confinement, listener, request, given)
        except BaseException as error:
            os.write(2, ("%s cannot be run: %s\n" % (request["interpreter"], error)).encode())
        finally:
            os._exit(CANNOT_RUN)
    os.close(given)
    listener.close()
    while processes.is_alive(pid) and is_wanted():
        if confinement.monitor.check() is not None:
            os.kill(pid, signal.SIGKILL)
        signal.sigtimedwait({signal.SIGCHLD}, EVERY)


def exec_interpreter(confinement: Confinement, listener: socket.socket, request: Message, given: int) -> None:
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    # Duplicated first, because either descriptor may have the number that the other is to get.
    ours, theirs = os.dup(listener.fileno()), os.dup(given)
    null = os.open(os.devnull, os.O_RDWR)
    for fd, target in ((theirs, 0), (null, 1), (null, 2)):
        os.dup2(fd, target)
    close_descriptors_on_exec()
    os.dup2(ours, LISTENER, inheritable=True)
    confinement.drop_privileges_as_program({})
    os.chdir(request["cwd"])
    python = request["interpreter"]
    driver = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")
    os.execve(python, [python, driver, "--hosted"], request["env"])


def run() -> None:
    """Serves that one session as its interpreter, without a zygote, in the program that was started."""
    import importlib.util
    import tempfile

    from cuvette_driver import interpreter_keeper, worker

    request = decode(sys.stdin.buffer.read())
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    worker.prepare(importlib.util.find_spec("IPython") is not None, tempfile.mkdtemp())
    ours, theirs = socket.socketpair()
    with socket.socket(fileno=LISTENER) as listener:
        assign(ours, listener, {**request, "socket": "", "mounts": None})
    interpreter_keeper.run(theirs)
