"""Tests looking at tables and arrays of pandas and numpy without running a cell."""

import unittest

from harness import SessionTest

FRAME = """
import numpy as np, pandas as pd
df = pd.DataFrame({
    'n': np.arange(5),
    'x': [0.5, np.nan, np.inf, -1.0, 2.0],
    'when': [pd.Timestamp('2024-01-01'), pd.NaT, pd.Timestamp('2024-01-03 12:30'), pd.Timestamp('2024-01-04'), pd.Timestamp('2024-01-05')],
    'kind': pd.Categorical(['a', 'b', None, 'a', 'b']),
    'text': ['one', None, 'three', 'four', 'five'],
    'maybe': pd.array([1, None, 3, 4, 5], dtype='Int64'),
    'thing': [object, {'k': 1}, [1, 2], b'x', (1,)],
}, index=list('vwxyz'))
"""


class RichTables(SessionTest):
    preload = ("IPython", "numpy", "pandas", "matplotlib")

    def look(self, path, **window):
        return self.session.inspect(path, **window)

    def test_frame_is_told_with_types_index_and_all_kinds_of_cells(self):
        self.run_ok(FRAME)
        table = self.look("df")
        self.assertEqual([column["name"] for column in table["columns"]], ["n", "x", "when", "kind", "text", "maybe", "thing"])
        self.assertEqual([column["dtype"] for column in table["columns"]][:2], ["int64", "float64"])
        self.assertEqual(table["index"], list("vwxyz"))
        columns = dict(zip((column["name"] for column in table["columns"]), zip(*table["rows"])))
        self.assertEqual(columns["n"], (0, 1, 2, 3, 4))
        self.assertEqual(columns["x"], (0.5, "NaN", "inf", -1.0, 2.0))
        self.assertEqual(columns["when"][:3], ("2024-01-01 00:00:00", "NaT", "2024-01-03 12:30:00"))
        self.assertEqual(columns["kind"][0], "a")
        self.assertEqual(columns["maybe"][:2], (1, "<NA>"))
        self.assertEqual(columns["thing"], ("<class 'object'>", "{'k': 1}", "[1, 2]", "b'x'", "(1,)"))

    def test_frame_of_a_million_rows_is_told_by_its_window(self):
        self.run_ok("import numpy as np, pandas as pd\ndf = pd.DataFrame({'n': np.arange(10**6), 'm': np.arange(10**6) % 7, 's': ['row'] * 10**6})")
        self.assertEqual(self.look("df", offset=999_999)["rows"], [[999_999, 999_999 % 7, "row"]])
        self.assertEqual(self.look("df", limit=2, sort="n", desc=True)["rows"], [[999_999, 0, "row"], [999_998, 6, "row"]])
        found = self.look("df", limit=2, columns=[0, 1], filter="99999", timeout=100)
        self.assertEqual((found["rows"], found["total_count"]), ([[99_999], [199_999]], 10**6))

    def test_frame_with_two_columns_of_a_name_and_a_multiindex_is_told(self):
        self.run_ok("import pandas as pd\ndf = pd.DataFrame([[1, 2], [3, 4]], columns=['a', 'a'], index=pd.MultiIndex.from_tuples([('x', 1), ('y', 2)]))")
        table = self.look("df", sort="a", desc=True)
        self.assertEqual((table["rows"], table["index"]), ([[3, 4], [1, 2]], ["y, 2", "x, 1"]))

    def test_series_and_a_column_are_tables(self):
        self.run_ok("import pandas as pd\ns = pd.Series([1, 2], name='ones')\ndf = pd.DataFrame({'a b': [5, 6]})")
        self.assertEqual([self.look("s")[key] for key in ("columns", "rows")], [[{"name": "ones", "dtype": "int64"}], [[1], [2]]])
        self.assertEqual(self.look("df['a b']")["rows"], [[5], [6]])

    def test_empty_frames_are_tables(self):
        self.run_ok("import pandas as pd\nnone = pd.DataFrame()\nrows = pd.DataFrame(index=[1, 2])\ncolumns = pd.DataFrame(columns=['a'])")
        self.assertEqual([self.look(name)["rows"] for name in ("none", "rows", "columns")], [[], [[], []], []])

    def test_arrays_of_one_and_two_dimensions_are_tables(self):
        self.run_ok(
            "import numpy as np\nv = np.array([1.5, np.nan])\nm = np.arange(6).reshape(2, 3)\ndates = np.array(['2024-01-01', 'NaT'], dtype='M8[ns]')\nr = np.array([(1, 'a')], dtype=[('n', 'i4'), ('s', 'U1')])"
        )
        self.assertEqual(self.look("v")["rows"], [[1.5], ["NaN"]])
        self.assertEqual(self.look("m", columns=[1, 3])["rows"], [[1, 2], [4, 5]])
        self.assertEqual([column["name"] for column in self.look("m")["columns"]], ["0", "1", "2"])
        self.assertEqual(self.look("dates")["rows"], [["2024-01-01T00:00:00.000000000"], ["NaT"]])
        table = self.look("r")
        self.assertEqual(([column["name"] for column in table["columns"]], table["rows"]), (["n", "s"], [[1, "a"]]))

    def test_slices_of_an_array_of_more_dimensions_are_told(self):
        self.run_ok("import numpy as np\na = np.arange(24).reshape(2, 3, 4)")
        tree = self.look("a")
        self.assertEqual(
            [(item["path"], item["preview"], item["has_children"]) for item in tree["items"]], [("a[0]", "ndarray 3×4", True), ("a[1]", "ndarray 3×4", True)]
        )
        self.assertEqual(self.look("a[1]")["rows"][0], [12, 13, 14, 15])
        self.assertEqual(self.look("a[1][2]")["rows"], [[20], [21], [22], [23]])
        self.assertEqual(self.look("a[1][2][3]")["text"], "23")

    def test_objects_in_a_frame_that_never_show_themselves_are_given_up(self):
        self.run_ok(
            "import pandas as pd\nclass Slow:\n    def __repr__(self):\n        while True: pass\ndf = pd.DataFrame({'n': [1, 2], 'o': [Slow(), Slow()]})"
        )
        table = self.look("df", timeout=0.5)
        self.assertEqual([row[0] for row in table["rows"]], [1, 2])
        self.assertEqual(table["rows"][0][1], "<__main__.Slow: showing it took too long>")
        self.assert_works()

    def test_filter_that_takes_too_long_is_given_up_and_variables_stay(self):
        self.run_ok("import numpy as np, pandas as pd\ndf = pd.DataFrame({'n': np.arange(2 * 10**6), 'm': np.arange(2 * 10**6)})")
        self.assertEqual(self.look("df", filter="nowhere", timeout=0.5)["code"], "timeout")
        self.assertEqual(self.session.value("len(df)"), 2 * 10**6)

    def test_magics_and_keys_are_completed(self):
        self.run_ok("config = {'layers': 1}")
        answer = self.session.ask("complete", code="config['la", cursor=10, timeout=20)["answer"]
        self.assertEqual("config['la"[: answer["start"]] + answer["matches"][0], "config['layers")


if __name__ == "__main__":
    unittest.main()
