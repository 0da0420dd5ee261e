"""Calls of the system that work with files, recorded or made to fail: the Python side of system_calls.c.

A process that was started with ``environment()`` has a ``Calls``. Only files below one folder count, so that modules,
fonts and the like are never touched.
"""

from __future__ import annotations

import ctypes
import enum
import functools
import os
import shutil
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
_HEAD = struct.Struct("<IIQQQ")


class Kind(enum.IntFlag):
    """Kinds of calls that can fail; the same numbers as in system_calls.c."""

    OPEN = 1
    READ = 2
    WRITE = 4
    SYNC = 8
    RENAME = 16
    MAP = 32
    CLOSE = 64
    UNLINK = 128
    TRUNCATE = 256
    MKDIR = 512


ANY = Kind(1023)
#: In place of an error number: the call reads or writes half of its bytes.
SHORT = -1


class Op(enum.IntEnum):
    """Recorded calls; the same numbers as in system_calls.c."""

    CREATE = 1
    WRITE = 2
    TRUNCATE = 3
    FSYNC = 4
    FSYNC_FOLDER = 5
    SYNC_ALL = 6
    RENAME = 7
    LINK = 8
    UNLINK = 9
    MKDIR = 10
    RMDIR = 11
    MARK = 12
    MAP = 13
    SYMLINK = 14
    EXCHANGE = 15


@dataclass(frozen=True)
class Event:
    """One call.

    inode, place  of the file; of a MARK its number and level
    data, other   bytes, or one path or two
    """

    op: Op
    inode: int
    place: int
    data: bytes
    other: bytes


def read_events(path: Path) -> list[Event]:
    """Return the recorded calls in their order."""
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        op, size, inode, place, more = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        found.append(Event(Op(op), inode, place, data[at : at + size], data[at + size : at + size + more]))
        at += size + more
    return found


def with_unseen_renames(events: list[Event], folder: Path) -> list[Event]:
    """Return *events* with the renames that some libraries ask the system for without the C library.

    folder  as it was after the last event; a file that has another name there was renamed after its last write, in the
            folder where it was created
    """
    now = {path.lstat().st_ino: os.fsencode(path.name) for path in folder.rglob("*") if path.is_file()}
    created: dict[int, bytes] = {}
    names: dict[bytes, int] = {}
    last: dict[int, int] = {}
    for number, one in enumerate(events):
        if one.op is Op.CREATE:
            created[one.inode] = one.data
            names[one.data] = one.inode
        elif one.op in (Op.RENAME, Op.LINK) and one.data in names:
            names[one.other] = names[one.data]
        if one.op in (Op.CREATE, Op.WRITE, Op.TRUNCATE):
            last[one.inode] = number
    seen = {(inode, os.path.basename(name)) for name, inode in names.items()}
    unseen = {
        last[inode]: Event(Op.RENAME, 0, 0, name, os.path.join(os.path.dirname(name), now[inode]))
        for inode, name in created.items()
        if inode in now and (inode, now[inode]) not in seen
    }
    found = []
    for number, one in enumerate(events):
        found += [one, unseen[number]] if number in unseen else [one]
    return found


@functools.cache
def library() -> Path | None:
    """Return the compiled library; None without gcc, or on another system than Linux."""
    if shutil.which("gcc") is None or not os.path.isdir("/proc/self/fd"):
        return None
    folder = Path(tempfile.mkdtemp(prefix="logreel-calls-"))
    built = folder / "calls.so"
    command = [
        "gcc",
        "-shared",
        "-fPIC",
        "-O1",
        "-o",
        os.fspath(built),
        os.fspath(SOURCE),
        "-ldl",
        "-lpthread",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    return built if done.returncode == 0 else None


def environment(built: Path) -> dict[str, str]:
    """Return the variables of a process whose calls can be recorded or fail."""
    return {**os.environ, "LD_PRELOAD": os.fspath(built), "LOGREEL_CACHE": "off", "LOGREEL_DATA": "off"}


class Calls:
    """The calls of this process, which was started with ``environment()``."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        if not hasattr(self._library, "proof_fail"):
            raise RuntimeError("this process was started without system_calls.c")
        self._library.proof_failed.restype = ctypes.c_char_p
        self._library.proof_count.restype = ctypes.c_long
        self._library.proof_fail.argtypes = [
            ctypes.c_char_p, ctypes.c_int, ctypes.c_long, ctypes.c_int, ctypes.c_int
        ]  # fmt: skip
        self._library.proof_mark.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
        self._library.proof_crashes.argtypes = [ctypes.c_char_p]

    def record(self, folder: Path, trace: Path) -> None:
        """Record calls that work with files below *folder* to the file *trace*, which lies elsewhere."""
        self._library.proof_record(os.fsencode(os.path.realpath(folder)), os.fsencode(trace))

    def mark(self, number: int, level: int) -> None:
        """Put a mark between the recorded calls."""
        self._library.proof_mark(number, level)

    def fail(self, folder: Path, kinds: Kind, number: int, code: int, always: bool = False) -> None:
        """Let call *number* of these *kinds* below *folder* fail, 0: none; *always*: also all calls after it.

        code  error number, or SHORT
        """
        where = os.fsencode(os.path.realpath(folder))
        self._library.proof_fail(where, int(kinds), number, code, int(always))

    def report_crash(self, path: Path) -> None:
        """Write the functions of a thread that SIGSEGV, SIGABRT or SIGALRM ends to *path*, innermost first."""
        self._library.proof_crashes(os.fsencode(path))

    def grow_stack(self) -> None:
        """Let the stack of this thread take 4 MiB."""
        self._library.proof_stack()

    def stop(self) -> None:
        """End recording and failing."""
        self._library.proof_stop()

    @property
    def counts(self) -> dict[int, int]:
        """Number of calls of each kind since ``fail``."""
        return {int(kind): int(self._library.proof_count(int(kind))) for kind in Kind}

    @property
    def failed(self) -> str:
        """Name and path of the call that failed; empty if none did."""
        return os.fsdecode(self._library.proof_failed())
