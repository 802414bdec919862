"""Confines itself as a session is confined, and prints as JSON whether that works: the server runs it as a program before it relies on it."""

from __future__ import annotations

import json
import os
import sys
import time

if __name__ == "__main__":
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from cuvette_driver import seccomp
from cuvette_driver.confinement import Confiner, read_policy

PATIENCE = 2.0


def main(policy_file: str) -> None:
    isolation = Confiner(read_policy(policy_file))
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            confinement = isolation.isolate()
            confinement.mount_folders([])
            confinement.drop_privileges_as_interpreter({writer})
            os.write(writer, confinement.name.encode())
        except BaseException as error:
            os.write(writer, b"!" + str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    said = b""
    while part := os.read(reader, 4096):
        said += part
    if said.startswith(b"!") or not said:
        sys.exit(said[1:].decode() or "the confined process ended without a word")
    deadline = time.monotonic() + PATIENCE
    while not isolation.clean_up(said.decode()) and time.monotonic() < deadline:
        time.sleep(0.005)
    isolation.close()
    print(json.dumps({"seccomp": seccomp.is_known()}))


if __name__ == "__main__":
    main(sys.argv[1])
