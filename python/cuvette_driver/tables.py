"""Reads values as tables, a window at a time: frames of pandas, polars and pyarrow, arrays, lists of dicts, dicts of lists.

Only the rows and columns that are asked for are touched. To sort or filter, one column or all rows have to be read, in pieces, within
the budget of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Union

from cuvette_driver.kinds import ARRAY, ARROW, FRAME, POLARS, SERIES, TENSOR, is_a, library_kind, type_name
from cuvette_driver.rendering import Budget, Renderer

# Rows of a list of dicts by which its columns are found.
LOOKED_AT = 1000
MOST_KEYS = 1000
# Sorting more than this cannot be interrupted soon enough.
MOST_SORTED = 5_000_000
AT_ONCE = 5000
MOST_FILTERED_COLUMNS = 200
LONGEST_FILTERED = 1000
# Most cells of most tables; they look the same without being rendered.
PLAIN = (str, int, float)

# A run of rows, or the places of some.
Rows = Union[slice, Sequence[int]]


class Unsortable(Exception):
    """The table has too many rows to be sorted for a look, or no such column."""


class Table(Protocol):
    row_count: int
    column_count: int

    def columns(self, start: int, stop: int) -> list[tuple[Any, str]]:
        """Names and types."""

    def index(self, rows: Rows) -> list[Any]: ...

    def rows(self, rows: Rows, start: int, stop: int) -> list[Sequence[Any]]: ...


def table_of(value: Any) -> Table | None:
    """The value as a table, or None if it is none."""
    kind = library_kind(value)
    if kind == FRAME:
        return _Frame(value)
    if kind == SERIES:
        return _Frame(value.to_frame("value" if value.name is None else value.name))
    if kind == POLARS:
        return _Polars(value)
    if kind == ARROW:
        return _Arrow(value)
    if kind in (ARRAY, TENSOR) and 1 <= len(value.shape) <= 2:
        return _Array(value)
    if is_a(value, (list, tuple)) and type(value) in (list, tuple):
        return _Records(value) if _are_records(value) else None
    return _Columns(value) if type(value) is dict and _are_columns(value) else None


class _Frame:
    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.row_count, self.column_count = (int(side) for side in frame.shape)

    def columns(self, start: int, stop: int) -> list[tuple[Any, str]]:
        names = list(self._frame.columns[start:stop])
        return [(name, str(dtype)) for name, dtype in zip(names, list(self._frame.iloc[:0, start:stop].dtypes))]

    def index(self, rows: Rows) -> list[Any]:
        return list(self._frame.index[rows])

    def rows(self, rows: Rows, start: int, stop: int) -> list[Sequence[Any]]:
        window = self._frame.iloc[rows, start:stop]
        columns = [window.iloc[:, place].tolist() for place in range(window.shape[1])]
        return list(zip(*columns)) if columns else [()] * len(window)

    def order(self, place: int, is_descending: bool) -> Sequence[int]:
        column = self._frame.iloc[:, place].reset_index(drop=True)
        try:
            return _places(column, is_descending)
        except TypeError:  # Values that cannot be compared with each other.
            return _places(column.map(str), is_descending)


def _places(column: Any, is_descending: bool) -> Sequence[int]:
    places: Sequence[int] = column.sort_values(ascending=not is_descending, kind="stable", na_position="last").index
    return places


class _Polars:
    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.row_count, self.column_count = frame.height, frame.width

    def columns(self, start: int, stop: int) -> list[tuple[Any, str]]:
        return [(name, str(dtype)) for name, dtype in zip(self._frame.columns[start:stop], self._frame.dtypes[start:stop])]

    def index(self, rows: Rows) -> list[Any]:
        return _numbers(rows, self.row_count)

    def rows(self, rows: Rows, start: int, stop: int) -> list[Sequence[Any]]:
        part = self._frame.select(self._frame.columns[start:stop])
        return list((part[rows] if isinstance(rows, slice) else part[list(rows)]).rows())


class _Arrow:
    def __init__(self, table: Any) -> None:
        self._table = table
        self.row_count, self.column_count = table.num_rows, table.num_columns

    def columns(self, start: int, stop: int) -> list[tuple[Any, str]]:
        return [(field.name, str(field.type)) for field in (self._table.schema.field(place) for place in range(start, min(stop, self.column_count)))]

    def index(self, rows: Rows) -> list[Any]:
        return _numbers(rows, self.row_count)

    def rows(self, rows: Rows, start: int, stop: int) -> list[Sequence[Any]]:
        first, last, _ = rows.indices(self.row_count) if isinstance(rows, slice) else (0, 0, 1)
        columns = []
        for place in range(start, min(stop, self.column_count)):
            column = self._table.column(place)
            columns.append((column.slice(first, last - first) if isinstance(rows, slice) else column.take(list(rows))).to_pylist())
        return list(zip(*columns))


class _Array:
    """An array of one or two dimensions; one of records has a column for each of their fields."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self._fields: tuple[str, ...] | None = getattr(array.dtype, "names", None) if len(array.shape) == 1 else None
        self.row_count = int(array.shape[0])
        self.column_count = len(self._fields) if self._fields else int(array.shape[1]) if len(array.shape) == 2 else 1

    def columns(self, start: int, stop: int) -> list[tuple[Any, str]]:
        if self._fields:
            return [(name, str(self._array.dtype[name])) for name in self._fields[start:stop]]
        if len(self._array.shape) == 1:
            return [("value", str(self._array.dtype))][start:stop]
        return [(place, str(self._array.dtype)) for place in range(start, min(stop, self.column_count))]

    def index(self, rows: Rows) -> list[Any]:
        return _numbers(rows, self.row_count)

    def rows(self, rows: Rows, start: int, stop: int) -> list[Sequence[Any]]:
        part = self._array[rows if isinstance(rows, slice) else list(rows)]
        if self._fields:
            return list(zip(*(_values(part[name]) for name in self._fields[start:stop])))
        if len(self._array.shape) == 1:
            return [(value,)[start:stop] for value in _values(part)]
        return list(_values(part[:, start:stop]))


def _values(array: Any) -> Any:
    """As Python's own values; dates of numpy would become numbers."""
    if getattr(array.dtype, "kind", "") in ("m", "M"):
        return array.astype(str).tolist()
    return array.tolist()


class _Records:
    """A list of dicts: their keys are its columns."""

    def __init__(self, records: Sequence[Any]) -> None:
        self._records = records
        keys: dict[Any, type] = {}
        for record in records[:LOOKED_AT]:
            if type(record) is dict:
                for key in record:
                    keys.setdefault(key, type(record[key]))
        self._keys = list(keys.items())
        self.row_count, self.column_count = len(records), len(keys)

    def columns(self, start: int, stop: int) -> list[tuple[Any, str]]:
        return [(key, type_name(kind)) for key, kind in self._keys[start:stop]]

    def index(self, rows: Rows) -> list[Any]:
        return _numbers(rows, self.row_count)

    def rows(self, rows: Rows, start: int, stop: int) -> list[Sequence[Any]]:
        keys = [key for key, _ in self._keys[start:stop]]
        records = self._records[rows] if isinstance(rows, slice) else [self._records[place] for place in rows]
        return [[record.get(key) for key in keys] if type(record) is dict else [record, *([None] * (len(keys) - 1))] for record in records]


class _Columns:
    """A dict of lists that are all equally long."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self._columns = list(columns.items())
        self.row_count, self.column_count = len(self._columns[0][1]), len(self._columns)

    def columns(self, start: int, stop: int) -> list[tuple[Any, str]]:
        return [(name, type_name(type(column[0]))) for name, column in self._columns[start:stop]]

    def index(self, rows: Rows) -> list[Any]:
        return _numbers(rows, self.row_count)

    def rows(self, rows: Rows, start: int, stop: int) -> list[Sequence[Any]]:
        columns = [column[rows] if isinstance(rows, slice) else [column[place] for place in rows] for _, column in self._columns[start:stop]]
        return list(zip(*columns))


def _are_records(value: Sequence[Any]) -> bool:
    return len(value) > 0 and all(type(record) is dict and 0 < len(record) <= MOST_KEYS for record in value[:20])


def _are_columns(value: dict[Any, Any]) -> bool:
    if not 0 < len(value) <= MOST_KEYS:
        return False
    first = next(iter(value.values()))
    return type(first) in (list, tuple) and len(first) > 0 and all(type(column) in (list, tuple) and len(column) == len(first) for column in value.values())


def _numbers(rows: Rows, count: int) -> list[int]:
    return list(range(count)[rows]) if isinstance(rows, slice) else [int(place) for place in rows]


# -- sorting and filtering -------------------------------------------------------------------------


def place_of(table: Table, name: str) -> int:
    """The place of the first column of that name."""
    for place, (known, _) in enumerate(table.columns(0, table.column_count)):
        if str(known) == name:
            return place
    raise Unsortable("There is no column %s." % name)


def sorted_rows(table: Table, name: str, is_descending: bool, budget: Budget) -> Sequence[int]:
    """The places of all rows in the order of a column; what is missing comes last either way."""
    place = place_of(table, name)
    if table.row_count > MOST_SORTED:
        raise Unsortable("A table of %s rows is too long to be sorted for a look; sort it in code." % format(table.row_count, ","))
    if isinstance(table, _Frame):
        return table.order(place, is_descending)
    values: list[Any] = []
    for start in range(0, table.row_count, AT_ONCE):
        budget.check()
        values += [row[0] for row in table.rows(slice(start, start + AT_ONCE), place, place + 1)]
    missing = [row for row, value in enumerate(values) if _is_missing(value)]
    present = [row for row, value in enumerate(values) if not _is_missing(value)]
    try:
        present.sort(key=values.__getitem__, reverse=is_descending)
    except TypeError:  # Values that cannot be compared with each other.
        present.sort(key=lambda row: str(values[row]), reverse=is_descending)
    return present + missing


def _is_missing(value: Any) -> bool:
    return value is None or (type(value) is float and value != value)


def matching_rows(table: Table, text: str, renderer: Renderer, budget: Budget) -> list[int]:
    """The places of the rows that show a text in one of their cells, or in their index."""
    wanted = text.casefold()
    last = min(table.column_count, MOST_FILTERED_COLUMNS)

    def has(value: Any) -> bool:
        shown = value if type(value) in PLAIN else renderer.cell(value, LONGEST_FILTERED)
        return wanted in str(shown).casefold()

    found: list[int] = []
    for start in range(0, table.row_count, AT_ONCE):
        rows = slice(start, min(start + AT_ONCE, table.row_count))
        budget.check()
        for place, label, row in zip(range(rows.start, rows.stop), table.index(rows), table.rows(rows, 0, last)):
            if any(map(has, row)) or has(label):
                found.append(place)
    return found
