"""Finds the value that a path names, such as `df`, `config['layers'][3]` or `model.weights`, without running the objects' own code.

A step is a field, an index, a key that is a text, or `[#3]`: the third item, from 0, of what has no such keys.
"""

from __future__ import annotations

import itertools
import re
from ast import literal_eval
from typing import Any

from cuvette_driver.kinds import ARRAY, FRAME, SERIES, TENSOR, fields_of, is_a, library_kind

NAME = re.compile(r"[^\W\d]\w*")
STEP = re.compile(r"""\.(?P<field>[^\W\d]\w*)|\[(?P<index>-?\d+)\]|\[#(?P<place>\d+)\]|\[(?P<key>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]""")
LONGEST_KEY = 200


class NoSuchValue(Exception):
    """The path leads nowhere; the message says where it ends."""


def resolve(namespace: dict[str, Any], path: str) -> Any:
    name = NAME.match(path)
    if name is None:
        raise NoSuchValue("A path begins with the name of a variable, as in df or config['layers'][3]; this one is %r." % path)
    if name.group() not in namespace:
        raise NoSuchValue("There is no variable %s." % name.group())
    value, at = namespace[name.group()], name.end()
    while at < len(path):
        step = STEP.match(path, at)
        if step is None:
            raise NoSuchValue("After %s, the path has %r, which is no .field, [index] or ['key']." % (path[:at], path[at:]))
        try:
            value = _take(value, step)
        except (LookupError, TypeError, ValueError):
            raise NoSuchValue("%s has no %s." % (path[:at], step.group())) from None
        at = step.end()
    return value


def step_to(key: Any, place: int) -> str:
    """The step that leads to an item of a dict."""
    if type(key) is int:
        return "[%d]" % key
    if type(key) is str and len(key) <= LONGEST_KEY and STEP.fullmatch("[%r]" % key):
        return "[%r]" % key
    return "[#%d]" % place


def _take(value: Any, step: re.Match[str]) -> Any:
    if (field := step["field"]) is not None:
        return fields_of(value)[field]
    if (place := step["place"]) is not None:
        items = dict.values(value) if is_a(value, dict) else frozenset.__iter__(value) if is_a(value, frozenset) else set.__iter__(value)
        for item in itertools.islice(items, int(place), None):
            return item
        raise LookupError
    if step["key"] is not None:
        key = literal_eval(step["key"])
        return dict.__getitem__(value, key) if is_a(value, dict) else _column(value, key)
    index = int(step["index"])
    if is_a(value, dict):
        return dict.__getitem__(value, index)
    if is_a(value, (list, tuple)):
        return (list if is_a(value, list) else tuple).__getitem__(value, index)
    if library_kind(value) in (ARRAY, TENSOR):
        return value[index]
    if library_kind(value) == SERIES:
        return value.iloc[index]
    raise LookupError


def _column(value: Any, name: str) -> Any:
    if library_kind(value) != FRAME:
        raise LookupError
    return value[name]
