"""``make oracles``: its table, its exit codes, and a small part of its comparisons."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

PLACE = Path(__file__).parent / "oracles"


@pytest.fixture(scope="module")
def oracles() -> Iterator[ModuleType]:
    before = list(sys.path)
    spec = importlib.util.spec_from_file_location("run_oracles", PLACE / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["run_oracles"] = module
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = before
    del sys.modules["run_oracles"]


def part(shared: Path, folder: Path, *samples: str) -> Path:
    """Return a folder with some samples."""
    for sample in samples:
        link = folder / "data" / sample
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(shared / "data" / sample)
    return folder


def test_small_samples_are_equal_beside_the_mcap_library(
    oracles: ModuleType, shared: Path, tmp_path: Path
) -> None:
    some = part(
        shared,
        tmp_path,
        "bddf/03_multi_series.bddf",
        "rosbag/v20_roscomm_test.bag",
        "koblenz/k02_end_mark.log",
    )
    found = list(oracles.judged("mcap_pairs", some))
    assert {one.row.peer for one in found} >= {"mcap reader", "mcap stream reader", "mcap-protobuf-support"}
    assert sum(one.row.compared for one in found) > 100
    assert not [one.row for one in found if one.differs]


def test_modules_are_found_by_their_names(oracles: ModuleType) -> None:
    assert "mcap_pairs" in oracles.pairs()


@pytest.mark.parametrize(("equal", "why", "code"), [(3, "", 0), (2, "", 1), (2, "because", 0)])
def test_a_difference_without_a_reason_ends_with_1(
    oracles: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    equal: int,
    why: str,
    code: int,
) -> None:
    made = ModuleType("made_pairs")
    made.compare = lambda shared: [oracles.Row("mcap", "a.mcap", "ours", "theirs", 3, equal, "one is less")]  # type: ignore[attr-defined]
    made.EXPLAINED = {"*.mcap | ours | *": why}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "made_pairs", made)
    (tmp_path / "data").mkdir()
    assert oracles.main(["made_pairs", "--shared", str(tmp_path)]) == code
    out = capsys.readouterr().out
    assert ("because" in out, "one is less" in out) == (bool(why), code == 1)
    (row,) = (line.split() for line in out.splitlines() if line.startswith("mcap"))
    assert row == [
        "mcap",
        "ours",
        "theirs",
        "1",
        "3",
        str(equal),
        str(3 - equal),
        str((3 - equal) * bool(why)),
    ]


def test_a_module_that_fails_is_a_difference(
    oracles: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = ModuleType("made_pairs")
    made.compare = lambda shared: 1 / 0  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "made_pairs", made)
    (tmp_path / "data").mkdir()
    assert oracles.main(["made_pairs", "--shared", str(tmp_path)]) == 1
    assert oracles.main(["made_pairs", "--shared", str(tmp_path / "none")]) == 0
