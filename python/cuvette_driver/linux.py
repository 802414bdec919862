"""Makes the few system calls that the standard library lacks. On systems other than Linux they do nothing."""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

LINE_BUFFERED = 1

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_stdout = None if _libc is None else ctypes.c_void_p.in_dll(_libc, "stdout")


def become_subreaper() -> None:
    """Makes this process the parent of every descendant whose own parent ends, so that it can be found and ended."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def name_process(name: str) -> None:
    try:
        comm = os.open("/proc/self/comm", os.O_WRONLY)
    except OSError:
        return
    os.write(comm, name.encode()[:15])
    os.close(comm)


def buffer_c_output_by_line() -> None:
    """Has C's own stdout, which goes to a pipe here, written line by line instead of when its buffer is full."""
    if _libc is not None:
        _libc.setvbuf(_stdout, None, LINE_BUFFERED, ctypes.c_size_t(0))


def flush_c_output() -> None:
    if _libc is not None:
        _libc.fflush(_stdout)


def allocate(size: int, count: int) -> None:
    """Allocates pieces of C's memory and never frees them."""
    if _libc is not None:
        for _ in range(count):
            _libc.malloc(size)


def _prctl(option: int, value: object) -> None:
    if _libc is not None:
        _libc.prctl(option, value, 0, 0, 0)


def use_long_time_slices() -> None:
    """Asks the scheduler for long time slices: processes with shorter ones run first. For a process that is still starting."""
    _sched_setattr(_LONG_SLICES)


def use_default_time_slices() -> None:
    """Asks the scheduler for time slices of the default length again."""
    _sched_setattr(_DEFAULT_SLICES)


def use_short_time_slices() -> None:
    """Asks the scheduler for short time slices, which come soon. For a process that only passes on what others wait for."""
    _sched_setattr(_SHORT_SLICES)


def _slices(nanoseconds: int) -> bytes:
    return struct.pack("=IIQiIQQQ", 48, 0, 0, 0, 0, nanoseconds, 0, 0)


# Packed in advance, so that a forked process calls fewer functions and copies less memory for this.
_LONG_SLICES, _DEFAULT_SLICES, _SHORT_SLICES = _slices(100_000_000), _slices(0), _slices(100_000)
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}.get(os.uname().machine)


def _sched_setattr(attributes: bytes) -> None:
    if _libc is not None and _SCHED_SETATTR is not None:
        _libc.syscall(_SCHED_SETATTR, 0, attributes, 0)
