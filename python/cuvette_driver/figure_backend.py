"""What matplotlib loads as its backend: Agg draws, and `figures` shows. Imported by matplotlib alone, since it needs it."""

from __future__ import annotations

from matplotlib.backend_bases import FigureManagerBase as FigureManager
from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas

from cuvette_driver.figures import show

__all__ = ["FigureCanvas", "FigureManager", "show"]
