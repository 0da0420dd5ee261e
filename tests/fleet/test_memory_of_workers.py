"""A worker needs memory for the index of a log and for some batches, not for its messages."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import logreel
from logreel.fleet import plan
from logreel.fleet import plans as cut
from logreel.fleet.local import ALLOCATION
from logreel.index import channel_index
from logreel.log.log import Log
from logreel.ops.inspect.summary import summary
from support.builders.contents import SAMPLES
from support.samples.ulog.builder import Builder, flight

#: What a log that is eight times as large may add to the peak, its own pages not counted: bytes for each message of its
#: index, the rest for batches that are full now. With times of
#: whole channels and closed logs in memory it was 112 MB, now 15 MB.
INDEX, GROWTH = 4, 24_000_000
#: Plans a log and writes it in tasks of 4 MB, with batches and summaries small enough for logs of a few MB.
JOBS = """
import re, sys
from pathlib import Path
from logreel.fleet import catalogue_row, task_reader
from logreel.fleet.jobs import do_job, plan_job, write_job
from logreel.fleet.plans import PlanOptions
from logreel.fleet.plans import Task
from logreel.fleet.source_files import fingerprint

catalogue_row.SUMMARY_MESSAGES, task_reader.ROWS = 1 << 14, 1 << 13
stage = Path(sys.argv[2])
options = PlanOptions.of({"target_bytes": 4_000_000})
plan = do_job(plan_job(sys.argv[1], fingerprint(sys.argv[1]), options, "", (), stage))
messages = 0
for task in plan["tasks"]:
    result = do_job(write_job(Task.from_dict(task), plan["schemas"], stage, "", "ns"))
    messages += sum(result["row"]["rows"].values())
# Takes longer to import than a small log to write.
assert "pandas" not in sys.modules
print(messages, len(plan["tasks"]), int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) << 10)
"""


def peak(log: Path, stage: Path) -> tuple[int, int, int]:
    """Return messages written, tasks, and the highest memory of a process that writes *log*, in bytes."""
    stage.mkdir()
    env = {**os.environ, **ALLOCATION, "LOGREEL_CACHE": "off"}
    done = subprocess.run(
        [sys.executable, "-c", JOBS, log, stage], env=env, capture_output=True, text=True, check=True
    )
    messages, tasks, most = map(int, done.stdout.split())
    return messages, tasks, most


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_worker_does_not_keep_more_of_a_larger_log_than_its_index(tmp_path: Path) -> None:
    found, sizes = [], []
    for seconds in (60, 480):
        log = tmp_path / f"{seconds}.ulg"
        log.write_bytes(flight(seconds))
        sizes.append(log.stat().st_size)
        found.append(peak(log, tmp_path / f"stage{seconds}"))
    (few, some_tasks, small), (many, more_tasks, large) = found
    assert many > 7 * few
    assert more_tasks > some_tasks
    # Pages of the mapped file are in the peak.
    assert large - small < sizes[1] - sizes[0] + INDEX * (many - few) + GROWTH


def clock_that_jumps() -> bytes:
    """Return a log whose times go back several times."""
    log = Builder().format("value:uint64_t timestamp;float x;").subscribe("value", 0)
    for n in range(1000):
        log.data(0, struct.pack("<Qf", n * 37 % 1000 * 1000 + 1, n))
    return log.bytes()


@pytest.fixture(params=["jumps", *SAMPLES])
def log(request: pytest.FixtureRequest) -> Log:
    """Return an open log: one of each format, and one whose clock jumps."""
    return logreel.open(clock_that_jumps() if request.param == "jumps" else SAMPLES[request.param]())


def test_messages_of_an_interval_are_the_same_if_times_are_not_kept(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_index, "TIMES_AT_ONCE", 7)
    assert log.start is not None
    assert log.end is not None
    middle, third = (log.start + log.end) // 2, (2 * log.start + log.end) // 3
    for ch in log.channels.values():
        pieces = [piece.tolist() for piece in log.index.times_in_pieces(ch.number)]
        times = ch.times
        assert [time for piece in pieces for time in piece] == times.tolist()
        assert all(len(piece) <= 7 for piece in pieces)
        log.index.forget_times(ch.number)
        for first, last in ((None, middle), (third, middle), (middle, None), (log.end + 1, None)):
            inside = np.ones(len(times), bool)
            inside &= times >= first if first is not None else True
            inside &= times < last if last is not None else True
            rows = log.index.rows_between(ch.number, first, last, keep=False)
            assert np.arange(len(times))[rows].tolist() == np.flatnonzero(inside).tolist()


def test_windows_of_a_topic_have_equal_numbers_of_messages_whatever_the_order_of_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_index, "TIMES_AT_ONCE", 64)
    monkeypatch.setattr(cut, "TIMES_AT_ONCE", 64)
    (tmp_path / "jumps.ulg").write_bytes(clock_that_jumps())
    for start, end in ((None, None), ("+0.1s", "+0.9s")):
        found = plan(tmp_path / "jumps.ulg", topics="value", start=start, end=end, target_bytes=1000)
        counts = [task.messages for task in found]
        assert len(counts) > 8
        assert max(counts) - min(counts) <= 1
        read = [sum(batch.num_rows for batch in task.read(facts=False)) for task in found]
        assert read == counts
        assert sum(read) == (1000 if start is None else 800)


def test_summary_names_the_channels_that_are_too_large_for_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "log.ulg"
    path.write_bytes(flight(20))
    with logreel.open(path) as log:
        counts = {ch.topic: len(ch) for ch in log.channels.values()}
        most = counts["vehicle_attitude"] - 1
        whole, bounded = summary(log), summary(log, max_messages=most)
    left_out = {fact.key: fact.value for fact in bounded["left_out"]}
    assert left_out == {topic: count for topic, count in counts.items() if count > most}
    assert bounded["recording"] == whole["recording"]
    assert bounded["power"] == whole["power"]
    assert "left_out" not in [section.key for section in whole]
    assert summary(path, max_messages=max(counts.values())) == whole


def test_bounded_summary_reads_no_column_of_a_channel_that_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = set()
    times = channel_index.ChannelIndex.times
    monkeypatch.setattr(
        channel_index.ChannelIndex, "times", lambda self, number: (read.add(number), times(self, number))[1]
    )
    with logreel.open(flight(20)) as log:
        most = len(log["vehicle_attitude"]) - 1
        found = summary(log, max_messages=most)
        left_out = {log[fact.key].number for fact in found["left_out"]}
        assert left_out
        assert read
        assert not left_out & read
