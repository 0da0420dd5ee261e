"""Let the bench, and the processes that it starts, import its modules and the builders of logs of the tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_TESTS = str(_HERE.parent / "tests")
sys.path.insert(1, _TESTS)
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(_HERE), _TESTS, os.environ.get("PYTHONPATH", "")])
)
os.environ.setdefault("LOGREEL_CACHE", "off")
# Compiling modules at each start is no part of what is measured.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
