"""The user's variables, as an agent wants to see them: name, type, shape, size. Runs no code of theirs that it can avoid."""

from __future__ import annotations

import sys
from typing import Any

from cuvette_driver.display import safe_repr
from cuvette_driver.wire import Message

# Only these libraries' own properties are asked for; any other object may answer with code of its own.
TRUSTED = {"numpy", "pandas", "torch", "polars", "scipy", "jax", "jaxlib", "pyarrow", "xarray"}
SHOWN = (bool, int, float, complex, str, bytes, type(None))
PREVIEW = 80


def describe(shell: Any) -> list[Message]:
    names = sorted(name for name in list(shell.namespace) if not shell.is_hidden(name))
    return [_describe(name, shell.namespace[name]) for name in names]


def _describe(name: str, value: Any) -> Message:
    kind = type(value)
    entry: Message = {"name": name, "type": kind.__name__ if kind.__module__ == "builtins" else "%s.%s" % (kind.__module__, kind.__qualname__)}
    try:
        if kind.__module__.partition(".")[0] in TRUSTED:
            shape = getattr(value, "shape", None)
            entry["shape"] = None if shape is None else [int(side) for side in shape]
            entry["dtype"] = str(value.dtype) if hasattr(value, "dtype") else None
            entry["bytes"] = _bytes_of(value)
        elif kind in (list, tuple, dict, set, frozenset, str, bytes, bytearray, range):
            entry["length"] = len(value)
            entry["bytes"] = sys.getsizeof(value)
        else:
            entry["bytes"] = object.__sizeof__(value)
        if kind in SHOWN:
            text = safe_repr(value[:PREVIEW] if kind in (str, bytes) else value)
            entry["preview"] = text if len(text) <= PREVIEW else text[: PREVIEW - 3] + "..."
    except Exception:
        pass
    return {key: item for key, item in entry.items() if item is not None}


def _bytes_of(value: Any) -> int | None:
    usage = getattr(value, "memory_usage", None)
    if callable(usage):
        total = usage(deep=False)
        return int(total if isinstance(total, int) else total.sum())
    size = getattr(value, "nbytes", None)
    return int(size) if isinstance(size, int) else None
