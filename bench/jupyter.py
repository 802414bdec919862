"""What a user would pick instead: ipykernel through jupyter_client. Prints its figures as one JSON object."""

import json
import sys
import time

from jupyter_client import KernelManager

FIRST = "1 + 1"
RICH = sys.argv[1]
USED = sys.argv[2]
ROUNDS, WARM_UP = int(sys.argv[3]), int(sys.argv[4])


def execute(client, code):
    """Runs code to its end; gives the moment at which its result came, or its end if it has none."""
    message = client.execute(code)
    shown = None
    while True:
        event = client.get_iopub_msg(timeout=60)
        if event["parent_header"].get("msg_id") != message:
            continue
        if event["msg_type"] == "execute_result" and shown is None:
            shown = time.perf_counter()
        if event["msg_type"] == "status" and event["content"]["execution_state"] == "idle":
            break
    client.get_shell_msg(timeout=60)
    return shown or time.perf_counter()


def start():
    manager = KernelManager()
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    return manager, client


def timed(code):
    begin = time.perf_counter()
    manager, client = start()
    shown = execute(client, code)
    end = time.perf_counter()
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    return shown - begin, end - begin


def crash_and_restart(manager, client):
    """As a user does it: the kernel has died, it is started again, and answers."""
    begin = time.perf_counter()
    manager.provisioner.process.kill()
    manager.provisioner.process.wait()
    manager.restart_kernel(now=True)
    client.wait_for_ready(timeout=60)
    execute(client, FIRST)
    return time.perf_counter() - begin


def pss(pid):
    with open("/proc/%d/smaps_rollup" % pid) as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))


def main():
    first = [timed(FIRST)[0] for _ in range(ROUNDS)]
    rich = [timed(RICH) for _ in range(ROUNDS)]
    manager, client = start()
    execute(client, USED)
    time.sleep(0.5)
    memory = pss(manager.provisioner.pid)
    for _ in range(WARM_UP):
        execute(client, "x = 1")
    warm = []
    for _ in range(500):
        begin = time.perf_counter()
        execute(client, "x = 1")
        warm.append(time.perf_counter() - begin)
    recovery = [crash_and_restart(manager, client) for _ in range(ROUNDS)]
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    print(json.dumps({"recovery": recovery, "first": first, "rich": [a for a, _ in rich], "richDone": [b for _, b in rich], "warm": warm, "memory": memory}))


main()
