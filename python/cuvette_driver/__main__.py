"""Starts a zygote on a socket: `python cuvette_driver/__main__.py [--policy=FILE] SOCKET [MODULE ...]`.

With `--hosted` it becomes the interpreter of one confined session instead (see hosted_interpreter.py).
"""

import os
import sys

# When this file is run by path, its own folder is first on sys.path. The package's parent takes its place
# only while the driver imports itself, so that no user import is ever answered from here.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

POLICY, HOSTED = "--policy=", "--hosted"

if sys.version_info < (3, 9):  # noqa: UP036
    sys.exit("cuvette needs Python 3.9 or later; this is Python %d.%d (%s)" % (sys.version_info[0], sys.version_info[1], sys.executable))

from cuvette_driver import fork_hooks  # noqa: E402

fork_hooks.hold()
from cuvette_driver import zygote  # noqa: E402

del sys.path[0]
arguments = sys.argv[1:]
if arguments == [HOSTED]:
    from cuvette_driver import hosted_interpreter

    hosted_interpreter.run()
    sys.exit()
policy = arguments.pop(0)[len(POLICY) :] if arguments[0].startswith(POLICY) else None
zygote.main(arguments[0], arguments[1:], policy)
