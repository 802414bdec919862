"""Lists the user's variables with their types, shapes and sizes. It avoids running code of the objects that it describes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from cuvette_driver.display import safe_repr
from cuvette_driver.kinds import root_module, type_name
from cuvette_driver.rendering import MOST_BITS
from cuvette_driver.wire import Message

if TYPE_CHECKING:
    from cuvette_driver.worker import Shell

# Only these libraries' own properties are asked for; any other object may answer with code of its own.
TRUSTED = {"numpy", "pandas", "torch", "polars", "scipy", "jax", "jaxlib", "pyarrow", "xarray"}
SHOWN = (bool, int, float, complex, str, bytes, type(None))
PREVIEW = 80


def describe(shell: Shell) -> list[Message]:
    found = [item for item in list(shell.namespace.items()) if isinstance(item[0], str) and not shell.is_hidden(item[0])]
    return [_describe(name, value) for name, value in sorted(found, key=lambda item: item[0])]


def _describe(name: str, value: Any) -> Message:
    kind = type(value)
    entry: Message = {"name": name, "type": type_name(kind)}
    try:
        if root_module(kind) in TRUSTED:
            shape = getattr(value, "shape", None)
            entry["shape"] = None if shape is None else [int(side) for side in shape]
            entry["dtype"] = str(value.dtype) if hasattr(value, "dtype") else None
            entry["bytes"] = _bytes_of(value)
        elif kind in (list, tuple, dict, set, frozenset, str, bytes, bytearray, range):
            entry["length"] = len(value)
            entry["bytes"] = sys.getsizeof(value)
        else:
            entry["bytes"] = object.__sizeof__(value)
        if kind in SHOWN and not (kind is int and value.bit_length() > MOST_BITS):
            text = safe_repr(value[:PREVIEW] if kind in (str, bytes) else value)
            entry["preview"] = text if len(text) <= PREVIEW else text[: PREVIEW - 3] + "..."
    except BaseException:
        pass  # Code of the object was run after all, and failed: what is known so far is listed.
    return {key: item for key, item in entry.items() if item is not None}


def _bytes_of(value: Any) -> int | None:
    usage = getattr(value, "memory_usage", None)
    if callable(usage):
        total = usage(deep=False)
        return int(total if isinstance(total, int) else total.sum())
    size = getattr(value, "nbytes", None)
    return int(size) if isinstance(size, int) else None
