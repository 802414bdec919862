"""Cuvette's driver, measured as `jupyter.py` measures a kernel: a Python client at the socket. Prints one JSON object."""

import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

DRIVER, RICH, USED = sys.argv[1:4]
ROUNDS, MANY, WARM_UP = map(int, sys.argv[4:7])
PRELOAD = ["numpy", "pandas", "matplotlib.pyplot"]
BURST, BURSTS = 50, 3
# As the server gives it to a session.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.lower().startswith("npm_")}


class Connection:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(120)
        self.socket.connect(path)
        self.lines = self.socket.makefile("rb")

    def send(self, **message):
        self.send_all([message])

    def send_all(self, messages):
        self.socket.sendall(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def receive(self):
        return json.loads(self.lines.readline())


class Zygote:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="cvb")
        os.mkdir(self.folder + "/z")
        self.path = self.folder + "/z/sock"
        self.process = subprocess.Popen([sys.executable, DRIVER, self.path, *PRELOAD])
        while True:
            try:
                self.connection = Connection(self.path)
                break
            except OSError:
                time.sleep(0.01)
        self.count = 0
        self.lock = threading.Lock()
        # The zygote answers between two imports; once it has made a spare session, all of them are done.
        self.session().close()
        time.sleep(3)

    def session(self):
        with self.lock:
            self.count += 1
            path = "%s/%d/sock" % (self.folder, self.count)
            self.connection.send(op="spawn", id=self.count, socket=path, cwd="/tmp", env=ENVIRONMENT, linger=60, startup=None)
            answer = self.connection.receive()
        return Session(path, answer["pid"])

    def close(self):
        self.process.terminate()
        self.process.wait()


class Session:
    def __init__(self, path, pid):
        self.path = path
        self.connection = Connection(path)
        self.pids = [pid, self.connection.receive()["worker"]]
        self.number = 0
        self.acknowledged = 0

    def execute(self, code):
        """Runs code to its end; gives the moment at which its result came, or its end if it has none."""
        self.number += 1
        request = {"op": "execute", "id": str(self.number), "code": code, "cell": self.number, "timeout": None, "limit": 1 << 20}
        # As the server does it: what was acknowledged goes along with the next request.
        self.connection.send_all([{"op": "ack", "seq": self.acknowledged}, request])
        shown = None
        while True:
            event = self.connection.receive()
            if event["ev"] == "result" and shown is None:
                shown = time.perf_counter()
            if event["ev"] == "done":
                self.acknowledged = event["seq"]
                return shown or time.perf_counter()

    def memory(self):
        return sum(map(pss, self.pids))

    def close(self):
        self.connection.send(op="stop")
        self.connection.socket.close()


def pss(pid):
    with open("/proc/%d/smaps_rollup" % pid) as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))


def timed(zygote, code):
    time.sleep(0.15)
    begin = time.perf_counter()
    session = zygote.session()
    shown = session.execute(code)
    end = time.perf_counter()
    session.close()
    return shown - begin, end - begin


def warm(session, count):
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        session.execute("x = 1")
        times.append(time.perf_counter() - begin)
    return times


def bystand(path, pid, started, stop, results):
    """In a process of its own: nothing that the measuring client does can delay it."""
    session = Session(path, pid)
    warm(session, 50)
    quiet = warm(session, 400)
    started.set()
    busy = []
    while not stop.is_set():
        busy.extend(warm(session, 1))
    results.put((quiet, busy))


def burst(zygote):
    """Starts many sessions at once, each with a first result, beside a session that is at work."""
    zygote.count += 1
    path = "%s/%d/sock" % (zygote.folder, zygote.count)
    zygote.connection.send(op="spawn", id=zygote.count, socket=path, cwd="/tmp", env=ENVIRONMENT, linger=60, startup=None)
    pid = zygote.connection.receive()["pid"]
    context = multiprocessing.get_context("fork")
    started, stop, results = context.Event(), context.Event(), context.Queue()
    bystander = context.Process(target=bystand, args=(path, pid, started, stop, results))
    bystander.start()
    started.wait()
    sessions = []

    def begin():
        session = zygote.session()
        session.execute("1 + 1")
        sessions.append(session)

    threads = [threading.Thread(target=begin) for _ in range(BURST)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    quiet, busy = results.get()
    bystander.join()
    for session in sessions:
        session.close()
    return {"quiet": quiet, "busy": busy}


def many(zygote):
    """Holds many sessions at once; all answer, and some of them have used pandas."""
    start = time.perf_counter()
    sessions = [zygote.session() for _ in range(MANY)]
    for session in sessions:
        session.execute("x = %d" % session.pids[0])
    took = time.perf_counter() - start
    for session in sessions[:10]:
        session.execute(USED)
    time.sleep(0.5)
    memory = [session.memory() for session in sessions[:10]]
    idle = [session.memory() for session in sessions[-10:]]
    answering = 0
    for session in sessions:
        session.execute("assert x == %d" % session.pids[0])
        answering += 1
    shared = pss(zygote.process.pid)
    for session in sessions:
        session.close()
    return {"answering": answering, "took": took, "memory": memory, "idle": idle, "zygote": shared}


def main():
    zygote = Zygote()
    first = [timed(zygote, "1 + 1")[0] for _ in range(ROUNDS)]
    rich = [timed(zygote, RICH) for _ in range(ROUNDS)]
    session = zygote.session()
    session.execute(USED)
    warm(session, WARM_UP)
    warm_times = warm(session, 500)
    session.close()
    report = {"first": first, "rich": [a for a, _ in rich], "richDone": [b for _, b in rich], "warm": warm_times}
    bursts = [burst(zygote) for _ in range(BURSTS)]
    report["burst"] = {key: [time for one in bursts for time in one[key]] for key in ("quiet", "busy")}
    report["many"] = many(zygote)
    zygote.close()
    print(json.dumps(report))


main()
