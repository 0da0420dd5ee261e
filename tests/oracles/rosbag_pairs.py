"""Comparison of logreel with rosbags and genuine rosbag: bags read by each, and bags written by logreel."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path[:0] = [one for one in map(str, Path(__file__).parents[:2]) if one not in sys.path]

import numpy as np  # noqa: E402
from rosbags.rosbag1 import Reader  # noqa: E402
from rosbags.typesys import Stores, get_types_from_msg, get_typestore  # noqa: E402
from rows import Row  # noqa: E402

import logreel  # noqa: E402
from logreel.schemas.ros1msg import portable  # noqa: E402

#: Topic, type, checksum, time in ns and payload.
Raw = tuple[str, str, str, int, bytes]
#: The checksum of a type without fields.
EMPTY = "d41d8cd98f00b204e9800998ecf8427e"
SYSTEM = "/usr/bin/python3"
_SCRIPT = """
import pickle, sys
import rosbag
rows = []
for topic, (kind, data, md5, *_), stamp in rosbag.Bag(sys.argv[1]).read_messages(raw=True):
    rows.append((topic, kind, md5, stamp.to_nsec(), bytes(data)))
sys.stdout.buffer.write(pickle.dumps(rows, 2))
"""
#: Operations whose copies of a bag the peers read.
WRITERS: Mapping[str, Callable[[Path, Path], Any]] = {
    "slice": lambda source, out: logreel.slice(source, out),
    "sort": lambda source, out: logreel.sort(source, out),
    "convert": lambda source, out: logreel.convert(source, out),
    "recover": lambda source, out: logreel.recover(source, out),
}
_DAMAGED = "the file is damaged: the peer needs the index or summary that is missing"
#: Why peers differ, by ``file | ours | peer``.
EXPLAINED = {
    "v20_dmg_* | logreel | *": _DAMAGED,
    "v20_invalid_* | logreel | *": _DAMAGED,
    "v20_ternaris_lz4.bag | logreel | rosbag": "genuine rosbag refuses the flags of its LZ4 frames",
    "*star* | * | rosbags*": "rosbags reads types of the form package/name only",
    "*star* | * | rosbag": "genuine rosbag generates a Python class named after the type, and '*' is no class name",
}


def compare(shared: Path) -> Iterator[Row]:
    """Yield the rows of every bag in *shared*: read by each, and copies written by logreel read by the peers."""
    genuine = _has_genuine()
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted((shared / "data" / "rosbag").glob("*.bag")):
            try:
                log = logreel.open(path)
            except logreel.LogError as error:
                yield Row("rosbag", path.name, "logreel", "-", 0, 0, f"not opened: {error.text}")
                continue
            if log.version.startswith("2."):
                yield from _read(path.name, path, "logreel", genuine)
            for how, write in WRITERS.items():
                out = Path(folder) / f"{how}.bag"
                out.unlink(missing_ok=True)
                try:
                    write(path, out)
                except logreel.LogError as error:
                    yield Row("rosbag", path.name, how, "-", 0, 0, f"not written: {error.text}")
                    continue
                yield from _read(path.name, out, how, genuine)


def _read(name: str, path: Path, how: str, genuine: bool) -> Iterator[Row]:
    log = logreel.open(path)
    due = Counter(_ours(log))
    try:
        found, decoded = _rosbags(path)
    except Exception as error:
        yield Row("rosbag", name, how, "rosbags", due.total(), 0, f"{type(error).__name__}: {error}"[:90])
    else:
        tidy = Counter({(t.replace("//", "/"), *rest): n for (t, *rest), n in due.items()})
        yield _row(name, how, "rosbags", tidy, Counter(found))
        yield _values(name, how, log, decoded)
    if genuine:
        done = subprocess.run([SYSTEM, "-c", _SCRIPT, str(path)], capture_output=True)
        if done.returncode:
            last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            yield Row("rosbag", name, how, "rosbag", due.total(), 0, last[:90])
        else:
            yield _row(name, how, "rosbag", due, Counter(pickle.loads(done.stdout)))  # noqa: S301


def _row(name: str, how: str, peer: str, ours: Counter[Raw], theirs: Counter[Raw]) -> Row:
    compared = max(ours.total(), theirs.total())
    equal = (ours & theirs).total()
    note = "" if equal == compared else f"{ours.total()} messages of ours, {theirs.total()} of theirs"
    return Row("rosbag", name, how, peer, compared, equal, note)


def _ours(log: logreel.Log) -> Iterator[Raw]:
    for m in log.messages():
        metadata = m.channel.metadata
        yield (
            str(metadata.get("topic", m.channel.topic)),
            m.channel.schema.name,
            metadata["md5sum"],
            m.time,
            bytes(m.data),
        )


def _rosbags(path: Path) -> tuple[list[Raw], list[tuple[str, int, Any]]]:
    """Return all messages as read by rosbags, and topic, time and value of those that it can decode."""
    rows: list[Raw] = []
    decoded: list[tuple[str, int, Any]] = []
    with Reader(path) as reader:
        stores = {c.id: _store(c) for c in reader.connections}
        for c, time, data in reader.messages():
            kind = c.msgtype.replace("/msg/", "/")
            rows.append((c.topic, kind, c.digest, time, bytes(data)))
            if (store := stores[c.id]) is not None:
                decoded.append((c.topic, time, store.deserialize_ros1(data, c.msgtype)))
    return rows, decoded


def _store(connection: Any) -> Any:
    """Return a type store with the definition of a connection; None if rosbags cannot parse it."""
    store = get_typestore(Stores.EMPTY)
    if not connection.msgdef.data.strip() and connection.digest != EMPTY:
        # rosbags treats a type without a definition as one without fields.
        return None
    try:
        # rosbags knows one name for the header, where bags before 2011 have another.
        text = portable(connection.msgdef.data, connection.msgtype.replace("/msg/", "/"))
        store.register(get_types_from_msg(text, connection.msgtype))
    except Exception:
        return None
    return store


def _values(name: str, how: str, log: logreel.Log, theirs: Iterable[tuple[str, int, Any]]) -> Row:
    """Return the row of decoded messages; those of one topic and time are compared in file order."""
    mine: dict[tuple[str, int], list[Any]] = {}
    for m in log.messages():
        topic = str(m.channel.metadata.get("topic", m.channel.topic)).replace("//", "/")
        mine.setdefault((topic, m.time), []).append(m)
    compared = equal = 0
    first = ""
    for topic, time, value in theirs:
        compared += 1
        waiting = mine.get((topic, time)) or []
        try:
            ours = waiting.pop(0).decode() if waiting else None
        except logreel.LogError as error:
            ours = error.text
        same = isinstance(ours, dict) and _agree(ours, value)
        equal += same
        first = first or ("" if same else f"first at {topic}, {time} ns")
    return Row("rosbag", name, how, "rosbags values", compared, equal, first)


def _agree(ours: Any, theirs: Any) -> bool:
    """Return whether values of logreel and rosbags are equal: dicts and dataclasses, lists and arrays, ns and times."""
    if isinstance(ours, dict):
        return all(hasattr(theirs, k) and _agree(value, getattr(theirs, k)) for k, value in ours.items())
    if isinstance(ours, bytes):
        return ours == np.asarray(theirs).astype(np.uint8).tobytes()
    if isinstance(ours, list):
        if isinstance(theirs, np.ndarray) and len(ours) == len(theirs):
            return bool(
                np.array_equal(np.asarray(ours, theirs.dtype), theirs, equal_nan=theirs.dtype.kind == "f")
            )
        return len(ours) == len(theirs) and all(map(_agree, ours, theirs))
    if hasattr(theirs, "nanosec"):
        return bool(ours == theirs.sec * 10**9 + theirs.nanosec)
    return bool(ours == theirs or (ours != ours and theirs != theirs))


def _has_genuine() -> bool:
    try:
        return not subprocess.run([SYSTEM, "-c", "import rosbag"], capture_output=True).returncode
    except OSError:
        return False


if __name__ == "__main__":
    for row in compare(Path(sys.argv[1])):
        print(*row, sep="\t")  # noqa: T201
