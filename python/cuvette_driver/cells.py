"""Compiles and evaluates one cell of plain Python: statements, then the last expression, with await allowed at the top."""

from __future__ import annotations

import ast
import asyncio
import inspect
import types
from collections.abc import Coroutine
from typing import Any

FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


class Cell:
    """A parsed cell; parsing raises what the compiler raises."""

    def __init__(self, code: str, name: str) -> None:
        self._name = name
        self._tree = self._compile(code, "exec", ast.PyCF_ONLY_AST)
        self._last: ast.Expression | None = None
        body = self._tree.body
        if body and isinstance(body[-1], ast.Expr) and not _is_silenced(code, body[-1]):
            self._last = ast.Expression(body.pop().value)

    def evaluate(self, namespace: dict[str, Any]) -> Any:
        """Runs the cell and gives the value of its last expression, or None."""
        parts = [self._compile(self._tree, "exec")] if self._tree.body else []
        if self._last is not None:
            parts.append(self._compile(self._last, "eval"))
        if any(map(_awaits, parts)):
            return run(_evaluate_async(parts, namespace))
        value = None
        for part in parts:
            value = eval(part, namespace)
        return value

    def _compile(self, source: Any, mode: str, flags: int = 0) -> Any:
        # Without dont_inherit, this module's own `from __future__ import annotations` would apply to user code.
        return compile(source, self._name, mode, flags | FLAGS, dont_inherit=True)


def _is_silenced(code: str, last: ast.Expr) -> bool:
    """A semicolon after the last expression hides its value, as in IPython."""
    lines = code.encode("utf-8").splitlines()
    return lines[(last.end_lineno or 1) - 1][last.end_col_offset :].lstrip().startswith(b";")


def _awaits(part: types.CodeType) -> bool:
    return bool(part.co_flags & inspect.CO_COROUTINE)


async def _evaluate_async(parts: list[types.CodeType], namespace: dict[str, Any]) -> Any:
    value = None
    for part in parts:
        value = eval(part, namespace)
        if _awaits(part):
            value = await value
    return value


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Runs a cell on the session's loop; one that is interrupted ends there, and does not go on in a later cell."""
    loop = _loop()
    task = loop.create_task(coroutine)
    try:
        loop.run_until_complete(asyncio.wait({task}))
    except (KeyboardInterrupt, SystemExit) as stop:
        if not task.done():
            task.cancel()
            loop.run_until_complete(asyncio.wait({task}))
        if task.cancelled():
            raise stop.with_traceback(_where_cancelled(task)) from None
    return task.result()


def _where_cancelled(task: asyncio.Task[Any]) -> types.TracebackType | None:
    """Finds the line of user code that was waiting."""
    try:
        task.result()
    except asyncio.CancelledError as error:
        return error.__traceback__
    return None


_kept_loop: asyncio.AbstractEventLoop | None = None


def _loop() -> asyncio.AbstractEventLoop:
    """Gives the one event loop of the session, so that what a cell starts on it is there for the next."""
    global _kept_loop
    if _kept_loop is None or _kept_loop.is_closed():
        _kept_loop = asyncio.new_event_loop()
        asyncio.set_event_loop(_kept_loop)
    return _kept_loop
