"""Hooks into the import system: sets matplotlib's backend when it is first imported, and asks the server for packages that are missing.

A package is asked for only at an import statement that the user wrote, that nothing around it would catch,
in the main thread; the import then goes on where it stood, and no code runs twice.
"""

from __future__ import annotations

import ast
import dis
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import os
import sys
import threading
import types
from collections.abc import Sequence
from typing import Any, Callable

from cuvette_driver import figures

IMPORT_NAME = dis.opmap["IMPORT_NAME"]
# `except*` has a node of its own from Python 3.11 on.
TRIES: tuple[type[ast.Try], ...] = (ast.Try, getattr(ast, "TryStar", ast.Try))
CATCHES_IMPORT_ERRORS = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


def watch_matplotlib() -> None:
    sys.meta_path.insert(0, _MatplotlibWatcher())


def install_missing(is_user_code: Callable[[str], bool], ask: Callable[[str], dict[str, Any]]) -> None:
    sys.meta_path.append(_MissingPackages(is_user_code, ask))


class _MatplotlibWatcher(importlib.abc.MetaPathFinder):
    def __init__(self) -> None:
        self._busy = False

    def find_spec(self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if name != "matplotlib" or self._busy:
            return None
        self._busy = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._busy = False
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_and_set_backend(module: types.ModuleType) -> None:
            load(module)
            if "MPLBACKEND" not in os.environ:
                module.rcParams["backend"] = figures.BACKEND

        spec.loader.exec_module = load_and_set_backend  # type: ignore[method-assign]
        return spec


class _MissingPackages(importlib.abc.MetaPathFinder):
    """Is the last finder: what reaches it, no other finder knows."""

    def __init__(self, is_user_code: Callable[[str], bool], ask: Callable[[str], dict[str, Any]]) -> None:
        self._is_user_code = is_user_code
        self._ask = ask
        self._asked: set[str] = set()
        self._busy = False

    def find_spec(self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if self._busy or name in self._asked or threading.current_thread() is not threading.main_thread():
            return None
        if not self._is_wanted(sys._getframe(1)):
            return None
        self._busy = True
        try:
            return self._install(name, path)
        finally:
            self._busy = False

    def _install(self, name: str, path: Sequence[str] | None) -> importlib.machinery.ModuleSpec | None:
        answer = self._ask(name)
        for folder in answer.get("paths") or ():
            if folder not in sys.path:
                sys.path.append(folder)
        if not answer.get("installed"):
            self._asked.add(name)
            hint = answer.get("hint")
            if hint:
                raise ModuleNotFoundError("No module named %r. %s" % (name, hint), name=name)
            return None
        importlib.invalidate_caches()
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path)
            if spec is not None:
                return spec
        return None

    def _is_wanted(self, frame: types.FrameType | None) -> bool:
        """Says whether an import statement of user code leads here straight, and no user code around it expects failure."""
        while frame is not None and _is_import_machinery(frame):
            frame = frame.f_back
        if frame is None or not self._is_user_code(frame.f_code.co_filename):
            return False
        if frame.f_code.co_code[frame.f_lasti] != IMPORT_NAME:
            return False
        while frame is not None:
            if self._is_user_code(frame.f_code.co_filename) and _is_guarded(frame):
                return False
            frame = frame.f_back
        return True


def _is_import_machinery(frame: types.FrameType) -> bool:
    return frame.f_code.co_filename.startswith("<frozen importlib") or frame.f_code.co_filename == importlib.util.__file__


def _is_guarded(frame: types.FrameType) -> bool:
    """Says whether a try with a fitting handler, or contextlib.suppress, surrounds the line that this frame is at."""
    source = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return False  # A cell with magics is not plain Python, and is not looked into.
    line = frame.f_lineno
    for node in ast.walk(tree):
        if isinstance(node, TRIES):
            is_expected = any(_catches(handler.type) for handler in node.handlers)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            is_expected = any(_suppresses(item.context_expr) for item in node.items)
        else:
            continue
        if is_expected and _spans(node.body, line):
            return True
    return False


def _spans(body: list[ast.stmt], line: int) -> bool:
    return bool(body) and body[0].lineno <= line <= (body[-1].end_lineno or body[-1].lineno)


def _catches(kind: ast.expr | None) -> bool:
    if kind is None:
        return True
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(_last_name(item) in CATCHES_IMPORT_ERRORS for item in kinds)


def _suppresses(expression: ast.expr) -> bool:
    return isinstance(expression, ast.Call) and _last_name(expression.func) == "suppress" and any(map(_catches, expression.args))


def _last_name(expression: ast.expr) -> str | None:
    if isinstance(expression, ast.Attribute):
        return expression.attr
    return expression.id if isinstance(expression, ast.Name) else None
