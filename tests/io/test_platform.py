"""What systems do differently is in one module, and its twins for systems that lack it give the same logs."""

from __future__ import annotations

import ast
import errno
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from logreel.io import platform
from support.formats import builtin_formats, small_log

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src/logreel"
#: Modules and members that not every system has. Mappings are recognised elsewhere, but made in one place.
MODULES = {"fcntl", "msvcrt", "resource", "pwd", "grp"}
MEMBERS = {
    "os": {
        "pread",
        "pwrite",
        "fchmod",
        "fchown",
        "geteuid",
        "getuid",
        "O_NOFOLLOW",
        "O_CLOEXEC",
        "O_NONBLOCK",
    },
    "mmap": {"mmap"},
}
NAMED = re.compile(rf"\b({'|'.join(sorted(MODULES.union(*MEMBERS.values())))})\b")
#: Code for terminals, and a node of ROS, which are on POSIX systems alone.
APART = {
    "io/platform.py",
    "cli/console.py",
    "ops/record/sources/ros_node.py",
    "ops/record/sources/streams.py",
}


def test_only_one_module_asks_for_what_not_every_system_has() -> None:
    found = []
    for path in sorted(SRC.rglob("*.py")):
        name = path.relative_to(SRC).as_posix()
        if name in APART or name.startswith("kernels/"):
            continue
        text = path.read_text("utf-8")
        # Few files name any of them at all, in code or in a text.
        for node in ast.walk(ast.parse(text)) if NAMED.search(text) else ():
            if isinstance(node, ast.Import):
                found += [f"{name}:{node.lineno}: {a.name}" for a in node.names if a.name in MODULES]
            elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
                found.append(f"{name}:{node.lineno}: {node.module}")
            else:
                found += [f"{name}:{getattr(node, 'lineno', 0)}: {member}" for member in _members(node)]
    assert found == []


def _members(node: ast.AST) -> list[str]:
    """Return what a node takes of MEMBERS; of mappings only calls, since their type may be named anywhere."""
    owner, member = None, ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner, member = node.func.value, node.func.attr
    elif isinstance(node, ast.Attribute) and node.attr != "mmap":
        owner, member = node.value, node.attr
    elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr":
        owner, member = node.args[0], str(getattr(node.args[1], "value", ""))
    of = owner.id if isinstance(owner, ast.Name) else ""
    return [f"{of}.{member}"] if member in MEMBERS.get(of, ()) else []


def test_the_search_sees_calls_members_and_getattr() -> None:
    for text, expected in (
        ("os.pread(1, 2, 3)", ["os.pread"]),
        ("os.O_NOFOLLOW", ["os.O_NOFOLLOW"]),
        ("getattr(os, 'O_CLOEXEC', 0)", ["os.O_CLOEXEC"]),
        ("mmap.mmap(1, 2)", ["mmap.mmap"]),
        ("isinstance(x, mmap.mmap)", []),
    ):
        assert sorted({one for node in ast.walk(ast.parse(text)) for one in _members(node)}) == expected


@pytest.fixture(params=["system", "twins"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Take the ways of this system, or their twins."""
    if request.param == "system" and platform.TWINS:
        pytest.skip("LOGREEL_PLATFORM=twins has taken the ways of this system away")
    if request.param == "twins":
        for name in ("CAN_MAP", "CAN_THREAD", "HAS_OWNERS", "_HAS_POSITIONS"):
            monkeypatch.setattr(platform, name, False)
        for name in ("_fcntl", "_msvcrt"):
            monkeypatch.setattr(platform, name, None)
        monkeypatch.setattr(platform, "TWINS", True)
    return request.param


def test_bytes_are_read_and_written_at_places_and_the_position_stays(way: str, tmp_path: Path) -> None:
    data = bytes(range(256)) * 64
    (tmp_path / "f").write_bytes(data)
    handle = os.open(tmp_path / "f", os.O_RDWR | platform.FLAGS)
    try:
        os.lseek(handle, 7, os.SEEK_SET)
        assert platform.read_at(handle, 300, 1000) == data[1000:1300]
        assert platform.read_at(handle, 300, len(data) - 3) == data[-3:]
        platform.write_at(handle, b"abc" * 100, 5000)
        assert os.lseek(handle, 0, os.SEEK_CUR) == 7
        now = data[:5000] + b"abc" * 100 + data[5300:]
        assert (tmp_path / "f").read_bytes() == now
        for size, place in ((0, 0), (10, 0), (5000, 4097), (len(data) - 8192, 8192)):
            mapped, begin = platform.map_file(handle, size, place)
            assert (
                bytes(mapped[begin : begin + (size or len(data))]) == now[place : place + (size or len(data))]
            )
        with pytest.raises(ValueError, match=r"."):
            platform.map_file(handle, len(data) + 1)
    finally:
        os.close(handle)


def test_a_shared_map_shows_what_is_written_at_a_place(way: str, tmp_path: Path) -> None:
    with open(tmp_path / "f", "w+b") as file:
        file.truncate(10_000)
        shown = platform.map_shared(file.fileno(), 10_000)
        platform.write_at(file.fileno(), b"xyz", 5000, shown)
        assert bytes(shown[4999:5004]) == b"\0xyz\0"
        assert (tmp_path / "f").read_bytes() == bytes(shown)


def test_work_is_done_in_threads_or_at_once(way: str) -> None:
    def halve(number: int) -> int:
        if number % 2:
            raise ValueError(number)
        return number // 2

    with platform.pool(2) as threads:
        coming = [threads.submit(halve, number) for number in (4, 5, 6)]
        assert list(threads.map(halve, [8, 2])) == [4, 1]
    assert [future.result() for future in (coming[0], coming[2])] == [2, 3]
    with pytest.raises(ValueError, match="5"):
        coming[1].result()
    here = platform.pool(1).submit(threading.get_ident).result() == threading.get_ident()
    assert here == (way == "twins")


def test_permissions_follow_where_there_are_owners(way: str, tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).touch()
    (tmp_path / "old").chmod(0o640)
    (tmp_path / "new").chmod(0o600)
    with open(tmp_path / "old") as old, open(tmp_path / "new") as new:
        platform.copy_permissions(old.fileno(), new.fileno())
    assert (tmp_path / "new").stat().st_mode & 0o777 == (0o640 if way == "system" else 0o600)


def test_windows_locks_a_byte_behind_every_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for msvcrt, whose locks are of a byte at the position of the file, and of one handle."""
    held: dict[tuple[int, int], int] = {}

    def locking(handle: int, mode: int, size: int) -> None:
        place = os.fstat(handle).st_ino, os.lseek(handle, 0, os.SEEK_CUR)
        assert size == 1
        if mode == 0:
            assert held.pop(place) == handle
        elif place in held:
            raise OSError(errno.EACCES, "Permission denied")
        else:
            held[place] = handle

    monkeypatch.setattr(platform, "_fcntl", None)
    monkeypatch.setattr(platform, "_msvcrt", SimpleNamespace(LK_NBLCK=2, LK_UNLCK=0, locking=locking))
    (tmp_path / "f").write_bytes(b"0123456789")
    with open(tmp_path / "f", "r+b", buffering=0) as one, open(tmp_path / "f", "r+b", buffering=0) as two:
        one.seek(3)
        assert not platform.is_locked(two.fileno())
        assert platform.lock(one.fileno())
        assert not platform.lock(two.fileno())
        assert platform.is_locked(two.fileno())
        assert one.read(2) == b"34"
        assert min(place for _, place in held) > 1 << 39
    assert (tmp_path / "f").stat().st_size == 10


def test_a_name_that_another_program_holds_is_tried_again(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("new")
    (tmp_path / "b").write_text("old")
    refused, really = [], os.replace

    def replace(source: Path, target: Path) -> None:
        refused.append(target)
        if len(refused) < 3:
            raise PermissionError(errno.EACCES, "Permission denied")
        really(source, target)

    monkeypatch.setattr(os, "replace", replace)
    if way == "system":
        with pytest.raises(PermissionError):
            platform.replace(tmp_path / "a", tmp_path / "b")
        assert len(refused) == 1
    else:
        platform.replace(tmp_path / "a", tmp_path / "b")
        assert (tmp_path / "b").read_text() == "new"


SLICE = """
import hashlib, sys
from pathlib import Path
import logreel
from logreel.cli import main
from logreel.io import platform, source
folder, samples = map(Path, sys.argv[1:])
for sample in sorted(samples.iterdir()):
    name = sample.name
    log = folder / f"{name}.log"
    log.write_bytes(sample.read_bytes())
    opened = logreel.open(log)
    print(name, len(opened), sum(len(ch) for ch in opened.values()))
    # With a cache: the first call writes the index, the second takes it.
    again = logreel.open(log)
    print([(t, ch.to_numpy().keys()) for t, ch in again.items() if len(ch)][:1])
    damaged = folder / f"damaged-{name}.log"
    damaged.write_bytes(log.read_bytes()[:-7])
    for call in (
        lambda out: logreel.slice(log, out, end=0.5),
        lambda out: logreel.recover(damaged, out),
        lambda out: logreel.recover(damaged, out, force=True),
    ):
        out = folder / f"out-{name}"
        try:
            call(out)
            print(hashlib.sha256(out.read_bytes()).hexdigest())
            out.unlink()
        except logreel.LogError as error:
            print(str(error).replace(str(folder), ""))
with open(folder / "ulog.log", "rb") as stream:
    source.SPOOL_BYTES = 1 << 10
    print(len(logreel.open(stream)))
print(main(["index", str(folder / "ulog.log"), "--force"]))
print(sorted(path.name for path in folder.iterdir()))
print(platform.CAN_MAP, file=sys.stderr)
"""


def test_logs_are_read_sliced_and_recovered_the_same_way_with_twins(tmp_path: Path) -> None:
    answers, samples = {}, tmp_path / "samples"
    samples.mkdir()
    for name in builtin_formats():
        (samples / name).write_bytes(small_log(name))
    for way in ("", "twins"):
        folder = tmp_path / (way or "system")
        folder.mkdir()
        env = os.environ | {"LOGREEL_PLATFORM": way, "LOGREEL_CACHE": str(tmp_path / f"cache-{way}")}
        env["PYTHONPATH"] = str(ROOT / "src")
        done = subprocess.run(
            [sys.executable, "-c", SLICE, str(folder), str(samples)],
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr.strip().endswith(str(way == ""))
        answers[way] = done.stdout.replace(str(folder), "")
    assert answers["twins"] == answers[""]
    assert answers[""].count("\n") > 30
