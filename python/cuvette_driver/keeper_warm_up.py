"""Runs in the template what a keeper does for each call, short of ending processes, so that keepers have less memory to copy for it (see warm_up.py)."""

from __future__ import annotations

import os
import socket

from cuvette_driver import processes
from cuvette_driver.assignment import Assignment
from cuvette_driver.execution_slot import ExecutionSlot
from cuvette_driver.limit_enforcer import LimitEnforcer
from cuvette_driver.output_pipe import OutputPipe
from cuvette_driver.poller import Poller
from cuvette_driver.server_link import ServerLink

CALLS = 3


def use_keeper() -> None:
    poller = Poller()
    link = ServerLink(poller, lambda message, _: link.events.acknowledge(message["seq"]))
    executions = ExecutionSlot(link.events, LimitEnforcer(None))
    keeper_end, server_end = socket.socketpair()
    pipe = OutputPipe("stdout")
    try:
        Assignment(keeper_end).lease.has_expired(0.0, is_busy=False, has_socket=True)
        link.attach(keeper_end)
        poller.add(pipe, lambda pipe: executions.emit(pipe, pipe.read()))
        for _ in range(CALLS):
            use_call(link, executions, poller, pipe, server_end)
        processes.descendants(os.getpid())
        processes.is_alive(os.getpid())
    finally:
        poller.remove(pipe)
        link.drop()
        server_end.close()
        pipe.close()
        pipe.close_writer()


def use_call(link: ServerLink, executions: ExecutionSlot, poller: Poller, pipe: OutputPipe, server_end: socket.socket) -> None:
    execution = executions.start({"id": "1", "limit": 100, "timeout": 1e6}, 0)
    execution.seconds_to_deadline()
    os.write(pipe.writer, b"x")
    poller.wait(0.0)
    executions.climb()
    executions.check_limits()
    executions.publish({"ev": "result", "data": {"text/plain": "1"}})
    executions.empty([pipe])
    link.events.add({**execution.outcome({"status": "ok"}), "ev": "done"})
    link.flush()
    server_end.recv(1 << 16)
    server_end.sendall(b'{"op":"ack","seq":1000}\n')
    poller.wait(0.0)
