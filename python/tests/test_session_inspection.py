"""Tests looking at a value without running a cell: tables, trees and texts, and objects whose own code is hostile."""

import unittest

from harness import SessionTest


class Inspection(SessionTest):
    def look(self, path, **window):
        return self.session.inspect(path, **window)

    def test_list_of_dicts_is_a_table(self):
        self.run_ok("people = [{'name': 'Ada', 'born': 1815}, {'name': 'Alan', 'died': 1954}]")
        table = self.look("people")
        self.assertEqual([column["name"] for column in table["columns"]], ["name", "born", "died"])
        self.assertEqual(table["rows"], [["Ada", 1815, None], ["Alan", None, 1954]])
        self.assertEqual((table["kind"], table["row_count"], table["column_count"], table["index"]), ("table", 2, 3, ["0", "1"]))

    def test_dict_of_lists_is_a_table_of_which_a_window_is_told(self):
        self.run_ok("data = {'n': list(range(1000)), 'square': [n * n for n in range(1000)], 'half': [n / 2 for n in range(1000)]}")
        table = self.look("data", offset=990, limit=5, columns=[1, 2])
        self.assertEqual(table["rows"], [[n * n] for n in range(990, 995)])
        self.assertEqual((table["row_count"], table["column_count"], table["offset"], table["column_offset"]), (1000, 3, 990, 1))
        self.assertEqual(self.look("data", offset=5000)["rows"], [])

    def test_table_is_sorted_and_filtered(self):
        self.run_ok("data = {'name': ['b', 'c', None, 'a', 'bb'], 'n': [2, 3, 1, float('nan'), 0]}")
        self.assertEqual([row[0] for row in self.look("data", sort="name")["rows"]], ["a", "b", "bb", "c", None])
        self.assertEqual([row[1] for row in self.look("data", sort="n", desc=True)["rows"]], [3, 2, 1, 0, "NaN"])
        found = self.look("data", sort="n", filter="B")
        self.assertEqual((found["rows"], found["index"], found["row_count"], found["total_count"]), ([["bb", 0], ["b", 2]], ["4", "0"], 2, 5))

    def test_what_was_sorted_is_sorted_anew_after_code_ran(self):
        self.run_ok("data = {'n': [3, 1, 2]}")
        self.assertEqual(self.look("data", sort="n")["rows"], [[1], [2], [3]])
        self.run_ok("data['n'][1] = 9")
        self.assertEqual(self.look("data", sort="n")["rows"], [[2], [3], [9]])

    def test_values_that_cannot_be_compared_are_sorted_by_their_text(self):
        self.run_ok("data = {'v': ['b', 2, 'a', 1]}")
        self.assertEqual(self.look("data", sort="v")["rows"], [[1], [2], ["a"], ["b"]])

    def test_unknown_column_and_unknown_variable_are_told(self):
        self.run_ok("data = {'v': [1]}\nitems = [1]")
        self.assertEqual(self.look("data", sort="w"), {"code": "invalid", "message": "There is no column w."})
        self.assertEqual(self.look("nothing"), {"code": "missing", "message": "There is no variable nothing."})
        self.assertEqual(self.look("items[1]"), {"code": "missing", "message": "items has no [1]."})
        self.assertEqual(self.look("items()")["code"], "missing")

    def test_every_item_of_a_tree_has_a_path_that_leads_to_it(self):
        self.run_ok(
            "class Point:\n    __slots__ = ('x', 'y')\np = Point(); p.x = 1\n"
            "class Box: pass\nbox = Box(); box.inner = {\"it's\": [10, {3: {'deep'}}], (1, 2): 'pair', 7: p}"
        )
        found = {}

        def walk(path):
            tree = self.look(path)
            for item in tree.get("items", ()):
                found[item["path"]] = item["preview"]
                if item["has_children"]:
                    walk(item["path"])

        walk("box")
        self.assertEqual(found['box.inner["it\'s"][0]'], "10")
        self.assertEqual(found['box.inner["it\'s"][1][3][#0]'], "'deep'")
        self.assertEqual(found["box.inner[#1]"], "'pair'")
        self.assertEqual(found["box.inner[7].x"], "1")
        self.assertNotIn("box.inner[7].y", found)

    def test_window_of_a_long_list_is_told(self):
        self.run_ok("numbers = list(range(10**6))")
        tree = self.look("numbers", offset=999_998, limit=10)
        self.assertEqual([(item["key"], item["preview"]) for item in tree["items"]], [("999998", "999998"), ("999999", "999999")])
        self.assertEqual((tree["kind"], tree["count"], tree["offset"]), ("tree", 10**6, 999_998))

    def test_values_that_json_lacks_are_told_as_text(self):
        self.run_ok(
            "import datetime, decimal\nrow = [{'nan': float('nan'), 'inf': float('inf'), 'low': -float('inf'), 'big': 2**60, 'huge': 10**100_000, 'bytes': b'ab', 'none': None, 'yes': True, 'date': datetime.date(2024, 1, 2), 'money': decimal.Decimal('1.10')}]"
        )
        (row,) = self.look("row")["rows"]
        self.assertEqual(row, ["NaN", "inf", "-inf", str(2**60), "<an int of 332,193 bits>", "b'ab'", None, True, "2024-01-02", "1.10"])

    def test_long_texts_are_cut_with_a_mark(self):
        self.run_ok("text = 'x' * 10**7\ncells = {'t': [text, 'short']}\nodd = '\\ud800'")
        shown = self.look("text")
        self.assertEqual((shown["kind"], len(shown["text"]), shown["text"][-1], shown["length"]), ("text", 100_000, "…", 10**7))
        (long,), (short,) = self.look("cells")["rows"]
        self.assertEqual((len(long), long[-1], short), (1000, "…", "short"))
        self.assertEqual(self.look("odd")["text"], "\ud800")

    def test_answer_is_bounded_however_large_the_cells_are(self):
        self.run_ok("wide = {'c%d' % n: ['y' * 10_000] * 1000 for n in range(200)}")
        table = self.look("wide", limit=1000, columns=[0, 200])
        self.assertEqual((len(table["rows"]), len(table["rows"][0])), (1000, 200))
        self.assertLess(sum(len(cell) for row in table["rows"] for cell in row), 5_000_000)

    def test_objects_own_code_does_not_harm_the_session(self):
        self.run_ok(
            "class Sly:\n"
            "    def __repr__(self): raise SystemExit\n"
            "    def __len__(self): raise SystemExit\n"
            "    def __getattribute__(self, name): raise SystemExit\n"
            "    def __iter__(self): raise SystemExit\n"
            "class Masked(type):\n"
            "    __module__ = property(lambda cls: 1 / 0)\n"
            "    __name__ = __mro__ = property(lambda cls: 1 / 0)\n"
            "class List(list):\n"
            "    def __len__(self): raise SystemExit\n"
            "    __getitem__ = __iter__ = __repr__ = __len__\n"
            "class Dict(dict):\n"
            "    def items(self): raise SystemExit\n"
            "    __len__ = __iter__ = __getitem__ = items\n"
            "sly = Sly(); masked = Masked('M', (), {})(); items = List([1, sly]); pairs = Dict(a=sly)\n"
            "cells = {'v': [sly, 1]}"
        )
        self.assertEqual(self.look("sly")["text"], "<__main__.Sly: its __repr__ raised SystemExit>")
        self.assertEqual(self.look("masked")["kind"], "text")
        self.assertEqual([item["preview"] for item in self.look("items")["items"]], ["1", "<__main__.Sly: its __repr__ raised SystemExit>"])
        self.assertEqual(self.look("pairs['a']")["kind"], "text")
        self.assertEqual(self.look("cells")["rows"], [["<__main__.Sly: its __repr__ raised SystemExit>"], [1]])
        self.assert_works()

    def test_repr_that_never_ends_is_given_up_and_the_rest_is_told(self):
        self.run_ok("class Slow:\n    def __repr__(self):\n        while True: pass\ncells = {'a': [1, 2], 'v': [Slow(), Slow()], 'z': [3, 4]}")
        table = self.look("cells", timeout=0.5)
        self.assertEqual(table["rows"], [[1, "<__main__.Slow: showing it took too long>", 3], [2, "<__main__.Slow: not shown, because the time was up>", 4]])
        self.assertEqual(self.session.restarts, [])
        self.assertEqual(self.session.value("len(cells['a'])"), 2)

    def test_repr_that_ignores_interrupts_ends_the_interpreter_and_not_the_session(self):
        self.run_ok(
            "import signal\nclass Stubborn:\n    def __repr__(self):\n        signal.signal(signal.SIGINT, signal.SIG_IGN)\n        while True: pass\nit = Stubborn()"
        )
        self.assertEqual(self.look("it", timeout=0.2)["code"], "died")
        self.assert_works()
        (restart,) = self.session.restarts
        self.assertTrue(restart["idle"])

    def test_object_that_ends_the_process_ends_the_look_with_it(self):
        self.run_ok("import os\nclass End:\n    def __repr__(self): os._exit(3)\nend = End()")
        self.assertEqual(self.look("end")["code"], "died")
        self.assert_works()

    def test_nothing_that_an_object_shows_is_seen(self):
        self.run_ok(
            "import os, sys, subprocess\n"
            "class Loud:\n"
            "    def __repr__(self):\n"
            "        print('printed'); print('warned', file=sys.stderr); os.write(1, b'written'); subprocess.run(['echo', 'echoed']); display('displayed')\n"
            "        try: import no_such_module_at_all\n"
            "        except ImportError: pass\n"
            "        return 'loud'\n"
            "loud = Loud()"
        )
        id = "inspect-loud"
        self.session.send("inspect", id=id, path="loud", timeout=20)
        event = self.session.receive()
        self.assertEqual((event["ev"], event["id"], event["answer"]["text"]), ("answered", id, "loud"))
        outcome = self.run_ok("print('after')")
        self.assertEqual({event["ev"] for event in outcome.events}, {"stream", "done"})
        self.assertEqual(outcome.stdout, "after\n")

    def test_threads_print_while_somebody_looks(self):
        self.run_ok(
            "import threading, time\nlooked = threading.Event()\n"
            "class Slow:\n"
            "    def __repr__(self):\n"
            "        looked.set(); ended.wait(10)\n"
            "        return 'slow'\n"
            "ended = threading.Event()\n"
            "def talk():\n    looked.wait(); print('still here'); ended.set()\n"
            "threading.Thread(target=talk).start()\nslow = Slow()"
        )
        self.session.send("inspect", id="inspect-slow", path="slow", timeout=20)
        printed, answers = "", []
        while printed != "still here\n" or not answers:
            event = self.session.receive()
            if event["ev"] == "stream":
                printed += event["text"]
            else:
                answers.append(event["answer"]["text"])
        self.assertEqual(answers, ["slow"])

    def test_looking_changes_neither_namespace_nor_last_result(self):
        self.run_ok("data = [{'a': 1}]\n5 * 5")
        before = self.session.variables()
        self.look("data")
        self.look("data[0]")
        self.session.ask("complete", code="data[0].it", cursor=10, timeout=20)
        self.assertEqual(self.session.variables(), before)
        self.assertEqual(self.session.value("_"), 25)

    def test_answers_that_nobody_acknowledges_do_not_hold_up_the_next_call(self):
        self.run_ok("text = 'x' * 10**6")
        for _ in range(8):
            self.session.send("inspect", id="inspect-big", path="text", timeout=20)
            self.assertEqual(self.session.receive(ack=False)["ev"], "answered")
        self.assert_works()

    def test_question_can_be_cancelled(self):
        self.run_ok("import threading\nclass Slow:\n    def __repr__(self):\n        threading.Event().wait()\nit = Slow()")
        self.session.send("inspect", id="inspect-it", path="it", timeout=60)
        self.session.send("interrupt", id="inspect-it", reason="cancelled")
        self.assertEqual(self.session.receive()["answer"]["text"], "<__main__.Slow: showing it took too long>")
        self.assert_works()

    def test_greeting_says_which_questions_are_answered(self):
        self.assertEqual(self.session.hello["asks"], ["inspect", "complete"])

    def test_names_and_attributes_are_completed(self):
        self.run_ok("import math\nvelocity = 3")
        event = self.session.ask("complete", code="x = velo + 1", cursor=8, timeout=20)
        self.assertEqual(event["answer"], {"matches": ["velocity"], "start": 4, "end": 8})
        event = self.session.ask("complete", code="math.sq", cursor=7, timeout=20)
        self.assertIn(event["answer"]["matches"], (["math.sqrt"], ["sqrt"], [".sqrt"]))
        answer = event["answer"]
        completed = "math.sq"[: answer["start"]] + answer["matches"][0] + "math.sq"[answer["end"] :]
        self.assertEqual(completed, "math.sqrt")
        self.assertEqual(self.session.ask("complete", code="no_such_na", cursor=10, timeout=20)["answer"]["matches"], [])


if __name__ == "__main__":
    unittest.main()
