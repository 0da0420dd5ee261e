"""Rewritten logs have the content of their sources; split and merged ones: test_slice_times.py."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import logreel
from logreel.io import append_file
from support.builders.contents import OWN_NAMES, SAMPLES, content, other_content, real, sample
from support.formats import builtin_formats, sample_log
from support.harness.examples import half
from support.samples.ulog.builder import Builder

CUTS = settings(max_examples=half(3), suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(params=SAMPLES)
def log_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return sample(tmp_path, str(request.param))


def test_every_writable_format_is_tried_here() -> None:
    assert {f.suffixes[0] for f in builtin_formats().values() if f.create is not None} == set(SAMPLES)


def test_a_slice_of_everything_is_the_log(log_file: Path, tmp_path: Path) -> None:
    out = tmp_path / f"out{log_file.suffix}"
    done = logreel.slice(log_file, out)
    assert (done.notes, done.skipped) == ((), ())
    assert done.messages == logreel.open(log_file).message_count
    assert done.size == out.stat().st_size
    assert content(out, "file") == content(log_file, "file")
    assert other_content(out) == other_content(log_file)
    assert not logreel.open(out).problems


@pytest.mark.parametrize("suffix", SAMPLES)
def test_a_slice_of_all_of_a_real_log_has_the_same_content(shared: Path, tmp_path: Path, suffix: str) -> None:
    for n, file in enumerate(real(shared, suffix)):
        out, by_time = tmp_path / f"{n}{suffix}", tmp_path / f"{n}-sorted{suffix}"
        with logreel.open(file) as log:
            due = content(log)
            logreel.slice(log, out)
            assert content(out) == due, file.name
            assert other_content(out) == other_content(log), file.name
            logreel.sort(log, by_time)
            assert content(by_time) == due, file.name


@pytest.mark.parametrize("suffix", SAMPLES)
@CUTS
@given(shares=st.lists(st.floats(0, 1.05), min_size=2, max_size=2))
def test_slices_hold_the_messages_of_their_interval(
    suffix: str, shares: list[float], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("slices")
    source = logreel.open(sample(folder, suffix))
    assert source.start is not None
    assert source.end is not None
    start, end = (source.start + int(s * (source.end - source.start)) for s in sorted(shares))
    out = folder / f"out{suffix}"
    if start > source.end:
        with pytest.raises(logreel.UsageError, match="the log covers"):
            logreel.slice(source, out, start=start, end=end)
        return
    logreel.slice(source, out, start=start, end=end)
    found = content(out, "file")
    for topic, (schema, rows) in content(source, "file").items():
        if topic != "~parameter":
            due = [(time, data) for time, data in rows if start <= time < end]
            assert found.get(topic, (schema, [])) == (schema, due)
    assert not logreel.open(out).problems


def test_a_sorted_log_has_its_content(log_file: Path, tmp_path: Path) -> None:
    logreel.sort(log_file, tmp_path / f"sorted{log_file.suffix}")
    assert content(tmp_path / f"sorted{log_file.suffix}") == content(log_file)


def test_slice_selects_topics_and_counts(log_file: Path, tmp_path: Path) -> None:
    source = logreel.open(log_file)
    first, *others = [ch.topic for ch in source.match(None) if len(ch)]
    out = tmp_path / f"a{log_file.suffix}"
    logreel.slice(source, out, topics=[first])
    assert [t for t, ch in logreel.open(out).channels.items() if not ch.reserved] == [first]
    logreel.slice(source, out, exclude=others, force=True)
    assert len(logreel.open(out)[first]) == len(source[first])
    assert not set(others) & set(logreel.open(out))
    done = logreel.slice(source, out, count=7, force=True)
    assert done.messages == 7
    kept = [(m.channel.topic, bytes(m.data)) for m in logreel.open(out).messages(order="file")]
    due = [(m.channel.topic, bytes(m.data)) for m in source.messages(order="file")]
    assert kept == due[:7]
    assert logreel.slice(source, out, count=0, force=True).messages == 0
    with pytest.raises(logreel.TopicError):
        logreel.slice(source, out, topics="no such", force=True)
    with pytest.raises(logreel.UsageError, match="no channel is left"):
        logreel.slice(source, out, topics=first, exclude=first, force=True)


def test_topics_are_chosen_in_split_and_merge(log_file: Path, tmp_path: Path) -> None:
    source = logreel.open(log_file)
    first, second, *_ = [ch.topic for ch in source.match(None) if len(ch) > 3 and "[" not in ch.topic]
    wanted, out = f"re:{first}|{second}", tmp_path / f"out{log_file.suffix}"
    due = {first: len(source[first]), second: len(source[second])}
    for n, how in enumerate(({"every": 10**9}, {"size": 60_000}, {"by_topic": True})):
        parts = logreel.split(source, tmp_path / f"parts{n}", topics=wanted, **how)
        assert sum(part.messages for part in parts) == sum(due.values())
        assert {one.topic for part in parts for one in part.channels} == set(due)
    logreel.merge([one.path for one in parts], out, topics=[first, second])
    assert {name: len(ch) for name, ch in logreel.open(out).channels.items() if not ch.reserved} == due
    logreel.merge([one.path for one in parts], out, exclude=[first], force=True)
    # A recording of CARLA has its frames whatever else is in it.
    always = ["frames"] if log_file.suffix == ".rec" else []
    assert [name for name in logreel.open(out) if name[0] != "~"] == [*always, second]
    with pytest.raises(logreel.TopicError):
        logreel.merge([log_file], out, topics=[first, "no such"], force=True)
    with pytest.raises(logreel.UsageError, match="no channel is left"):
        logreel.merge([log_file], out, topics=first, exclude=first, force=True)


def test_connections_survive_merging(tmp_path: Path) -> None:
    schema = logreel.Schema("std_msgs/Empty", "ros1msg", "")
    for name, latching in (("a", False), ("b", True)):
        with logreel.create(tmp_path / f"{name}.bag") as w:
            number = w.add_channel("/x", schema, {"callerids": [f"/{name}"], "latching": latching})
            w.write(number, 10**18, b"")
    logreel.merge([tmp_path / f"{name}.bag" for name in "aba"], tmp_path / "c.bag")
    logreel.sort(tmp_path / "c.bag", tmp_path / "d.bag")
    ch = logreel.open(tmp_path / "d.bag")["/x"]
    assert len(ch) == 3
    headers = [{"topic": "/x", "callerid": "/a"}, {"topic": "/x", "callerid": "/b", "latching": "1"}]
    assert ch.metadata["headers"] == headers


def test_messages_in_force_are_kept(tmp_path: Path) -> None:
    bag = logreel.open(sample(tmp_path, ".bag"))
    latched = [ch for ch in bag.match(None) if ch.metadata["latching"] and len(ch)]
    assert latched
    out = tmp_path / "out.bag"
    late = int(max(ch.times.max() for ch in latched)) + 1
    logreel.slice(bag, out, start=late, keep_latched=True)
    found = logreel.open(out)
    for ch in latched:
        assert [bytes(m.data) for m in found.messages(ch.topic)] == [
            bytes(m.data) for m in bag.messages(ch.topic)
        ][-1:]
    flight = logreel.open(sample(tmp_path, ".ulg"))
    name, change = next((p.name, p.changes[0]) for p in flight.parameters.values() if p.changes)
    for keep in (False, True):
        logreel.slice(flight, tmp_path / "out.ulg", start=change.time + 1, keep_latched=keep, force=True)
        kept = logreel.open(tmp_path / "out.ulg").parameters[name]
        assert kept.value == flight.parameters[name].value
        assert (change.value in [c.value for c in kept.changes]) == keep


def test_merge_prefixes_and_renames_topics(log_file: Path, tmp_path: Path) -> None:
    source, out = logreel.open(log_file), tmp_path / f"out{log_file.suffix}"
    topic = next(ch.topic for ch in source.match(None) if len(ch) > 3 and "[" not in ch.topic)
    old = source[topic].times
    if log_file.suffix in OWN_NAMES:
        with pytest.raises(logreel.UsageError, match="names channels"):
            logreel.merge([log_file, log_file], out, prefixes=["", "b_"])
        return
    done = logreel.merge(
        [log_file, log_file], out, align="+2.5s", prefixes=["", "b_"], rename={topic: f"{topic}_new"}
    )
    assert not done.notes
    found = logreel.open(out)
    assert np.array_equal(found[f"{topic}_new"].times, np.sort(old))
    assert np.array_equal(found[f"b_{topic}_new"].times, np.sort(old) + 2_500_000_000)
    assert topic not in found


def test_merge_shifts_clocks_to_a_common_start(log_file: Path, tmp_path: Path) -> None:
    source, out = logreel.open(log_file), tmp_path / f"out{log_file.suffix}"
    # Frames that agree become one.
    plain = [ch.topic for ch in source.match(None) if len(ch) > 3 and "[" not in ch.topic]
    topic = next(name for name in plain if name != "frames")
    old = source[topic].times
    later = tmp_path / f"later{log_file.suffix}"
    logreel.slice(log_file, later, start="+500ms", topics=topic)
    both = logreel.merge([log_file, later], out, align="start", force=True)
    times = logreel.open(later)[topic].times
    shift = (source.start or 0) - (logreel.open(later).start or 0)
    assert np.array_equal(logreel.open(out)[topic].times, np.sort(np.concatenate([old, times + shift])))
    assert both.messages == source.message_count + logreel.open(later).message_count
    logreel.merge([log_file, log_file], out, align="utc", force=True)
    assert np.array_equal(logreel.open(out)[topic].times, np.sort(np.concatenate([old, old])))


def test_channels_with_different_definitions_stay_separate_in_a_merge(tmp_path: Path) -> None:
    def bag(name: str, text: str) -> Path:
        with logreel.create(tmp_path / name) as w:
            w.write(w.add_channel("/a", logreel.Schema("pkg/A", "ros1msg", text)), 10**18, {"x": 3})
        return tmp_path / name

    def ulg(name: str, kind: str, inner: str) -> Path:
        made = Builder().flags().format("a:uint64_t timestamp;in[2] x;").format(f"in:{inner} y;")
        made.subscribe("a", 0).subscribe("a", 1, 1).info("char[2] who", kind)
        return _written(tmp_path / name, made.data(0, bytes(100)).data(1, bytes(100)).bytes())

    done = logreel.merge([bag("1.bag", "int32 x\n"), bag("2.bag", "int64 x\n")], tmp_path / "m.bag")
    assert [one.topic for one in done.channels] == ["/a", "/a[1]"]
    assert len(done.notes) == 1
    done = logreel.merge([ulg("1.ulg", "me", "uint8_t"), ulg("2.ulg", "be", "uint16_t")], tmp_path / "m.ulg")
    found = logreel.open(tmp_path / "m.ulg")
    assert list(found) == ["a", "a[1]", "a-2", "a-2[1]"]
    assert found["a-2"].schema.text == "a-2:uint64_t timestamp;in-2[2] x;\nin-2:uint16_t y;"
    assert found.metadata["who"] == "me"
    assert ["'who' has another value" in text for text in done.skipped] == [True]


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_compression_is_kept_or_chosen(tmp_path: Path) -> None:
    path = sample(tmp_path, ".bag")
    for name in ("lz4", "bz2", "none"):
        logreel.slice(path, tmp_path / "a.bag", compression=name, force=True)
        logreel.slice(tmp_path / "a.bag", tmp_path / "b.bag", end="+1s", force=True)
        assert logreel.open(tmp_path / "b.bag").metadata["compression"] == [name]
    with pytest.raises(logreel.UsageError, match="compression"):
        logreel.slice(sample(tmp_path, ".ulg"), tmp_path / "c.ulg", compression="lz4")
    assert "c.ulg" not in os.listdir(tmp_path)


def test_chunks_are_kept_or_chosen(tmp_path: Path) -> None:
    path = sample(tmp_path, ".bag")
    for size in (700, 5_000, 40_000):
        logreel.slice(path, tmp_path / "a.bag", chunk_bytes=size, force=True)
        for verb in (logreel.slice, logreel.sort, logreel.recover):
            verb(tmp_path / "a.bag", tmp_path / "b.bag", force=True)
            one, other = (logreel.open(tmp_path / f"{name}.bag").metadata["chunks"] for name in "ab")
            assert verb is logreel.sort or one == other
            assert one / 2 < other < one * 2
    with pytest.raises(logreel.UsageError, match="no chunks"):
        logreel.slice(sample(tmp_path, ".ulg"), tmp_path / "c.ulg", chunk_bytes=100)


def test_unusable_arguments_are_refused(log_file: Path, tmp_path: Path) -> None:
    before = log_file.read_bytes()
    with pytest.raises(logreel.UsageError, match="same file"):
        logreel.slice(log_file, log_file, force=True)
    with pytest.raises(logreel.LogError, match="exists already"):
        logreel.sort(log_file, _written(tmp_path / f"old{log_file.suffix}", b"old"))
    other = next(suffix for suffix in SAMPLES if suffix != log_file.suffix)
    with pytest.raises(logreel.UsageError, match="suffix"):
        logreel.slice(log_file, tmp_path / f"x{other}")
    if log_file.suffix != ".mcap":
        with pytest.raises(logreel.UsageError, match="another format"):
            logreel.merge([log_file, sample(tmp_path / "..", other)], tmp_path / f"x{log_file.suffix}")
    with pytest.raises(logreel.UsageError, match="prefixes"):
        logreel.merge([log_file], tmp_path / f"x{log_file.suffix}", prefixes=["a", "b"])
    with pytest.raises(logreel.UsageError, match="to rename"):
        logreel.merge([log_file], tmp_path / f"x{log_file.suffix}", rename={"no": "yes"})
    with pytest.raises(logreel.UsageError, match="one of"):
        logreel.split(log_file, tmp_path / "parts")
    with pytest.raises(logreel.UsageError, match="files"):
        logreel.split(log_file, tmp_path / "parts", every=1)
    assert log_file.read_bytes() == before
    assert (tmp_path / f"old{log_file.suffix}").read_bytes() == b"old"


def test_formats_that_cannot_be_written_raise_an_error(tmp_path: Path) -> None:
    for fmt in builtin_formats().values():
        if fmt.create is None:
            path = _written(tmp_path / f"a{fmt.suffixes[0]}", sample_log(fmt.name))
            with pytest.raises(logreel.UnsupportedError, match="cannot be written yet; what can be: "):
                logreel.recover(path, tmp_path / f"b{fmt.suffixes[0]}")


@pytest.mark.parametrize("room", [0, 1000, 30_000])
def test_a_write_error_leaves_everything_as_it_was(
    log_file: Path, tmp_path: Path, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = _written(tmp_path / f"old{log_file.suffix}", b"older output")
    parts, source = tmp_path / "parts", log_file.read_bytes()
    parts.mkdir()
    real_write, left = os.write, [room]

    def write(handle: int, data: memoryview) -> int:
        left[0] -= len(data)
        if left[0] < 0:
            raise OSError(28, "full")
        return real_write(handle, data)

    monkeypatch.setattr(append_file.os, "write", write)  # type: ignore[attr-defined]
    names = sorted(os.listdir(tmp_path))
    for verb in (logreel.slice, logreel.sort, logreel.recover):
        left[0] = room
        with pytest.raises(logreel.LogError, match="No space left"):
            verb(log_file, older, force=True)
    with pytest.raises(logreel.LogError, match="No space left"):
        logreel.split(log_file, parts, every=10**9)
    assert sorted(os.listdir(tmp_path)) == names
    assert os.listdir(parts) == []
    assert (older.read_bytes(), log_file.read_bytes()) == (b"older output", source)


def test_the_file_size_limit_of_the_system_leaves_no_file(log_file: Path, tmp_path: Path) -> None:
    """As above, with the limit of file size of the system."""
    resource = pytest.importorskip("resource")
    from support.harness.limits import limited

    def job() -> None:
        # Python would leave the modules that it compiles cut at the limit, and all others would fail to import them.
        sys.dont_write_bytecode = True
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        with pytest.raises(logreel.LogError, match="File too large"):
            logreel.slice(log_file, tmp_path / "out")

    limited(job)
    assert os.listdir(tmp_path) == [log_file.name]
