"""Let benchmarks, and the processes that they start, import the builders of logs in ``tests/support``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_TESTS = str(Path(__file__).resolve().parents[1] / "tests")
sys.path.insert(0, _TESTS)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_TESTS, os.environ.get("PYTHONPATH", "")]))
