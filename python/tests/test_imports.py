"""Tests that missing packages are asked for once, at an import of user code, and that the cell goes on from there."""

import os
import unittest

from harness import SessionTest


class MissingPackages(SessionTest):
    def test_missing_package_is_asked_for_at_a_plain_import(self):
        for code, name in (
            ("import missing_a", "missing_a"),
            ("import missing_b as b", "missing_b"),
            ("from missing_c import thing", "missing_c"),
            ("import missing_d.part", "missing_d"),
            ("def f():\n    import missing_e\nf()", "missing_e"),
            ("try:\n    import missing_f\nfinally:\n    pass", "missing_f"),
            ("try:\n    import missing_g\nexcept KeyError:\n    pass", "missing_g"),
            ("with open('/dev/null'):\n    import missing_h", "missing_h"),
        ):
            outcome = self.session.run(code)
            self.assertEqual(outcome.installs, [name], code)
            self.assertEqual(outcome.done["ename"], "ModuleNotFoundError", code)
            self.assertIn("No module named '%s'" % name, outcome.error["evalue"])
            self.assert_no_driver_frames(outcome)

    def test_missing_package_is_asked_for_once(self):
        self.assertEqual(self.session.run("import missing_once").installs, ["missing_once"])
        self.assertEqual(self.session.run("import missing_once").installs, [])

    def test_missing_package_is_not_asked_for_inside_a_try_or_suppress(self):
        for code in (
            "try:\n    import missing_a\nexcept ImportError:\n    pass",
            "try:\n    import missing_a\nexcept ModuleNotFoundError:\n    pass",
            "try:\n    import missing_a\nexcept (KeyError, Exception):\n    pass",
            "try:\n    import missing_a\nexcept:\n    pass",
            "import contextlib\nwith contextlib.suppress(ImportError):\n    import missing_a",
            "from contextlib import suppress\nwith suppress(ModuleNotFoundError):\n    from missing_a import b",
            "def f():\n    import missing_a\ntry:\n    f()\nexcept ImportError:\n    pass",
            "import importlib.util\nassert importlib.util.find_spec('missing_a') is None",
            "import importlib\ntry:\n    importlib.import_module('missing_a')\nexcept ImportError:\n    pass",
        ):
            self.assertEqual(self.run_ok(code).installs, [], code)

    def test_missing_package_is_not_asked_for_by_import_module_or_exec(self):
        for code in ("import importlib\nimportlib.import_module('missing_a')", "__import__('missing_a')", "exec('import missing_a')"):
            outcome = self.session.run(code)
            self.assertEqual((outcome.installs, outcome.done["ename"]), ([], "ModuleNotFoundError"), code)

    def test_missing_package_is_not_asked_for_inside_a_library(self):
        folder = self.new_folder()
        with open(os.path.join(folder, "library_of_ours.py"), "w") as file:
            file.write("import missing_dependency\n")
        outcome = self.session.run("import sys\nsys.path.append(%r)\nimport library_of_ours" % folder)
        self.assertEqual((outcome.installs, outcome.done["ename"]), ([], "ModuleNotFoundError"))

    def test_missing_package_is_not_asked_for_in_a_thread(self):
        outcome = self.run_ok(
            "import threading\ndef f():\n    try: import missing_a\n    except ImportError: print('no')\nt = threading.Thread(target=f)\nt.start()\nt.join()"
        )
        self.assertEqual((outcome.installs, outcome.stdout), ([], "no\n"))

    def test_hint_of_the_server_is_in_the_import_error(self):
        outcome = self.session.run("import missing_hinted", answer=lambda name: {"installed": False, "hint": "Try another name."})
        self.assertEqual(outcome.error["evalue"], "No module named 'missing_hinted'. Try another name.")
        self.assertIn("import missing_hinted", outcome.traceback)
        self.assert_no_driver_frames(outcome)

    def test_cell_goes_on_after_the_package_was_installed(self):
        folder = self.new_folder()

        def install(name):
            os.mkdir(os.path.join(folder, name))
            with open(os.path.join(folder, name, "__init__.py"), "w") as file:
                file.write("value = 42\n")
            with open(os.path.join(folder, name, "part.py"), "w") as file:
                file.write("value = 43\n")
            return {"installed": True, "paths": [folder]}

        code = "runs = globals().get('runs', 0) + 1\nprint('once')\nimport newly_there.part\nnewly_there.value, newly_there.part.value, runs"
        outcome = self.session.run(code, answer=install)
        self.assertEqual((outcome.done.get("status"), outcome.installs), ("ok", ["newly_there"]), outcome)
        self.assertEqual((outcome.stdout, outcome.result), ("once\n", "(42, 43, 1)"))
        self.assertEqual(self.session.value("newly_there.value"), 42)

    def test_package_that_was_installed_but_is_not_found_is_an_import_error(self):
        outcome = self.session.run("import missing_liar", answer=lambda name: {"installed": True})
        self.assertEqual((outcome.installs, outcome.done["ename"]), (["missing_liar"], "ModuleNotFoundError"))
        self.assert_works()

    def test_missing_submodule_of_an_installed_package_is_an_import_error(self):
        outcome = self.session.run("import json.missing_part")
        self.assertEqual(outcome.done["ename"], "ModuleNotFoundError")
        self.assertIn("json.missing_part", outcome.error["evalue"])
        self.assert_works()

    def test_time_limit_holds_while_an_install_is_awaited(self):
        self.session.start("import missing_slow", timeout=0.2)
        events = [self.session.receive()["ev"], self.session.receive()["ev"]]
        self.assertEqual(events, ["install", "error"])
        outcome = self.session.finish()
        self.assertEqual(outcome.done["stopped"], {"why": "timeout", "rung": "interrupted"})
        self.session.send("answer", installed=True)
        self.assert_works()

    def test_time_out_during_an_install_has_no_driver_frames(self):
        self.session.start("import missing_slow", timeout=0.2)
        self.session.receive()
        event = self.session.receive()
        self.assertEqual(event["ename"], "KeyboardInterrupt")
        self.assertNotIn("cuvette_driver", "\n".join(event["traceback"]))

    def test_variables_request_during_an_install_is_answered_afterwards(self):
        self.session.start("before = 1\nimport missing_open\n")
        self.assertEqual(self.session.receive()["ev"], "install")
        self.session.send("variables", id="v")
        self.session.send("answer", installed=False, hint="the hint")
        events = [self.session.receive() for _ in range(3)]
        error = next(event for event in events if event["ev"] == "error")
        self.assertIn("the hint", error["evalue"])
        listed = next(event for event in events if event["ev"] == "variables")
        self.assertEqual([entry["name"] for entry in listed["variables"]], ["before"])

    def test_late_answer_to_an_install_is_not_taken_for_the_next_one(self):
        self.session.start("import missing_first", timeout=0.2)
        self.session.receive()
        self.session.receive()
        self.session.finish()
        self.session.start("import missing_second")
        self.assertEqual(self.session.receive()["name"], "missing_second")
        self.session.send("answer", name="missing_first", installed=False, hint="too late")
        self.session.send("answer", name="missing_second", installed=False, hint="just in time")
        self.assertIn("just in time", self.session.finish().error["evalue"])


if __name__ == "__main__":
    unittest.main()
