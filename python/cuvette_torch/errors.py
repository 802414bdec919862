"""What goes wrong in a way that its user can act on."""

from __future__ import annotations


class Problem(Exception):
    """Has one of Cuvette's error codes, and a message that says what happened, with what, and what to do next."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__("[%s] %s" % (code, message))
        self.code = code
        self.message = message


class Cancelled(Exception):
    """Nobody waits for the answer any more."""
