"""Tests how a session begins: its folder and environment, its startup script, and what it must not share with its siblings."""

import importlib.util
import os
import shutil
import unittest

from harness import SessionTest

HAS_NUMPY = importlib.util.find_spec("numpy") is not None


class Surroundings(SessionTest):
    def test_session_starts_in_its_own_folder_with_its_own_environment(self):
        folder = self.new_folder()
        self.session = self.new_session(cwd=folder, env={"PATH": os.environ["PATH"], "ONLY_HERE": "yes"})
        self.assertEqual(self.session.value("import os\nos.getcwd(), os.environ.get('ONLY_HERE'), 'HOME' in os.environ"), (folder, "yes", False))
        self.assertEqual(self.run_ok("os.system('pwd; echo $ONLY_HERE');").stdout, folder + "\nyes\n")

    def test_session_has_the_time_zone_of_its_environment(self):
        session = self.new_session(env={**os.environ, "TZ": "Etc/GMT-5"})
        self.assertEqual(session.value("import time\ntime.localtime(0).tm_hour, time.timezone"), (5, -18000))

    def test_modules_in_the_session_folder_can_be_imported(self):
        folder = self.new_folder()
        with open(os.path.join(folder, "module_in_the_folder.py"), "w") as file:
            file.write("value = 'from the folder'\n")
        session = self.new_session(cwd=folder)
        self.assertEqual(session.value("import module_in_the_folder\nmodule_in_the_folder.value"), "from the folder")

    def test_driver_modules_cannot_be_imported_by_their_own_names(self):
        for name in ("cuvette_driver", "keeper", "worker", "wire", "zygote", "display"):
            outcome = self.session.run("import sys\nsys.modules.pop(%r, None)\nimport %s" % (name, name))
            self.assertEqual(outcome.done.get("ename"), "ModuleNotFoundError", name)

    def test_sys_argv_is_empty_in_a_new_session(self):
        self.assertEqual(self.session.value("import sys\nsys.argv"), [""])

    def test_session_warns_after_a_death_that_its_folder_is_gone(self):
        folder = self.new_folder()
        self.session = self.new_session(cwd=folder)
        self.run_ok("1")
        shutil.rmtree(folder)
        self.session.run("import os\nos._exit(1)")
        outcome = self.run_ok("'still here'")
        self.assertEqual(outcome.result, "'still here'")
        self.assertIn(folder, outcome.stderr)
        self.assertEqual(len(self.session.restarts), 1)
        self.assertEqual(self.run_ok("1").stderr, "")


class Startup(SessionTest):
    def test_startup_runs_before_the_first_cell(self):
        self.session = self.new_session(startup="import math\nready = math.pi\nprint('starting')")
        outcome = self.run_ok("ready > 3")
        self.assertEqual((outcome.stdout, outcome.result), ("starting\n", "True"))
        self.assertEqual(self.run_ok("ready > 3").stdout, "")

    def test_startup_runs_again_after_a_reset_and_a_death(self):
        self.session = self.new_session(startup="ready = 1")
        self.session.ask("reset")
        self.assertEqual(self.session.value("ready"), 1)
        self.session.run("import os\nos._exit(1)")
        self.assertEqual(self.session.value("ready"), 1)

    def test_startup_that_fails_is_reported_as_the_error_of_the_first_cell(self):
        self.session = self.new_session(startup="before = 1\n1 / 0")
        outcome = self.session.run("'never'")
        self.assertEqual((outcome.done["status"], outcome.done["ename"], outcome.result), ("error", "ZeroDivisionError", None))
        self.assertEqual(self.session.value("before"), 1)


class Siblings(SessionTest):
    preload = ("random", "uuid", "ssl", "secrets", "tempfile") + (("numpy.random",) if HAS_NUMPY else ())

    def assert_all_differ(self, code):
        """Three siblings, each with a sibling in time: the interpreter after a reset."""
        values = []
        for session in (self.session, self.new_session(), self.new_session()):
            values.append(session.run(code).result)
            session.ask("reset")
            values.append(session.run(code).result)
        self.assertNotIn(None, values)
        self.assertEqual(len(set(values)), len(values), values)

    def test_random_numbers_differ_between_siblings(self):
        self.assert_all_differ("import random\nrandom.random()")

    def test_uuids_differ_between_siblings(self):
        self.assert_all_differ("import uuid\nstr(uuid.uuid4())")
        self.assert_all_differ("import uuid\nstr(uuid.uuid1())")

    def test_openssl_random_bytes_differ_between_siblings(self):
        self.assert_all_differ("import ssl\nssl.RAND_bytes(16)")

    def test_secrets_differ_between_siblings(self):
        self.assert_all_differ("import secrets\nsecrets.token_hex()")

    def test_temporary_file_names_differ_between_siblings(self):
        self.assert_all_differ("import tempfile\ntempfile.mktemp()")

    @unittest.skipUnless(HAS_NUMPY, "numpy is not installed")
    def test_numpy_random_numbers_differ_between_siblings(self):
        self.assert_all_differ("import numpy\nnumpy.random.random()")
        self.assert_all_differ("import numpy\nnumpy.random.default_rng().random()")


if __name__ == "__main__":
    unittest.main()
