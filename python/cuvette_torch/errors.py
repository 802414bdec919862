"""Defines the errors that the engine reports to its user."""

from __future__ import annotations


class EngineError(Exception):
    """An error that its user can act on: one of Cuvette's error codes, and a message that says what happened, with what, and what to do next."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__("[%s] %s" % (code, message))
        self.code = code
        self.message = message


class Cancelled(Exception):
    """Is raised when nobody waits for the answer any more."""
