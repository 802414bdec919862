"""Processor time and peak memory of one execution, measured by the process that ran it."""

from __future__ import annotations

import resource
import sys

from cuvette_driver.wire import Message

UNIT = 1 if sys.platform == "darwin" else 1024


def begin() -> tuple[float, int]:
    try:
        # Sets the kernel's high-water mark of this process back to what it uses now.
        with open("/proc/self/clear_refs", "wb", buffering=0) as file:
            file.write(b"5")
    except OSError:
        pass
    return _cpu(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


def since(before: tuple[float, int]) -> Message:
    cpu, children_peak = before
    largest_child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {"cpu": max(0.0, _cpu() - cpu), "peak": max(_own_peak(), largest_child * UNIT if largest_child > children_peak else 0)}


def _cpu() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _own_peak() -> int:
    try:
        with open("/proc/self/status", "rb", buffering=0) as file:
            text = file.read(8192)
        start = text.index(b"VmHWM:")
        return int(text[start + 6 : text.index(b"kB", start)]) * 1024
    except (OSError, ValueError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT
