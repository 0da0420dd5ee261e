"""A slice of a split recording is that of its merge; records are copied where its files do not overlap in time."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.formats.ulog.copier import UlogCopier
from logreel.write.log_copier import Excerpt
from support.builders.contents import SAMPLES

SECOND = 10**9


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list that gets for each attempt to copy several files whether they were copied."""
    found: list[bool] = []
    copy = UlogCopier.copy_files

    def noted(self: UlogCopier, excerpts: list[Excerpt]) -> bool:
        found.append(copy(self, excerpts))
        return found[-1]

    monkeypatch.setattr(UlogCopier, "copy_files", noted)
    return found


def record(path: Path, start: int, names: str = "abc", unit: str = "m", jitter: int = 0) -> Path:
    """Write a part of a recording of two seconds, with text and a parameter; messages up to *jitter* ns late."""
    rng = random.Random(start)
    with logreel.create(path) as w:
        w.metadata("unit", unit)
        numbers = [
            w.add_channel(n, logreel.Schema(n, "ulog", f"{n}:uint64_t timestamp;float x;")) for n in names
        ]
        for n in range(2000):
            time = (start + n * 1000) * 1000
            w.write(
                numbers[n % len(names)], max(start * 1000, time - rng.choice((0, 0, jitter))), {"x": n / 3}
            )
            if n % 500 == 250:
                w.text(time, f"line {n}")
                w.parameter("GAIN", float(n), time)
    return path


def content(path: Path) -> dict[str, Any]:
    """Return everything that a log says, messages by channel and time."""
    with logreel.open(path) as log:
        assert not log.problems
        found: dict[str, Any] = {}
        for ch in log.channels.values():
            rows = sorted((m.time, bytes(m.data)) for m in ch)
            found[ch.topic] = (ch.schema.name, ch.schema.text, rows)
        found["metadata"] = {name: value for name, value in log.metadata.items() if name != "ulog"}
        found["span"] = log.start, log.end
        found["parameters"] = {name: (p.value, p.changes) for name, p in log.parameters.items()}
        return found


def both(folder: Path, parts: list[Path], **how: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the content of a slice of the merge of files, and that of the same slice of the files."""
    logreel.merge(parts, folder / "merged.ulg", force=True, anyway=True)
    logreel.slice(folder / "merged.ulg", folder / "due.ulg", force=True, **how)
    with logreel.open(parts, anyway=True) as log:
        logreel.slice(log, folder / "found.ulg", force=True, **how)
    return content(folder / "due.ulg"), content(folder / "found.ulg")


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"start": "+1s", "end": "+3.5s"},
        {"start": "+2.5s"},
        {"topics": ["b"]},
        {"exclude": ["b"], "start": "+0.3s", "end": "+4.1s"},
        {"topics": ["a", "~text"], "start": "+1.5s"},
    ],
    ids=str,
)
def test_a_slice_of_alike_parts_copies_records_and_is_that_of_the_merge(
    how: dict[str, Any], tmp_path: Path, copied: list[bool]
) -> None:
    parts = [record(tmp_path / f"p{n}.ulg", 1_000_000 + n * 2_100_000) for n in range(3)]
    due, found = both(tmp_path, parts, **how)
    assert copied == [True]
    assert found == due
    log = logreel.open(tmp_path / "found.ulg")
    firsts = [log[topic].times[0] for topic in log.channels if len(log[topic]) and topic[0] != "~"]
    assert len(firsts) >= 1
    places = np.concatenate([log.index.offsets(log[t].number) for t in log.channels if t[0] != "~"])
    assert len(np.unique(places)) == len(places)


def test_messages_out_of_order_stay_in_the_order_of_their_file(tmp_path: Path, copied: list[bool]) -> None:
    parts = [record(tmp_path / f"p{n}.ulg", 1_000_000 + n * 2_100_000, jitter=2_000_000) for n in range(3)]
    due, found = both(tmp_path, parts, start="+1s", exclude=["b"])
    # Parameters have the times of the messages next to them.
    for name in ("a", "c", "~text"):
        assert found[name] == due[name]
    assert copied == [True]


@pytest.mark.parametrize(
    "other",
    [
        lambda path, at: record(path, at, names="acb"),
        lambda path, at: record(path, at, names="abcd"),
        lambda path, at: record(path, at, unit="ft"),
    ],
    ids=["other ids", "one channel more", "other metadata"],
)
def test_parts_that_differ_are_composed_as_before(
    other: Callable[[Path, int], Path], tmp_path: Path, copied: list[bool]
) -> None:
    parts = [record(tmp_path / "p0.ulg", 1_000_000), other(tmp_path / "p1.ulg", 3_100_000)]
    due, found = both(tmp_path, parts, start="+1s")
    assert copied == [False]
    assert found == due


def test_parts_that_overlap_in_time_are_ordered_by_time(tmp_path: Path, copied: list[bool]) -> None:
    parts = [record(tmp_path / f"p{n}.ulg", 1_000_000 + n * 900_000) for n in range(2)]
    due, found = both(tmp_path, parts, end="+2s")
    assert copied == []
    assert found == due


def test_a_damaged_part_is_composed(tmp_path: Path, copied: list[bool]) -> None:
    parts = [record(tmp_path / f"p{n}.ulg", 1_000_000 + n * 2_100_000) for n in range(2)]
    parts[1].write_bytes(parts[1].read_bytes()[:-7])
    due, found = both(tmp_path, parts, start="+1s")
    assert copied == [False]
    assert found == due


def test_a_split_log_is_the_same_again(tmp_path: Path, copied: list[bool]) -> None:
    (tmp_path / "x.ulg").write_bytes(SAMPLES[".ulg"]())
    logreel.split(tmp_path / "x.ulg", tmp_path / "parts", every=2 * SECOND)
    parts = sorted((tmp_path / "parts").iterdir())
    assert len(parts) > 1
    due, found = both(tmp_path, parts)
    assert found == due
    assert len(copied) == 1


def test_pyulog_reads_the_messages_of_all_parts(tmp_path: Path, copied: list[bool]) -> None:
    pyulog = pytest.importorskip("pyulog")
    parts = [record(tmp_path / f"p{n}.ulg", 1_000_000 + n * 2_100_000) for n in range(3)]
    logreel.slice(parts, tmp_path / "out.ulg", start="+1s")
    read = pyulog.ULog(str(tmp_path / "out.ulg"))
    with logreel.open(tmp_path / "out.ulg") as log:
        for data in read.data_list:
            assert data.data["timestamp"].tolist() == (log[data.name].times // 1000).tolist()
            assert data.data["x"].tolist() == log[data.name]["x"].tolist()
        assert len(read.data_list) == 3
        assert [one.message for one in read.logged_messages] == [line.text for line in log.text]
    assert copied == [True]
