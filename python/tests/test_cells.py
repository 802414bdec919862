"""Tests what a cell does: state, the last expression, errors and their tracebacks, exits, awaits."""

import json
import unittest

from harness import SessionTest


class StateAndResults(SessionTest):
    def test_variables_persist_between_cells(self):
        self.run_ok("x = 41\ndef more(): return x + 1")
        self.assertEqual(self.session.value("more()"), 42)

    def test_value_of_the_last_expression_is_shown(self):
        outcome = self.run_ok("a = 3\na * 2")
        self.assertEqual(outcome.result, "6")
        self.assertEqual(len(outcome.of("result")), 1)

    def test_none_and_statements_show_no_result(self):
        self.assertEqual(self.run_ok("None").events[:-1], [])
        self.assertEqual(self.run_ok("b = 1").events[:-1], [])
        self.assertEqual(self.run_ok("").events[:-1], [])
        self.assertEqual(self.run_ok("# a comment").events[:-1], [])

    def test_semicolon_after_the_last_expression_hides_its_value(self):
        for code in ("7;", "7 ; ", "7;  # said with a comment", "(7);"):
            self.assertIsNone(self.run_ok(code).result, code)

    def test_semicolon_inside_of_a_cell_hides_no_value(self):
        for code in ("8  # a comment that ends in;", "a = 1; 8", "8 if 'ü;' else 0"):
            self.assertEqual(self.run_ok(code).result, "8", code)

    def test_underscore_holds_the_last_value(self):
        self.run_ok("6 * 7")
        self.assertEqual(self.session.value("_ + 1"), 43)

    def test_annotations_in_a_cell_are_evaluated_to_objects(self):
        self.assertEqual(self.session.value("def f(x: int): pass\nf.__annotations__['x'] is int"), True)

    def test_classes_defined_in_a_cell_belong_to_main_and_can_be_pickled(self):
        self.run_ok("import pickle\nclass Thing: pass")
        self.assertEqual(self.session.value("type(pickle.loads(pickle.dumps(Thing()))) is Thing, Thing.__module__"), (True, "__main__"))

    def test_source_of_a_cell_can_be_inspected(self):
        self.run_ok("def f():\n    return 'some source'")
        self.assertIn("some source", self.session.value("import inspect\ninspect.getsource(f)"))

    def test_display_function_shows_its_arguments(self):
        outcome = self.run_ok("display({'a': 1}, 'text')")
        self.assertEqual([event["data"]["text/plain"] for event in outcome.of("display")], ["{'a': 1}", "'text'"])

    def test_object_is_shown_by_its_own_html_representation(self):
        outcome = self.run_ok("class H:\n    def _repr_html_(self): return '<b>h</b>'\n    def __repr__(self): return 'H!'\nH()")
        self.assertEqual(outcome.of("result")[0]["data"], {"text/plain": "H!", "text/html": "<b>h</b>"})

    def test_json_representation_of_an_object_is_sent_as_valid_json(self):
        code = "class J:\n    def _repr_json_(self): return {'a': [1, float('nan')], (1, 2): object}\n    def __repr__(self): return 'J'\nJ()"
        outcome = self.run_ok(code)
        data = outcome.of("result")[0]["data"]
        self.assertEqual(data["text/plain"], "J")
        self.assertEqual(json.loads(json.dumps(data["application/json"]), parse_constant=self.fail)["a"][0], 1)

    def test_quick_calls_each_get_their_own_answer(self):
        for number in range(30):
            self.assertEqual(self.session.value("%d" % number), number)


class Errors(SessionTest):
    def test_error_is_reported_and_variables_stay(self):
        outcome = self.session.run("y = 5\n1 / 0")
        self.assertEqual((outcome.done["status"], outcome.done["ename"]), ("error", "ZeroDivisionError"))
        self.assertEqual(outcome.error["evalue"], "division by zero")
        self.assertIn("1 / 0", outcome.traceback)
        self.assert_no_driver_frames(outcome)
        self.assertEqual(self.session.value("y"), 5)

    def test_traceback_has_every_frame_of_user_code_and_none_of_the_driver(self):
        self.run_ok("def outer():\n    return inner()")
        self.run_ok("def inner():\n    raise LookupError('deep')")
        outcome = self.session.run("outer()")
        for line in ("outer()", "return inner()", "raise LookupError('deep')"):
            self.assertIn(line, outcome.traceback)
        self.assert_no_driver_frames(outcome)

    def test_chained_errors_have_no_driver_frames(self):
        outcome = self.session.run("try:\n    input()\nexcept EOFError as e:\n    raise ValueError('second') from e")
        self.assertIn("EOFError", outcome.traceback)
        self.assertIn("ValueError: second", outcome.traceback)
        self.assert_no_driver_frames(outcome)

    def test_syntax_error_is_reported_with_its_line(self):
        outcome = self.session.run("ok = 1\ndef f(:")
        self.assertEqual(outcome.done["ename"], "SyntaxError")
        self.assertIn("def f(:", outcome.traceback)
        self.assert_no_driver_frames(outcome)
        self.assertEqual(self.session.run("ok").done["ename"], "NameError")

    def test_nul_character_in_the_code_is_an_error_of_the_cell(self):
        outcome = self.session.run("1\0")
        self.assertEqual(outcome.done["status"], "error")
        self.assertIn(outcome.done["ename"], ("SyntaxError", "ValueError"))
        self.assert_no_driver_frames(outcome)
        self.assert_works()

    def test_lone_surrogate_in_the_code_is_an_error_of_the_cell(self):
        outcome = self.session.run("'\ud800'")
        self.assertEqual(outcome.done["status"], "error")
        self.assert_works()

    def test_deep_recursion_is_an_error_of_the_cell(self):
        outcome = self.session.run("def f(n): return f(n + 1)\nf(0)")
        self.assertEqual(outcome.done["ename"], "RecursionError")
        self.assertLess(len(outcome.traceback), 20_000)
        self.assert_no_driver_frames(outcome)
        self.assert_works()

    def test_error_whose_str_fails_is_reported_all_the_same(self):
        for body in ("raise KeyError('inner')", "return 5", "return self.__str__()", "raise SystemExit(3)", "raise KeyboardInterrupt"):
            outcome = self.session.run("class Bad(Exception):\n    def __str__(self): %s\nraise Bad" % body)
            self.assertEqual((outcome.done.get("status"), outcome.done.get("ename")), ("error", "Bad"), body)
            self.assertEqual(outcome.error["ename"], "Bad")
            self.assert_works()

    def test_any_base_exception_ends_the_cell_and_not_the_interpreter(self):
        outcome = self.session.run("class Odd(BaseException): pass\nraise Odd('odd')")
        self.assertEqual((outcome.done["status"], outcome.error["evalue"]), ("error", "odd"))
        self.assert_works()


class Representations(SessionTest):
    def shown(self, body):
        return self.session.run("class Hostile:\n    def __repr__(self): %s\nHostile()" % body)

    def test_object_whose_repr_raises_is_described_from_outside(self):
        outcome = self.shown("raise ValueError('boo')")
        self.assertEqual(outcome.done["status"], "ok")
        self.assertRegex(outcome.result, "Hostile.*ValueError: boo")

    def test_object_whose_repr_is_not_a_string_is_described_from_outside(self):
        outcome = self.shown("return 5")
        self.assertEqual(outcome.done["status"], "ok")
        self.assertRegex(outcome.result, "Hostile.*TypeError")

    def test_object_whose_repr_recurses_without_end_is_described_from_outside(self):
        outcome = self.shown("return repr(self)")
        self.assertEqual(outcome.done["status"], "ok")
        self.assertRegex(outcome.result, "Hostile.*RecursionError")

    def test_repr_that_exits_or_raises_an_interrupt_ends_only_the_cell(self):
        self.assertEqual(self.shown("raise SystemExit(3)").done["status"], "exit")
        self.assert_works()
        self.assertEqual(self.shown("raise KeyboardInterrupt").done["status"], "error")
        self.assert_works()

    def test_repr_of_a_str_subclass_is_sent_as_plain_text(self):
        outcome = self.session.run("class T(str):\n    def __str__(self): raise ValueError\nclass A:\n    def __repr__(self): return T('tee')\nA()")
        self.assertEqual(outcome.result, "tee")

    def test_repr_of_a_huge_collection_is_truncated(self):
        for code in ("list(range(10**6))", "tuple(range(10**6))", "set(range(10**6))", "{n: n for n in range(10**6)}"):
            outcome = self.run_ok(code)
            self.assertLess(len(outcome.result), 50_000, code)
            self.assertIn("...", outcome.result)

    def test_deeply_nested_collection_does_not_break_its_cell(self):
        outcome = self.run_ok("a = []\nfor _ in range(100_000): a = [a]\na")
        self.assertIsNotNone(outcome.result)
        self.assert_works()


class Exits(SessionTest):
    def test_sys_exit_reports_its_code_and_keeps_variables(self):
        self.run_ok("import sys\nz = 9")
        for code, number in (("sys.exit(3)", 3), ("exit()", 0), ("quit(4)", 4), ("sys.exit()", 0), ("raise SystemExit(True)", 1), ("sys.exit(-1)", 255)):
            outcome = self.session.run(code)
            self.assertEqual((outcome.done["status"], outcome.done["code"]), ("exit", number), code)
            self.assertIsNone(outcome.error)
            self.assertEqual(self.session.value("z"), 9)

    def test_sys_exit_with_a_text_prints_it_to_stderr(self):
        outcome = self.session.run("import sys\nsys.exit('that is why')")
        self.assertEqual((outcome.done["status"], outcome.done["code"]), ("exit", 1))
        self.assertEqual(outcome.stderr, "that is why\n")
        self.assert_works()

    def test_sys_exit_with_a_text_works_while_stderr_is_broken(self):
        outcome = self.session.run("import sys\nsys.stderr = 5\nsys.exit('unheard')")
        self.assertEqual((outcome.done.get("status"), outcome.done.get("code")), ("exit", 1))
        self.assert_works()

    def test_sys_exit_skips_the_rest_of_the_cell(self):
        self.assertEqual(self.session.run("print(1)\nexit()\nprint(2)").stdout, "1\n")


class Input(SessionTest):
    def test_input_raises_end_of_file_at_once(self):
        outcome = self.session.run("name = input('who? ')")
        self.assertEqual(outcome.done["ename"], "EOFError")
        self.assertIn("name = input('who? ')", outcome.traceback)
        self.assert_no_driver_frames(outcome)

    def test_getpass_raises_end_of_file_at_once(self):
        outcome = self.session.run("import getpass, warnings\nwarnings.simplefilter('ignore')\ngetpass.getpass()")
        self.assertEqual(outcome.done["ename"], "EOFError")
        self.assert_no_driver_frames(outcome)

    def test_standard_input_is_empty(self):
        self.assertEqual(self.session.value("import sys, subprocess\nsys.stdin.read(), subprocess.run('cat', capture_output=True).stdout"), ("", b""))


class Awaiting(SessionTest):
    def test_await_works_at_the_top_level_of_a_cell(self):
        self.assertEqual(self.session.value("import asyncio\nawait asyncio.sleep(0.001, 'slept')"), "slept")

    def test_asyncio_task_goes_on_in_the_next_cell(self):
        self.run_ok(
            "import asyncio\nasync def work():\n    await asyncio.sleep(0.01)\n    return 'worked'\ntask = asyncio.ensure_future(work())\nawait asyncio.sleep(0)"
        )
        self.assertEqual(self.session.value("await task"), "worked")

    def test_error_in_an_awaited_coroutine_has_the_users_traceback(self):
        outcome = self.session.run("async def bad():\n    raise LookupError('inside')\nawait bad()")
        self.assertEqual(outcome.done["ename"], "LookupError")
        self.assertIn("raise LookupError('inside')", outcome.traceback)
        self.assertNotIn("asyncio", outcome.traceback)
        self.assert_no_driver_frames(outcome)

    def test_interrupted_await_does_not_go_on_in_a_later_cell(self):
        code = "import asyncio\nasync def beat():\n    while True:\n        print('beat')\n        await asyncio.sleep(0.05)\nawait beat()"
        outcome = self.session.run(code, timeout=0.3)
        self.assertEqual(outcome.done["stopped"], {"why": "timeout", "rung": "interrupted"})
        self.assert_no_driver_frames(outcome)
        self.assertEqual(self.run_ok("await asyncio.sleep(0.2)").stdout, "")


if __name__ == "__main__":
    unittest.main()
