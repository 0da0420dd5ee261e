"""Edits of messages of ROS 2 in all encodings of CDR: changed as the definition says, or refused; never other bytes."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.errors import UsageError
from support.harness.cli_runner import Run
from support.oracles import plain_cdr
from support.oracles.plain_cdr import Member, Type

START = 1_700_000_000 * 10**9
TIME = "\n" + "=" * 80 + "\nMSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n"
#: Definitions whose fields lie at fixed places, and at others.
FIXED = logreel.Schema("x/msg/Fixed", "ros2msg", f"builtin_interfaces/Time stamp\nfloat64 y\n{TIME}")
TEXT = logreel.Schema("x/msg/Text", "ros2msg", f"builtin_interfaces/Time stamp\nstring y\n{TIME}")
BEFORE = logreel.Schema("x/msg/Before", "ros2msg", f"string y\nbuiltin_interfaces/Time stamp\n{TIME}")


def message(schema: logreel.Schema, n: int, big: bool) -> bytes:
    """Return message *n* of a schema as CDR."""
    order = ">" if big else "<"
    stamp = struct.pack(f"{order}iI", 1_700_000_000 + n, 5)
    text = struct.pack(f"{order}I", 4) + b"abc\0"
    body = {
        FIXED: stamp + struct.pack(f"{order}d", n / 4),
        TEXT: stamp + text,
        BEFORE: text + stamp,
    }[schema]
    return (b"\0\0\0\0" if big else b"\0\1\0\0") + body


def written(path: Path, schema: logreel.Schema, payloads: list[bytes]) -> Path:
    with logreel.create(path) as w:
        channel = w.add_channel("/a", schema)
        for n, data in enumerate(payloads):
            w.write(channel, START + n * 10**9, data)
    return path


def messages(path: Path) -> list[bytes]:
    return [bytes(m.data) for m in logreel.open(path).messages()]


#: Edits, and the stamp that message n has afterwards: seconds and nanoseconds; None: as before.
EDITS: dict[str, tuple[dict[str, Any], Any]] = {
    "zero": ({"zero": ["/a.stamp"]}, lambda n: (0, 0)),
    "shift": ({"shift": "3s"}, lambda n: (1_700_000_003 + n, 5)),
}


@pytest.mark.parametrize("suffix", [".db3", ".mcap"])
@pytest.mark.parametrize("schema", [FIXED, TEXT, BEFORE], ids=["fixed", "text", "before"])
@pytest.mark.parametrize("edit", EDITS)
def test_messages_in_another_order_of_bytes_are_never_changed_wrongly(
    tmp_path: Path, suffix: str, schema: logreel.Schema, edit: str
) -> None:
    """Among little-endian messages, a big-endian one cannot be decoded, so it is left out, with a sentence."""
    source = written(tmp_path / f"a{suffix}", schema, [message(schema, n, n % 3 == 1) for n in range(9)])
    changes, stamp = EDITS[edit]
    done = logreel.edit(source, tmp_path / f"b{suffix}", **changes)
    assert [sentence for sentence in done.skipped if "cannot be decoded" in sentence]
    due = list[bytes]()
    for n in (0, 2, 3, 5, 6, 8):
        old = message(schema, n, False)
        was = struct.pack("<iI", 1_700_000_000 + n, 5)
        assert old.count(was) == 1
        due.append(old.replace(was, struct.pack("<iI", *stamp(n))))
    assert messages(tmp_path / f"b{suffix}") == due


@pytest.mark.parametrize("suffix", [".db3", ".mcap"])
@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("extensibility", ["final", "appendable", "mutable"])
def test_each_encoding_is_changed_or_refused(
    tmp_path: Path, run: Run, suffix: str, big: bool, version: int, extensibility: str
) -> None:
    kind = Type(extensibility, (Member("count", 0, "I"), Member("name", 1, "text"), Member("d", 2, "d")))
    values = [{"count": n, "name": "x" * n, "d": n / 4} for n in range(1, 9)]
    payloads = [plain_cdr.write(kind, each, version, big) for each in values]
    schema = logreel.Schema("x/msg/Three", "ros2msg", "uint32 count\nstring name\nfloat64 d\n")
    source, new = written(tmp_path / f"a{suffix}", schema, payloads), tmp_path / f"b{suffix}"
    done = run("edit", source, "-o", new, "--zero", "/a.count", "--zero", "/a.d")
    if not big and (extensibility == "final" or (extensibility, version) == ("appendable", 1)):
        assert done.code == 0
        assert [plain_cdr.read(kind, data) for data in messages(new)] == [
            ({**each, "count": 0, "d": 0.0}, 0) for each in values
        ]
        return
    # Nothing is written, and the reason is said.
    assert (done.code, new.exists()) == (2, False)
    assert "encoding of CDR that logreel reads, but does not write" in done.err
    with pytest.raises(UsageError, match="does not write"):
        logreel.edit(source, new, zero=["/a.count"])
    # What needs no field is done.
    assert run("edit", source, "-o", new, "--shift", "1s", "--clock", "log", "--rename", "/a=/b").code == 0
    assert messages(new) == payloads
