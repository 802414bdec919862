"""Tests output: its order across Python, C and child processes, its limits, and streams that user code broke."""

import time
import unittest

from harness import SessionTest


class Order(SessionTest):
    def test_output_of_python_and_its_children_keeps_its_order(self):
        code = """
import os, sys
print('a')
os.system('echo b')
print('c')
print('d', file=sys.stderr)
print('e')
os.system('echo f >&2')
print('g')
os.system('echo h')
print('i', file=sys.stderr)
"""
        outcome = self.run_ok(code)
        self.assertEqual(outcome.printed, "".join(letter + "\n" for letter in "abcdefghi"))
        self.assertEqual(outcome.stderr, "d\nf\ni\n")

    def test_c_output_keeps_its_order_with_python_output(self):
        code = "import ctypes\nlibc = ctypes.CDLL(None)\nprint('a')\nlibc.puts(b'b')\nprint('c')\nlibc.puts(b'd');"
        self.assertEqual(self.run_ok(code).stdout, "a\nb\nc\nd\n")

    def test_c_output_without_a_newline_belongs_to_its_call(self):
        self.assertEqual(self.run_ok("import ctypes\nctypes.CDLL(None).printf(b'no newline');").stdout, "no newline")
        self.assertEqual(self.run_ok("print('next')").stdout, "next\n")

    def test_both_streams_of_a_child_keep_their_order_at_its_end(self):
        for _ in range(5):
            outcome = self.run_ok("import os\nos.system('echo one >&2; sleep 0.01; echo two');")
            self.assertEqual(outcome.printed, "one\ntwo\n")

    def test_displays_keep_their_order_with_output(self):
        outcome = self.run_ok("for n in range(20):\n    print(n)\n    display(n)\n'last'")
        order = [event["ev"] for event in outcome.events]
        seen, text = [], ""
        for event in outcome.events:
            if event["ev"] == "stream":
                text += event["text"]
            elif event["ev"] == "display":
                seen.append((text, event["data"]["text/plain"]))
                text = ""
        self.assertEqual(seen, [("%d\n" % n, "%d" % n) for n in range(20)])
        self.assertEqual(order[-2:], ["result", "done"])

    def test_large_displays_keep_their_order_with_output(self):
        outcome = self.run_ok("for n in range(20):\n    display('x' * 100_000)\n    print(n)")
        order = ["x" if event["ev"] == "display" else event.get("text", "") for event in outcome.events]
        self.assertEqual("".join(order), "".join("x%d\n" % n for n in range(20)))

    def test_output_keeps_its_order_while_the_keeper_is_stopped(self):
        pause = "import os, signal, subprocess, sys\nkeeper = os.getppid()\n"
        pause += "subprocess.Popen(['sh', '-c', 'sleep 0.5; kill -CONT %d' % keeper])\nos.kill(keeper, signal.SIGSTOP)\n"
        outcome = self.run_ok(pause + "print('out')\ndisplay('shown')\nprint('err', file=sys.stderr)\nprint('again')")
        order = ["shown\n" if event["ev"] == "display" else event.get("text", "") for event in outcome.events]
        self.assertEqual("".join(order), "out\nshown\nerr\nagain\n")

    def test_output_to_dev_stdout_and_dev_stderr_is_captured(self):
        outcome = self.run_ok("import os\nos.system('echo hi > /dev/stdout')\nos.system('echo ho > /dev/stderr');")
        self.assertEqual((outcome.stdout, outcome.stderr), ("hi\n", "ho\n"))

    def test_os_write_to_the_descriptors_is_captured(self):
        self.assertEqual(self.run_ok("import sys, os\nsys.stdout.buffer.write(b'raw ')\nos.write(1, b'direct');").stdout, "raw direct")


class Amount(SessionTest):
    def run_over_limit(self, code, limit):
        """Runs code that is ended for its output; the next call works."""
        outcome = self.session.run(code, limit=limit)
        self.assertEqual(outcome.done["stopped"]["why"], "output-limit")
        self.assert_works()
        return outcome

    def test_large_stderr_of_a_child_arrives_whole(self):
        outcome = self.run_ok("import os\nos.system('head -c 200000 /dev/zero | tr \"\\\\0\" e >&2');")
        self.assertEqual(outcome.stderr, "e" * 200_000)

    def test_line_of_fifty_megabytes_arrives_whole(self):
        outcome = self.run_ok("print('x' * 50_000_000)")
        self.assertEqual(len(outcome.stdout), 50_000_001)
        self.assert_works()

    def test_line_beyond_the_output_limit_is_cut_and_ends_the_call(self):
        self.assertEqual(self.run_over_limit("print('x' * 50_000_000)", 100_000).stdout, "x" * 100_000)

    def test_endless_output_is_cut_at_the_limit_and_ends_the_call(self):
        outcome = self.session.run("kept = 1\nwhile True:\n    print('z', end='')", limit=100_000)
        self.assertEqual(outcome.stdout, "z" * 100_000)
        self.assertEqual(outcome.done["stopped"], {"why": "output-limit", "rung": "interrupted"})
        self.assertEqual(self.session.value("kept"), 1)

    def test_endless_output_of_a_child_is_cut_at_the_limit_and_ends_the_call(self):
        self.assertEqual(len(self.run_over_limit("import subprocess\nsubprocess.run(['yes'])", 100_000).stdout), 100_000)

    def test_output_that_passes_the_limit_at_the_very_end_is_cut(self):
        """What was cut is told even where the code ended before it could be stopped."""
        self.assertEqual(self.run_over_limit("print('y' * 2000)", 1000).stdout, "y" * 1000)

    def test_result_beyond_the_output_limit_is_dropped(self):
        self.assertEqual(self.run_over_limit("'r' * 5000", 1000).of("result"), [])

    def test_output_of_exactly_the_limit_is_kept(self):
        outcome = self.run_ok("print('y' * 999)", limit=1000)
        self.assertEqual(len(outcome.stdout), 1000)
        self.assertIsNone(outcome.done["stopped"])

    def test_displays_beyond_the_output_limit_end_the_call(self):
        outcome = self.run_over_limit("for n in range(100_000): display(n)", 10_000)
        self.assertLess(len(outcome.of("display")), 10_000)
        self.assertEqual(outcome.of("display")[7]["data"]["text/plain"], "7")

    def test_call_can_be_stopped_in_the_middle_of_a_large_display(self):
        """A stop that falls into the sending of a message must not tear it."""
        for _ in range(3):
            outcome = self.session.run("kept = 1\nwhile True:\n    display('d' * 3_000_000)", timeout=0.3)
            self.assertEqual(outcome.done["stopped"], {"why": "timeout", "rung": "interrupted"}, outcome.done)
            self.assertEqual(self.session.value("kept"), 1)

    def test_call_can_be_stopped_while_nobody_acknowledges_its_output(self):
        """Held up by a server that is behind, the code can still be interrupted, and keeps its state."""
        id = self.session.start("kept = 1\nwhile True:\n    display('d' * 3_000_000)", timeout=1)
        outcome = self.session.finish(id, ack=False)
        self.assertEqual(outcome.done["stopped"], {"why": "timeout", "rung": "interrupted"}, outcome.done)
        self.session.send("ack", seq=outcome.done["seq"])
        self.assertEqual(self.session.value("kept"), 1)

    def test_displays_of_several_threads_are_not_mixed_up(self):
        code = """
import threading
def show(letter):
    for _ in range(20): display(letter * 1_000_000)
threads = [threading.Thread(target=show, args=(letter,)) for letter in 'abcd']
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
        outcome = self.run_ok(code)
        self.assertEqual(len(outcome.of("display")), 80)
        self.assertTrue(all(len(set(event["data"]["text/plain"])) == 2 for event in outcome.of("display")))

    def test_huge_error_message_counts_against_the_output_limit(self):
        outcome = self.session.run("raise ValueError('m' * 1_000_000)", limit=100_000)
        self.assertEqual(outcome.done["stopped"]["why"], "output-limit")
        self.assertEqual(outcome.done["ename"], "ValueError")


class Encoding(SessionTest):
    def test_binary_output_is_decoded_with_replacements(self):
        outcome = self.run_ok("import os\nos.write(1, bytes(range(256)) * 100);")
        self.assertEqual(outcome.stdout.count("\ufffd"), 12_800)
        self.assertIn("ABC", outcome.stdout)

    def test_lone_surrogates_are_printed_escaped(self):
        self.assertEqual(self.run_ok("print('a\\ud800b')").stdout, "a\\ud800b\n")
        self.assertEqual(self.run_ok("'a\\ud800b'").result, "'a\\ud800b'")

    def test_character_split_over_two_writes_is_decoded(self):
        code = "import os, time\nfor byte in 'äö€😀'.encode():\n    os.write(1, bytes([byte]))\n    time.sleep(0.01)"
        self.assertEqual(self.run_ok(code).stdout, "äö€😀")

    def test_half_a_character_at_the_end_is_replaced_and_not_carried_over(self):
        self.assertEqual(self.run_ok("import os\nos.write(1, b'x\\xe2\\x82');").stdout, "x\ufffd")
        self.assertEqual(self.run_ok("print('next')").stdout, "next\n")


class BrokenStreams(SessionTest):
    def assert_repaired(self):
        outcome = self.run_ok("import sys, os\nprint('out')\nprint('err', file=sys.stderr)\nos.system('echo child');")
        self.assertEqual((outcome.stdout, outcome.stderr), ("out\nchild\n", "err\n"))

    def test_broken_streams_are_repaired_for_the_next_call(self):
        for code in (
            "import sys\nsys.stdout.close()",
            "import sys\nsys.stderr.close()",
            "import sys\nsys.stdout = None",
            "import sys, io\nsys.stdout = sys.stderr = io.StringIO()",
            "import sys\ndel sys.stdout, sys.stderr, sys.stdin",
            "import sys\nclass Bad:\n    def __getattr__(self, name): raise SystemError\nsys.stdin = sys.stdout = Bad()",
            "import os\nos.close(1)",
            "import os\nos.close(2)",
            "import os\nos.close(0); os.close(1); os.close(2)",
            "import os\nos.dup2(os.open('/dev/null', os.O_WRONLY), 1);",
            "import os\nos.set_blocking(1, False)",
            "import sys\nsys.stdout.detach();",
        ):
            with self.subTest(code=code):
                outcome = self.session.run(code)
                self.assertNotIn("death", outcome.done, code)
                self.assert_repaired()

    def test_large_output_arrives_whole_on_a_non_blocking_descriptor(self):
        outcome = self.run_ok("import os\nos.set_blocking(1, False)\nprint('n' * 5_000_000)")
        self.assertEqual(len(outcome.stdout), 5_000_001)

    def test_result_is_shown_while_stdout_is_replaced(self):
        self.assertEqual(self.run_ok("import sys, io\nsys.stdout = io.StringIO()\n'seen'").result, "'seen'")

    def test_redirect_stdout_captures_output(self):
        outcome = self.run_ok(
            "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as caught:\n    print('caught')\nprint('free')\ncaught.getvalue()"
        )
        self.assertEqual((outcome.stdout, outcome.result), ("free\n", "'caught\\n'"))

    def test_streams_look_like_files(self):
        self.assertEqual(
            self.session.value("import sys\nsys.stdout.fileno(), sys.stderr.fileno(), sys.stdout.isatty(), sys.stdout.encoding, sys.stdout.writable()"),
            (1, 2, False, "utf-8", True),
        )


class Threads(SessionTest):
    def test_output_of_a_thread_after_the_end_belongs_to_the_last_call(self):
        code = "import threading, time\ngo = threading.Event()\ndef late():\n    go.wait()\n    print('late')\nthreading.Thread(target=late).start()\nthreading.Timer(0.2, go.set).start()\nprint('early')"
        outcome = self.run_ok(code)
        self.assertEqual(outcome.stdout, "early\n")
        event = self.session.receive()
        self.assertEqual((event["ev"], event["id"], event["text"][:4]), ("stream", "1", "late"))
        self.assert_works()

    def test_thread_that_keeps_printing_does_not_harm_the_next_call(self):
        self.run_ok(
            "import threading, time\nrunning = True\ndef chat():\n    while running:\n        print('chat')\n        time.sleep(0.001)\nthread = threading.Thread(target=chat)\nthread.start()"
        )
        time.sleep(0.1)
        for number in range(20):
            self.assertEqual(self.session.value("%d" % number), number)
        self.run_ok("running = False\nthread.join()")


if __name__ == "__main__":
    unittest.main()
