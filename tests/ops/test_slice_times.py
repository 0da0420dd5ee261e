"""Parts of logs have the times of their content, and the UTC offset of their source."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

import logreel
from logreel.errors import UsageError
from support.builders.contents import SAMPLES, Content, content, other_content, real, sample
from support.harness.examples import half
from support.samples.ulog.builder import Builder
from support.samples.ulog.builder import flight as ulog_flight

S = 10**9
SUFFIXES = sorted(SAMPLES)
share = st.floats(0, 1)
#: Shrinking would write thousands of logs.
FEW = settings(max_examples=half(4), phases=[Phase.explicit, Phase.reuse, Phase.generate])


def span(log: logreel.Log, since: int | None = None) -> tuple[int | None, int | None]:
    """First and last time of the messages of *log*, without parameters and what was old *since* the source began."""
    every = [ch.times for name, ch in log.items() if not name.startswith("~parameter")]
    times = np.concatenate([np.zeros(0, np.int64), *every])
    times = times if since is None else times[times >= since]
    return (int(times.min()), int(times.max())) if len(times) else (None, None)


def bounds(log: logreel.Log) -> tuple[int | None, int | None]:
    return log.start, log.end


@dataclass
class Source:
    """A sample in a file, and everything that it holds."""

    log: logreel.Log
    content: Content
    other_content: tuple[Any, ...]


@pytest.fixture(scope="module")
def folder_of_sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder alone: hypothesis would print the content of each argument for each example."""
    return tmp_path_factory.mktemp("sources")


@functools.cache
def source_in(folder: Path, suffix: str) -> Source:
    log = logreel.open(sample(folder, suffix))
    return Source(log, content(log), other_content(log))


def interval(log: logreel.Log, a: float, b: float) -> tuple[int, int]:
    assert log.start is not None
    assert log.end is not None
    low, high = sorted((a, b))
    return log.start + int(low * (log.end - log.start)), log.start + int(high * (log.end - log.start)) + 1


# ------------------------------------------------------------------------------------------------ properties


@pytest.mark.parametrize("suffix", SUFFIXES)
@FEW
@given(a=share, b=share, which=st.integers(0, 100))
@example(a=0.0, b=0.0, which=15)  # a slice without channels
def test_a_slice_begins_and_ends_with_its_content(
    folder_of_sources: Path,
    suffix: str,
    a: float,
    b: float,
    which: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("slices")
    log = source_in(folder_of_sources, suffix).log
    start, end = interval(log, a, b)
    topics = [ch.topic for ch in log.match(None) if len(ch)]
    for n, chosen in enumerate((None, [topics[which % len(topics)]])):
        path = folder / f"slice{n}{suffix}"
        logreel.slice(log, path, topics=chosen, start=start, end=end)
        part = logreel.open(path)
        first, last = span(part)
        if first is not None:
            # A ULog begins a little before its first message, and so does a slice with its beginning.
            whole = start == log.start and chosen is None
            assert bounds(part) == (log.start if whole else first, last)
            assert start <= first <= (last or 0) < end
            assert (part.epoch, part.utc_offset) == (log.epoch, log.utc_offset)


@pytest.mark.parametrize("suffix", SUFFIXES)
@FEW
@given(cuts=st.lists(share, min_size=4, max_size=4))
@example(cuts=[0.5, 0.4941248495146481, 0.5022807817727136, 0.2861264936461179])  # behind the last frame
def test_a_slice_of_a_slice_is_the_slice_of_the_inner_interval(
    folder_of_sources: Path, suffix: str, cuts: list[float], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("twice")
    log = source_in(folder_of_sources, suffix).log
    a, b, c, d = sorted(cuts)
    outer, inner = interval(log, a, d), interval(log, b, c)
    once, between, twice = (folder / f"{name}{suffix}" for name in ("once", "between", "twice"))
    logreel.slice(log, once, start=inner[0], end=inner[1])
    logreel.slice(log, between, start=outer[0], end=outer[1])
    with logreel.open(between) as part:
        is_outside = part.start is None or part.end is None or inner[1] <= part.start or inner[0] > part.end
    if is_outside:
        # The inner interval lies between two messages, the outer slice ends at the first or begins at the second.
        with pytest.raises(UsageError, match="nothing between"):
            logreel.slice(between, twice, start=inner[0], end=inner[1])
        with logreel.open(once) as part:
            assert not any(map(len, part.channels.values()))
        return
    logreel.slice(between, twice, start=inner[0], end=inner[1])
    assert content(twice) == content(once)
    assert other_content(twice) == other_content(once)


@pytest.mark.parametrize("suffix", SUFFIXES)
@FEW
@given(part=st.floats(0.15, 1.2))
@example(part=0.206914972052767)  # the last record of a part of the ULog is a text
@example(part=0.3)  # four parts by time and by size
def test_split_and_merged_is_the_log(
    folder_of_sources: Path, suffix: str, part: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, source = tmp_path_factory.mktemp("split"), source_in(folder_of_sources, suffix)
    log = source.log
    assert log.start is not None
    assert log.end is not None
    options: list[dict[str, Any]] = [
        {"every": max(1, int(part * (log.end - log.start)))},
        {"size": max(40_000, int(part * log.size))},
    ]
    for n, how in enumerate(options):
        check_split_and_merged(source, folder / f"{n}", how)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_split_by_topic_and_merged_is_the_log(folder_of_sources: Path, suffix: str, tmp_path: Path) -> None:
    source = source_in(folder_of_sources, suffix)
    parts = check_split_and_merged(source, tmp_path / "topics", {"by_topic": True})
    topics = [name for name in source.log if not name.startswith("~")]
    assert [[one.topic for one in part.channels] for part in parts] == [[name] for name in topics]


def check_split_and_merged(source: Source, folder: Path, how: dict[str, Any]) -> list[logreel.Written]:
    """Check the parts, and that their merge holds what the log does; return the parts."""
    folder.mkdir()
    log, suffix = source.log, Path(source.log.name).suffix
    parts = logreel.split(log, folder / "parts", **how)
    done = logreel.merge([one.path for one in parts], folder / f"merged{suffix}")
    merged = logreel.open(done.path)
    got, due = content(merged), source.content
    if "by_topic" in how:
        # A ULog stores no times of dropouts: they have that of the message before them.
        got, due = ({k: v for k, v in one.items() if k != "~dropout"} for one in (got, due))
    assert got == due
    assert merged.utc_offset == log.utc_offset
    if "by_topic" in how:
        # Each part of one topic begins with it, not where the log did.
        assert span(merged) == span(log)
        assert merged.end == log.end
    else:
        assert sum(one.messages for one in parts) == log.message_count
        assert (done.notes, done.skipped) == ((), ())
        assert other_content(merged) == source.other_content
    if "size" in how:
        assert all(one.size <= how["size"] for one in parts)
    for one in parts:
        each = logreel.open(one.path)
        if one.messages and (each.start, how) != (log.start, how):
            assert bounds(each) == span(each, log.start)
        assert each.utc_offset == log.utc_offset
    return parts


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_rewritten_logs_keep_the_utc_offset(folder_of_sources: Path, suffix: str, tmp_path: Path) -> None:
    log = source_in(folder_of_sources, suffix).log
    topic = next(ch.topic for ch in log.match(None) if len(ch) and "gps" not in ch.topic.lower())
    assert log.start is not None
    written = {
        "slice": logreel.slice(log, tmp_path / f"slice{suffix}", start="+500ms"),
        "topic": logreel.slice(log, tmp_path / f"topic{suffix}", topics=[topic]),
        "count": logreel.slice(log, tmp_path / f"count{suffix}", count=3),
        "sort": logreel.sort(log, tmp_path / f"sort{suffix}"),
        "recover": logreel.recover(log, tmp_path / f"recover{suffix}"),
    }
    written["twice"] = logreel.sort(written["topic"].path, tmp_path / f"twice{suffix}")
    for how, done in written.items():
        assert logreel.open(done.path).utc_offset == log.utc_offset, how
    if suffix == ".mcap":
        return
    for how in ("slice", "topic"):
        there, back = tmp_path / f"{how}.mcap", tmp_path / f"{how}-back{suffix}"
        logreel.convert(written[how].path, there, raw=True)
        logreel.convert(there, back)
        assert logreel.open(there).utc_offset == log.utc_offset
        assert logreel.open(back).utc_offset == log.utc_offset
        assert bounds(logreel.open(back)) == bounds(logreel.open(written[how].path))


# -------------------------------------------------------------------------------------------------- one by one


def test_slicing_a_slice_of_a_ulog_again_finds_its_messages(tmp_path: Path) -> None:
    (tmp_path / "a.ulg").write_bytes(ulog_flight(6.0))
    logreel.slice(tmp_path / "a.ulg", tmp_path / "b.ulg", start="+3s", end="+5s")
    part = logreel.open(tmp_path / "b.ulg")
    assert part.start is not None
    assert part.end is not None
    assert part.end - part.start < 2 * S
    assert logreel.slice(part, tmp_path / "c.ulg", start="+0.5s").messages > 0
    assert not part.problems


def test_parts_of_a_split_ulog_begin_one_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "a.ulg").write_bytes(ulog_flight(4.0))
    parts = [logreel.open(one.path) for one in logreel.split(tmp_path / "a.ulg", tmp_path / "p", every=S)]
    starts = [part.start for part in parts]
    assert starts == sorted(set(starts))
    assert [
        part.end is not None and part.start is not None and part.end - part.start < S for part in parts
    ] == [True] * len(parts)


def test_the_header_of_a_sliced_ulog_says_when_the_slice_begins(tmp_path: Path) -> None:
    (tmp_path / "a.ulg").write_bytes(ulog_flight(4.0))
    logreel.slice(tmp_path / "a.ulg", tmp_path / "b.ulg", topics="sensor_accel", start="+2s")
    header = int.from_bytes((tmp_path / "b.ulg").read_bytes()[8:16], "little")
    assert header * 1000 == logreel.open(tmp_path / "b.ulg")["sensor_accel"].times[0]


def test_a_whole_ulog_keeps_the_start_in_its_header(tmp_path: Path) -> None:
    """The logger starts before its first message; messages in force before that are no earlier start."""
    (tmp_path / "a.ulg").write_bytes(ulog_flight(3.0))
    log = logreel.open(tmp_path / "a.ulg")
    logreel.slice(log, tmp_path / "b.ulg")
    assert (tmp_path / "b.ulg").read_bytes() == (tmp_path / "a.ulg").read_bytes()
    assert logreel.open(logreel.sort(log, tmp_path / "c.ulg").path).start == log.start


def test_a_slice_of_text_alone_begins_with_the_text(tmp_path: Path) -> None:
    out = Builder(start_us=1_000_000).flags().format("t:uint64_t timestamp;").subscribe("t", 0)
    for i in range(10):
        out.data(0, (1_000_000 + i * 10**6).to_bytes(8, "little"))
        out.text(6, 1_500_000 + i * 10**6, f"line {i}")
    (tmp_path / "a.ulg").write_bytes(out.bytes())
    logreel.slice(tmp_path / "a.ulg", tmp_path / "b.ulg", topics="~text", start="+3s")
    part = logreel.open(tmp_path / "b.ulg")
    assert bounds(part) == (4_500_000_000, 10_500_000_000)


def test_messages_of_one_topic_may_be_minutes_apart(tmp_path: Path) -> None:
    out = Builder(start_us=1_000_000).flags().format("t:uint64_t timestamp;").subscribe("t", 0)
    out.format("u:uint64_t timestamp;").subscribe("u", 1)
    for i in range(1000):
        out.data(0, (1_000_000 + i * 10**6).to_bytes(8, "little"))
        if i % 300 == 100:
            out.data(1, (1_000_000 + i * 10**6).to_bytes(8, "little"))
    (tmp_path / "a.ulg").write_bytes(out.bytes())
    logreel.slice(tmp_path / "a.ulg", tmp_path / "b.ulg", topics="u")
    assert bounds(logreel.open(tmp_path / "b.ulg")) == (101 * S, 701 * S)


def test_a_ulog_without_gps_keeps_utc_to_the_nanosecond(tmp_path: Path) -> None:
    (tmp_path / "a.ulg").write_bytes(ulog_flight(3.0))
    log = logreel.open(tmp_path / "a.ulg")
    part = logreel.open(logreel.slice(log, tmp_path / "b.ulg", topics="vehicle_attitude").path)
    assert part.utc_offset == log.utc_offset is not None
    assert dict(part.metadata) == dict(log.metadata)


def test_utc_of_a_koblenz_log_is_behind_the_end_mark(tmp_path: Path) -> None:
    log = logreel.open(sample(tmp_path, ".vel"))
    path = Path(logreel.slice(log, tmp_path / "b.vel", topics="OBDDataM").path)
    assert path.read_bytes().endswith(f"logreel utc_offset_ns={log.utc_offset}\n".encode())
    part = logreel.open(path)
    assert not part.problems
    assert part.utc_offset == log.utc_offset


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_real_logs_sliced_begin_and_end_with_their_content(suffix: str, shared: Path, tmp_path: Path) -> None:
    for n, path in enumerate(real(shared, suffix)):
        log = logreel.open(path)
        if log.start is None or log.end is None or log.end - log.start < 10:
            continue
        third = (log.end - log.start) // 3
        start, end = log.start + third, log.start + 2 * third
        logreel.slice(log, tmp_path / f"{n}{suffix}", start=start, end=end)
        part = logreel.open(tmp_path / f"{n}{suffix}")
        first, last = span(part)
        if first is not None:
            assert bounds(part) == (first, last), path.name
            assert part.utc_offset == log.utc_offset, path.name


def test_a_slice_plays_and_aligns_from_its_own_start(tmp_path: Path) -> None:
    (tmp_path / "a.ulg").write_bytes(ulog_flight(6.0))
    logreel.slice(tmp_path / "a.ulg", tmp_path / "b.ulg", start="+4s", end="+5s")
    part = logreel.open(tmp_path / "b.ulg")
    assert 8 <= logreel.align(part, topics="sensor_accel", rate="10Hz").num_rows <= 11
    assert part.start is not None
    assert next(iter(part.play(rate=0))).time - part.start < S // 10
