"""Edits of messages by masks: texts, bytes, numbers, JSON and frames of every channel, and the topics."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from logreel.errors import LogError, UsageError
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, FixedArray, Node, Rest, Scalar, Time
from logreel.layout.nodes import Sequence as Counted
from logreel.lenses import Image, lenses
from logreel.lenses.base import is_integer, is_text
from logreel.log.log import Channel, Log
from logreel.ops.edit.field_edits import FieldEdit, Numbers
from logreel.ops.edit.masks import IdentityMask, Mask, TimeMask, all_texts, content, json_payload, whose
from logreel.ops.edit.meanings import FRAMES, SHARE, innermost, joined, structs, words
from logreel.ops.edit.place_mask import LogMasking, named, numeric_columns
from logreel.ops.edit.recipe import ChannelEdits, EditPlan, fields_layout, time_is_inside
from logreel.ops.rewrite.parts import Part
from logreel.ops.rewrite.streams import in_file_order
from logreel.schemas.jsonschema import JsonDecoder

NS = 10**9
#: Most messages and bytes of a channel from whose texts identities are learned.
MESSAGES, LARGEST = 1 << 20, 1 << 16
#: Times before are counted from something else than 1970, ns.
AGES = 10**17
#: The year 2100.
LATEST = 41 * 10**17
#: Units of whole numbers that can be times since 1970, ns.
_UNITS = {"int64": (1, 1000, 10**6, NS), "uint64": (1, 1000, 10**6, NS), "int32": (NS,), "uint32": (NS,)}
_FLOATS = {"double": (NS, 10**6, 1000)}
#: Words of names of numbers that say when something was, in parts or by satellites.
_CALENDAR = {"itow", "tow", "gps", "week", "wno", "year", "month", "day", "hour", "minute", "utc", "date"}
_PARTS = ({"itow"}, {"tow"}, {"week"}, {"wno"}, {"year"}, {"month"}, {"hour"}, {"date"})
#: Names of the week of GPS and of ms in it, in logs of ArduPilot.
_WEEK = {"GWk", "GMS"}
#: Words of names of whole numbers that are times, and of texts that are files.
_MOMENT = {"utc", "unix", "epoch", "walltime", "date", "datetime"}


def time_mask(log: Log) -> TimeMask:
    """Return the mask of the times of *log*, with a new secret offset."""
    offset = log.utc_offset
    if offset is None and log.epoch != "unix":
        return TimeMask.of(None, None)
    # Single times can be wrong, or count from something else.
    start, end = LATEST, AGES
    for ch in log.channels.values():
        times = ch.times + (offset or 0)
        times = times[(times > AGES) & (times < LATEST)]
        if len(times):
            start, end = min(start, int(times.min())), max(end, int(times.max()))
    return TimeMask.of(start, end) if start < LATEST else TimeMask.of(None, None)


def log_texts(log: Log) -> Iterator[tuple[Channel | None, bytes]]:
    """Yield all texts of a log, with the channels that they are in."""
    for topic, ch in log.channels.items():
        yield None, topic.encode("utf-8", "surrogateescape")
        yield None, ch.schema.raw
        for text in all_texts(ch.metadata):
            yield None, text
    for text in all_texts(log.metadata):
        yield None, text
    for name, attachment in log.attachments.items():
        yield None, name.encode("utf-8", "surrogateescape")
        yield None, attachment.read()
    rows = {ch.number: slice(0, len(ch)) for ch in log.channels.values() if len(ch) and _has_words(ch)}
    by_number = {ch.number: ch for ch in log.channels.values()}
    for batch in in_file_order(Part(log, rows)) if rows else ():
        for place, number in enumerate(batch.channels.tolist()):
            rows_of_channel = np.flatnonzero(batch.queue == place)
            if len(rows_of_channel):
                yield by_number[number], batch.payloads.rows(rows_of_channel).joined().tobytes()


def _has_words(ch: Channel) -> bool:
    layout = fields_layout(ch)
    if layout is None or any(isinstance(lens, Image) for lens in lenses(ch)):
        return False
    return bool(_content_paths(layout)) or isinstance(ch.decoder, JsonDecoder)


def json_messages(ch: Channel) -> Iterator[Any]:
    """Yield the messages of a channel that are JSON."""
    for message in ch:
        try:
            yield json.loads(bytes(message.data))
        except (ValueError, RecursionError):
            return


def add_masks(plan: EditPlan, masks: list[Mask]) -> None:
    """Add what *masks* hide to *plan*: in messages, topics, and, when it is written, all else."""
    plan.masking = LogMasking(masks)
    identity = plan.masking.identity
    if identity is not None:
        _learn(plan, identity)
    for channel_plan in plan.channels.values():
        layout = fields_layout(channel_plan.channel) if not channel_plan.drop else None
        if layout is None:
            if channel_plan.channel.schema.raw and not channel_plan.drop:
                plan.notes.append(
                    f"{channel_plan.channel.topic!r} was not searched: its definition cannot be read"
                )
            continue
        kept = len(channel_plan.edits)
        for mask in masks:
            _add_contents(channel_plan, layout, mask)
            if isinstance(mask, TimeMask):
                _add_times(plan, channel_plan, layout, mask)
        if identity is not None:
            _add_numbers(channel_plan, layout, identity)
        if kept != len(channel_plan.edits):
            try:
                channel_plan.editor()
            except UsageError:
                del channel_plan.edits[kept:]
                channel_plan.drop, channel_plan.drop_kind = (
                    "texts in messages that cannot be changed",
                    f"redact {masks[0].kind}",
                )
    _add_parameters(plan, masks)
    taken = {channel_plan.topic for channel_plan in plan.channels.values()}
    for channel_plan in plan.channels.values():
        if channel_plan.channel.reserved or channel_plan.drop:
            continue
        new = plan.masking.name("topic", channel_plan.topic)
        if new != channel_plan.topic and new not in taken:
            taken.add(new)
            channel_plan.topic = new


def _learn(plan: EditPlan, mask: IdentityMask) -> None:
    """Learn the identities that names state, so that they are replaced everywhere."""
    log = plan.log
    for ch in log.channels.values():
        mask.public |= {
            ch.topic.strip("/").lower(),
            ch.schema.name.lower(),
            ch.schema.name.rpartition("/")[2].lower(),
        }
    for name, value in log.metadata.items():
        mask.learn_entries(name, value)
    for ch in log.channels.values():
        mask.learn_entries(
            "", {k: v for k, v in ch.metadata.items() if k not in ("message_definition", "headers")}
        )
        layout = fields_layout(ch)
        if layout is None or not len(ch) or len(ch) > MESSAGES:
            continue
        paths = [p for p in _content_paths(layout) if whose(p.rpartition(".")[2])]
        if isinstance(ch.decoder, JsonDecoder):
            for message in json_messages(ch):
                mask.learn_entries("", message)
        elif paths:
            for message in ch:
                try:
                    decoded = message.decode()
                except LogError:
                    continue
                mask.learn_entries("", decoded)
    for _, text in log_texts(log):
        mask.learn_from(text)


def _content_paths(layout: Layout) -> list[str]:
    """Return the paths of texts and of bytes, frames included."""
    return [
        joined(path, name)
        for path, nodes in structs(layout)
        for name, node in nodes.items()
        if is_text(node) or is_text(innermost(node)) or isinstance(node, Rest | Bytes) or _is_bytes(node)
    ]


def _is_bytes(node: Node) -> bool:
    return isinstance(node, FixedArray | Counted) and node.item in (Scalar("uint8"), Scalar("char"))


def _add_contents(channel_plan: ChannelEdits, layout: Layout, mask: Mask) -> None:
    """Add changes of texts, of bytes that are text or pictures, and of messages in JSON or without a definition."""
    ch = channel_plan.channel
    fields = list(layout.record.visible())
    opaque = len(fields) == 1 and isinstance(fields[0].node, Rest)
    if isinstance(ch.decoder, JsonDecoder):
        parsed = partial(_json, mask)
        channel_plan.edits.append(
            FieldEdit(mask.kind, ("JSON",), content=parsed, repeats=mask.repeats, whole=True)
        )
        return
    lens = next((lens for lens in lenses(ch) if isinstance(lens, Image)), None)
    if opaque and lens is None and not ch.schema.raw:
        channel_plan.edits.append(
            FieldEdit(
                mask.kind, ("message",), content=partial(_changed, mask, ""), repeats=mask.repeats, whole=True
            )
        )
        return
    for path in _content_paths(layout):
        leaf = path.rpartition(".")[2]
        # Raw pixels can look like any text.
        if lens is not None and lens.data == path and lens.encoding:
            continue
        channel_plan.edits.append(
            FieldEdit(mask.kind, (path,), content=partial(_changed, mask, leaf), repeats=mask.repeats)
        )


def _json(mask: Mask, raw: bytes, message: Callable[[], Any]) -> bytes:
    return json_payload(mask, raw)


def _changed(mask: Mask, leaf: str, raw: bytes, message: Callable[[], Any]) -> bytes:
    """Return a text or bytes of a field called *leaf* as *mask* leaves them."""
    if not raw:
        return raw
    if leaf in FRAMES:
        return named(mask, raw)
    new = mask.value(leaf, raw) if isinstance(mask, IdentityMask) else raw
    return new if new != raw else content(mask, raw)


def _add_numbers(channel_plan: ChannelEdits, layout: Layout, mask: IdentityMask) -> None:
    """Add changes of whole numbers whose names say that they identify something."""
    for path, nodes in structs(layout):
        for name, node in nodes.items():
            word = whose(name)
            if (
                is_integer(innermost(node))
                and word
                and word not in ("person", "path", "/node", "name", "host")
            ):
                change = partial(_pseudonyms, mask)
                channel_plan.edits.append(FieldEdit(mask.kind, (joined(path, name),), numbers=change))


def _pseudonyms(mask: IdentityMask, values: list[Numbers], time: I64) -> list[Numbers]:
    made = []
    for value in values:
        unique, inverse = np.unique(value, return_inverse=True)
        new = np.array([mask.number(int(v)) for v in unique.tolist()]).astype(value.dtype)
        made.append(new[inverse].reshape(value.shape))
    return made


def _add_parameters(plan: EditPlan, masks: list[Mask]) -> None:
    """Add changes of parameters that changed during the log, in the channel that holds them."""
    exact: dict[float, float] = {}
    for mask in masks:
        if isinstance(mask, TimeMask):
            continue
        if isinstance(mask, IdentityMask):
            _learn_numbers(plan.log, mask)
        for name, parameter in plan.log.parameters.items():
            for value in (
                parameter.value,
                *(change.value for change in parameter.changes),
                *parameter.defaults.values(),
            ):
                if isinstance(value, int | float) and (new := mask.value(name, value)) != value:
                    exact[float(value)] = float(new)
    if not exact:
        return

    def change(values: list[Numbers], time: I64) -> list[Numbers]:
        made = values[0].copy()
        for old, new in exact.items():
            made[values[0] == old] = new
        return [made]

    for each in plan.channels.values():
        layout = fields_layout(each.channel)
        if each.channel.reserved and layout is not None and {"name", "value", "kind"} <= {*layout.paths()}:
            each.edits.append(FieldEdit(masks[0].kind, ("value",), numbers=change))


def _learn_numbers(log: Log, mask: IdentityMask) -> None:
    """Give pseudonyms to the numbers of devices, so that parameters with the same numbers get the same ones."""
    for ch in log.channels.values():
        layout = fields_layout(ch)
        for path in layout.paths() if layout is not None and len(ch) else ():
            if whose(path.rpartition(".")[2]) in ("device", "serial", "id") and "[" not in path:
                try:
                    values = np.asarray(ch[path])
                except (LogError, ValueError, TypeError, KeyError):
                    continue
                for value in np.unique(values).tolist() if values.dtype.kind in "iu" else ():
                    mask.number(int(value))


def _add_times(plan: EditPlan, channel_plan: ChannelEdits, layout: Layout, mask: TimeMask) -> None:
    """Add changes of numbers that are times since 1970, by their type, their names, or their values."""
    ch = channel_plan.channel
    inside = time_is_inside(ch)
    own = {"timestamp"} if inside else set[str]()
    for path, nodes in structs(layout):
        for name, node in nodes.items():
            at, item = joined(path, name), innermost(node)
            if isinstance(item, Time) and not item.signed:
                channel_plan.edits.append(
                    FieldEdit(mask.kind, (at,), numbers=partial(_shifted, mask, (1,), True))
                )
            elif isinstance(item, Scalar) and _is_part_of_date(name) and not path and at not in own:
                channel_plan.edits.append(FieldEdit(mask.kind, (at,), numbers=_unknown, why="part of a date"))
    if not len(ch) or isinstance(ch.decoder, JsonDecoder):
        return
    near, stated = dict[tuple[str, int], int](), dict[str, int]()
    for columns in numeric_columns(ch):
        for column in columns:
            if column.path in own or any(column.path in edit.paths for edit in channel_plan.edits):
                continue
            units = (_UNITS | _FLOATS).get(column.type, ())
            known = np.isfinite(column.values) & (column.values != 0)
            stated[column.path] = stated.get(column.path, 0) + int(np.count_nonzero(known))
            for unit in units:
                wide = bool(words(column.path.rpartition(".")[2]) & _MOMENT)
                key = column.path, unit
                near[key] = near.get(key, 0) + int(
                    np.count_nonzero(_is_time(mask, column.values, unit, wide))
                )
    for (path, unit), count in near.items():
        if count and count >= SHARE * stated[path]:
            wide = bool(words(path.rpartition(".")[2]) & _MOMENT)
            change = partial(_shifted, mask, (unit,), wide)
            channel_plan.edits.append(FieldEdit(mask.kind, (path,), numbers=change, why="times since 1970"))


def _is_part_of_date(name: str) -> bool:
    return name in _WEEK or (words(name) <= _CALENDAR and any(words(name) >= part for part in _PARTS))


def _is_time(mask: TimeMask, values: Any, unit: int, wide: bool) -> Any:
    """Return bool[n]: whether numbers in *unit* ns are times of the log; *wide*: any time from 1990 to 2100."""
    start, end = 631_000_000 * NS, 4_102_000_000 * NS
    if not wide and mask.start is not None and mask.end is not None:
        start, end = mask.start - 31 * 86400 * NS, mask.end + 31 * 86400 * NS
    elif not wide and unit == NS:
        return np.zeros(len(values), bool)
    with np.errstate(invalid="ignore"):
        return (values > start / unit) & (values < end / unit)


def _shifted(
    mask: TimeMask, units: tuple[int, ...], wide: bool, values: list[Numbers], time: I64
) -> list[Numbers]:
    made = []
    for value in values:
        new = value.copy()
        for unit in units:
            rows = _is_time(mask, value.astype(np.float64), unit, wide)
            step = mask.offset // unit if value.dtype.kind in "iu" else mask.offset / unit
            if value.dtype.kind in "iu":
                new[rows] = (value[rows].astype(np.int64) + step).astype(value.dtype)
            else:
                new[rows] = value[rows] + step
        made.append(new)
    return made


def _unknown(values: list[Numbers], time: I64) -> list[Numbers]:
    return [np.zeros_like(value) for value in values]
