"""The few calls to the kernel that the standard library lacks. Elsewhere than on Linux they do nothing."""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36

LINE_BUFFERED = 1

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_stdout = None if _libc is None else ctypes.c_void_p.in_dll(_libc, "stdout")


def adopt_orphans() -> None:
    """From now on, a descendant whose parent ends becomes our child, so that it can be found and ended."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def name_process(name: str) -> None:
    _prctl(PR_SET_NAME, ctypes.c_char_p(name.encode()[:15]))


def buffer_c_output_by_line() -> None:
    """C code's own stdout goes to a pipe here, and would keep what it prints until its buffer is full."""
    if _libc is not None:
        _libc.setvbuf(_stdout, None, LINE_BUFFERED, ctypes.c_size_t(0))


def flush_c_output() -> None:
    if _libc is not None:
        _libc.fflush(_stdout)


def _prctl(option: int, value: object) -> None:
    if _libc is not None:
        _libc.prctl(option, value, 0, 0, 0)


def yield_to_others() -> None:
    """Asks for the processor in long turns: whoever wakes up for a short one goes first. For a process that is still starting."""
    _set_turn(100_000_000)


def take_turns() -> None:
    """The ordinary share again."""
    _set_turn(0)


def _set_turn(nanoseconds: int) -> None:
    number = {"x86_64": 314, "aarch64": 274}.get(os.uname().machine)
    if _libc is None or number is None:
        return
    attributes = struct.pack("=IIQiIQQQ", 48, 0, 0, 0, 0, nanoseconds, 0, 0)
    _libc.syscall(number, 0, attributes, 0)
