"""Decodes what the worker writes to stdout or stderr: a pipe that the keeper reads as text, without ever blocking."""

from __future__ import annotations

import codecs
import os

from cuvette_driver.wire import CHUNK

MOST_AT_ONCE = 4 << 20


class OutputPipe:
    def __init__(self, name: str) -> None:
        self.name = name
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        self.ended = False
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def fileno(self) -> int:
        return self.reader

    def close_writer(self) -> None:
        os.close(self.writer)

    def read(self) -> str:
        """Reads what is there, up to a chunk."""
        try:
            data = os.read(self.reader, CHUNK)
        except BlockingIOError:
            return ""
        self.ended = not data
        return self._decoder.decode(data, final=self.ended)

    def read_all(self) -> str:
        """Reads what is in the pipe at the end of an execution; a character whose other half has not come is replaced."""
        parts: list[str] = []
        size = 0
        while not self.ended and size < MOST_AT_ONCE and (text := self.read()):
            parts.append(text)
            size += len(text)
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return "".join(parts) + rest

    def close(self) -> None:
        os.close(self.reader)
