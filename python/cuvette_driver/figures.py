"""matplotlib's figures: they come out as PNG when they are shown, and at the end of the cell."""

from __future__ import annotations

import io
import sys
from typing import Any

BACKEND = "module://cuvette_driver.figure_backend"
LARGEST_SIDE = 3000

_publisher: Any = None


def attach(publisher: Any) -> None:
    global _publisher
    _publisher = publisher


def are_open() -> bool:
    """True if there are figures to show, and they are drawn through this backend."""
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
                _publisher.display({"image/png": png_of(figure), "text/plain": repr(figure)})
    finally:
        # A figure that cannot be drawn goes too: it would fail every later cell.
        Gcf.destroy_all()


def png_of(figure: Any) -> bytes:
    side = max(figure.get_size_inches())
    target = io.BytesIO()
    figure.savefig(target, format="png", dpi=min(figure.dpi, LARGEST_SIDE / side), bbox_inches="tight")
    return target.getvalue()
