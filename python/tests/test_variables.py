"""Tests the list of the user's variables."""

import unittest

from harness import SessionTest


class Variables(SessionTest):
    def listed(self, code):
        self.run_ok(code)
        return {entry.pop("name"): entry for entry in self.session.variables()}

    def test_fresh_session_has_no_variables(self):
        self.assertEqual(self.session.variables(), [])

    def test_listed_variables_are_exactly_the_users_and_sorted(self):
        self.run_ok("import math; pi_squared = math.pi**2")
        self.assertEqual([entry["name"] for entry in self.session.variables()], ["math", "pi_squared"])
        self.run_ok("_ = 1\n5 * 5\n'shown'")
        self.run_ok("zeta = Alpha = mid = 1")
        self.assertEqual([entry["name"] for entry in self.session.variables()], ["Alpha", "math", "mid", "pi_squared", "zeta"])

    def test_variables_of_a_failed_cell_are_listed(self):
        self.session.run("before = 1\n1 / 0\nafter = 2")
        self.assertEqual([entry["name"] for entry in self.session.variables()], ["before"])

    def test_variables_are_listed_with_types_lengths_and_sizes(self):
        found = self.listed("import math\nn = 5\ns = 'text'\nl = [1, 2, 3]\nd = {}\nclass C: pass\nc = C()\ndef f(): pass\nb = b'xy'\nt = True\nnone = None")
        self.assertEqual(
            {name: entry["type"] for name, entry in found.items()},
            {
                "math": "module",
                "n": "int",
                "s": "str",
                "l": "list",
                "d": "dict",
                "C": "type",
                "c": "__main__.C",
                "f": "function",
                "b": "bytes",
                "t": "bool",
                "none": "NoneType",
            },
        )
        self.assertEqual([found[name].get("length") for name in ("s", "l", "d", "b", "n")], [4, 3, 0, 2, None])
        self.assertEqual([found[name].get("preview") for name in ("n", "s", "t", "l")], ["5", "'text'", "True", None])
        self.assertGreater(found["l"]["bytes"], 3 * 8)

    def test_previews_of_variables_are_short(self):
        found = self.listed("s = 'x' * 10**7\nn = 10 ** 100_000\nb = b'y' * 1000")
        for name in ("s", "b"):
            self.assertLessEqual(len(found[name]["preview"]), 80)
        self.assertLessEqual(len(found["n"].get("preview", "")), 80)
        self.assertEqual(found["s"]["length"], 10**7)

    def test_listing_variables_does_not_run_code_of_the_objects(self):
        code = """
class Sly:
    def __repr__(self): raise SystemExit
    def __len__(self): raise SystemExit
    def __sizeof__(self): raise SystemExit
    def __getattribute__(self, name): raise SystemExit
    shape = property(lambda self: 1 / 0)
sly = Sly()
class Masked(type):
    __module__ = property(lambda cls: 1 / 0)
    __name__ = property(lambda cls: 1 / 0)
masked = Masked('M', (), {})()
class Str(str):
    def __len__(self): raise SystemExit
    __getitem__ = __repr__ = __len__
text = Str('abc')
"""
        found = self.listed(code)
        self.assertEqual(sorted(found), ["Masked", "Sly", "Str", "masked", "sly", "text"])
        self.assertEqual(found["sly"]["type"], "__main__.Sly")
        self.assert_works()

    def test_variables_whose_names_are_not_strings_are_skipped(self):
        self.run_ok("globals()[5] = 1\nnormal = 2")
        self.assertEqual([entry["name"] for entry in self.session.variables()], ["normal"])
        self.assert_works()


if __name__ == "__main__":
    unittest.main()
