"""Writing of MCAP files: content as read by the mcap library, options, side columns."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import logreel
from support.builders.mcap_rows import fast_rows, library_rows, library_summary
from support.oracles import mcap_file as mcap_oracle
from support.samples.mcap.builder import START, Builder
from support.samples.mcap.walk import walk

STRING = logreel.Schema("std_msgs/String", "ros1msg")
OPTIONS = [
    {},
    {"compression": "lz4"},
    {"compression": "none"},
    {"level": 9},
    {"compression": "lz4", "level": 4},
    {"chunk_bytes": 1},
    {"chunk_bytes": 5000, "profile": "x", "library": "tests"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_mcap_library_reads_written_messages(tmp_path: Path, options: dict[str, object]) -> None:
    path = tmp_path / "a.mcap"
    due = []
    with logreel.create(path, **options) as w:
        words = w.add_channel(
            "/words", STRING, {"callerid": "/me", "md5sum": "992ce8a1687cec8c8bd883ec73ca41d1"}
        )
        raw = w.add_channel("/raw", logreel.Schema("", ""))
        w.add_channel("/silent", logreel.Schema("x", "ros2msg", "uint8 a\n"))
        for k in range(300):
            payload = bytes([k % 250] * (k % 40))
            w.write(raw, START + k, payload)
            due.append(("/raw", START + k, START + k, 0, payload))
            w.write(words, START + k, {"data": f"word {k}"})
            text = f"word {k}".encode()
            due.append(("/words", START + k, START + k, 0, len(text).to_bytes(4, "little") + text))
            if k == 150:
                w.metadata("build", {"version": "1", "numbers": 3})
                w.attachment("a.txt", b"hello", "text/plain")
    data = path.read_bytes()
    assert library_rows(data) == fast_rows(logreel.open(data)) == mcap_oracle.read(data).rows() == due
    summary = library_summary(data)
    statistics = summary.statistics
    assert (statistics.message_count, statistics.channel_count, statistics.schema_count) == (600, 3, 2)
    assert (statistics.message_start_time, statistics.message_end_time) == (START, START + 299)
    assert (statistics.attachment_count, statistics.metadata_count) == (1, 1)
    assert {c.topic for c in summary.channels.values()} == {"/words", "/raw", "/silent"}
    assert summary.metadata_indexes[0].name == "build"
    log = logreel.open(path)
    assert log.verify() == ()
    assert not log.problems
    assert log.metadata["build"] == {"version": "1", "numbers": "3"}
    assert log.attachments["a.txt"].read() == b"hello"
    assert log["/words"].metadata["callerid"] == "/me"
    facts = log.metadata["mcap"]
    assert facts["indexed"]
    assert facts["profile"] == options.get("profile", "")
    assert facts["compression"] == [options.get("compression", "zstd")]
    # Other tools need the text of a standard message; ours says that there was none.
    assert log["/words"].schema == STRING
    assert [s.data for s in summary.schemas.values()] == [b"string data\n", b"uint8 a\n"]


def test_publish_time_and_sequence_are_kept(tmp_path: Path) -> None:
    """By slice, merge, and a change of compression."""
    source = tmp_path / "a.mcap"
    source.write_bytes(walk(3.0, Builder(chunk_bytes=1 << 12)))
    due = fast_rows(logreel.open(source))
    logreel.slice(source, tmp_path / "b.mcap", compression="lz4")
    assert library_rows((tmp_path / "b.mcap").read_bytes()) == due
    logreel.merge([source], tmp_path / "c.mcap")
    assert sorted(library_rows((tmp_path / "c.mcap").read_bytes())) == sorted(due)
    logreel.merge([source, source], tmp_path / "d.mcap", align="+1s", prefixes=["", "b"])
    twice = library_rows((tmp_path / "d.mcap").read_bytes())
    second = 10**9
    moved = [("b" + topic, t + second, p + second, s, data) for topic, t, p, s, data in due]
    assert sorted(twice) == sorted(due + moved)
    log = logreel.open(tmp_path / "d.mcap")
    assert log.metadata["robot"] == {"name": "walker", "serial": "W-7"}
    assert log.attachments["calibration.yaml"].time == START
    sequence = log.index.side_column(log["/imu"].number, "sequence")
    assert sequence is not None
    assert sequence.tolist() == list(range(1, 301))


def test_bulk_messages_with_their_own_times(tmp_path: Path) -> None:
    n = np.arange(5, dtype=np.int64)
    with logreel.create(tmp_path / "a.mcap") as w:
        number = w.add_channel("/a", logreel.Schema("", ""))
        more = np.column_stack([START - n, n * 7])
        w.write_many(
            np.full(5, number, np.int32), START + n, np.arange(5, dtype=np.uint8), n, n * 0 + 1, more
        )
        w.write(number, START, b"x")
    rows = library_rows((tmp_path / "a.mcap").read_bytes())
    assert rows[:5] == [("/a", START + k, START - k, 7 * k, bytes([k])) for k in range(5)]
    assert rows[5] == ("/a", START, START, 0, b"x")


def test_invalid_channels_and_values_are_refused(tmp_path: Path) -> None:
    for options in ({"compression": "bz2"}, {"chunk_bytes": 0}, {"colour": "red"}):
        with pytest.raises(logreel.UsageError):
            logreel.create(tmp_path / "a.mcap", **options)
    assert not list(tmp_path.iterdir())
    with logreel.create(tmp_path / "a.mcap") as w:
        number = w.add_channel("/a", logreel.Schema("a/B", "flatbuffer", "x"))
        with pytest.raises(logreel.UsageError, match="map of text by name"):
            w.metadata("a", 3)
        with pytest.raises(logreel.UsageError, match="time -1 ns"):
            w.write(number, -1, b"")
        with pytest.raises(logreel.DefinitionError, match="given as bytes"):
            w.write(number, 0, {"x": 1})
        with pytest.raises(logreel.UnsupportedError):
            w.parameter("a", 1)


def test_flushed_messages_survive_a_kill(tmp_path: Path) -> None:
    script = """
        import os, sys, logreel
        w = logreel.create(sys.argv[1], flush_every=None)
        number = w.add_channel("/a", logreel.Schema("", ""))
        for k in range(10_000):
            w.write(number, k, k.to_bytes(4, "little"))
            if k == 7_000:
                w.flush()
        os.kill(os.getpid(), 9)
    """
    path = tmp_path / "a.mcap"
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script), str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert os.listdir(tmp_path) == ["a.mcap.active"]
    log = logreel.open(f"{path}.active")
    assert len(log["/a"]) >= 7_001
    assert [p.code for p in log.problems] == ["unfinished"]
    logreel.recover(f"{path}.active")
    rows = library_rows(path.read_bytes())
    assert [row[1] for row in rows] == list(range(len(log["/a"])))


def test_recover_reads_a_cut_file(tmp_path: Path) -> None:
    data = walk(3.0, Builder(chunk_bytes=1 << 12))
    (tmp_path / "a.mcap").write_bytes(data[: len(data) * 2 // 3])
    log = logreel.open(tmp_path / "a.mcap")
    done = logreel.recover(tmp_path / "a.mcap", tmp_path / "b.mcap")
    assert done.lost
    rows = library_rows((tmp_path / "b.mcap").read_bytes())
    assert rows == fast_rows(log)
    assert len(rows) > 200
