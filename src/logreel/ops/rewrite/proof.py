"""What a conversion between ROS 1 and ROS 2 did to each value, read back from the new log; and manifests of files.

``compare`` reads the messages of both logs and counts values. It does not use the code that converts columns: both are
only made of the same list of fields (``schemas.ros1to2``).
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel._version import __version__
from logreel.dataclass import dataclass, field
from logreel.errors import LogError
from logreel.io.arrays import I64
from logreel.io.atomic_file import exists, replace_text
from logreel.layout.nodes import FixedArray, Node, Struct
from logreel.layout.nodes import Sequence as Counted
from logreel.layout.numpy_columns import ARRAY, BYTES, LIST, STRUCT, TEXT, Column
from logreel.log.log import Channel, Log
from logreel.log.scan import Brief
from logreel.ops.rewrite.streams import read_rows
from logreel.registry.open import open_log
from logreel.schemas.ros1to2 import LEVEL, LEVELS, SIGN, Conversion, LeafPair, back, to_ros1, to_ros2

#: Rows and approximate bytes of messages that are compared at once.
ROWS, BYTES_AT_ONCE = 1 << 16, 8 << 20
#: Key that marks a manifest of files.
KEY = "logreel_proof"
#: Most characters of a manifest, and most bytes that are read at once for a digest.
MAX_TEXT, PIECE = 1 << 28, 1 << 20
#: What becomes of values by rule, for people.
RULES = {
    SIGN: "byte: the same bits, which ROS 1 reads as signed numbers",
    LEVEL: "level: 1 2 4 8 16 of ROS 1 are 10 20 30 40 50 of ROS 2",
}


@dataclass(slots=True)
class Ledger:
    """What became of the values of a channel: its numbers, times, texts, and items of arrays.

    topic, type      in the source
    new_topic, new_type  in the new log
    messages, written  selected messages of the source, and those of the new log
    values    that the written messages have in the source: the sum of equal, changed, dropped and unequal ones
    equal     values that have the same bits in the new log
    changed   values that are others, as a rule says; by rule
    dropped   values that the new log has no place for; by field
    added     values that only the new log has, all zero or empty; by field
    unequal   values that are others without a rule
    first     where the first of these is
    rows      int64[n]: which messages of the source were written
    """

    topic: str
    type: str
    new_topic: str
    new_type: str
    messages: int
    written: int = 0
    values: int = 0
    equal: int = 0
    changed: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    added: Counter[str] = field(default_factory=Counter)
    unequal: int = 0
    first: str = ""
    rows: I64 = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the plain data of ``convert --json``."""
        return {
            "topic": self.topic,
            "type": self.type,
            "new_topic": self.new_topic,
            "new_type": self.new_type,
            "messages": self.messages,
            "written": self.written,
            "values": self.values,
            "equal": self.equal,
            "changed": dict(self.changed),
            "dropped": dict(self.dropped),
            "added": dict(self.added),
            "unequal": self.unequal,
        }


# ----------------------------------------------------------------------------------------------------------- comparing


@dataclass(frozen=True, slots=True)
class _Leaf:
    """The values of a field of some messages: *lengths* of the lists around them, int64 each, and bits or bytes.

    data  of numbers: one unsigned number per value; of texts: their bytes
    ends  of texts: int64[n + 1]; None for numbers
    """

    lengths: list[I64]
    data: NDArray[Any]
    ends: I64 | None = None

    @property
    def count(self) -> int:
        """Number of values."""
        return len(self.data) if self.ends is None else len(self.ends) - 1


def _bits(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers as unsigned ones with the same bits, so that NaN is equal to the same NaN."""
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")


def leaf(columns: Mapping[str, Column], path: Sequence[str]) -> _Leaf:
    """Return the values at *path* of settled columns; lists and arrays on the way have no step of their own."""
    column, steps, lengths = columns[path[0]], list(path[1:]), list[I64]()
    while True:
        if column.type == STRUCT:
            column = column.children[column.names.index(steps.pop(0))]
        elif column.type == LIST:
            lengths.append(np.diff(column.ends).astype(np.int64))
            column = column.all_items()
        elif column.type == ARRAY:
            lengths.append(np.full(len(column), column.size, np.int64))
            column = column.item
        elif column.type == BYTES:
            ends = column.ends
            lengths.append(np.diff(ends).astype(np.int64))
            return _Leaf(lengths, column.values[int(ends[0]) : int(ends[-1])])
        elif column.type == TEXT:
            ends = column.ends.astype(np.int64)
            return _Leaf(lengths, column.values[int(ends[0]) : int(ends[-1])], ends - ends[0])
        else:
            return _Leaf(lengths, _bits(column.values[: len(column)]))


def _equal(old: _Leaf, new: _Leaf) -> NDArray[np.bool_]:
    """Return bool[old.count]: whether each value is the same; none is where lists have other lengths."""
    no = np.zeros(old.count, bool)
    shapes = zip(old.lengths, new.lengths, strict=False)
    if len(old.lengths) != len(new.lengths) or not all(np.array_equal(a, b) for a, b in shapes):
        return no
    if (old.ends is None) != (new.ends is None) or old.count != new.count:
        return no
    if old.ends is None or new.ends is None:
        if old.data.dtype.itemsize != new.data.dtype.itemsize:
            return no
        same: NDArray[np.bool_] = old.data == new.data
        return same
    if np.array_equal(old.ends, new.ends) and np.array_equal(old.data, new.data):
        return ~no
    ends = zip(*(part.ends.tolist() for part in (old, new) if part.ends is not None), strict=True)
    cuts = list(ends)
    texts = [bytes(old.data[a:c]) == bytes(new.data[b:d]) for (a, b), (c, d) in itertools.pairwise(cuts)]
    return np.array(texts, bool) if texts else no


def _not_zero(part: _Leaf) -> int:
    """Return the number of values that are neither zero nor empty."""
    values = part.data if part.ends is None else np.diff(part.ends)
    return int(np.count_nonzero(values))


def count_filled(columns: Mapping[str, Column], paths: Iterable[Sequence[str]], counts: Counter[str]) -> None:
    """Add to *counts*, by field, the values at *paths* that are neither zero nor empty."""
    for path in paths:
        if filled := _not_zero(leaf(columns, path)):
            counts[".".join(path)] += filled


def _level_table(forward: bool) -> NDArray[np.uint8]:
    table = np.arange(256, dtype=np.uint8)
    for old, new in LEVELS:
        table[old if forward else new] = new if forward else old
    return table


def _count(
    entry: Ledger,
    pair: LeafPair,
    old: Mapping[str, Column],
    new: Mapping[str, Column],
    forward: bool,
    message: Callable[[], str],
) -> None:
    """Add the values of one field to *entry*."""
    if pair.source is None:
        if pair.target is not None:
            made = leaf(new, pair.target)
            if made.count:
                entry.added[".".join(pair.target)] += made.count
            _note_unequal(entry, _not_zero(made), ".".join(pair.target), message)
            entry.values += _not_zero(made)
        return
    before = leaf(old, pair.source)
    entry.values += before.count
    name = ".".join(pair.source)
    if pair.target is None:
        if before.count:
            entry.dropped[name] += before.count
        return
    after = leaf(new, pair.target)
    if pair.rule == LEVEL:
        due = _level_table(forward)[before.data]
        changed = due != before.data
        before = _Leaf(before.lengths, due)
    elif pair.rule == SIGN:
        changed = before.data > np.iinfo(np.int8).max
    else:
        changed = np.zeros(0, bool)
    same = _equal(before, after)
    good = int(np.count_nonzero(same))
    by_rule = int(np.count_nonzero(same & changed)) if len(changed) else 0
    if by_rule:
        entry.changed[pair.rule] += by_rule
    entry.equal += good - by_rule
    _note_unequal(entry, before.count - good, name, message)
    if before.count == 0 and (after.count or not _same_shape(before, after)):
        # Lists that are empty in the source only.
        entry.values += max(1, after.count)
        _note_unequal(entry, max(1, after.count), name, message)


def _same_shape(old: _Leaf, new: _Leaf) -> bool:
    return len(old.lengths) == len(new.lengths) and all(map(np.array_equal, old.lengths, new.lengths))


def _note_unequal(entry: Ledger, count: int, name: str, message: Callable[[], str]) -> None:
    if count:
        entry.unequal += count
        entry.first = entry.first or f"field {name!r}, {message()}"


def _settled(channel: Channel, rows: I64) -> tuple[list[Column], int]:
    columns, kept = read_rows(channel, rows)
    return [column.settled(True) for column in columns], len(kept)


def compare(
    entry: Ledger,
    source: Channel,
    target: Channel,
    pairs: Sequence[LeafPair],
    forward: bool = True,
    made: Callable[[list[Column]], list[Column]] | None = None,
) -> None:
    """Read the messages at ``entry.rows`` of *source* and all of *target*, and count their values in *entry*.

    pairs   the fields
    made    what the columns of the source become before they are compared; None: they stay
    """
    entry.written = len(target)
    if len(entry.rows) != len(target):
        entry.unequal += abs(len(entry.rows) - len(target))
        entry.first = f"{len(target)} messages of {len(entry.rows)}"
        return
    n = len(target)
    step = int(max(1, min(ROWS, BYTES_AT_ONCE * n // max(1, source.bytes + target.bytes))))
    new_names = [f.name for f in target.layout.record.visible()]
    old_names = new_names if made is not None else [f.name for f in source.layout.record.visible()]
    for lo in range(0, n, step):
        hi = min(lo + step, n)
        old, read = _settled(source, entry.rows[lo:hi])
        new, again = _settled(target, np.arange(lo, hi, dtype=np.int64))

        def message(lo: int = lo, hi: int = hi) -> str:
            return f"messages {lo} to {hi - 1} of {target.topic!r}"

        if (read, again) != (hi - lo, hi - lo):
            _note_unequal(entry, hi - lo - min(read, again), "", message)
            continue
        if made is not None:
            old = made(old)
        before, after = dict(zip(old_names, old, strict=True)), dict(zip(new_names, new, strict=True))
        for pair in pairs:
            _count(entry, pair, before, after, forward, message)


def same_leaves(record: Struct) -> Iterator[LeafPair]:
    """Yield the fields of messages that are to have the same ones."""
    for path in _paths(record, ()):
        yield LeafPair(path, path)


def _paths(node: Node, before: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    while isinstance(node, Counted | FixedArray):
        node = node.item
    if not isinstance(node, Struct):
        yield before
        return
    for f in node.visible():
        yield from _paths(f.node, (*before, f.name))


# ----------------------------------------------------------------------------------------------------------- manifests


@dataclass(frozen=True, slots=True)
class FileState:
    """A file of a manifest: *role* is ``source`` or ``output``, *state* ``same``, ``changed`` or ``missing``."""

    path: str
    role: str
    state: str

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"path": self.path, "role": self.role, "state": self.state}


@dataclass(frozen=True, slots=True, repr=False)
class Verification(Brief):
    """The result of ``verify``.

    files   states of all files of the manifest
    ledger  what a comparison of the values gives now; empty if they were not compared
    """

    path: str
    files: tuple[FileState, ...]
    ledger: tuple[Ledger, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether all files are there with their digests, and no value is unequal."""
        return all(file.state == "same" for file in self.files) and not any(e.unequal for e in self.ledger)

    def as_dict(self) -> dict[str, Any]:
        """Return the plain data of ``verify --json``."""
        return {
            "path": self.path,
            "good": self.is_good,
            "files": [file.as_dict() for file in self.files],
            "ledger": [entry.as_dict() for entry in self.ledger],
        }


def _digest(path: str | os.PathLike[str]) -> tuple[str, int]:
    """Return the SHA-256 of a file, and its size."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return digest, file.tell()


def _files_of(path: str) -> list[str]:
    """Return the path of a file, or those of all files in a folder and below it."""
    if not os.path.isdir(path):
        return [path]
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)


def write_manifest(
    path: str | os.PathLike[str],
    sources: Iterable[str],
    output: str,
    ledger: Sequence[Ledger],
    facts: Mapping[str, Any],
    force: bool = False,
) -> None:
    """Write a manifest: digests of all files, and what became of the values.

    sources, output  paths of files and folders; sources that are no files are left out
    facts    further plain data

    Raises LogError if *path* exists without *force*, or cannot be written.
    """
    place = Path(path).absolute()
    if place.exists() and not force:
        raise exists(path)

    def entry(file: str) -> dict[str, Any]:
        digest, size = _digest(file)
        return {"path": _relative(file, place.parent), "size": size, "sha256": digest}

    inputs = dict.fromkeys(file for source in sources if os.path.exists(source) for file in _files_of(source))
    manifest = {
        KEY: 1,
        "made_by": f"logreel {__version__}",
        "sources": [entry(file) for file in inputs],
        "outputs": [entry(file) for file in _files_of(output)],
        "output": _relative(output, place.parent),
        "ledger": [{**channel.as_dict(), "rows": _ranges(channel.rows)} for channel in ledger],
        **facts,
    }
    try:
        replace_text(place, json.dumps(manifest, indent=1) + "\n")
    except OSError as error:
        raise LogError(f"cannot be written: {error.strerror}", path=os.fspath(path)) from None


def _relative(path: str, folder: Path) -> str:
    """Return a path from the folder of the manifest, with slashes; as it is on another drive."""
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:
        return Path(path).absolute().as_posix()


def _ranges(rows: I64) -> list[list[int]]:
    """Return ascending runs of rows as pairs of first and end."""
    cuts = np.flatnonzero(np.diff(rows) != 1) + 1
    return [[int(run[0]), int(run[-1]) + 1] for run in np.split(rows, cuts) if len(run)]


def verify(manifest: str | os.PathLike[str], *, values: bool = False) -> Verification:
    """Compare the files that a manifest of ``logreel.convert`` lists with their digests.

    values  also read both logs, and compare all values again

    Raises LogError if *manifest* cannot be read, or is none.
    """
    path = os.fspath(manifest)
    stated = _read(path)
    folder = Path(path).absolute().parent
    files = tuple(
        FileState(str(file["path"]), role, _state(folder / str(file["path"]), str(file["sha256"])))
        for role in ("source", "output")
        for file in stated[f"{role}s"]
    )
    ledger = list[Ledger]()
    if values and all(file.state != "missing" for file in files):
        ledger = _compared_again(stated, folder)
    return Verification(path, files, tuple(ledger))


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(MAX_TEXT)
        stated = json.loads(text)
    except OSError as error:
        raise LogError(f"cannot be read: {error.strerror}", path=path) from None
    except (ValueError, RecursionError):
        stated = None
    lists = ("sources", "outputs", "ledger")
    good = isinstance(stated, dict) and KEY in stated
    if not good or not all(
        isinstance(stated.get(name), list) and all(isinstance(entry, dict) for entry in stated[name])
        for name in lists
    ):
        raise LogError("is no manifest of a conversion", path=path, hint="logreel.convert writes one")
    if not all({"path", "sha256"} <= file.keys() for name in lists[:2] for file in stated[name]):
        raise LogError("is no manifest of a conversion: a file has no digest", path=path)
    result: dict[str, Any] = stated
    return result


def _state(path: Path, digest: str) -> str:
    try:
        return "same" if _digest(path)[0] == digest else "changed"
    except OSError:
        return "missing"


def _compared_again(stated: Mapping[str, Any], folder: Path) -> list[Ledger]:
    """Return what a comparison of the values gives now."""
    sources = [str(folder / str(file["path"])) for file in stated["sources"]]
    done = list[Ledger]()
    if not stated["ledger"]:
        return done
    places = [path for path in sources if not path.endswith(".yaml")]
    with (
        open_log(places[0] if len(places) == 1 else places) as source,
        open_log(str(folder / str(stated.get("output")))) as target,
    ):
        for values in stated["ledger"]:
            done.append(_again(values, source, target))
    return done


def _again(values: Mapping[str, Any], source: Log, target: Log) -> Ledger:
    topic, new_topic = str(values.get("topic")), str(values.get("new_topic"))
    entry = Ledger(
        topic, str(values.get("type")), new_topic, str(values.get("new_type")), int(values.get("messages", 0))
    )
    if topic not in source or new_topic not in target:
        entry.unequal, entry.first = entry.messages, "there is no such channel any more"
        return entry
    old, new = source[topic], target[new_topic]
    rows = [np.arange(int(a), min(int(b), len(old)), dtype=np.int64) for a, b in values.get("rows", ())]
    entry.rows = np.concatenate([np.zeros(0, np.int64), *rows])
    conversion = conversion_between(old, new)
    if conversion is None:
        entry.first = "its messages have a definition made of their fields: not compared again"
        return entry
    compare(entry, old, new, [*conversion.leaves()], conversion.forward)
    return entry


def conversion_between(old: Channel, new: Channel) -> Conversion | None:
    """Return how messages of *old* became those of *new* by the rules; None if they did not."""
    checksum = str(old.metadata.get("md5sum", "*"))
    try:
        made = to_ros2(old.schema, checksum) if old.schema.encoding == "ros1msg" else to_ros1(old.schema)
        if made.target_layout.root == new.layout.root:
            return made
    except LogError:
        pass
    return back(old.schema, new.schema, str(new.metadata.get("md5sum", "*")))
