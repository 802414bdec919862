"""Checks the Python side: lint, format and types, with the tools of the environment that runs this. Settings are in pyproject.toml."""

from __future__ import annotations

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CHECKS = (("ruff", "check", "--quiet", "."), ("ruff", "format", "--quiet", "--diff", "."), ("mypy", "--no-error-summary"))

results = [subprocess.run([sys.executable, "-m", *check], cwd=HERE, check=False).returncode for check in CHECKS]
sys.exit(any(results))
