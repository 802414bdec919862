"""Warms the template up: runs what sessions will run first, so that each of them has fewer pages of memory to copy.

A forked process shares the template's memory page by page, until it writes to one; and to run code is to write to it:
reference counts change, and from Python 3.11 on the interpreter specialises code that runs often. So the code that sessions
are likely to run is moved together here, away from what none of them runs, and then run until it is specialised.
"""

from __future__ import annotations

import functools
import gc
import importlib
import io
import os
import sys
import types
from collections.abc import Iterator
from typing import Any, Callable

from cuvette_driver import copy_on_write, wire, worker
from cuvette_driver.keeper_warm_up import use_keeper

ROUNDS = 12
DRIVER = os.path.dirname(__file__)

Step = Callable[[], object]


def steps(modules: list[str]) -> Iterator[Step]:
    """Yields what there is to do, in parts between which the template may fork."""
    for name in modules:
        yield functools.partial(_attempt, name, functools.partial(importlib.import_module, name))
    ran: dict[int, types.CodeType] = {}
    first = [("the driver", _use_driver)] + [(name, use) for name, use in FIRST_USES if name in modules]
    often = [("the driver", _use_driver), ("the keeper", use_keeper)] + [(name, use) for name, use in OFTEN_USES if name in modules]
    # IPython and matplotlib's figures make for a full collection after each use: it takes 60 ms, unless it passes over what is loaded.
    yield _freeze
    for name, use in often + first:
        yield functools.partial(_attempt, name, functools.partial(_record, use, ran))
    yield functools.partial(_move_together, ran)
    yield _freeze
    for name, use in ROUNDS * often:
        yield functools.partial(_attempt, name, use)


def _attempt(name: str, step: Step) -> None:
    """Runs a step; a module that is broken is left to the session that asks for it."""
    try:
        step()
    except Exception as error:
        print("cuvette: %s could not be loaded ahead: %s" % (name, error), file=sys.stderr)


def _record(step: Step, ran: dict[int, types.CodeType]) -> None:
    def note(frame: types.FrameType, event: str, _: Any) -> None:
        if event == "call":
            ran[id(frame.f_code)] = frame.f_code

    sys.setprofile(note)
    try:
        step()
    finally:
        sys.setprofile(None)


def _freeze() -> None:
    gc.collect()
    gc.freeze()


def _move_together(ran: dict[int, types.CodeType]) -> None:
    """Gives each function that ran, and each of the driver's own, a copy of its code: copies made in a row lie in a row."""
    gc.unfreeze()
    gc.collect()
    copy_on_write.fill_gaps()
    functions: dict[int, list[types.FunctionType]] = {}
    for function in gc.get_objects():
        if type(function) is types.FunctionType:
            functions.setdefault(id(function.__code__), []).append(function)
    driver = {key: same[0].__code__ for key, same in functions.items() if same[0].__code__.co_filename.startswith(DRIVER)}
    for key, code in {**driver, **ran}.items():
        if key in functions:
            copy = code.replace()
            for function in functions[key]:
                function.__code__ = copy


def _use_driver() -> None:
    worker.shell.warm()
    wire.decode(wire.encode({"ev": "stream", "seq": 1, "text": "x", "wall": 0.5, "parts": [None, True]}))


def _load_pandas() -> None:
    import pandas

    pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]}).groupby("b").sum()
    importlib.import_module("pandas.plotting._matplotlib")


def _use_pandas() -> None:
    import pandas

    for columns in ({"a": [1, 2]}, {"a": [1, 2], "b": ["x", "y"]}):
        frame = pandas.DataFrame(columns)
        repr(frame)
        frame._repr_html_()
        frame.describe()


def _load_matplotlib() -> None:
    import matplotlib.font_manager

    _use_matplotlib(lambda figure: figure.savefig(io.BytesIO(), format="png", bbox_inches="tight"))
    # matplotlib empties this cache in every forked child; emptied once here, that costs them nothing.
    clear = getattr(getattr(matplotlib.font_manager, "_get_font", None), "cache_clear", None)
    if clear:
        clear()


def _use_matplotlib(draw: Callable[[Any], object] = id) -> None:
    import matplotlib.pyplot

    figure, axes = matplotlib.pyplot.subplots()
    axes.plot([1, 2], [3, 4])
    axes.set_title("x")
    draw(figure)
    matplotlib.pyplot.close("all")
    gc.collect()


FIRST_USES: list[tuple[str, Step]] = [("pandas", _load_pandas), ("matplotlib.pyplot", _load_matplotlib)]
OFTEN_USES: list[tuple[str, Step]] = [("pandas", _use_pandas), ("matplotlib.pyplot", _use_matplotlib)]
