"""Completes code at the cursor with names that are there now, without running it: IPython's own completion where the shell has one, else `rlcompleter`'s."""

from __future__ import annotations

import re
import rlcompleter
from typing import TYPE_CHECKING, Any

from cuvette_driver.wire import Message

if TYPE_CHECKING:
    from cuvette_driver.worker import Shell

MOST = 200
WORD = re.compile(r"[\w.]*$")


def complete(shell: Shell, request: Message) -> Message:
    """`cursor`, `start` and `end` count characters of the code."""
    code = str(request["code"])
    cursor = min(max(0, int(request["cursor"])), len(code))
    found = shell.completions(code, cursor)
    return complete_plainly(shell.namespace, code, cursor) if found is None else found


def complete_plainly(namespace: dict[str, Any], code: str, cursor: int) -> Message:
    word = WORD.search(code[:cursor])
    start = cursor if word is None else word.start()
    completer = rlcompleter.Completer(namespace)
    matches: dict[str, None] = {}
    text = code[start:cursor]
    for state in range(MOST) if text else ():
        match = completer.complete(text, state)
        if match is None:
            break
        matches[match.rstrip("( ")] = None  # It adds what comes after a name.
    return {"matches": list(matches), "start": start, "end": cursor}
