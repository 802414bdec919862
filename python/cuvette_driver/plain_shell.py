"""Runs cells in a Python without IPython: shows the last expression, and displays objects by their own methods."""

from __future__ import annotations

import builtins
import linecache
import sys
import types
from typing import Any

from cuvette_driver import figures
from cuvette_driver.cells import Cell
from cuvette_driver.display import Publisher, bundle_of
from cuvette_driver.wire import Message


class PlainShell:
    is_ipython = False

    def __init__(self) -> None:
        self.module = types.ModuleType("__main__")
        self.module.__dict__["__builtins__"] = builtins
        self.namespace: dict[str, Any] = self.module.__dict__
        self._initial = frozenset({*self.namespace, "__annotations__", "_"})

    def attach(self, publisher: Publisher) -> None:
        self._publisher = publisher
        sys.modules["__main__"] = self.module
        vars(builtins)["display"] = self._display
        figures.attach(publisher)

    def warm(self) -> None:
        """Nothing here is slow the first time."""

    def is_hidden(self, name: str) -> bool:
        return name in self._initial

    def is_user_code(self, filename: str) -> bool:
        return filename.startswith("<cell ")

    def run(self, code: str, number: int) -> Message | None:
        name = "<cell %d>" % number
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        value = Cell(code, name).evaluate(self.namespace)
        if value is not None:
            self.namespace["_"] = value
            self._publisher.result(*bundle_of(value))
        return None

    def completions(self, code: str, cursor: int) -> Message | None:
        """There is no completion of its own."""
        return None

    def _display(self, *values: object) -> None:
        for value in values:
            self._publisher.display(*bundle_of(value))
