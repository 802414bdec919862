"""The few calls to the kernel that the standard library lacks. Elsewhere than on Linux they do nothing."""

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
    """From now on, a descendant whose parent ends becomes our child, so that it can be found and ended."""
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
    """C code's own stdout goes to a pipe here, and would keep what it prints until its buffer is full."""
    if _libc is not None:
        _libc.setvbuf(_stdout, None, LINE_BUFFERED, ctypes.c_size_t(0))


def flush_c_output() -> None:
    if _libc is not None:
        _libc.fflush(_stdout)


def allocate(size: int, count: int) -> None:
    """Takes pieces of C's memory, for good."""
    if _libc is not None:
        for _ in range(count):
            _libc.malloc(size)


def _prctl(option: int, value: object) -> None:
    if _libc is not None:
        _libc.prctl(option, value, 0, 0, 0)


def use_long_time_slices() -> None:
    """Asks for the processor in long turns: whoever wakes up for a short one goes first. For a process that is still starting."""
    _sched_setattr(_LONG_SLICES)


def use_default_time_slices() -> None:
    """The ordinary share again."""
    _sched_setattr(_DEFAULT_SLICES)


def use_short_time_slices() -> None:
    """Asks for the processor in short turns, and to get them soon. For a process that only passes on what others wait for."""
    _sched_setattr(_SHORT_SLICES)


def _slices(nanoseconds: int) -> bytes:
    return struct.pack("=IIQiIQQQ", 48, 0, 0, 0, 0, nanoseconds, 0, 0)


# Made ahead: each further function that a forked process has to call for this would be memory to copy.
_LONG_SLICES, _DEFAULT_SLICES, _SHORT_SLICES = _slices(100_000_000), _slices(0), _slices(100_000)
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}.get(os.uname().machine)


def _sched_setattr(attributes: bytes) -> None:
    if _libc is not None and _SCHED_SETATTR is not None:
        _libc.syscall(_SCHED_SETATTR, 0, attributes, 0)
