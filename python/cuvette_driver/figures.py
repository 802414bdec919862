"""matplotlib's backend for sessions: figures come out as PNG when they are shown, and at the end of the cell."""

from __future__ import annotations

import io
import sys
from typing import Any

NAME = "module://" + __name__
LARGEST_SIDE = 3000

_publisher: Any = None


def show_all(publisher: Any) -> None:
    """Shows and closes every open figure, if pyplot is in use and draws through this backend."""
    global _publisher
    _publisher = publisher
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None or not pyplot.get_fignums() or sys.modules["matplotlib"].rcParams._get("backend") != NAME:
        return
    show()


def attach(publisher: Any) -> None:
    global _publisher
    _publisher = publisher


def show(*_: Any, **__: Any) -> None:
    """What pyplot.show() calls."""
    from matplotlib._pylab_helpers import Gcf

    for manager in Gcf.get_all_fig_managers():
        figure = manager.canvas.figure
        if figure.axes or figure.lines or figure.texts or figure.images or figure.patches:
            _publisher.display({"image/png": png_of(figure), "text/plain": repr(figure)})
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")


def png_of(figure: Any) -> bytes:
    side = max(figure.get_size_inches())
    target = io.BytesIO()
    figure.savefig(target, format="png", dpi=min(figure.dpi, LARGEST_SIDE / side), bbox_inches="tight")
    return target.getvalue()


def __getattr__(name: str) -> Any:
    """The rest of a backend is Agg's; it is looked up late, so that this module loads without matplotlib."""
    if name not in ("FigureCanvas", "FigureManager"):
        raise AttributeError(name)
    if name == "FigureManager":
        from matplotlib.backend_bases import FigureManagerBase

        return FigureManagerBase
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    return FigureCanvasAgg
