"""Provides the worker's sys.stdout and sys.stderr, which write to the operating system's descriptors without a buffer.

So Python's own output, C code's and that of child processes share one order. Before a write to one stream,
it waits until the keeper has emptied the other, so that the keeper reads them in the order of writing.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import functools
import io
import os
import select
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from typing import Any, cast

from cuvette_driver import linux

# Seconds to wait for the keeper, which always reads, though not at once on a busy machine.
PATIENCE = 30.0
# Seconds to wait for the reader of what user code has put in place of our pipes: there may be none.
PATIENCE_WITH_OTHERS = 0.1
FIRST_SPARE_FD = 200


class Streams:
    def __init__(self, out: int, err: int) -> None:
        self._spares = (move_up(os.open(os.devnull, os.O_RDONLY)), move_up(out), move_up(err))
        self._identities = tuple(map(_identity, self._spares))
        _keeper_pipes.update(self._identities[1:])
        self._files: list[Any] = [None, None, None]

    def repair(self) -> None:
        """Puts descriptors 0 to 2 and Python's three streams back to where they belong."""
        for fd, spare in enumerate(self._spares):
            if _identity(fd) != self._identities[fd]:
                os.dup2(spare, fd)
        for fd, name in enumerate(("stdin", "stdout", "stderr")):
            if not _is_open(self._files[fd]) or getattr(sys, name, None) is not self._files[fd]:
                self._files[fd] = Writer(fd) if fd else open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
                setattr(sys, name, self._files[fd])
                setattr(sys, "__%s__" % name, self._files[fd])
            if fd and not os.get_blocking(fd):
                os.set_blocking(fd, True)

    @contextlib.contextmanager
    def muted(self) -> Iterator[None]:
        """Meanwhile, what the main thread writes goes nowhere. Other threads go on writing through Python's streams to where they did."""
        linux.flush_c_output()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        _aside.update({fd: self._spares[fd] for fd in (1, 2)})
        try:
            for fd in (1, 2):
                os.dup2(nowhere, fd)
            yield
        finally:
            linux.flush_c_output()
            os.close(nowhere)
            self.repair()
            _aside.clear()

    def flush(self) -> None:
        """Flushes streams that user code has put in place of ours, which may hold output back."""
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name, None)
            if not isinstance(stream, Writer):
                try:
                    stream.flush()  # type: ignore[union-attr]
                except BaseException:
                    pass


def wait_before_children() -> None:
    """Has every start of a child process wait until the keeper has read what was written before."""
    os.system = _waiting_first(os.system)
    subprocess.Popen._execute_child = _waiting_first(subprocess.Popen._execute_child)  # type: ignore[attr-defined]


def wait_until_read() -> None:
    """Waits until the keeper has read all that was written."""
    linux.flush_c_output()
    _wait_until_empty(1)
    _wait_until_empty(2)


def _waiting_first(start: Any) -> Any:
    @functools.wraps(start)
    def wait_and_start(*args: Any, **kwargs: Any) -> Any:
        wait_until_read()
        return start(*args, **kwargs)

    return wait_and_start


class Writer(io.TextIOWrapper):
    def __init__(self, fd: int) -> None:
        super().__init__(cast("Any", _Raw(fd)), encoding="utf-8", errors="backslashreplace", write_through=True)
        self._other = 3 - fd

    def write(self, text: str, /) -> int:
        _wait_until_empty(self._other)
        return super().write(text)

    @property
    def name(self) -> str:
        return "<stdout>" if self._other == 2 else "<stderr>"


# While the main thread is muted: by descriptor, where other threads write to instead.
_aside: dict[int, int] = {}


class _Raw(io.RawIOBase):
    """A descriptor that takes everything it is given, whatever signals come between."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def write(self, data: object, /) -> int:
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        size = len(view)
        fd = _aside.get(self._fd, self._fd) if _aside and threading.current_thread() is not threading.main_thread() else self._fd
        while view:
            try:
                view = view[os.write(fd, view) :]
            except BlockingIOError:
                # A child shares the pipe, and may have made it non-blocking for us as well.
                select.select((), (fd,), ())
        return size

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._fd


def move_up(fd: int) -> int:
    """Moves a descriptor out of the way of user code's own, closed in its children."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FIRST_SPARE_FD)
    os.close(fd)
    return moved


def _is_open(stream: Any) -> bool:
    try:
        return stream is not None and not stream.closed
    except ValueError:  # Its buffer was detached.
        return False


def _identity(fd: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino


_count = array.array("i", [0])
# The pipes that the keeper reads.
_keeper_pipes: set[tuple[int, int] | None] = set()


def _wait_until_empty(fd: int) -> None:
    began = patience = 0.0
    while True:
        try:
            fcntl.ioctl(fd, termios.FIONREAD, _count)
        except OSError:
            return
        if _count[0] == 0:
            return
        now = time.monotonic()
        if not began:
            began, patience = now, PATIENCE if _identity(fd) in _keeper_pipes else PATIENCE_WITH_OTHERS
        if now > began + patience:
            return
        time.sleep(0.00002 if now < began + 0.01 else 0.001)
