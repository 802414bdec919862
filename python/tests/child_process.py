"""Runs a function in a process of its own, for what cannot be undone: rights given up, limits, filters, namespaces."""

import json
import os
import select
import signal
import traceback

from harness import PATIENCE

# A user that this machine does not have. Where the tests run as root, children turn into it.
NOBODY = 968_334


class Killed(Exception):
    """The child was ended by a signal before it had an answer."""

    def __init__(self, number):
        super().__init__(signal.Signals(number).name)
        self.number = number


def in_child(function, *arguments):
    """What the function returned there, as JSON has it; what it raised fails the test. It may fork, and answer from the fork."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            answer = {"returned": function(*arguments)}
        except BaseException:
            answer = {"raised": traceback.format_exc()}
        try:
            _write_all(writer, json.dumps(answer).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as file:
        if not select.select([file], [], [], PATIENCE)[0]:
            os.kill(pid, signal.SIGKILL)
        said = file.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status) and not said:
        raise Killed(os.WTERMSIG(status))
    answer = json.loads(said or '{"raised": "the child ended without a word"}')
    if "raised" in answer:
        raise AssertionError(answer["raised"])
    return answer["returned"]


def become_nobody():
    """In a child: gives up root, if it has it, as a zygote does before all else."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def errno_of(function, *arguments):
    """The number of the error that the kernel answers with; 0 if it has none."""
    try:
        function(*arguments)
    except OSError as error:
        return error.errno
    return 0


def status_of(pid="self"):
    """The rows of /proc/PID/status."""
    with open("/proc/%s/status" % pid) as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def _write_all(fd, data):
    while data:
        data = data[os.write(fd, data) :]
