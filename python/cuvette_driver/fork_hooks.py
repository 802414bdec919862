"""Holds back the hooks that libraries register for forks, until there is a process that user code runs in.

The template and the keeper fork without threads and without user code, so nothing needs to be put right there;
calling every hook at each of their forks would copy most of a megabyte of memory into every keeper.
"""

from __future__ import annotations

import os
from typing import Any

_register = os.register_at_fork
# These only free locks that another thread may hold; neither the template nor the keeper has another thread.
NOT_NEEDED = ("threading", "logging")

_held: list[dict[str, Any]] = []


def hold() -> None:
    def keep(**hooks: Any) -> None:
        _held.append(hooks)

    os.register_at_fork = keep


def release() -> None:
    """Registers the hooks in the worker, and calls those for the child of the fork that made it."""
    os.register_at_fork = _register
    for hooks in _held:
        _register(**hooks)
        hook = hooks.get("after_in_child")
        if hook is not None and getattr(hook, "__module__", None) not in NOT_NEEDED:
            try:
                hook()
            except Exception:
                pass  # Python itself ignores errors of fork hooks, too.
    _held.clear()
