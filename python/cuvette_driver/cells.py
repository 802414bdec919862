"""Compiles and evaluates one cell of plain Python: statements, then the last expression, with await allowed at the top."""

from __future__ import annotations

import ast
import asyncio
import inspect
import types
from typing import Any

FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


class Cell:
    """A parsed cell; parsing raises what the compiler raises."""

    def __init__(self, code: str, name: str) -> None:
        self._name = name
        self._tree = compile(code, name, "exec", ast.PyCF_ONLY_AST | FLAGS)
        self._last: ast.Expression | None = None
        body = self._tree.body
        if body and isinstance(body[-1], ast.Expr) and not _is_silenced(code):
            self._last = ast.Expression(body.pop().value)

    def evaluate(self, namespace: dict[str, Any]) -> Any:
        """Runs the cell; gives the value of its last expression, or None."""
        statements = compile(self._tree, self._name, "exec", FLAGS) if self._tree.body else None
        last = compile(self._last, self._name, "eval", FLAGS) if self._last else None
        if statements is not None:
            _evaluate(statements, namespace)
        return None if last is None else _evaluate(last, namespace)


def _is_silenced(code: str) -> bool:
    """A semicolon after the last expression hides its value, as in IPython."""
    return code.rstrip().endswith(";")


def _evaluate(code: types.CodeType, namespace: dict[str, Any]) -> Any:
    value = eval(code, namespace)
    if code.co_flags & inspect.CO_COROUTINE:
        return _loop().run_until_complete(value)
    return value


_kept_loop: asyncio.AbstractEventLoop | None = None


def _loop() -> asyncio.AbstractEventLoop:
    """One event loop for the whole session, so that what a cell starts on it is there for the next."""
    global _kept_loop
    if _kept_loop is None or _kept_loop.is_closed():
        _kept_loop = asyncio.new_event_loop()
        asyncio.set_event_loop(_kept_loop)
    return _kept_loop
