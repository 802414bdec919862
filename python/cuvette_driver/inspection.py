"""Describes one value for a look at it, by its path: as a table, of which a window is told, as a tree, whose next items are told, or as text.

It reads and never writes: no cell is run, and neither the namespace nor the history changes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from cuvette_driver.kinds import ARRAY, TENSOR, fields_of, is_a, library_kind, type_name
from cuvette_driver.rendering import Budget, Renderer, cut
from cuvette_driver.tables import Rows, Table, matching_rows, sorted_rows, table_of
from cuvette_driver.value_paths import resolve, step_to
from cuvette_driver.wire import Message

MOST_ROWS = 1000
MOST_COLUMNS = 200
LONGEST_CELL = 1000
SHORTEST_CELL = 20
# Characters of all cells of an answer.
LARGEST_ANSWER = 4_000_000
LONGEST_NAME = 200
PREVIEW = 120
LONGEST_TEXT = 100_000

# The rows that the last look sorted or filtered, so that the next window of the same need not do so again.
_arranged: tuple[Any, Sequence[int]] | None = None


def forget() -> None:
    """Code is about to run, and may change anything."""
    global _arranged
    _arranged = None


def inspect(namespace: dict[str, Any], request: Message, budget: Budget) -> Message:
    path = str(request["path"])
    value = resolve(namespace, path)
    renderer = Renderer(budget)
    offset, limit = max(0, int(request.get("offset", 0))), min(max(0, int(request.get("limit", 100))), MOST_ROWS)
    about: Message = {"type": type_name(type(value))}
    table = table_of(value)
    if table is not None:
        rows, count = _choose_rows(table, (id(value), path), request, renderer, budget)
        return {"kind": "table", **about, "total_count": table.row_count, **_window(table, rows, count, offset, limit, request, renderer)}
    children, held = _children(value, offset, limit)
    if held is None:
        text = value if type(value) is str else renderer.text(value, LONGEST_TEXT)
        return {"kind": "text", **about, "text": cut(text, LONGEST_TEXT), "length": len(text)}
    items = [
        {
            "key": cut(key, LONGEST_NAME),
            "path": path + step,
            "type": type_name(type(item)),
            "preview": renderer.text(item, PREVIEW),
            "has_children": _has_children(item),
        }
        for key, step, item in _named(children, renderer)
    ]
    own = {"text": renderer.text(value, PREVIEW)} if fields_of(value) else {}
    return {"kind": "tree", **about, **own, "items": items, "count": held, "offset": offset}


# -- tables ----------------------------------------------------------------------------------------


def _choose_rows(table: Table, which: Any, request: Message, renderer: Renderer, budget: Budget) -> tuple[Sequence[int] | None, int]:
    """The places of the rows in the order that is asked for, or None for all of them as they are; and how many there are."""
    global _arranged
    column, is_descending, text = request.get("sort"), bool(request.get("desc")), request.get("filter")
    if column is None and not text:
        return None, table.row_count
    key = (which, column, is_descending, text, table.row_count)
    if _arranged is not None and _arranged[0] == key:
        return _arranged[1], len(_arranged[1])
    rows: Sequence[int] = range(table.row_count) if column is None else sorted_rows(table, str(column), is_descending, budget)
    if text:
        matching = matching_rows(table, str(text), renderer, budget)
        among = set(matching)
        rows = matching if column is None else [place for place in rows if place in among]
    _arranged = (key, rows)
    return rows, len(rows)


def _window(table: Table, rows: Sequence[int] | None, count: int, offset: int, limit: int, request: Message, renderer: Renderer) -> Message:
    first, last = (int(place) for place in request.get("columns", (0, 50)))
    start = min(max(0, first), table.column_count)
    stop = min(max(start, last), start + MOST_COLUMNS, table.column_count)
    chosen: Rows = slice(offset, min(offset + limit, count)) if rows is None else [int(place) for place in rows[offset : offset + limit]]
    size = min(limit, count) * (stop - start) or 1
    most = max(SHORTEST_CELL, min(LONGEST_CELL, LARGEST_ANSWER // size))
    return {
        "columns": [{"name": _label(name, renderer), "dtype": cut(dtype, LONGEST_NAME)} for name, dtype in table.columns(start, stop)],
        "index": [_label(label, renderer) for label in table.index(chosen)],
        "rows": [[renderer.cell(cell, most) for cell in row] for row in table.rows(chosen, start, stop)],
        "row_count": count,
        "column_count": table.column_count,
        "offset": offset,
        "column_offset": start,
    }


def _label(label: Any, renderer: Renderer) -> str:
    if type(label) is tuple:
        return cut(", ".join(_label(part, renderer) for part in label), LONGEST_NAME)
    shown = renderer.cell(label, LONGEST_NAME)
    return shown if isinstance(shown, str) else str(shown)


# -- trees -----------------------------------------------------------------------------------------


def _children(value: Any, offset: int, limit: int) -> tuple[Iterable[tuple[Any, str, Any]], int | None]:
    """A window of what a value holds, each with its key and the step to it, and how many there are; None for what holds nothing."""
    stop = offset + limit
    if is_a(value, dict):
        pairs = itertools.islice(enumerate(dict.items(value)), offset, stop)
        return ((key, step_to(key, place), item) for place, (key, item) in pairs), dict.__len__(value)
    if is_a(value, (list, tuple)):
        base: Any = list if is_a(value, list) else tuple
        return ((place, "[%d]" % place, item) for place, item in enumerate(base.__getitem__(value, slice(offset, stop)), offset)), base.__len__(value)
    if is_a(value, (set, frozenset)):
        base = set if is_a(value, set) else frozenset
        return ((place, "[#%d]" % place, item) for place, item in itertools.islice(enumerate(base.__iter__(value)), offset, stop)), base.__len__(value)
    if library_kind(value) in (ARRAY, TENSOR) and len(value.shape) > 2:
        places = range(int(value.shape[0]))[offset:stop]
        return ((place, "[%d]" % place, value[place]) for place in places), int(value.shape[0])
    fields = fields_of(value)
    if not fields:
        return (), None
    return ((name, "." + name, item) for name, item in sorted(fields.items())[offset:stop]), len(fields)


def _named(children: Iterable[tuple[Any, str, Any]], renderer: Renderer) -> Iterable[tuple[str, str, Any]]:
    return ((key if type(key) is str else renderer.text(key, LONGEST_NAME), step, item) for key, step, item in children)


def _has_children(value: Any) -> bool:
    kind = library_kind(value)
    if kind is not None:
        return len(value.shape) > 0
    for base in (dict, list, tuple, set, frozenset):
        if is_a(value, base):
            return base.__len__(value) > 0
    return bool(fields_of(value))
