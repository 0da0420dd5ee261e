"""Logs written to streams: the bytes of the file, the first of them while the source is still read."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import UsageError
from logreel.io import two_pass
from logreel.ops.rewrite import streams
from support.formats import small_log, written_formats

SAMPLES = {name: small_log(name) for name in written_formats()}
#: Writers that never change bytes that they have appended.
AT_ONCE = {"bddf", "mcap"}


@pytest.fixture(params=[0, two_pass.KEPT], ids=["two passes", "kept in memory"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs of at most this size are kept by the dry run, so that they need no second pass."""
    monkeypatch.setattr(two_pass, "KEPT", request.param)


def sent(write: Callable[..., Any], *args: Any, **options: Any) -> bytes:
    """The bytes that *write* sends to a stream that cannot seek."""
    out = Once()
    write(*args, out, **options)
    return bytes(out.content)


class Once(io.RawIOBase):
    """A stream that accepts a few thousand bytes at a time, and neither seeks nor reads."""

    def __init__(self) -> None:
        self.content = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        some = bytes(data)[:5000]
        self.content += some
        return len(some)


@pytest.mark.parametrize("name", SAMPLES)
def test_slice_sends_the_bytes_of_the_file(kept: None, name: str, tmp_path: Path) -> None:
    log = logreel.open(SAMPLES[name])
    assert log.start is not None
    assert log.end is not None
    third = (log.end - log.start) // 3
    for n, options in enumerate(({}, {"start": log.start + third, "end": log.end - third}, {"count": 7})):
        path = tmp_path / f"{n}{written_formats()[name].suffixes[0]}"
        made = logreel.slice(log, path, **options)
        out = Once()
        done = logreel.slice(log, out, **options)
        assert out.content == path.read_bytes()
        assert (done.path, done.size, done.messages) == ("<stream>", made.size, made.messages)


@pytest.mark.parametrize("name", SAMPLES)
def test_sort_merge_and_recover_send_the_bytes_of_the_file(kept: None, name: str, tmp_path: Path) -> None:
    log = logreel.open(SAMPLES[name])
    path = tmp_path / f"x{written_formats()[name].suffixes[0]}"
    logreel.sort(log, path)
    assert sent(logreel.sort, log) == path.read_bytes()
    logreel.merge([log, log], path, align="+1s", force=True)
    assert sent(logreel.merge, [log, log], align="+1s") == path.read_bytes()
    logreel.recover(log, path, force=True)
    assert sent(logreel.recover, log) == path.read_bytes()


@cache
def converted(name: str, target: str) -> bytes | logreel.LogError:
    """The file that a sample is converted to, or why it is not: streams are compared with it in several ways."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x{written_formats()[target].suffixes[0]}"
        try:
            logreel.convert(SAMPLES[name], path)
        except logreel.LogError as error:
            return error
        return path.read_bytes()


@pytest.mark.parametrize("name", SAMPLES)
def test_convert_sends_the_bytes_of_the_file(kept: None, name: str) -> None:
    log = logreel.open(SAMPLES[name])
    for target in ("mcap", "rosbag", "ulog", "bddf"):
        due = converted(name, target)
        if isinstance(due, logreel.LogError):
            # The format can hold none of the messages: the stream gets nothing.
            out = Once()
            with pytest.raises(type(due)):
                logreel.convert(log, out, format=target)
            assert not out.content or target in AT_ONCE
            continue
        assert sent(logreel.convert, log, format=target) == due, target


@pytest.mark.parametrize("version", ["1.2", "2.0"])
def test_every_version_of_bags_is_sent(version: str, tmp_path: Path) -> None:
    path, out = tmp_path / "x.bag", Once()
    for target in (path, out):
        with logreel.create(target, format="rosbag", version=version) as w:
            c = w.add_channel("/a", logreel.Schema("geometry_msgs/Vector3", "ros1msg", ""))
            for n in range(50):
                w.write(c, n * 10**9, {"x": n})
    assert logreel.open(path).version == version
    assert out.content == path.read_bytes()
    assert sent(logreel.slice, path, start="+10s") == sent(logreel.slice, out.content, start="+10s")


def test_a_format_is_chosen_by_name_where_formats_share_a_suffix(tmp_path: Path) -> None:
    for name in ("carla", "koblenz"):
        there = sent(logreel.convert, SAMPLES[name], format="mcap", raw=True)
        back = sent(logreel.convert, there, format=name)
        assert logreel.open(back).format == name


def test_format_is_refused_for_a_path_and_required_for_a_stream(tmp_path: Path) -> None:
    log = logreel.open(SAMPLES["mcap"])
    with pytest.raises(UsageError, match="format= is for a stream"):
        logreel.convert(log, tmp_path / "x.csv", format="mcap")
    with pytest.raises(UsageError, match="names no output"):
        logreel.convert(log, io.BytesIO())
    with pytest.raises(UsageError, match="does not fit into a stream"):
        logreel.convert(log, io.BytesIO(), format="jpg")
    with pytest.raises(TypeError, match="binary file object"):
        logreel.slice(log, io.StringIO())  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow", "ndjson"])
def test_tables_are_sent(form: str, tmp_path: Path) -> None:
    log = logreel.open(SAMPLES["ulog"])
    topic = next(ch.topic for ch in log.channels.values() if len(ch) > 100)
    logreel.convert(log, tmp_path / f"x.{form}", topics=topic)
    assert sent(logreel.convert, log, format=form, topics=topic) == (tmp_path / f"x.{form}").read_bytes()


def test_several_formats_are_merged_to_a_stream(tmp_path: Path) -> None:
    log = logreel.open(SAMPLES["ulog"])
    bag = tmp_path / "a.bag"
    with logreel.create(bag) as w:
        c = w.add_channel("/a", logreel.Schema("geometry_msgs/Vector3", "ros1msg", ""))
        w.write(c, 17 * 10**17, {"x": 1.5})
    logreel.merge([log, bag], tmp_path / "x.mcap", align="start")
    assert sent(logreel.merge, [log, bag], format="mcap", align="start") == (tmp_path / "x.mcap").read_bytes()


def large_log(path: Path) -> Path:
    """A log whose messages need several batches."""
    rng = np.random.default_rng(1)
    with logreel.create(path, flush_every=None) as w:
        c = w.add_channel("/a", logreel.Schema("blob", "protobuf" if path.suffix == ".bddf" else "", ""))
        for n in range(60):
            w.write(c, n * 10**9, rng.bytes(300_000))
    return path


@pytest.mark.parametrize("suffix", [".mcap", ".bddf"])
def test_formats_that_only_append_are_sent_while_the_source_is_read(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "BYTES", 1 << 20)
    log = logreel.open(large_log(tmp_path / f"x{suffix}"))
    done: list[tuple[int, int]] = []
    reached: list[int] = []

    class Watching(Once):
        def write(self, data: Any) -> int:
            reached.append(done[-1][0] if done else 0)
            return super().write(data)

    out = Watching()
    logreel.sort(log, out, progress=lambda n, total: done.append((n, total)))
    assert reached[0] < 60 == done[-2][0]
    assert len(set(reached)) > 2
    assert len(logreel.open(bytes(out.content))["/a"]) == 60


def test_progress_of_two_passes_rises_from_nothing_to_all(tmp_path: Path) -> None:
    done: list[tuple[int, int]] = []
    log = logreel.open(SAMPLES["rosbag"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(two_pass, "KEPT", 0)
        logreel.sort(log, io.BytesIO(), progress=lambda n, total: done.append((n, total)))
    shares = [n / total for n, total in done]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_nothing_is_sent_of_a_recovery_before_it_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    from logreel.ops.rewrite.engine import NewLog

    def refuse(self: NewLog, path: Path) -> None:
        raise logreel.LogError("the new file is damaged")

    monkeypatch.setattr(NewLog, "_verify", refuse)
    out = io.BytesIO()
    with pytest.raises(logreel.LogError, match="damaged"):
        logreel.recover(SAMPLES["mcap"], out)
    assert out.getvalue() == b""


# -- create


@pytest.mark.parametrize("name", ["mcap", "bddf", "rosbag", "ulog"])
def test_create_writes_a_stream_with_the_bytes_of_the_file(name: str, tmp_path: Path) -> None:
    from logreel.plugin import Field, Layout, Scalar, Struct

    layout = Layout(Struct((Field("timestamp", Scalar("uint64")), Field("x", Scalar("float32")))))

    def write(w: logreel.Writer) -> None:
        with w:
            c = w.add_channel("a", layout)
            for n in range(1000):
                w.write(c, n * 1000, {"x": n, "timestamp": n})
                if n % 300 == 299:
                    w.flush()

    path = tmp_path / f"x{written_formats()[name].suffixes[0]}"
    write(logreel.create(path, flush_every=None))
    out = Once()
    write(logreel.create(out, format=name, flush_every=None))
    assert out.content == path.read_bytes()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("name", sorted(AT_ONCE))
def test_flushed_messages_are_in_the_stream_at_once(name: str) -> None:
    out = Once()
    with logreel.create(out, format=name) as w:
        c = w.add_channel("a", logreel.Schema("text/plain", "text/plain", ""))
        w.write(c, 5, b"hello, hello")
        w.flush()
        assert [bytes(m.data) for m in logreel.open(bytes(out.content)).messages()] == [b"hello, hello"]


def test_the_index_of_a_long_stream_is_built_from_a_copy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("logreel.formats.bddf.writer.KEPT", 500)
    for target in (out := Once(), path := tmp_path / "x.bddf"):
        with logreel.create(target, format="bddf", flush_every=None) as w:
            c = [w.add_channel(f"a{n}", logreel.Schema("text/plain", "text/plain", "")) for n in range(3)]
            for n in range(500):
                w.write(c[n % 3], n, b"x" * n)
    assert out.content == path.read_bytes()


def test_a_failed_block_leaves_what_was_written_in_the_stream() -> None:
    out = Once()
    with pytest.raises(ZeroDivisionError), logreel.create(out, format="mcap") as w:  # noqa: PT012
        w.write(w.add_channel("a", logreel.Schema("", "", "")), 5, b"kept")
        raise ZeroDivisionError
    assert [bytes(m.data) for m in logreel.open(bytes(out.content)).messages()] == [b"kept"]
    whole = Once()
    with pytest.raises(ZeroDivisionError), logreel.create(whole, format="rosbag"):
        raise ZeroDivisionError
    assert whole.content == b""
