"""Tests that bfloat16 can be computed with on this machine, whatever its processor says of itself."""

from __future__ import annotations

import os
import subprocess
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent.parent))

from cuvette_torch import matrix_unit

PRODUCT = "import cuvette_torch, torch; x = torch.ones(5, 64, dtype=torch.bfloat16); print(float((x @ x.T)[0, 0]))"


class MatrixUnit(unittest.TestCase):
    def test_product_in_bfloat16_does_not_end_the_process(self) -> None:
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
        env.pop(matrix_unit.SETTING, None)
        done = subprocess.run([sys.executable, "-c", PRODUCT], env=env, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "64.0\n"), done.stderr)

    def test_broken_unit_is_not_used(self) -> None:
        self.assertEqual(self._setting_with({}, is_usable=False), matrix_unit.WITHOUT_MATRIX_UNIT)

    def test_unit_that_works_is_used(self) -> None:
        self.assertIsNone(self._setting_with({}, is_usable=True))

    def test_setting_of_the_user_is_kept(self) -> None:
        self.assertEqual(self._setting_with({matrix_unit.SETTING: "AVX2"}, is_usable=False), "AVX2")

    def _setting_with(self, environ: dict[str, str], is_usable: bool) -> str | None:
        with (
            mock.patch.dict(os.environ, environ, clear=True),
            mock.patch.object(matrix_unit, "is_named", return_value=True),
            mock.patch.object(matrix_unit, "is_usable", return_value=is_usable),
        ):
            matrix_unit.avoid_if_broken()
            return os.environ.get(matrix_unit.SETTING)


if __name__ == "__main__":
    unittest.main()
