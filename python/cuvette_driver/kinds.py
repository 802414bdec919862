"""Says what a value is without running its code: its type's name, which library's kind it is, and the fields that an object holds."""

from __future__ import annotations

import types
from typing import Any

# Read from `type` itself, because a metaclass may answer for these names with code of its own.
_module_of, _name_of, _qualified_name_of, _mro_of, _dict_of = (
    type.__dict__[name].__get__ for name in ("__module__", "__name__", "__qualname__", "__mro__", "__dict__")
)

# By the first part of the module and the name of a class, or of one that it inherits from.
FRAME, SERIES, POLARS, ARROW, ARRAY, TENSOR = "frame", "series", "polars", "arrow", "array", "tensor"
LIBRARY_KINDS = {
    ("pandas", "DataFrame"): FRAME,
    ("pandas", "Series"): SERIES,
    ("polars", "DataFrame"): POLARS,
    ("pyarrow", "Table"): ARROW,
    ("pyarrow", "RecordBatch"): ARROW,
    ("numpy", "ndarray"): ARRAY,
    ("torch", "Tensor"): TENSOR,
    ("jaxlib", "ArrayImpl"): TENSOR,
}
# Their fields are no data of the user's.
WITHOUT_FIELDS = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType)


def is_a(value: object, kinds: type | tuple[type, ...]) -> bool:
    """As isinstance(), which asks an object for its __class__."""
    return issubclass(type(value), kinds)


def root_module(kind: type) -> str:
    return str(_module_of(kind)).partition(".")[0]


def type_name(kind: type) -> str:
    module = str(_module_of(kind))
    return str(_name_of(kind)) if module == "builtins" else "%s.%s" % (module, _qualified_name_of(kind))


def library_kind(value: object) -> str | None:
    """Which of the libraries' kinds of tables and arrays a value is, if any."""
    for base in _mro_of(type(value)):
        found = LIBRARY_KINDS.get((root_module(base), _name_of(base)))
        if found is not None:
            return found
    return None


def fields_of(value: object) -> dict[str, Any]:
    """The fields that an object holds in its __dict__ and its slots; properties, which run code, are not among them."""
    kind = type(value)
    if is_a(value, WITHOUT_FIELDS) or root_module(kind) == "builtins":
        return {}
    found: dict[str, Any] = {}
    for base in reversed(_mro_of(kind)):
        for name, descriptor in list(_dict_of(base).items()):
            if name == "__dict__" and type(descriptor) is types.GetSetDescriptorType:
                held = descriptor.__get__(value)
                found.update((key, item) for key, item in list(held.items()) if type(key) is str)
            elif type(descriptor) is types.MemberDescriptorType and not name.startswith("__"):
                try:
                    found[name] = descriptor.__get__(value)
                except AttributeError:
                    pass  # A slot that is not set.
    return found
