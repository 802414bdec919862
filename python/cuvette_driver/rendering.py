"""Turns values into what JSON has, short enough to be shown: cells of tables, previews, texts. Time for the objects' own code is limited."""

from __future__ import annotations

import itertools
import math
import time
from typing import Any

from cuvette_driver.kinds import library_kind, root_module, type_name

MARK = "…"
# JavaScript's numbers are exact up to here.
LARGEST_NUMBER = 2**53 - 1
# Converting longer integers to text takes too long.
MOST_BITS = 1000
MOST_ITEMS = 20
DEEPEST = 4
# Their str() is short, and shows what they are better than their repr().
SHOWN_BY_STR = {"datetime", "decimal", "fractions", "uuid", "pandas", "numpy"}
BRACKETS: dict[type, tuple[str, str]] = {list: ("[", "]"), tuple: ("(", ")"), set: ("{", "}"), frozenset: ("{", "}")}


class TooLong(Exception):
    """What was asked for takes longer than it may."""


class Budget:
    """The time that an answer may take. Once it is used up, no more code of objects is run."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        self.is_spent = False

    def check(self) -> None:
        if time.monotonic() > self._deadline:
            raise TooLong


class Renderer:
    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    def cell(self, value: Any, most: int) -> Any:
        """A text, a number, a boolean or None."""
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is int and -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
            return value
        if kind is float:
            return value if math.isfinite(value) else "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"
        if kind is str:
            return cut(value, most)
        if (
            root_module(kind) == "numpy"
            and library_kind(value) is None
            and value.dtype.kind in "biufU"
            and type(plain := value.item()) in (bool, int, float, str)
        ):
            return self.cell(plain, most)
        return self.text(value, most)

    def text(self, value: Any, most: int) -> str:
        """A bounded repr(): whatever the object's own code does, this ends, with what can be said of it."""
        kind = type(value)
        if self._budget.is_spent:
            return "<%s: not shown, because the time was up>" % type_name(kind)
        try:
            return cut(self._represent(value, most, DEEPEST), most)
        except KeyboardInterrupt:
            self._budget.is_spent = True
            return "<%s: showing it took too long>" % type_name(kind)
        except BaseException as error:
            return "<%s: its __repr__ raised %s>" % (type_name(kind), type_name(type(error)))

    def _represent(self, value: Any, most: int, depth: int) -> str:
        kind = type(value)
        if kind is int and value.bit_length() > MOST_BITS:
            return "<an int of %s bits>" % format(value.bit_length(), ",")
        if kind in (str, bytes, bytearray):
            return repr(value[:most]) + (MARK if len(value) > most else "")
        if kind is dict:
            pairs = ("%s: %s" % (self._represent(key, most, depth - 1), self._represent(item, most, depth - 1)) for key, item in value.items())
            return "{%s}" % _joined(pairs, len(value), depth)
        if kind in BRACKETS and (value or kind in (list, tuple)):
            before, after = BRACKETS[kind]
            items = _joined((self._represent(item, most, depth - 1) for item in value), len(value), depth)
            return before + items + ("," if kind is tuple and len(value) == 1 else "") + after
        if library_kind(value) is not None:
            return summary(value)
        return str.__str__(str(value) if root_module(kind) in SHOWN_BY_STR else repr(value))


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: max(0, most - 1)] + MARK


def summary(value: Any) -> str:
    """What a table or an array is, in place of what is in it."""
    return "%s %s" % (type_name(type(value)).rpartition(".")[2], "×".join(str(int(side)) for side in value.shape) or "of one value")


def _joined(parts: Any, count: int, depth: int) -> str:
    if depth <= 0 and count:
        return MARK
    shown = list(itertools.islice(parts, MOST_ITEMS))
    return ", ".join([*shown, "%s %d more" % (MARK, count - MOST_ITEMS)] if count > MOST_ITEMS else shown)
