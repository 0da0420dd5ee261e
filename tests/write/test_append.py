"""Continuing of existing logs: the old file stays as it is until the new one is complete, and nothing else is lost."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.io import append_file as old_file
from logreel.io import platform
from support.formats import builtin_formats, small_log

#: Formats whose logs can be continued, with their samples.
NAMES = sorted(name for name, fmt in builtin_formats().items() if fmt.append is not None)
#: A channel of a type that nothing describes, so its messages may be any bytes.
ODD = "0x000082DD", logreel.Schema("0x000082DD", "koblenz")


def content(path: Path) -> dict[str, list[tuple[int, bytes]]]:
    """Return time and payload of all messages in the file by topic, in file order, of a log without problems."""
    log = logreel.open(path)
    assert not log.problems, log.problems
    found: dict[str, list[tuple[int, bytes]]] = {}
    for message in stored(log):
        found.setdefault(message.channel.topic, []).append((message.time, compared(message)))
    return found


def compared(message: logreel.Message) -> bytes:
    """Return the payload; empty for frames of a recording, whose numbers and durations go on in a continued one."""
    return b"" if message.channel.schema == logreel.Schema("frames", "carla") else bytes(message.data)


def stored(log: logreel.Log) -> list[logreel.Message]:
    """Return the messages that are in the file, in file order: others are built when the log is read."""
    rules = log.index.rules
    return [m for m in log.messages(order="file") if rules[m.channel.number].synthetic is None]


@pytest.fixture(params=NAMES)
def sample(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return the path of a sample of each format."""
    fmt = builtin_formats()[request.param]
    path = tmp_path / f"a{fmt.suffixes[0]}"
    path.write_bytes(small_log(fmt.name))
    return path


@pytest.fixture
def log_path(tmp_path: Path) -> Path:
    """Return the path of a small log."""
    path = tmp_path / "a.vel"
    with logreel.create(path) as w:
        w.write(w.add_channel(*ODD), 10**9, b"first")
    return path


def again(w: logreel.Writer, log: logreel.Log, count: int = 50) -> list[tuple[str, int, bytes]]:
    """Write *count* messages of *log* with later times, and return them."""
    delta = 10**9 * (1 + ((log.end or 0) - (log.start or 0)) // 10**9)
    written = []
    for message in stored(log)[:count]:
        ch = message.channel
        number = w.add_channel(ch.topic, ch.schema, ch.metadata)
        data = restamped(log.format, bytes(message.data), message.time + delta)
        w.write(number, message.time + delta, data)
        written.append((ch.topic, message.time + delta, data if compared(message) else b""))
    return written


def restamped(name: str, data: bytes, time: int) -> bytes:
    """Return the payload of a message at another time: that of a ULog begins with it."""
    return (time // 1000).to_bytes(8, "little") + data[8:] if name == "ulog" else data


def test_appended_messages_follow_the_old_ones(sample: Path) -> None:
    before, log = content(sample), logreel.open(sample)
    with logreel.create(sample, mode="a") as w:
        written = again(w, log)
    after, new = content(sample), logreel.open(sample)
    for topic, rows in before.items():
        assert after[topic][: len(rows)] == rows
        assert after[topic][len(rows) :] == [(t, data) for name, t, data in written if name == topic]
    assert after.keys() == before.keys()
    assert new.start == log.start
    assert new.utc_offset == log.utc_offset
    assert new.version == log.version
    assert len(stored(new)) == len(stored(log)) + len(written)
    assert not list(sample.parent.glob("*.active"))


def test_end_is_that_of_the_appended_messages(sample: Path) -> None:
    log = logreel.open(sample)
    with logreel.create(sample, mode="a") as w:
        written = again(w, log)
    assert logreel.open(sample).end >= max(time for _, time, _ in written)


def test_appending_nothing_leaves_the_file_as_it_is(sample: Path) -> None:
    data, found = sample.read_bytes(), sample.stat()
    log = logreel.open(sample)
    with logreel.create(sample, mode="a") as w:
        for ch in log.match(None):
            w.add_channel(ch.topic, ch.schema, ch.metadata)
        w.flush()
    assert sample.read_bytes() == data
    assert (sample.stat().st_ino, sample.stat().st_mtime_ns) == (found.st_ino, found.st_mtime_ns)
    assert os.listdir(sample.parent) == [sample.name]


def test_appending_twice(sample: Path) -> None:
    before, log = content(sample), logreel.open(sample)
    for _ in range(2):
        with logreel.create(sample, mode="a") as w:
            again(w, log, 20)
    after = content(sample)
    assert sum(map(len, after.values())) == sum(map(len, before.values())) + 40
    assert all(after[topic][: len(rows)] == rows for topic, rows in before.items())


def test_unfinished_file_has_old_and_flushed_messages(sample: Path) -> None:
    before, log = content(sample), logreel.open(sample)
    data = sample.read_bytes()
    w = logreel.create(sample, mode="a")
    written = again(w, log)
    w.flush()
    active = logreel.open(f"{sample}.active")
    assert len(stored(active)) == len(stored(log)) + len(written)
    for topic, rows in before.items():
        ch = active[topic]
        assert [(m.time, compared(m)) for m in ch][: len(rows)] == rows
    assert not any(problem.lost for problem in active.problems)
    assert sample.read_bytes() == data
    w.leave()
    assert sample.read_bytes() == data
    logreel.recover(f"{sample}.active", sample.with_name(f"saved{sample.suffix}"))
    saved = content(sample.with_name(f"saved{sample.suffix}"))
    assert all(saved[topic][: len(rows)] == rows for topic, rows in before.items())
    assert sum(map(len, saved.values())) == len(stored(log)) + len(written)


def test_exception_leaves_the_old_log_and_the_unfinished_file(sample: Path) -> None:
    data, log = sample.read_bytes(), logreel.open(sample)
    w = logreel.create(sample, mode="a")
    again(w, log)
    w.__exit__(RuntimeError, RuntimeError(), None)
    assert sample.read_bytes() == data
    assert logreel.open(f"{sample}.active").message_count > log.message_count


def test_missing_file_is_created(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "a.bag", mode="a") as w:
        w.write(w.add_channel("/a", logreel.Schema("std_msgs/String", "ros1msg")), 10**18, {"data": "x"})
    assert content(tmp_path / "a.bag") == {"/a": [(10**18, b"\x01\0\0\0x")]}


def test_known_topic_with_another_schema_is_refused(sample: Path) -> None:
    log = logreel.open(sample)
    ch = max(log.match(None), key=len)
    with logreel.create(sample, mode="a") as w:
        with pytest.raises(logreel.UsageError, match=r"has type .*, not"):
            w.add_channel(ch.topic, logreel.Schema("another_type", ch.schema.encoding, "x"), ch.metadata)
        number = w.add_channel(ch.topic, ch.schema, ch.metadata)
        assert w.add_channel(ch.topic, ch.schema) == number
        assert w.add_channel(ch.topic, logreel.Schema(ch.schema.name, ch.schema.encoding)) == number


def test_unknown_mode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(logreel.UsageError, match="there are 'w'"):
        logreel.create(tmp_path / "a.vel", mode="x")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("data", [b"", b"no log at all, only text" * 10], ids=["empty", "text"])
def test_file_that_is_no_log_is_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.vel").write_bytes(data)
    with pytest.raises(logreel.LogError):
        logreel.create(tmp_path / "a.vel", mode="a")
    assert (tmp_path / "a.vel").read_bytes() == data
    assert os.listdir(tmp_path) == ["a.vel"]


def test_suffix_of_another_format_is_refused(log_path: Path) -> None:
    wrong = log_path.rename(log_path.with_suffix(".ulg"))
    with pytest.raises(logreel.LogError, match=r"format koblenz, while .* pass format='koblenz'"):
        logreel.create(wrong, mode="a")
    with logreel.create(wrong, mode="a", format="koblenz") as w:
        w.write(w.add_channel(*ODD), 2 * 10**9, b"2")
    assert len(logreel.open(wrong)[ODD[0]]) == 2


def test_other_format_than_the_given_one_is_refused(log_path: Path) -> None:
    with pytest.raises(logreel.LogError, match="format koblenz, not ulog"):
        logreel.create(log_path, mode="a", format="ulog")
    with pytest.raises(logreel.UsageError, match="no format 'what'"):
        logreel.create(log_path, mode="a", format="what")
    assert os.listdir(log_path.parent) == [log_path.name]


def test_damaged_log_is_refused(sample: Path) -> None:
    data = sample.read_bytes()
    middle = len(data) // 2
    damaged = data[:middle]
    if builtin_formats()[logreel.open(sample).format].continues_after:
        damaged += b"\xff" * 500 + data[middle + 500 :]
    sample.write_bytes(damaged)
    assert any(problem.lost for problem in logreel.open(sample).problems)
    with pytest.raises(logreel.LogError, match=r"is damaged: .*logreel\.recover"):
        logreel.create(sample, mode="a")
    assert sample.read_bytes() == damaged
    assert os.listdir(sample.parent) == [sample.name]


def test_unknown_option_is_refused(sample: Path) -> None:
    with pytest.raises(logreel.UsageError, match="has no option 'whatever'; it has: "):
        logreel.create(sample, mode="a", whatever=1)
    assert os.listdir(sample.parent) == [sample.name]


def test_format_that_cannot_be_continued_says_so(log_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = {**builtin_formats(), "koblenz": replace(builtin_formats()["koblenz"], append=None)}
    monkeypatch.setattr("logreel.write.writer.formats", lambda: others)
    with pytest.raises(logreel.UnsupportedError, match="cannot be continued; write a new log"):
        logreel.create(log_path, mode="a")
    assert os.listdir(log_path.parent) == [log_path.name]


# ------------------------------------------------------------------------------------------- the old file


def changed(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\0")


def replaced(path: Path) -> None:
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)


def touched(path: Path) -> None:
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))


def removed(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("change", [changed, replaced, touched, removed])
def test_old_log_changed_meanwhile_is_not_overwritten(change: Callable[[Path], None], log_path: Path) -> None:
    w = logreel.create(log_path, mode="a")
    w.write(w.add_channel(*ODD), 2 * 10**9, b"second")
    change(log_path)
    there = log_path.read_bytes() if log_path.exists() else None
    with pytest.raises(logreel.LogError, match=r"another program .* a\.vel\.active has the old and the new"):
        w.close()
    assert (log_path.read_bytes() if log_path.exists() else None) == there
    assert content(Path(f"{log_path}.active")) == {ODD[0]: [(10**9, b"first"), (2 * 10**9, b"second")]}


def test_two_appenders_are_refused(log_path: Path) -> None:
    w = logreel.create(log_path, mode="a")
    for options in ({}, {"force": True}):
        with pytest.raises(logreel.LogError, match="is being written by another"):
            logreel.create(log_path, mode="a", **options)
    with pytest.raises(logreel.LogError, match="is being written by another"):
        logreel.create(log_path, force=True)
    w.close()


def test_unfinished_file_of_a_crash_is_kept_unless_forced(log_path: Path) -> None:
    w = logreel.create(log_path, mode="a")
    w.write(w.add_channel(*ODD), 2 * 10**9, b"second")
    w.leave()
    with pytest.raises(logreel.LogError, match="recording that was not finished"):
        logreel.create(log_path, mode="a")
    with logreel.create(log_path, mode="a", force=True) as w:
        w.write(w.add_channel(*ODD), 3 * 10**9, b"third")
    assert content(log_path) == {ODD[0]: [(10**9, b"first"), (3 * 10**9, b"third")]}


def test_link_is_not_replaced(log_path: Path) -> None:
    link = log_path.with_name("link.vel")
    link.symlink_to(log_path.name)
    with pytest.raises(logreel.LogError, match=r"symbolic link.*append to .*a\.vel"):
        logreel.create(link, mode="a")
    assert link.is_symlink()
    link.unlink()
    link.symlink_to("nowhere.vel")
    with pytest.raises(logreel.LogError, match="symbolic link"):
        logreel.create(link, mode="a")


def test_folder_and_pipe_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.vel").mkdir()
    os.mkfifo(tmp_path / "b.vel")
    with pytest.raises(logreel.LogError, match="is a folder"):
        logreel.create(tmp_path / "a.vel", mode="a")
    with pytest.raises(logreel.LogError, match="not a regular file"):
        logreel.create(tmp_path / "b.vel", mode="a")


def test_permissions_are_kept(log_path: Path) -> None:
    log_path.chmod(0o640)
    with logreel.create(log_path, mode="a") as w:
        w.write(w.add_channel(*ODD), 2 * 10**9, b"second")
        assert stat.S_IMODE(os.stat(f"{log_path}.active").st_mode) == 0o640
    assert stat.S_IMODE(log_path.stat().st_mode) == 0o640


def refuse(*_: Any) -> Any:
    raise OSError(errno.EOPNOTSUPP, "not on this file system")


def half(source: int, target: int, count: int, place: int, other: int) -> int:
    """Copy a part, then fail, as some file systems do."""
    if place:
        refuse()
    return os.pwrite(target, os.pread(source, count // 2, place), other)


def clone(handle: int, request: int, source: int) -> int:
    """Do what FICLONE does, by copying."""
    assert request == 0x40049409
    return os.pwrite(handle, os.pread(source, 1 << 30, 0), 0)


@pytest.mark.parametrize("how", ["clone", "kernel", "half", "copy", "neither"])
def test_old_bytes_are_kept_by_each_way_of_copying(
    how: str, log_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how != "kernel":
        monkeypatch.setattr(os, "copy_file_range", half if how == "half" else refuse)
    if how == "neither":
        monkeypatch.delattr(os, "copy_file_range")
        monkeypatch.setattr(platform, "_fcntl", None)
    monkeypatch.setattr(fcntl, "ioctl", clone if how == "clone" else refuse)
    monkeypatch.setattr(old_file, "_COPIED", 7)
    data = log_path.read_bytes()
    for size in (0, 1, len(data) - 3, len(data)):
        target = os.open(tmp_path / "copy", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        old = old_file.OldFile(log_path, "a")
        old.copy_to(target, size)
        assert os.write(target, b"more") == 4
        old.close()
        os.close(target)
        assert (tmp_path / "copy").read_bytes() == data[:size] + b"more"


def test_full_disk_leaves_the_old_log(log_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "full")

    data = log_path.read_bytes()
    monkeypatch.setattr(os, "copy_file_range", full)
    monkeypatch.setattr(os, "pwrite", full)
    monkeypatch.setattr(fcntl, "ioctl", refuse)
    with pytest.raises(logreel.LogError, match="No space left"):
        logreel.create(log_path, mode="a")
    assert log_path.read_bytes() == data
    assert os.listdir(log_path.parent) == [log_path.name]


def test_old_file_cut_before_it_is_copied_is_noticed(log_path: Path) -> None:
    from logreel.io.append_file import Appender

    out = Appender(log_path, append=True)
    size = log_path.stat().st_size
    os.truncate(log_path, 20)
    with pytest.raises(logreel.LogError, match="another program"):
        out.keep_old(size)
    out.discard()
