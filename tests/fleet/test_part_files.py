"""Files of a log in the stage: made in memory or on the disk, with the same bytes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from logreel.fleet import jobs
from logreel.fleet.source_files import content_digest


def batch(topic: str, rows: int) -> pa.RecordBatch:
    schema = pa.schema([("time_ns", pa.int64()), ("log", pa.string())], metadata={"topic": topic})
    return pa.RecordBatch.from_arrays(
        [pa.array(range(rows), pa.int64()), pa.array(["x"] * rows)], schema=schema
    )


@pytest.mark.parametrize("sync", [False, True])
def test_small_and_large_files_have_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: bool
) -> None:
    contents = []
    for limit in (jobs.IN_MEMORY, 0):
        stage = tmp_path / str(limit)
        stage.mkdir()
        monkeypatch.setattr(jobs, "IN_MEMORY", limit)
        writer = jobs.PartWriter(stage, "log", sync)
        for topic, rows in (("a", 3), ("a", 4), ("empty", 0), ("b", 5)):
            writer.write(batch(topic, rows))
        parts = writer.close()
        assert [(part["topic"], part["rows"]) for part in parts] == [("a", 7), ("b", 5)]
        assert sorted(path.name for path in stage.iterdir()) == sorted(part["staged"] for part in parts)
        for part in parts:
            path = stage / part["staged"]
            assert (part["size"], part["digest"]) == (path.stat().st_size, content_digest(str(path)))
            due = {"a": [*range(3), *range(4)], "b": [*range(5)]}
            assert pq.read_table(path)["time_ns"].to_pylist() == due[part["topic"]]
        contents.append([(stage / part["staged"]).read_bytes() for part in parts])
    assert contents[0] == contents[1]


def test_nothing_is_left_of_files_that_are_discarded(tmp_path: Path) -> None:
    writer = jobs.PartWriter(tmp_path, "log", False)
    writer.write(batch("a", 3))
    writer.write(batch("b", 3))
    writer.discard()
    assert not list(tmp_path.iterdir())
