"""Keeps torch from the processor's matrix unit (Intel AMX) where a product in bfloat16 ends the process with SIGILL, as on some virtual machines."""

from __future__ import annotations

import os
import signal

import torch

# What oneDNN, which computes torch's products on processors, may use at the most; it is read at the first product.
SETTING = "ONEDNN_MAX_CPU_ISA"
WITHOUT_MATRIX_UNIT = "AVX512_CORE_BF16"


def avoid_if_broken() -> None:
    """Must be called before torch computes anything."""
    if SETTING not in os.environ and is_named() and not is_usable():
        os.environ[SETTING] = WITHOUT_MATRIX_UNIT


def is_named() -> bool:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            return any(line.startswith("flags") and " amx_tile" in line for line in info)
    except OSError:
        return False


def is_usable() -> bool:
    """Tries a product in a child, because the kernel ends whoever uses a unit that does not work."""
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGILL, signal.SIG_DFL)
            ones = torch.ones(64, 64, dtype=torch.bfloat16)
            torch.mm(ones, ones)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGILL)
