"""The comparison with pyulog that ``make oracles`` runs over all samples, over those that the package makes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "oracles" / "ulog_pairs.py"


def test_generated_logs_equal_pyulog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(FILE.parent), *sys.path])
    spec = importlib.util.spec_from_file_location(FILE.stem, FILE)
    assert spec is not None
    assert spec.loader is not None
    pairs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pairs)
    rows = list(pairs.compare(tmp_path))
    assert {row.ours for row in rows} >= {"data", "information in parts", "pyulog of MCAP and back"}
    assert [row for row in rows if row.compared != row.equal] == []
    assert sum(row.compared for row in rows) > 10_000
