"""Runs the template: the process that imports what sessions need, and then does nothing but fork keepers.

Every page of memory that it writes to between two forks is one that its children no longer share,
so between two forks it waits in a single system call, and leaves all messages to the zygote's front.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import select
import signal
import socket
from typing import TYPE_CHECKING, Callable, Optional

from cuvette_driver import copy_on_write, linux
from cuvette_driver.isolation import Isolation
from cuvette_driver.wire import receive_descriptor

if TYPE_CHECKING:
    from cuvette_driver.confinement import Confinement

    Run = Callable[[socket.socket, Optional[Confinement]], None]

# Given in place of modules, it makes a zygote whose keepers run programs of other languages.
FOR_PROGRAMS = "--programs"


def main(orders: socket.socket, ipython_dir: str, modules: list[str], isolation: Isolation) -> None:
    gc.disable()
    linux.name_process("cuvette-zygote")
    linux.buffer_c_output_by_line()
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)  # An ignored SIGCHLD leaves no zombies.
    run = load_for_programs() if modules == [FOR_PROGRAMS] else load(orders, ipython_dir, modules, isolation)
    gc.freeze()
    linux.use_long_time_slices()
    orders.send(b"\n")
    while True:
        fork(orders, run, isolation)


def load_for_programs() -> Run:
    from cuvette_driver import program_keeper

    return program_keeper.run


def load(orders: socket.socket, ipython_dir: str, modules: list[str], isolation: Isolation) -> Run:
    """Imports and warms up what Python sessions need; forks meanwhile for servers that cannot wait."""
    from cuvette_driver import interpreter_keeper, warm_up, worker

    worker.prepare(importlib.util.find_spec("IPython") is not None, ipython_dir)
    for step in warm_up.steps(modules):
        while select.select([orders], [], [], 0)[0]:
            fork(orders, interpreter_keeper.run, isolation)
        step()
    os.environ.clear()  # Each session has its own environment, and need not write to memory to throw this one away.
    gc.collect()
    copy_on_write.fill_gaps()
    return interpreter_keeper.run


def fork(orders: socket.socket, run: Run, isolation: Isolation) -> None:
    """Waits for one order and forks one keeper; the template ends when the front does."""
    assignment = receive_descriptor(orders)
    if assignment is None:
        os._exit(0)
    if os.fork() == 0:
        orders.close()
        become_keeper(socket.socket(fileno=assignment), run, isolation)
    os.close(assignment)


def become_keeper(assignment: socket.socket, run: Run, isolation: Isolation) -> None:
    try:
        confinement = isolation.isolate()
    except OSError as error:
        assignment.sendall(b"!%s" % str(error).encode())
        os._exit(1)
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        gc.enable()
        run(assignment, confinement)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(0)
