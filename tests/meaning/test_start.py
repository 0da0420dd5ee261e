"""What does not ask for the meaning of a log does not load it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.samples.ulog.builder import flight

LOADED = """
import sys
from logreel.cli import main
try:
    main()
finally:
    print([name for name in sys.modules if name.startswith(("logreel.meaning", "logreel.lenses"))], file=sys.stderr)
"""


@pytest.mark.parametrize("verb", ["info", "cat"])
def test_verbs_without_meaning_load_neither_lenses_nor_this_floor(verb: str, tmp_path: Path) -> None:
    path = tmp_path / "flight.ulg"
    path.write_bytes(flight(2))
    topic = ["vehicle_attitude"] if verb == "cat" else []
    run = subprocess.run(
        [sys.executable, "-c", LOADED, verb, str(path), *topic], capture_output=True, text=True, check=True
    )
    assert run.stdout
    assert run.stderr.splitlines()[-1] == "[]"
