"""Tests sessions with IPython, pandas and matplotlib: rich results, figures, magics."""

import base64
import importlib.util
import os
import struct
import time
import unittest

from harness import SessionTest

MISSING = [name for name in ("IPython", "pandas", "matplotlib") if importlib.util.find_spec(name) is None]


def size_of(png):
    raw = base64.b64decode(png)
    assert raw[:8] == b"\x89PNG\r\n\x1a\n", raw[:8]
    return struct.unpack(">II", raw[16:24])


@unittest.skipIf(MISSING, "not installed here: " + ", ".join(MISSING))
class RichTest(SessionTest):
    """The libraries are imported by the session, as they are where nothing is preloaded."""


class PreloadedTest(RichTest):
    preload = ("numpy", "pandas", "matplotlib.pyplot")


class Pandas(PreloadedTest):
    def test_data_frame_result_has_text_and_html(self):
        outcome = self.run_ok("import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})")
        data = outcome.of("result")[0]["data"]
        self.assertIn("0  1  x", data["text/plain"])
        self.assertIn("<table", data["text/html"])

    def test_displayed_data_frame_has_text_and_html(self):
        outcome = self.run_ok("import pandas as pd\ndisplay(pd.DataFrame({'a': [1]}))\nNone")
        self.assertIn("<table", outcome.of("display")[0]["data"]["text/html"])

    def test_error_inside_of_pandas_has_no_driver_frames(self):
        outcome = self.session.run("import pandas as pd\npd.DataFrame({'a': [1]})['missing']")
        self.assertEqual(outcome.done["ename"], "KeyError")
        self.assert_no_driver_frames(outcome)

    def test_arrays_and_data_frames_are_listed_with_shape_and_dtype(self):
        self.run_ok("import pandas as pd, numpy as np\nframe = pd.DataFrame({'a': [1.0] * 10})\narray = np.zeros((3, 4))\nseries = frame['a']")
        found = {entry.pop("name"): entry for entry in self.session.variables()}
        self.assertEqual(sorted(found), ["array", "frame", "np", "pd", "series"])
        self.assertEqual((found["frame"]["shape"], found["array"]["shape"], found["series"]["shape"]), ([10, 1], [3, 4], [10]))
        self.assertEqual((found["array"]["bytes"], found["array"]["dtype"]), (96, "float64"))
        self.assertGreaterEqual(found["frame"]["bytes"], 80)


def images(outcome):
    return [event["data"]["image/png"] for event in outcome.of("display")]


class Figures(PreloadedTest):
    def test_figure_is_shown_at_the_end_of_the_cell(self):
        outcome = self.run_ok("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3]);")
        self.assertEqual(len(images(outcome)), 1)
        self.assertGreater(min(size_of(images(outcome)[0])), 100)
        self.assertEqual([event["ev"] for event in outcome.events], ["display", "done"])

    def test_figure_is_shown_by_show_in_order_with_output(self):
        outcome = self.run_ok("import matplotlib.pyplot as plt\nprint('before')\nplt.plot([1, 2])\nplt.show()\nprint('after')")
        shown = [event["text"].strip() if event["ev"] == "stream" else event["ev"] for event in outcome.events]
        self.assertEqual([item for item in shown if item], ["before", "display", "after", "done"])

    def test_several_figures_of_a_cell_are_all_shown(self):
        outcome = self.run_ok("import matplotlib.pyplot as plt\nfor n in range(3):\n    plt.figure(figsize=(n + 2, 2))\n    plt.plot([1, n])")
        widths = [size_of(image)[0] for image in images(outcome)]
        self.assertEqual(len(widths), 3)
        self.assertEqual(widths, sorted(widths))

    def test_figure_is_shown_once_and_closed(self):
        self.run_ok("import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()")
        outcome = self.run_ok("plt.get_fignums()")
        self.assertEqual((outcome.of("display"), outcome.result), ([], "[]"))

    def test_saved_figure_is_shown_once_with_its_files(self):
        outcome = self.run_ok("import matplotlib.pyplot as plt\nplt.plot([1])\nplt.savefig('a.png', transparent=True); plt.savefig('b.pdf')\nplt.show()")
        self.assertEqual(len(images(outcome)), 1)
        saved = outcome.of("display")[0]["metadata"]["saved_as"]
        self.assertEqual([os.path.basename(path) for path in saved], ["a.png", "b.pdf"])
        self.assertTrue(all(map(os.path.isabs, saved)), saved)

    def test_figure_that_was_drawn_since_its_change_counts_as_changed(self):
        outcome = self.run_ok("import matplotlib.pyplot as plt\nplt.plot([1])\nplt.savefig('a.png')\nplt.title('t'); plt.gcf().canvas.draw()\nplt.show()")
        self.assertEqual(outcome.of("display")[0]["metadata"], {})

    def test_closed_and_empty_figures_are_not_shown(self):
        outcome = self.run_ok("import matplotlib.pyplot as plt\nplt.plot([1])\nplt.close()\nplt.figure();")
        self.assertEqual(outcome.of("display"), [])

    def test_figure_of_a_failed_cell_is_shown(self):
        outcome = self.session.run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\n1 / 0")
        self.assertEqual((outcome.done["ename"], len(images(outcome))), ("ZeroDivisionError", 1))
        self.assertEqual(self.run_ok("1").of("display"), [])

    def test_figure_that_cannot_be_drawn_fails_only_its_own_cell(self):
        outcome = self.session.run("import matplotlib.pyplot as plt\nplt.plot([1])\nplt.title('$\\\\nosuchmacro{$');")
        self.assertEqual(outcome.done["status"], "error")
        self.assert_no_driver_frames(outcome)
        self.assertEqual(self.run_ok("1").result, "1")

    def test_huge_figure_is_bounded_and_has_a_preview(self):
        outcome = self.run_ok("import matplotlib.pyplot as plt\nplt.figure(figsize=(60, 10), dpi=100)\nplt.plot([1, 2]);")
        event = outcome.of("display")[0]
        self.assertLessEqual(max(size_of(event["data"]["image/png"])), 3500)
        self.assertLessEqual(max(size_of(event["preview"])), 1568)

    def test_small_figure_has_no_preview(self):
        self.assertNotIn("preview", self.run_ok("import matplotlib.pyplot as plt\nplt.plot([1, 2]);").of("display")[0])

    def test_matplotlib_magic_keeps_the_sessions_backend(self):
        for magic in ("%matplotlib inline", "%matplotlib", "%matplotlib notebook"):
            outcome = self.run_ok(magic + "\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]);")
            self.assertEqual(len(images(outcome)), 1, magic)
            self.assertEqual(outcome.stderr, "", magic)

    def test_backend_that_code_chose_is_left_alone(self):
        outcome = self.run_ok("import matplotlib\nmatplotlib.use('agg')\nimport matplotlib.pyplot as plt\nplt.plot([1]);")
        self.assertEqual(outcome.of("display"), [])
        self.assertEqual(self.session.value("len(plt.get_fignums())"), 1)

    def test_drawing_of_a_figure_is_interrupted_at_the_time_limit(self):
        outcome = self.session.run("import matplotlib.pyplot as plt, time\nplt.plot([1])\nplt.gcf().savefig = lambda *a, **k: time.sleep(60)", timeout=2)
        self.assertEqual(outcome.done["stopped"]["why"], "timeout", outcome)
        self.assertNotIn("death", outcome.done)
        self.assertEqual(self.run_ok("1").result, "1")


class FiguresOfALateImport(RichTest):
    def test_figure_of_a_late_import_is_shown_by_show_and_at_the_end(self):
        outcome = self.run_ok("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nprint('after')\nplt.plot([3, 4]);")
        shown = [event["text"].strip() if event["ev"] == "stream" else event["ev"] for event in outcome.events]
        self.assertEqual([item for item in shown if item], ["display", "after", "display", "done"])

    def test_matplotlib_alone_does_not_import_pyplot(self):
        self.assertEqual(self.session.value("import sys, matplotlib\n'matplotlib.pyplot' in sys.modules"), False)

    def test_find_spec_of_matplotlib_does_not_disturb_its_import(self):
        self.run_ok("import importlib.util\nimportlib.util.find_spec('matplotlib');")
        self.assertEqual(len(images(self.run_ok("import matplotlib.pyplot as plt\nplt.plot([1, 2]);"))), 1)

    def test_backend_set_by_the_environment_is_left_alone(self):
        self.session = self.new_session(env={**os.environ, "MPLBACKEND": "agg"})
        self.assertEqual(self.run_ok("import matplotlib.pyplot as plt\nplt.plot([1]);").of("display"), [])

    def test_package_installed_just_now_shows_figures(self):
        """Asked for as missing, and installed then, it draws as if it had been there from the start."""
        path = os.path.dirname(os.path.dirname(importlib.util.find_spec("matplotlib").origin))
        self.run_ok("import sys\nsys.path.remove(%r)\nsys.path_importer_cache.clear()" % path)
        outcome = self.session.run("import matplotlib.pyplot as plt\nplt.plot([1, 2]);", answer=lambda name: {"installed": True, "paths": [path]})
        self.assertEqual((outcome.installs, len(images(outcome))), (["matplotlib"], 1), outcome)


class Magics(RichTest):
    def test_line_magic_runs(self):
        self.assertEqual(self.session.value("%pwd"), os.path.join(self.zygote.folder, "work"))

    def test_shell_command_runs_with_its_output_captured(self):
        outcome = self.run_ok("name = 'world'\n!echo hello {name}")
        self.assertEqual(outcome.stdout, "hello world\n")
        self.assertEqual(self.session.value("lines = !printf 'a\\nb'\nlist(lines)"), ["a", "b"])

    def test_shell_command_sees_python_variables(self):
        self.assertEqual(self.run_ok("def f():\n    inner = 'local'\n    !echo {inner}\nf()").stdout, "local\n")

    def test_cell_magics_run(self):
        outcome = self.run_ok("%%time\nx = 1\nx + 1")
        self.assertIn("Wall time", outcome.stdout)
        self.assertEqual(outcome.result, "2")
        self.assertEqual(self.run_ok("%%bash\necho from bash").stdout, "from bash\n")

    def test_unknown_magic_is_an_error_of_the_cell(self):
        outcome = self.session.run("%no_such_magic")
        self.assertIn("no_such_magic", outcome.printed + outcome.traceback)
        self.assert_works()

    def test_ipython_names_of_last_values_work(self):
        self.run_ok("6 * 7")
        self.assertEqual(self.session.value("_ + 1"), 43)
        self.assertEqual(self.session.value("Out[1], _1, _2"), (42, 42, 43))

    def test_question_mark_shows_help(self):
        outcome = self.run_ok("len?")
        self.assertIn("Return the number of items", outcome.stdout + str(outcome.of("display")))

    def test_semicolon_in_a_magic_does_not_hide_later_values(self):
        self.assertIsNone(self.run_ok("%time 5;").result)
        self.assertEqual(self.run_ok("6").result, "6")

    def test_errors_in_a_cell_with_magics_have_no_driver_frames(self):
        outcome = self.session.run("%pwd\ndef f():\n    return 1 / 0\nf()")
        self.assertEqual(outcome.done["ename"], "ZeroDivisionError")
        self.assertIn("return 1 / 0", outcome.traceback)
        self.assert_no_driver_frames(outcome)

    def test_errors_that_a_magic_shows_fail_the_cell(self):
        outcome = self.session.run("%%time\n1 / 0")
        self.assertEqual((outcome.done["status"], outcome.done["ename"]), ("error", "ZeroDivisionError"))
        self.assert_no_driver_frames(outcome)

    def test_magic_is_interrupted_at_the_time_limit(self):
        outcome = self.session.run("%%time\nimport time\ntime.sleep(60)", timeout=0.3)
        self.assertEqual(outcome.done["stopped"], {"why": "timeout", "rung": "interrupted"})
        self.assertNotIn("cuvette_driver", outcome.traceback + outcome.printed)
        self.assert_works()

    def test_sys_exit_in_a_cell_with_magics_reports_its_code(self):
        self.run_ok("kept = 1")
        outcome = self.session.run("%pwd\nexit(3)")
        self.assertEqual((outcome.done["status"], outcome.done["code"]), ("exit", 3))
        self.assertEqual(self.session.value("kept"), 1)

    def test_await_in_a_cell_with_magics_uses_the_sessions_event_loop(self):
        self.run_ok("import asyncio\nqueue = asyncio.Queue()\nawait queue.put('over the cells')\nloop = asyncio.get_running_loop()\nawait asyncio.sleep(0)")
        outcome = self.run_ok("here = %pwd\nsame = asyncio.get_running_loop() is loop\nprint(await queue.get(), same)")
        self.assertEqual(outcome.stdout, "over the cells True\n")

    def test_missing_package_is_asked_for_in_a_cell_with_magics(self):
        self.assertEqual(self.session.run("%pwd\nimport missing_in_magics").installs, ["missing_in_magics"])
        self.assertEqual(self.run_ok("%pwd\ntry: import missing_guarded\nexcept ImportError: pass").installs, [])

    def test_display_with_an_id_can_be_updated(self):
        outcome = self.run_ok("from IPython.display import display\nhandle = display('one', display_id='it')\nhandle.update('two')")
        shown = [(event["data"]["text/plain"], event["display_id"], event["update"]) for event in outcome.of("display")]
        self.assertEqual(shown, [("'one'", "it", False), ("'two'", "it", True)])

    def test_ipython_display_objects_are_shown(self):
        outcome = self.run_ok("from IPython.display import HTML, Markdown, display\ndisplay(Markdown('*m*'))\nHTML('<i>h</i>')")
        self.assertEqual(outcome.of("display")[0]["data"]["text/markdown"], "*m*")
        self.assertEqual(outcome.of("result")[0]["data"]["text/html"], "<i>h</i>")

    def test_names_that_ipython_defines_are_not_listed_as_variables(self):
        self.run_ok("%pwd")
        self.run_ok("mine = 1\nmine")
        self.run_ok("x = !echo x")
        self.assertEqual([entry["name"] for entry in self.session.variables()], ["mine", "x"])

    def test_autoreload_reloads_changed_modules(self):
        folder = self.new_folder()
        path = os.path.join(folder, "changing_module.py")
        with open(path, "w") as file:
            file.write("value = 'old'\n")
        self.run_ok("import sys\nsys.dont_write_bytecode = True\nsys.path.insert(0, %r)" % folder)
        self.run_ok("%load_ext autoreload\n%autoreload 2")
        self.assertEqual(self.session.value("import changing_module\nchanging_module.value"), "old")
        with open(path, "w") as file:
            file.write("value = 'new, and longer'\n")
        os.utime(path, (time.time() + 10, time.time() + 10))
        self.assertEqual(self.session.value("changing_module.value"), "new, and longer")


if __name__ == "__main__":
    unittest.main()
