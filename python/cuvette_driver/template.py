"""The process that keepers are forked from: it imports what sessions need, and then does nothing but fork.

Every page of memory that it writes to between two forks is one that its children no longer share,
so between two forks it waits in a single system call, and leaves all talking to the zygote's front.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import io
import os
import select
import signal
import socket
import sys

from cuvette_driver import keeper, linux, worker

# Bytes to take up for each size of object; more takes up no more gaps.
GAPS = 150 << 10


def main(orders: socket.socket, ipython_dir: str, modules: list[str]) -> None:
    gc.disable()
    linux.name_process("cuvette-zygote")
    linux.buffer_c_output_by_line()
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)  # An ignored SIGCHLD leaves no zombies.
    worker.prepare(importlib.util.find_spec("IPython") is not None, ipython_dir)
    for name in modules:
        while select.select([orders], [], [], 0)[0]:
            fork(orders)
        preload(name)
    gc.collect()
    settle_memory()
    gc.freeze()
    linux.yield_to_others()
    orders.send(b"\n")
    while True:
        fork(orders)


def settle_memory() -> None:
    """Leaves no free memory among the objects that children share: what a child makes then stands on pages of its own.

    Otherwise each small thing that it makes or frees would be the first write to another shared page, and copy it.
    """
    # Asked for a large piece, C's allocator first puts all its free memory in order; what is in order, no child has to touch.
    bytearray(100_000)
    # Python's own allocator keeps places for each size up to 512 bytes; these take them.
    _gaps.append([object() for _ in range(GAPS // 16)])
    _gaps.append([float(number) for number in range(GAPS // 32)])
    _gaps.extend([bytes(size - 33) for _ in range(GAPS // size)] for size in range(48, 513, 16))


_gaps: list[list[object]] = []


def fork(orders: socket.socket) -> None:
    """Waits for one order, and forks one keeper; ends with the front."""
    _, fds, _, _ = socket.recv_fds(orders, 1, 1)
    if not fds:
        os._exit(0)
    if os.fork() == 0:
        orders.close()
        become_keeper(socket.socket(fileno=fds[0]))
    os.close(fds[0])


def become_keeper(assignment: socket.socket) -> None:
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        gc.enable()
        keeper.run(assignment)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(0)


def preload(name: str) -> None:
    """Imports a module and uses it once, so that its lazy parts are there too. A broken one is left out."""
    try:
        importlib.import_module(name)
        use = {"pandas": _use_pandas, "matplotlib.pyplot": _use_matplotlib}.get(name)
        if use:
            use()
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
