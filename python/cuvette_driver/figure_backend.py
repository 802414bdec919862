"""What matplotlib loads as its backend: Agg draws, and `figures` shows. Imported by matplotlib alone, since it needs it."""

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
        """Called by user code alone, and once it is done nothing tells any more that the figure had changed."""
        figures.forget_if_changed(self.figure)
        super().draw()


_savefig = Figure.savefig


@functools.wraps(_savefig)
def savefig(self: Figure, fname: Any, *args: Any, **kwargs: Any) -> None:
    """Saves as ever, and notes where: a figure that its code has saved need not be saved for it once more."""
    figures.forget_if_changed(self)
    _savefig(self, fname, *args, **kwargs)
    figures.note_saved(self, fname)


# On the class, since a canvas does not see all of it: with transparent=True, the figure is changed before and after it is drawn.
Figure.savefig = savefig
