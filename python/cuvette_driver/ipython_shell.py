"""Runs cells through IPython where it is installed: magics, !shell, await, rich display and its tracebacks."""

from __future__ import annotations

import itertools
import re
import sys
import warnings
from typing import Any

from IPython.core.completer import provisionalcompleter
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.formatters import DisplayFormatter
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from cuvette_driver import cells, figures
from cuvette_driver.cells import Cell
from cuvette_driver.display import Publisher, bundle_of, hide_driver, safe_repr
from cuvette_driver.wire import Message

CELL_PREFIX = "<ipython-input-"
MOST_COMPLETIONS = 200
SAME_BY_REPR = (int, bool, str, bytes)
FORMATTER_METHODS = ("_repr_pretty_", "_repr_mimebundle_", "_ipython_display_")
NUMBERED = re.compile(r"_+|_+i*\d*|_i+")  # IPython's own: _, __, _3, _i, _ii, _i3


Data = dict[str, Any]


class _Results(DisplayHook):
    publisher: Publisher | None = None
    is_plain = False
    number = 1

    @property
    def prompt_count(self) -> int:
        """The number of the cell that runs: IPython counts on before the cell in some versions, after it in others."""
        return self.number

    def quiet(self) -> bool:
        """Looks for a semicolon only in cells that IPython runs, because plain cells do not enter its history."""
        return not self.is_plain and super().quiet()

    def write_output_prompt(self) -> None:
        pass

    def write_format_data(self, format_dict: dict[str, Any], md_dict: dict[str, Any] | None = None) -> None:
        if self.publisher is not None:
            self.publisher.result(format_dict, md_dict)

    def finish_displayhook(self) -> None:
        self._is_active = False


class _Displays(DisplayPublisher):
    publisher: Publisher | None = None

    def publish(self, data: Data, metadata: Data | None = None, *_: Any, transient: Data | None = None, update: bool = False, **__: Any) -> None:
        if self.publisher is not None:
            self.publisher.display(data, metadata, (transient or {}).get("display_id"), update)

    def clear_output(self, wait: bool = False) -> None:
        """Does nothing: output that was already sent stays, so that a record does not change after it was read."""


class _Formatter(DisplayFormatter):
    def format(self, obj: Any, include: Any = None, exclude: Any = None) -> Any:
        """Describes an object whose own representation fails from outside, so that it does not fail the cell."""
        self.parent.is_formatting = True
        try:
            data, metadata = super().format(obj, include, exclude)
        finally:
            self.parent.is_formatting = False
        if not data and getattr(type(obj), "_ipython_display_", None) is None:
            data = {"text/plain": safe_repr(obj)}
        return data, metadata


class _Shell(InteractiveShell):
    publisher: Publisher | None = None
    is_formatting = False
    shown_error: BaseException | None = None

    def init_display_formatter(self) -> None:
        self.display_formatter = _Formatter(parent=self)
        self.configurables.append(self.display_formatter)

    def _get_exc_info(self, exc_tuple: Any = None) -> Any:
        kind, error, _ = super()._get_exc_info(exc_tuple)
        hide_driver(error)
        return kind, error, error.__traceback__

    def _showtraceback(self, etype: Any, evalue: Any, stb: Any) -> None:
        if self.publisher is not None and not self.is_formatting and not isinstance(evalue, SystemExit):
            self.publisher.error(evalue, "\n".join(stb).strip("\n").split("\n"))
            self.shown_error = evalue

    def enable_gui(self, gui: Any = None) -> None:
        """Does nothing, since there is no screen."""

    def enable_matplotlib(self, gui: Any = None) -> Any:
        """Keeps the session's own backend, whatever %matplotlib names."""
        return "inline", figures.BACKEND

    system = system_piped = InteractiveShell.system_raw


class IPythonShell:
    is_ipython = True

    def __init__(self, shell: _Shell) -> None:
        self.shell = shell
        self._initial = frozenset({*shell.user_ns, *shell.user_ns_hidden, "exit", "quit"})
        self._initial_hooks = self._hooks()
        formatters = [shell.display_formatter.formatters[mime] for mime in ("text/plain", "text/html")]
        self._printers = [printers for one in formatters for printers in (one.type_printers, one.deferred_printers)]
        self._initial_printers = sum(map(len, self._printers))

    @property
    def namespace(self) -> dict[str, Any]:
        return self.shell.user_ns

    def attach(self, publisher: Publisher) -> None:
        self._publish_to(publisher)
        figures.attach(publisher)

    def _publish_to(self, publisher: Publisher | None) -> None:
        self.shell.publisher = publisher
        self.shell.displayhook.publisher = publisher
        self.shell.display_pub.publisher = publisher

    def warm(self) -> None:
        """Uses once, silently, what every cell uses: a freshly forked process then owns those pages of memory."""
        publisher = self.shell.publisher
        self._publish_to(None)
        self._run_plain(Cell("1", "<warm>"))
        _forget_results(self.shell)
        self._publish_to(publisher)

    def is_hidden(self, name: str) -> bool:
        return name in self._initial or NUMBERED.fullmatch(name) is not None

    def is_user_code(self, filename: str) -> bool:
        return filename.startswith(CELL_PREFIX)

    def run(self, code: str, number: int) -> Message | None:
        self.shell.execution_count = self.shell.displayhook.number = number
        try:
            cell = None if self._is_extended() else Cell(code, self.shell.compile.cache(code, number, raw_code=code))
        except (SyntaxError, ValueError, OverflowError):
            cell = None
        return self._run_by_ipython(code, number) if cell is None else self._run_plain(cell)

    def completions(self, code: str, cursor: int) -> Message | None:
        completer = self.shell.Completer
        completer.use_jedi = False  # It reads the sources of modules, which takes seconds.
        with provisionalcompleter():
            found = list(itertools.islice(completer.completions(code, cursor), MOST_COMPLETIONS))
        if not found:
            return None
        first = found[0]
        matches = dict.fromkeys(one.text for one in found if (one.start, one.end) == (first.start, first.end))
        return {"matches": list(matches), "start": first.start, "end": first.end}

    def _is_extended(self) -> bool:
        """True once user code has hooked into IPython's own way of running a cell (%autoreload does, for one)."""
        return bool(self.shell.ast_transformers) or self._hooks() != self._initial_hooks

    def _hooks(self) -> int:
        """How many there are, without pyplot's, which draws for a screen."""
        hooks = [hook for hooks in self.shell.events.callbacks.values() for hook in hooks]
        return sum(getattr(hook, "__module__", None) != "matplotlib.pyplot" for hook in hooks)

    def _run_plain(self, cell: Cell) -> Message | None:
        """Code that is plain Python as it stands needs none of IPython's rewriting, and runs in half the time."""
        shell = self.shell
        shell.displayhook.is_plain = True
        try:
            with shell.builtin_trap:
                value = cell.evaluate(shell.user_ns)
                if value is not None:
                    self._show(value)
        except SystemExit:
            raise
        except BaseException as error:
            self._show_error(error)
            return {"status": "error", "ename": type(error).__name__}
        return None

    def _show(self, value: Any) -> None:
        """Shows a value; a number or a pandas table looks the same without IPython's formatters, for a fraction of the memory that they touch."""
        kind = type(value)
        is_plain = kind in SAME_BY_REPR or (hasattr(kind, "_repr_html_") and not any(hasattr(kind, method) for method in FORMATTER_METHODS))
        if not is_plain or sum(map(len, self._printers)) != self._initial_printers:
            self.shell.displayhook(value)
            return
        self.shell.displayhook.update_user_ns(value)
        if self.shell.publisher is not None:
            self.shell.publisher.result(*bundle_of(value))

    def _show_error(self, error: BaseException) -> None:
        self.shell.shown_error = None
        try:
            self.shell.showtraceback(tb_offset=0)
        except BaseException:
            pass
        # IPython may not show an error whose own methods fail.
        if self.shell.shown_error is None and self.shell.publisher is not None:
            self.shell.publisher.error(error)

    def _run_by_ipython(self, code: str, number: int) -> Message | None:
        self.shell.displayhook.is_plain = False
        self.shell.shown_error = None
        result = self.shell.run_cell(code, store_history=number > 0)
        # Some magics (%%time in IPython 8) show an error themselves, and keep it from the result.
        error = result.error_before_exec or result.error_in_exec or self.shell.shown_error
        if isinstance(error, SystemExit):
            raise error
        return None if error is None else {"status": "error", "ename": type(error).__name__}


def make(ipython_dir: str) -> IPythonShell:
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "NoColor"
    config.InteractiveShell.autocall = 0
    config.InteractiveShell.display_page = True
    shell = _Shell.instance(config=config, ipython_dir=ipython_dir, displayhook_class=_Results, display_pub_class=_Displays)
    shell.loop_runner = cells.run
    warnings.filterwarnings("ignore", message="To exit: use")
    _warm(shell)
    for name in ("exit", "quit"):
        shell.user_ns[name] = sys.exit
    return IPythonShell(shell)


def _warm(shell: _Shell) -> None:
    """Runs the paths that every first cell runs, so that no session pays for them."""
    stdout = sys.stdout
    shell.run_cell("1 + 1", store_history=False)
    shell.run_cell("1 / 0", store_history=False)
    sys.stdout = stdout
    shell.reset(new_session=True)
    _forget_results(shell)
    # `reset` has removed these, and multiprocessing looks for them.
    for name in ("__doc__", "__package__", "__loader__", "__spec__"):
        shell.user_ns.setdefault(name)


def _forget_results(shell: _Shell) -> None:
    shell.displayhook.flush()
    for name in ("_", "__", "___"):
        # IPython would take names that stay here for the user's, and no longer update them.
        shell.user_ns_hidden.pop(name, None)
