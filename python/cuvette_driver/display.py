"""Represents objects and errors for whoever reads the output: MIME bundles as Jupyter has them, bounded reprs, and tracebacks."""

from __future__ import annotations

import base64
import io
import math
import os
import sys
import traceback
import types
from typing import Any, Callable

from cuvette_driver.wire import Message

# Beyond this many pixels on a side, models scale an image down themselves; they are sent a smaller copy.
LARGEST_SIDE = 1568
MOST_ITEMS = 1000
COLLECTIONS = (list, tuple, set, frozenset, dict)
REPRESENTATIONS = {
    "text/html": "_repr_html_",
    "text/markdown": "_repr_markdown_",
    "text/latex": "_repr_latex_",
    "image/svg+xml": "_repr_svg_",
    "image/png": "_repr_png_",
    "image/jpeg": "_repr_jpeg_",
    "application/json": "_repr_json_",
}
DRIVER = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Publisher:
    """Sends what code shows, from the one process that may: a copy that user code forks off is silent."""

    def __init__(self, send: Callable[[Message], None]) -> None:
        self._send: Callable[[Message], None] | None = send
        self.pid = os.getpid()

    def silence(self) -> None:
        self._send = None

    def display(self, data: dict[str, Any], metadata: dict[str, Any] | None = None, display_id: str | None = None, update: bool = False) -> None:
        event: Message = {"ev": "display", **self._bundle(data, metadata)}
        if display_id is not None:
            event.update(display_id=display_id, update=update)
        self._emit(event)

    def result(self, data: dict[str, Any], metadata: dict[str, Any] | None = None) -> None:
        self._emit({"ev": "result", **self._bundle(data, metadata)})

    def error(self, error: BaseException, lines: list[str] | None = None) -> None:
        lines = lines or traceback_of(error)
        if self._send is None:
            print("\n".join(lines), file=sys.stderr)
        self._emit({"ev": "error", "ename": type(error).__name__, "evalue": message_of(error), "traceback": lines})

    def _bundle(self, data: dict[str, Any], metadata: dict[str, Any] | None) -> Message:
        plain = {mime: _plain(value) for mime, value in data.items()}
        bundle: Message = {"data": plain, "metadata": _plain(metadata or {})}
        for mime in ("image/png", "image/jpeg"):
            preview = smaller(data[mime]) if mime in data else None
            if preview is not None:
                bundle["preview"] = base64.b64encode(preview).decode("ascii")
        return bundle

    def _emit(self, event: Message) -> None:
        if self._send is not None:
            self._send(event)


def bundle_of(value: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """Collects the representations that an object offers of itself, where IPython is not there to do so."""
    data: dict[str, Any] = {"text/plain": safe_repr(value)}
    metadata: dict[str, Any] = {}
    if isinstance(value, type):
        return data, metadata
    for mime, method in REPRESENTATIONS.items():
        shown = _ask(value, method)
        if isinstance(shown, tuple) and len(shown) == 2:
            shown, metadata[mime] = shown
        if shown is not None:
            data[mime] = shown
    more = _ask(value, "_repr_mimebundle_")
    if isinstance(more, tuple) and len(more) == 2:
        more = more[0]
    if isinstance(more, dict):
        data.update(more)
    return data, metadata


def _ask(value: object, method: str) -> Any:
    try:
        ask = getattr(type(value), method, None)
        return None if ask is None else ask(value)
    except Exception:
        return None


def safe_repr(value: object) -> str:
    """Gives repr(), with long collections shortened; an object whose __repr__ fails is described from outside."""
    try:
        if isinstance(value, COLLECTIONS) and type(value) in COLLECTIONS and len(value) > MOST_ITEMS:
            return repr(_shortened(value))
        return str.__str__(repr(value))
    except Exception as error:
        return "<%s object at %#x: its __repr__ raised %s: %s>" % (type(value).__name__, id(value), type(error).__name__, message_of(error))


class _More:
    def __init__(self, count: int) -> None:
        self.count = count

    def __repr__(self) -> str:
        return "... and %s more" % format(self.count, ",")


def _shortened(value: Any) -> Any:
    more = _More(len(value) - MOST_ITEMS)
    first = [item for item, _ in zip(value, range(MOST_ITEMS))]
    if type(value) is dict:
        return {**{key: value[key] for key in first}, more: ...}
    if type(value) in (set, frozenset):
        return type(value)([*first, more])
    return type(value)([*first, more])


def message_of(error: BaseException) -> str:
    try:
        return str(error.msg) if isinstance(error, SyntaxError) else str(error)
    except BaseException:
        return "(its message cannot be shown)"


def traceback_of(error: BaseException) -> list[str]:
    try:
        hide_driver(error)
        lines = traceback.format_exception(type(error), error, error.__traceback__)
    except BaseException:
        return ["%s: %s" % (type(error).__name__, message_of(error))]
    return "".join(lines).rstrip("\n").split("\n")


def hide_driver(error: BaseException) -> None:
    """Takes the driver's own frames out of an error's traceback, and of those that led to it."""
    seen: dict[int, BaseException] = {}
    waiting: list[Any] = [error]
    while waiting:
        error = waiting.pop()
        if not isinstance(error, BaseException) or id(error) in seen:
            continue
        seen[id(error)] = error
        error.__traceback__ = _without_driver(error.__traceback__)
        waiting += (error.__cause__, error.__context__, *_members(error))


def _members(error: BaseException) -> Any:
    members = getattr(error, "exceptions", ())
    return members if isinstance(members, tuple) else ()


def _without_driver(trace: types.TracebackType | None) -> types.TracebackType | None:
    frames = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(DRIVER):
            frames.append(trace)
        trace = trace.tb_next
    shortened = None
    for frame in reversed(frames):
        shortened = types.TracebackType(shortened, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return shortened


def smaller(image: Any) -> bytes | None:
    """Makes a smaller copy of a PNG or JPEG that is too large for a model; None if it is not too large, or no copy can be made."""
    raw = base64.b64decode(image) if isinstance(image, str) else bytes(image)
    if raw[:8] == b"\x89PNG\r\n\x1a\n" and max(int.from_bytes(raw[16:20], "big"), int.from_bytes(raw[20:24], "big")) <= LARGEST_SIDE:
        return None
    try:
        from PIL import Image

        with Image.open(io.BytesIO(raw)) as picture:
            if max(picture.size) <= LARGEST_SIDE:
                return None
            kind = picture.format
            picture.thumbnail((LARGEST_SIDE, LARGEST_SIDE))
            target = io.BytesIO()
            picture.save(target, format=kind)
            return target.getvalue()
    except Exception:
        return None


def _plain(value: Any) -> Any:
    """Converts to what JSON has: bytes become base64, and what JSON lacks becomes text."""
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (str, int)) or value is None:
        return value
    return value if isinstance(value, float) and math.isfinite(value) else str(value)
