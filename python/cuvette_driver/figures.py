"""Publishes matplotlib's figures as PNG when they are shown and at the end of a cell, with the files that they were saved to."""

from __future__ import annotations

import io
import itertools
import os
import sys
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from cuvette_driver.display import Publisher

BACKEND = "module://cuvette_driver.figure_backend"
LARGEST_SIDE = 3000


class Shown(NamedTuple):
    display_id: str
    data: dict[str, Any]


_publisher: Publisher
_numbers = itertools.count(1)
# Since a figure last changed: the files that it was saved to, and what it was shown as in this cell.
_saved: weakref.WeakKeyDictionary[Any, list[str]] = weakref.WeakKeyDictionary()
_shown: weakref.WeakKeyDictionary[Any, Shown] = weakref.WeakKeyDictionary()


def attach(publisher: Publisher) -> None:
    global _publisher
    _publisher = publisher


def are_open() -> bool:
    """Says whether there are figures to show that are drawn through this backend."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    # rcParams["backend"] would choose a backend; the dictionary below it only tells.
    return pyplot is not None and bool(pyplot.get_fignums()) and dict.__getitem__(sys.modules["matplotlib"].rcParams, "backend") == BACKEND


def show(*_: Any, **__: Any) -> None:
    """Shows and closes every open figure; pyplot.show() calls it, and the end of a cell."""
    from matplotlib._pylab_helpers import Gcf

    try:
        for manager in Gcf.get_all_fig_managers():
            figure = manager.canvas.figure
            if figure.axes or figure.lines or figure.texts or figure.images or figure.patches:
                forget_if_changed(figure)
                shown = Shown("figure-%d" % next(_numbers), {"image/png": png_of(figure), "text/plain": repr(figure)})
                publish(figure, shown, False)
                _shown[figure] = shown
                figure.stale = False
    finally:
        # A figure that cannot be drawn is closed too, because it would fail every later cell.
        Gcf.destroy_all()


def publish(figure: Any, shown: Shown, update: bool) -> None:
    saved = _saved.get(figure)
    _publisher.display(shown.data, {"saved_as": saved} if saved else None, shown.display_id, update)


def png_of(figure: Any) -> bytes:
    side = max(figure.get_size_inches())
    target = io.BytesIO()
    figure.savefig(target, format="png", dpi=min(figure.dpi, LARGEST_SIDE / side), bbox_inches="tight")
    return target.getvalue()


def forget_if_changed(figure: Any) -> None:
    """matplotlib calls a figure stale from a change until it is next drawn."""
    if figure.stale:
        _saved.pop(figure, None)
        _shown.pop(figure, None)


def forget_shown() -> None:
    """Ends a cell: a figure that a later cell saves is not published anew for this one."""
    _shown.clear()


def note_saved(figure: Any, target: Any) -> None:
    """Notes that a figure was written to a target, which has left it as it was."""
    paths = [path for path in paths_of(target, figure) if os.path.isfile(path)]
    if paths:
        _saved[figure] = [*_saved.get(figure, ()), *paths]
    figure.stale = False
    shown = _shown.get(figure)
    if paths and shown is not None:
        publish(figure, shown, True)


def paths_of(target: Any, figure: Any) -> list[str]:
    """Lists the paths at which the bytes of a target can be; none for one that is only in memory."""
    name = target if isinstance(target, (str, os.PathLike)) else getattr(target, "name", None)
    if not isinstance(name, (str, os.PathLike)):
        return []
    path = os.path.realpath(os.fspath(name))
    # matplotlib adds an extension to a name without one.
    return [path, path.rstrip(".") + "." + figure.canvas.get_default_filetype()]
