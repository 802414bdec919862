"""Turns the signals that a keeper acts on into bytes of a pipe, which it polls with everything else."""

from __future__ import annotations

import os
import signal

from cuvette_driver.wire import CHUNK


class SignalPipe:
    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self.writer, False)
        signal.set_wakeup_fd(self.writer, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)

    def read(self) -> bytes:
        """The numbers of the signals that have come, one byte each."""
        try:
            return os.read(self.reader, CHUNK)
        except BlockingIOError:
            return b""

    def close_in_fork(self) -> None:
        signal.set_wakeup_fd(-1)
        os.close(self.reader)
        os.close(self.writer)
