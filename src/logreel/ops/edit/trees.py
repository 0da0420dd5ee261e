"""Changes of fields in messages that are parsed and written again: protobuf, JSON, and aligned layouts."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, field
from logreel.errors import DamagedError, LogError, Problem
from logreel.io.arrays import I64
from logreel.io.source import Buffer
from logreel.layout.encode_message import encoder
from logreel.layout.layout import Layout
from logreel.layout.nodes import Node, Scalar
from logreel.log.log import Channel
from logreel.ops.edit.field_edits import FieldEdit, Numbers, Outcome, digests
from logreel.ops.edit.places import Step, TargetField
from logreel.schemas.json.payload_decoder import JsonDecoder
from logreel.schemas.protobuf.payload_decoder import ProtobufDecoder

NS = 10**9
#: Bytes of the largest unit of alignment.
_WORD = 8


def tree_editor(ch: Channel, layout: Layout | None, edits: Sequence[FieldEdit]) -> TreeEditor | None:
    """Return the editor for a channel whose messages have to be parsed; None if they cannot be written again.

    layout  the Layout of the payloads, or None
    """
    named = layout or ch.layout
    if layout is not None:
        return TreeEditor(named, edits, *_by_layout(layout))
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
