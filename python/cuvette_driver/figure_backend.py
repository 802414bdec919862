"""Is the backend that matplotlib loads: Agg draws, and `figures` shows. Only matplotlib imports it, since it needs matplotlib."""

from __future__ import annotations

import functools
from typing import Any

from matplotlib.backend_bases import FigureManagerBase as FigureManager
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cuvette_driver import figures
from cuvette_driver.figures import show

__all__ = ["FigureCanvas", "FigureManager", "show"]


class FigureCanvas(FigureCanvasAgg):
    def draw(self) -> None:
        """Only user code calls this; afterwards matplotlib no longer says that the figure had changed."""
        figures.forget_if_changed(self.figure)
        super().draw()


_savefig = Figure.savefig


@functools.wraps(_savefig)
def savefig(self: Figure, fname: Any, *args: Any, **kwargs: Any) -> None:
    """Saves as matplotlib does, and notes where: a figure that code has saved itself need not be saved for it once more."""
    figures.forget_if_changed(self)
    _savefig(self, fname, *args, **kwargs)
    figures.note_saved(self, fname)


# The method is replaced on the class, because a canvas does not see all: with transparent=True, savefig changes the figure before and after it is drawn.
Figure.savefig = savefig
