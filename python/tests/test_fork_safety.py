"""Tests what the template does so that its children copy little memory: it holds fork hooks back, and moves code together."""

import os
import sys
import types
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from cuvette_driver import fork_hooks, warm_up


def in_child(act):
    """What `act` returns in a forked child."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writer, repr(act()).encode())
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as answer:
        text = answer.read().decode()
    os.waitpid(pid, 0)
    return text


class ForkHooks(unittest.TestCase):
    def test_fork_hooks_are_held_back_until_the_worker(self):
        called = []

        def registered_while_held():
            fork_hooks.hold()
            os.register_at_fork(after_in_child=lambda: called.append("child"))
            before = in_child(lambda: list(called))
            fork_hooks.release()
            after = list(called)
            return before, after, in_child(lambda: list(called))

        # In a child of its own: hooks cannot be taken back.
        before, after, later = eval(in_child(registered_while_held))
        self.assertEqual(before, "[]")
        self.assertEqual(after, ["child"])
        self.assertEqual(later, "['child', 'child']")


def make(filename):
    """A function whose code is equal to that of any other made here, but for its file."""
    module = types.ModuleType("made")
    exec(compile("def f():\n    return f.__code__.co_filename", filename, "exec"), vars(module))
    return module.f


class MovedCode(unittest.TestCase):
    def test_moved_functions_keep_the_file_of_their_code(self):
        one, other = make("one.py"), make("other.py")
        before = one.__code__, other.__code__
        ran = {}
        warm_up._record(one, ran)
        warm_up._record(other, ran)
        warm_up._move_together(ran)
        self.assertEqual((one(), other()), ("one.py", "other.py"))
        self.assertIsNot(one.__code__, before[0])
        self.assertIsNot(other.__code__, before[1])

    def test_moved_functions_that_share_code_go_on_sharing_it(self):
        def outer(value):
            def inner():
                return value

            return inner

        first, second = outer(1), outer(2)
        ran = {}
        warm_up._record(first, ran)
        warm_up._move_together(ran)
        self.assertIs(first.__code__, second.__code__)
        self.assertEqual((first(), second()), (1, 2))


if __name__ == "__main__":
    unittest.main()
