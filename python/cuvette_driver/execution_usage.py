"""Measures the processor time and peak memory of one execution, in the process that runs it."""

from __future__ import annotations

import os
import resource

from cuvette_driver.processes import RSS_UNIT
from cuvette_driver.wire import Message


def begin() -> tuple[float, int]:
    try:
        # Resets the peak memory that getrusage reports for this process to what it uses now.
        marks = os.open("/proc/self/clear_refs", os.O_WRONLY | os.O_CLOEXEC)
        os.write(marks, b"5")
        os.close(marks)
    except OSError:
        pass
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return _cpu(own, children), children.ru_maxrss


def since(before: tuple[float, int]) -> Message:
    cpu, children_peak = before
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = max(own.ru_maxrss, children.ru_maxrss if children.ru_maxrss > children_peak else 0)
    return {"cpu": max(0.0, _cpu(own, children) - cpu), "peak": peak * RSS_UNIT}


def _cpu(own: resource.struct_rusage, children: resource.struct_rusage) -> float:
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
