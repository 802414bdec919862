"""sys.stdout and sys.stderr of the worker: every write goes to the operating system's descriptor at once.

So Python's own output, C code's and that of child processes share one order. Where the code changes from
one stream to the other, the first is let run dry, so that the keeper reads them in the order of writing.
"""

from __future__ import annotations

import array
import fcntl
import io
import os
import sys
import termios
import time

PATIENCE = 0.25
FIRST_SPARE_FD = 200


class Streams:
    def __init__(self, out: int, err: int) -> None:
        self.null = _move_up(os.open(os.devnull, os.O_RDONLY))
        self.out = _move_up(out)
        self.err = _move_up(err)
        self.last: int | None = None
        self._identities = {fd: _identity(fd) for fd in (self.null, self.out, self.err)}
        self.repair()

    def repair(self) -> None:
        """Puts descriptors 0 to 2 and Python's three streams back to where they belong."""
        for fd, source in ((0, self.null), (1, self.out), (2, self.err)):
            if _identity(fd) != self._identities[source]:
                os.dup2(source, fd)
        if not _is_ours(sys.stdout, 1):
            sys.stdout = sys.__stdout__ = Writer(self, 1)
        if not _is_ours(sys.stderr, 2):
            sys.stderr = sys.__stderr__ = Writer(self, 2)
        if sys.stdin is None or sys.stdin.closed or getattr(sys.stdin, "name", None) != 0:
            sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)

    def flush(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass

    def settle(self) -> None:
        """Waits until the keeper has read all that was written."""
        self.last = None
        _run_dry(1)
        _run_dry(2)

    def changed(self, fd: int) -> None:
        if self.last is not None:
            _run_dry(self.last)
        self.last = fd


class Writer(io.TextIOWrapper):
    def __init__(self, streams: Streams, fd: int) -> None:
        super().__init__(_Raw(fd), encoding="utf-8", errors="backslashreplace", write_through=True)
        self._streams = streams
        self._fd = fd

    def write(self, text: str, /) -> int:
        if self._streams.last != self._fd:
            self._streams.changed(self._fd)
        return super().write(text)

    @property
    def name(self) -> str:
        return "<stdout>" if self._fd == 1 else "<stderr>"


class _Raw(io.RawIOBase):
    """A descriptor that takes everything it is given, whatever signals come between."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def write(self, data: object, /) -> int:
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        size = len(view)
        while view:
            view = view[os.write(self._fd, view) :]
        return size

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._fd


def _is_ours(stream: object, fd: int) -> bool:
    return isinstance(stream, Writer) and stream._fd == fd and not stream.closed


def _identity(fd: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _move_up(fd: int) -> int:
    """Moves a descriptor out of the way of user code's own, closed in its children."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FIRST_SPARE_FD)
    os.close(fd)
    return moved


def _run_dry(fd: int) -> None:
    deadline = None
    count = array.array("i", [0])
    while True:
        try:
            fcntl.ioctl(fd, termios.FIONREAD, count)
        except OSError:
            return
        if count[0] == 0:
            return
        now = time.monotonic()
        deadline = deadline or now + PATIENCE
        if now > deadline:
            return
        time.sleep(0.00002)
