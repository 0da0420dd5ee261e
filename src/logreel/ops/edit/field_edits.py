"""Edits of fields, where they lie in payloads, so that all other bytes of a message stay as they are.

Messages of protobuf, JSON and aligned layouts are parsed and written again.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DamagedError, DefinitionError, LogError, Problem, UsageError
from logreel.io.arrays import I64
from logreel.io.source import Buffer
from logreel.kernels import block_table as kernel
from logreel.layout.encode_message import encoder
from logreel.layout.layout import Layout
from logreel.layout.nodes import (
    SCALARS,
    Bytes,
    Expect,
    FixedArray,
    Node,
    Rest,
    Scalar,
    String,
    Struct,
    Time,
    measure,
)
from logreel.layout.nodes import Sequence as Counted
from logreel.log.log import Channel
from logreel.ops.edit.places import FieldRanges, Finder, Step, TargetField, target

Numbers = NDArray[Any]
#: Return new values of some fields, from their values and the times of their messages in ns.
ChangeNumbers = Callable[[list[Numbers], I64], list[Numbers]]
#: Return a new text, or new bytes, from the old ones and a function that decodes the message.
ChangeBytes = Callable[[bytes, Callable[[], Mapping[str, Any]]], bytes]

NS = 10**9
#: How often a text is masked again that was cut to its field; each time it is cut at an earlier word.
_TURNS = 8


@dataclass(frozen=True, slots=True)
class FieldEdit:
    """A change of some fields of one channel.

    kind     what is changed: ``frame``, ``stamp``, ``zero``, ``position``, ``images``, ``text`` …
    paths    the fields; those that *numbers* gets together are members of the same struct
    numbers  change of numbers and times (int64 ns)
    content  change of texts and opaque bytes
    clears   True: the fields become zero or empty
    forbids  returns for some fields, from their values in the new log, which must not be there: bool[k]
    repeats  False: a change of *content* does something else when it is made again
    why      how the fields were recognised, for the list of changes
    whole    True: *content* changes the message as it is, whatever its fields are
    """

    kind: str
    paths: tuple[str, ...]
    numbers: ChangeNumbers | None = None
    content: ChangeBytes | None = None
    clears: bool = False
    forbids: Callable[[list[Numbers]], NDArray[np.bool_]] | None = None
    repeats: bool = True
    why: str = ""
    whole: bool = False

    def target_at(self, layout: Layout, path: str) -> TargetField:
        """Return the field at *path*; numbers and texts in arrays are each a field of their own."""
        target_field = target(layout, path, scalars=self.numbers is not None)
        if (
            self.content is not None
            and isinstance(target_field.node, Counted | FixedArray)
            and not _is_content(target_field.node)
        ):
            return target(layout, path, scalars=True)
        return target_field

    def targets(self, layout: Layout) -> list[TargetField]:
        """Return the fields in *layout*; raises NotFoundError for unknown ones, UsageError for other types."""
        fields = [self.target_at(layout, path) for path in self.paths]
        for path, target_field in zip(self.paths, fields, strict=True):
            fits = self.clears or (
                isinstance(target_field.node, Scalar | Time)
                if self.numbers is not None
                else _is_content(target_field.node)
            )
            if not fits:
                raise UsageError(f"{path!r} is not of a type that can be changed")
        return fields


def _is_content(node: Node) -> bool:
    match node:
        case String() | Bytes() | Rest():
            return True
        case Counted(item=item) | FixedArray(item=item):
            return item in (Scalar("char"), Scalar("uint8"))
        case _:
            return False


@dataclass(slots=True)
class Outcome:
    """Messages with changed fields, one after another.

    data  uint8[b]
    size  int64[n]
    bad   int64[k]: rows of messages that could not be walked or changed; they are as before
    """

    data: Buffer
    size: I64
    bad: I64


class Editor(Protocol):
    """Changes the messages of one channel.

    changed  number of messages that each edit changed, by its place in the list of edits
    """

    changed: Counter[int]

    def apply(self, data: Buffer, start: I64, size: I64, time: I64) -> Outcome:
        """Return the messages data[start:start + size] at *time* (ns) with changed fields."""
        ...

    def untouched(self, data: Buffer, start: I64, size: I64) -> NDArray[np.uint64]:
        """Return uint64[n, 2]: digests of messages without the fields that are changed."""
        ...

    def remaining(self, data: Buffer, start: I64, size: I64) -> list[str]:
        """Return the fields of changed messages that still have what was to be changed; empty if all is well."""
        ...


@dataclass(slots=True)
class LayoutEditor:
    """Editor of messages that a Layout describes: bytes are replaced where the fields lie."""

    layout: Layout
    edits: Sequence[FieldEdit]
    changed: Counter[int] = field(default_factory=Counter)
    _targets: list[list[TargetField]] = field(init=False)
    _finder: Finder = field(init=False)
    _decode: Callable[[memoryview], dict[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        self._targets = [edit.targets(self.layout) for edit in self.edits]
        self._finder = Finder(self.layout, [each for targets in self._targets for each in targets])
        self._decode = self.layout.decoder()

    def apply(self, data: Buffer, start: I64, size: I64, time: I64) -> Outcome:
        """See Editor. Several edits of the same bytes apply one after the other if they keep their size."""
        ranges, bad = self._finder.find(data, start, size)
        at = 0
        spliced: dict[tuple[int, int], bytes] = {}
        for number, (edit, targets) in enumerate(zip(self.edits, self._targets, strict=True)):
            places = ranges[at : at + len(targets)]
            at += len(targets)
            rows = np.zeros(len(start), bool)
            if edit.numbers is not None:
                self._change_numbers(edit.numbers, data, targets, places, time, rows)
            else:
                for target_field, where in zip(targets, places, strict=True):
                    self._replace(edit, target_field, where, data, (start, size), spliced, rows)
            self.changed[number] += int(np.count_nonzero(rows))
        return Outcome(*_spliced(data, start, size, spliced), bad)

    def _change_numbers(
        self,
        change: ChangeNumbers,
        data: Buffer,
        targets: list[TargetField],
        places: list[FieldRanges],
        time: I64,
        rows: NDArray[np.bool_],
    ) -> None:
        if not len(places[0].row):
            return
        old = [
            read_numbers(data, target_field.node, where)
            for target_field, where in zip(targets, places, strict=True)
        ]
        new = change(list(old), time[places[0].row])
        for target_field, where, before, after in zip(targets, places, old, new, strict=True):
            raw_before, raw_after = (
                pack_numbers(target_field.node, before),
                pack_numbers(target_field.node, after),
            )
            differs = (raw_before != raw_after).any(axis=1)
            rows[where.row[differs]] = True
            width = raw_after.shape[1]
            data[where.start[differs][:, None] + np.arange(width)] = raw_after[differs]

    def _replace(
        self,
        edit: FieldEdit,
        target_field: TargetField,
        where: FieldRanges,
        data: Buffer,
        messages: tuple[I64, I64],
        spliced: dict[tuple[int, int], bytes],
        rows: NDArray[np.bool_],
    ) -> None:
        start, size = messages
        table = zip(where.row.tolist(), where.start.tolist(), where.size.tolist(), strict=True)
        for row, begin, length in table:
            old = spliced.get((begin, length))
            if old is None:
                old = data[begin : begin + length].tobytes()
            if edit.clears:
                new = cleared(target_field.node, old)
            elif edit.content is not None:
                message = memoryview(data[start[row] : start[row] + size[row]].data)
                decode = partial(self._decode, message)
                content, wrap = _unwrapped(target_field.node, old)
                wanted = edit.content(content, decode)
                new = wrap(wanted)
                for _ in range(_TURNS if edit.repeats else 0):
                    # A text that was cut to its field may end in a part of a word that is itself replaced.
                    content = _unwrapped(target_field.node, new)[0]
                    if content == wanted:
                        break
                    wanted = edit.content(content, decode)
                    new = wrap(wanted)
            else:
                raise UsageError("an edit without a change")
            if new != old:
                rows[row] = True
                if len(new) == length:
                    data[begin : begin + length] = np.frombuffer(new, np.uint8)
                else:
                    spliced[begin, length] = new

    def untouched(self, data: Buffer, start: I64, size: I64) -> NDArray[np.uint64]:
        """See Editor."""
        ranges, _ = self._finder.find(data, start, size)
        cut = {
            (begin, length): b""
            for where in ranges
            for begin, length in zip(where.start.tolist(), where.size.tolist(), strict=True)
        }
        data, size = _spliced(data, start, size, cut)
        return digests(data, size)

    def remaining(self, data: Buffer, start: I64, size: I64) -> list[str]:
        """See Editor. Texts and cleared fields must not change once more, and numbers not be forbidden."""
        ranges, _ = self._finder.find(data, start, size)
        at, left = 0, list[str]()
        for edit, targets in zip(self.edits, self._targets, strict=True):
            places = ranges[at : at + len(targets)]
            at += len(targets)
            again = np.zeros(len(start), bool)
            if edit.numbers is None:
                for target_field, where in zip(targets, places, strict=True) if edit.repeats else ():
                    self._replace(edit, target_field, where, data.copy(), (start, size), {}, again)
            elif edit.forbids is not None:
                values = [
                    read_numbers(data, target_field.node, where)
                    for target_field, where in zip(targets, places, strict=True)
                ]
                again = edit.forbids(values)
            left += [", ".join(edit.paths)] * bool(again.any())
        return left


@dataclass(slots=True)
class WholeEditor:
    """Editor of messages that are changed as they are, after their fields were.

    edits  all edits of the channel; *inner*: the editor of those of fields, or None
    """

    edits: Sequence[FieldEdit]
    inner: Editor | None
    decode: Callable[[memoryview], Mapping[str, Any]]
    changed: Counter[int] = field(default_factory=Counter)

    def apply(self, data: Buffer, start: I64, size: I64, time: I64) -> Outcome:
        """See Editor."""
        bad = np.zeros(0, np.int64)
        if self.inner is not None:
            before = Counter(self.inner.changed)
            made = self.inner.apply(data, start, size, time)
            fields = [n for n, edit in enumerate(self.edits) if not edit.whole]
            for place, count in (self.inner.changed - before).items():
                self.changed[fields[place]] += count
            data, size, bad = made.data, made.size, made.bad
            start = np.cumsum(size) - size
        out, sizes = bytearray(), np.zeros(len(size), np.int64)
        for row, (begin, length) in enumerate(zip(start.tolist(), size.tolist(), strict=True)):
            raw = data[begin : begin + length].tobytes()
            for number, edit in enumerate(self.edits):
                if edit.whole and edit.content is not None:
                    new = edit.content(raw, lambda raw=raw: self.decode(memoryview(raw)))  # type: ignore[misc]
                    self.changed[number] += int(new != raw)
                    raw = new
            out += raw
            sizes[row] = len(raw)
        return Outcome(np.frombuffer(bytes(out), np.uint8), sizes, bad)

    def untouched(self, data: Buffer, start: I64, size: I64) -> NDArray[np.uint64]:
        """See Editor. Nothing is left of a message that may change anywhere."""
        return np.zeros((len(size), 2), np.uint64)

    def remaining(self, data: Buffer, start: I64, size: I64) -> list[str]:
        """See Editor."""
        left = [] if self.inner is None else self.inner.remaining(data, start, size)
        for begin, length in zip(start.tolist(), size.tolist(), strict=True):
            raw = data[begin : begin + length].tobytes()
            for edit in self.edits:
                if (
                    edit.whole
                    and edit.repeats
                    and edit.content is not None
                    and edit.content(raw, dict) != raw
                ):
                    left.append(", ".join(edit.paths))
        return list(dict.fromkeys(left))


def digests(data: Buffer, size: I64) -> NDArray[np.uint64]:
    """Return uint64[n, 2]: digests of n messages that lie in *data* one after another."""
    out = np.empty((len(size), 2), np.uint64)
    if len(size):
        kernel.digest_payloads(np.ascontiguousarray(data), np.cumsum(size) - size, size, out)
    return out


def read_numbers(data: Buffer, node: Node, where: FieldRanges) -> Numbers:
    """Return the values of a field, one per place; times as int64 ns."""
    width = _width(node)
    raw = data[where.start[:, None] + np.arange(width)]
    if isinstance(node, Time):
        words = np.ascontiguousarray(raw).view("<i4" if node.signed else "<u4").astype(np.int64)
        return np.asarray(words[:, 0] * NS + words[:, 1])
    return np.ascontiguousarray(raw).view(SCALARS[_type(node)][0])[:, 0]


def pack_numbers(node: Node, values: Numbers) -> NDArray[np.uint8]:
    """Return uint8[n, width]: the bytes of numbers; raises UsageError for numbers that do not fit."""
    if isinstance(node, Time):
        seconds, rest = np.divmod(np.asarray(values, np.int64), NS)
        low, high = (-(1 << 31), (1 << 31) - 1) if node.signed else (0, (1 << 32) - 1)
        if len(seconds) and (int(seconds.min()) < low or int(seconds.max()) > high):
            raise UsageError("a time that becomes earlier than 1970 or later than 2106 cannot be stored")
        number_type = "<i4" if node.signed else "<u4"
        words = np.stack([seconds, rest], axis=1).astype(number_type)
        return words.view(np.uint8)
    number_type = SCALARS[_type(node)][0]
    dtype = np.dtype(number_type)
    if dtype.kind in "iu" and len(values):
        info = np.iinfo(dtype)
        if int(np.min(values)) < info.min or int(np.max(values)) > info.max:
            raise UsageError(f"a new value does not fit into {_type(node)}")
    return np.ascontiguousarray(np.asarray(values).astype(dtype)).view(np.uint8).reshape(len(values), -1)


def in_type(values: I64, dtype: np.dtype[Any]) -> Numbers:
    """Return whole numbers in another type; raises UsageError for numbers that do not fit."""
    if dtype.kind in "iu" and len(values):
        info = np.iinfo(dtype)
        if int(values.min()) < info.min or int(values.max()) > info.max:
            raise UsageError(f"a time that becomes {int(values.min())} cannot be stored as {dtype.name}")
    return values.astype(dtype)


def _type(node: Node) -> str:
    if not isinstance(node, Scalar):
        raise UsageError(f"{type(node).__name__} is no number")
    return node.type


def _width(node: Node) -> int:
    return measure(node).least


def cleared(node: Node, old: bytes) -> bytes:
    """Return the bytes of *node* with zeros and empty texts and arrays; constant bytes stay."""
    match node:
        case String(width=width, tail=tail):
            return tail.to_bytes(width, "little") + bytes(tail)
        case Bytes(width=width) | Counted(width=width):
            return bytes(width)
        case Rest():
            return b""
        case Expect(data=data):
            return data
        case Struct(fields=fields):
            return b"".join(cleared(f.node, b"") for f in fields)
        case FixedArray(item=item, count=count):
            return cleared(item, b"") * count
        case _:
            size = measure(node).size
            if size is None:
                raise DefinitionError(f"{type(node).__name__} cannot be cleared")
            return bytes(size)


def _unwrapped(node: Node, old: bytes) -> tuple[bytes, Callable[[bytes], bytes]]:
    """Return the content of a text or of opaque bytes, and how new content becomes the bytes of the field."""
    match node:
        case String(width=width) | Bytes(width=width) | Counted(width=width):
            return old[width:], lambda new: len(new).to_bytes(width, "little") + new
        case FixedArray(item=Scalar(type="char"), count=count):

            def padded(new: bytes) -> bytes:
                # Bytes after the end of an unchanged text stay.
                if new == old.partition(b"\0")[0]:
                    return old
                return new[:count].ljust(count, b"\0")

            return old.partition(b"\0")[0], padded
        case FixedArray(count=count):
            return old, lambda new: new[:count].ljust(count, b"\0")
        case _:
            return old, lambda new: new


def _spliced(
    data: Buffer, start: I64, size: I64, spliced: Mapping[tuple[int, int], bytes]
) -> tuple[Buffer, I64]:
    """Return the messages one after another, with ranges (begin, length) of *data* replaced, and their sizes."""
    size = size.copy()
    if not spliced:
        contiguous = len(start) and int(start[0]) == 0 and bool((start[1:] == start[:-1] + size[:-1]).all())
        if contiguous and int(start[-1] + size[-1]) == len(data):
            return data, size
    view, out, ends = memoryview(np.ascontiguousarray(data).data), bytearray(), start + size
    changes = sorted(spliced.items())
    owner = np.searchsorted(start, [begin for (begin, _), _ in changes], side="right") - 1
    at = 0
    for row, (begin, end) in enumerate(zip(start.tolist(), ends.tolist(), strict=True)):
        before = len(out)
        while at < len(changes) and owner[at] == row:
            (lo, length), new = changes[at]
            # A range inside of one that was replaced is gone with it.
            if lo >= begin:
                out += view[begin:lo]
                out += new
                begin = lo + length
            at += 1
        out += view[begin:end]
        size[row] = len(out) - before
    return np.frombuffer(bytes(out), np.uint8), size


#: Bytes of the largest unit of alignment.
_WORD = 8


def tree_editor(ch: Channel, layout: Layout | None, edits: Sequence[FieldEdit]) -> TreeEditor | None:
    """Return the editor for a channel whose messages have to be parsed; None if they cannot be written again.

    layout  the Layout of the payloads, or None
    """
    named = layout or ch.layout
    if layout is not None:
        return TreeEditor(named, edits, *_by_layout(layout))
    from logreel.schemas.jsonschema import JsonDecoder
    from logreel.schemas.protobuf.payload_decoder import ProtobufDecoder

    body = ch.decoder
    if isinstance(body, ProtobufDecoder):
        return TreeEditor(
            named, edits, body.parse, lambda message: bytes(message.SerializeToString(deterministic=True))
        )
    if isinstance(body, JsonDecoder) and body.has_fields:
        return TreeEditor(named, edits, _parse_json, _write_json, nan=None)
    return None


def _by_layout(layout: Layout) -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]]:
    decode, encode = layout.decoder(), encoder(layout)

    def parse(data: bytes) -> Any:
        values = decode(memoryview(data))
        # Some serializers fill the last word with zeros.
        again = encode(values)
        if not data.startswith(again) or len(data) - len(again) >= _WORD or any(data[len(again) :]):
            raise DamagedError(Problem("payload", 0, len(data), True, "it cannot be written as it is"))
        return values

    return parse, encode


def _parse_json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedError(Problem("payload", 0, len(data), True, f"no JSON: {error}")) from None


def _write_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


@dataclass(slots=True)
class _Slot:
    """A place in a parsed message: a member of an object, or an item of an array."""

    holder: Any
    key: Any

    def get(self) -> Any:
        if isinstance(self.holder, MutableMapping | MutableSequence) or isinstance(self.key, int):
            return self.holder[self.key]
        return getattr(self.holder, self.key)

    def set(self, value: Any) -> None:
        if isinstance(self.holder, MutableMapping | MutableSequence) or isinstance(self.key, int):
            self.holder[self.key] = value
        else:
            setattr(self.holder, self.key, value)

    def clear(self) -> None:
        """Set to zero or empty."""
        if hasattr(self.holder, "ClearField"):
            self.holder.ClearField(self.key)
        else:
            self.set(_cleared(self.get()))


def _cleared(value: Any) -> Any:
    match value:
        case bool():
            return False
        case int() | float():
            return type(value)(0)
        case str() | bytes():
            return type(value)()
        case list():
            return []
        case dict():
            return {name: _cleared(member) for name, member in value.items()}
        case _:
            return value


def _slots(tree: Any, steps: tuple[Step, ...]) -> Iterator[_Slot]:
    """Yield the places that a path means; none where members are missing."""
    step, rest = steps[0], steps[1:]
    if isinstance(step, str):
        if isinstance(tree, dict):
            if "records" in tree and step not in tree and len(tree) == 1:
                for item in tree["records"]:
                    yield from _slots(item, steps)
                return
            if step not in tree:
                return
            here = _Slot(tree, step)
        elif hasattr(tree, "DESCRIPTOR") and step in tree.DESCRIPTOR.fields_by_name:
            item = tree.DESCRIPTOR.fields_by_name[step]
            if item.has_presence and not tree.HasField(step):
                return
            here = _Slot(tree, step)
        else:
            return
        if not rest:
            yield here
        else:
            yield from _slots(here.get(), rest)
        return
    if isinstance(tree, str | bytes) or not hasattr(tree, "__len__"):
        return
    if isinstance(tree, dict) and set(tree) == {"records"}:
        tree = tree["records"]
    for n in range(len(tree)) if step is None else [step] if step < len(tree) else []:
        if rest:
            yield from _slots(tree[n], rest)
        else:
            yield _Slot(tree, n)


@dataclass(slots=True)
class TreeEditor:
    """Editor of messages that are parsed to objects and arrays, changed, and written.

    layout  names the fields
    parse   returns a message as dicts and lists, or as protobuf message; raises DamagedError
    write   returns its bytes
    nan     what is written where a number is unknown
    """

    layout: Layout
    edits: Sequence[FieldEdit]
    parse: Callable[[bytes], Any]
    write: Callable[[Any], bytes]
    nan: Any = math.nan
    changed: Counter[int] = field(default_factory=Counter)
    _targets: list[list[TargetField]] = field(init=False)

    def __post_init__(self) -> None:
        self._targets = [[edit.target_at(self.layout, path) for path in edit.paths] for edit in self.edits]

    def apply(self, data: Buffer, start: I64, size: I64, time: I64) -> Outcome:
        """See Editor."""
        made, sizes, bad = bytearray(), np.zeros(len(size), np.int64), list[int]()
        for row, (raw, moment) in enumerate(zip(_payloads(data, start, size), time, strict=True)):
            new = raw
            try:
                tree = self.parse(raw)
                changed = self._change(tree, moment)
                if changed:
                    new = self.write(tree)
                    self.changed.update(changed)
            except (DamagedError, TypeError, KeyError, ValueError):
                bad.append(row)
            made += new
            sizes[row] = len(new)
        return Outcome(np.frombuffer(bytes(made), np.uint8), sizes, np.array(bad, np.int64))

    def _change(self, tree: Any, time: np.int64) -> list[int]:
        """Change a message; return the numbers of the edits that did something."""
        changed = []
        for number, (edit, targets) in enumerate(zip(self.edits, self._targets, strict=True)):
            slots = [list(_slots(tree, target_field.steps)) for target_field in targets]
            if edit.numbers is not None:
                differs = self._change_numbers(edit, targets, slots, time)
            else:
                differs = False
                for slot in (slot for members in slots for slot in members):
                    differs |= _replace(edit, slot, tree)
            if differs:
                changed.append(number)
        return changed

    def _change_numbers(
        self, edit: FieldEdit, targets: list[TargetField], slots: list[list[_Slot]], time: np.int64
    ) -> bool:
        count = len(slots[0])
        if not count or any(len(members) != count for members in slots) or edit.numbers is None:
            return False
        old = [
            _numbers(members, target_field.node) for members, target_field in zip(slots, targets, strict=True)
        ]
        new = edit.numbers(list(old), np.full(count, time, np.int64))
        done = False
        for members, before, after in zip(slots, old, new, strict=True):
            for slot, was, now in zip(members, before.tolist(), after.tolist(), strict=True):
                if was != now and not (was != was and now != now):
                    _store(slot, self.nan if now != now else now)
                    done = True
        return done

    def untouched(self, data: Buffer, start: I64, size: I64) -> NDArray[np.uint64]:
        """See Editor."""
        made, sizes = bytearray(), np.zeros(len(size), np.int64)
        for row, raw in enumerate(_payloads(data, start, size)):
            new = raw
            try:
                tree = self.parse(raw)
                for target_field in (target_field for targets in self._targets for target_field in targets):
                    for slot in list(_slots(tree, target_field.steps)):
                        value = slot.get()
                        if hasattr(slot.holder, "ClearField"):
                            slot.holder.ClearField(slot.key)
                        elif hasattr(value, "DESCRIPTOR"):
                            value.Clear()
                        else:
                            # Whole numbers and unknown ones in JSON may have been others.
                            is_number = value is None or isinstance(value, int | float)
                            slot.set(0 if is_number else _cleared(value))
                new = self.write(tree)
            except (LogError, TypeError, KeyError, ValueError):
                pass
            made += new
            sizes[row] = len(new)
        return digests(np.frombuffer(bytes(made), np.uint8), sizes)

    def remaining(self, data: Buffer, start: I64, size: I64) -> list[str]:
        """See Editor."""
        left = dict[str, None]()
        for raw in _payloads(data, start, size):
            try:
                tree = self.parse(raw)
            except DamagedError:
                continue
            for edit, targets in zip(self.edits, self._targets, strict=True):
                slots = [list(_slots(tree, target_field.steps)) for target_field in targets]
                if edit.numbers is None:
                    again = edit.repeats and any(
                        _replace(edit, slot, tree) for members in slots for slot in members
                    )
                else:
                    same = len({len(members) for members in slots}) == 1 and len(slots[0])
                    values = [
                        _numbers(s, target_field.node) for s, target_field in zip(slots, targets, strict=True)
                    ]
                    again = bool(edit.forbids is not None and same and edit.forbids(values).any())
                if again:
                    left[", ".join(edit.paths)] = None
        return list(left)


def _payloads(data: Buffer, start: I64, size: I64) -> Iterator[bytes]:
    for begin, length in zip(start.tolist(), size.tolist(), strict=True):
        yield data[begin : begin + length].tobytes()


def _numbers(slots: list[_Slot], node: Node) -> Numbers:
    """Return the values of a field; whole numbers in JSON can be those of a field of type float."""
    values = [slot.get() for slot in slots]
    if isinstance(node, Scalar) and node.type.startswith("float"):
        return np.array(values, np.float64)
    if values and hasattr(values[0], "seconds"):
        return np.array([stamp.seconds * NS + stamp.nanos for stamp in values], np.int64)
    return np.array(values)


def _store(slot: _Slot, value: Any) -> None:
    old = slot.get()
    if hasattr(old, "seconds"):
        old.seconds, old.nanos = divmod(int(value), NS)
    else:
        slot.set(bool(value) if isinstance(old, bool) else value)


def _replace(edit: FieldEdit, slot: _Slot, tree: Any) -> bool:
    """Change a text, opaque bytes, or clear a field; return whether it differs now."""
    old = slot.get()
    if edit.clears:
        before = old.SerializeToString() if hasattr(old, "DESCRIPTOR") else old
        if before == (b"" if hasattr(old, "DESCRIPTOR") else _cleared(old)) or not before:
            return False
        slot.clear()
        return True
    if edit.content is None or not isinstance(old, str | bytes):
        return False
    raw = old.encode("utf-8", "surrogatepass") if isinstance(old, str) else old
    new = edit.content(raw, lambda: tree if isinstance(tree, dict) else _Members(tree))
    if new == raw:
        return False
    slot.set(new.decode("utf-8", "replace") if isinstance(old, str) else new)
    return True


class _Members(dict[str, Any]):
    """Members of a protobuf message by name."""

    def __init__(self, message: Any) -> None:
        super().__init__({member.name: getattr(message, member.name) for member in message.DESCRIPTOR.fields})
