"""Schemas of new ULogs: format definitions, names of topics, and the names by which ROS tools of PX4 know them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping

import numpy as np

from logreel.errors import DefinitionError
from logreel.formats.ulog.definitions import MAX_SIZE
from logreel.formats.ulog.records import BASIC
from logreel.index.channel_index import FieldAt
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, FixedArray, Node, Scalar, String, Struct, Time
from logreel.layout.numpy_columns import Column, from_values
from logreel.log.log import Log
from logreel.log.scan import Schema
from logreel.registry import format as any_format
from logreel.write.format_writer import Abilities, SchemaMaker, TextChannel, TextColumns

_TOPIC = re.compile(r"(.*?)(\[\d{1,3}\])?(@\d+)?", re.DOTALL)
UNFIT = re.compile(r"[^A-Za-z0-9_\-/]")


def free_name(topic: str, taken: Collection[str]) -> str:
    """Return a name with letters, digits, ``_ - /`` only; instances of a topic share its definition."""
    if topic.startswith("~"):
        return any_format.free_name(topic, taken)
    match = _TOPIC.fullmatch(topic)
    base, instance, log = match.groups("") if match else (topic, "", "")
    # The suffix of a later segment becomes part of the name.
    base = UNFIT.sub("-", base + log)
    names = itertools.chain([base], (f"{base}-{n}" for n in itertools.count(2)))
    return next(name + instance for name in names if name + instance not in taken)


STAMP = "timestamp"
_KIND = {scalar: name for name, scalar in BASIC.items()}
#: Names of fields.
FIELD = re.compile(r"(?!_padding)[A-Za-z0-9_]+")


def definition_from_layout(layout: Layout, name: str) -> str:
    """Return the text of a format *name* with the fields of *layout*, followed by one line for each nested struct.

    Without a field ``timestamp``, one is added as the first field. Raises DefinitionError for fields without a fixed
    size, arrays of arrays, and invalid names.
    """
    if not isinstance(layout.root, Struct):
        raise DefinitionError("a message of a ULog holds one record")
    fields = list(layout.root.visible())
    own_stamp = next((f for f in fields if f.name == STAMP), None)
    if own_stamp is not None and not (isinstance(own_stamp.node, Scalar) and "int" in own_stamp.node.type):
        raise DefinitionError(f"the field {STAMP!r} of a ULog is the time of the message, in microseconds")
    stamp = Field(STAMP, Scalar("uint64"))
    fields = [stamp if f is own_stamp else f for f in fields] if own_stamp else [stamp, *fields]
    lines: list[str] = []
    _add_struct(Struct(tuple(fields)), name, lines)
    return "\n".join(lines)


def _add_struct(node: Struct, name: str, lines: list[str]) -> None:
    place = len(lines)
    lines.append("")
    text = "".join(f"{text_of_field};" for text_of_field in _fields(node, name, lines))
    if not text:
        raise DefinitionError("a ULog has no messages without fields")
    lines[place] = f"{name}:{text}"


def _fields(node: Struct, name: str, lines: list[str]) -> Iterator[str]:
    for f in node.visible():
        if not FIELD.fullmatch(f.name):
            raise DefinitionError(f"{f.name!r:.60} cannot be a field of a ULog: letters, digits and _ only")
        type_name, times = _type(f.node, f"{name}-{f.name}", lines)
        yield f"{type_name}{times} {f.name}"


def _type(node: Node, name: str, lines: list[str]) -> tuple[str, str]:
    """Return the type of a field, and its brackets."""
    match node:
        case Scalar(type=t):
            return _KIND[t], ""
        case Time():
            return "int64_t", ""
        case Struct():
            _add_struct(node, name, lines)
            return name, ""
        case FixedArray(item=item, count=n):
            type_name, times = _type(item, name, lines)
            if times:
                raise DefinitionError("a ULog has no arrays of arrays")
            return type_name, f"[{n}]"
        case _:
            raise DefinitionError(f"{type(node).__name__}: the messages of a ULog have a fixed size")


_INSTANCE = re.compile(r"(.*)\[(\d{1,3})\]\Z", re.DOTALL)


class UlogSchemaMaker(SchemaMaker):
    """Format definitions named after topics; the field ``timestamp`` is the time of a message."""

    encoding = "ulog"
    fixed_size = True
    abilities = Abilities(FIELD, False, False, True, MAX_SIZE - 2 - 8, "timestamp")
    time_unit = 1000
    keeps_metadata = False

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self._channels: list[tuple[str, Layout | None, FieldAt | None]] = []

    def add_channel(self, name: str, layout: Layout | None, stamp: FieldAt | None) -> None:
        """Add the next channel: name of its format, Layout (None: undefined), and where its ``timestamp`` is."""
        self._channels.append((name, layout, stamp))

    def schema_from_layout(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return a format of the topic's name, followed by one for each nested struct."""
        if topic.startswith("~"):
            return Schema(topic, self.encoding)
        base = UNFIT.sub("-", base_name(topic)[0])
        return Schema(base, self.encoding, definition_from_layout(layout, base))

    def schema_from_text(self, topic: str, text: str, file: str) -> Schema:
        """Return the Schema of format texts, one per line; the first is that of the topic."""
        return Schema(base_name(topic)[0], self.encoding, text)

    def text_channel(self) -> TextChannel:
        """Return the channel of logged strings: syslog levels; a source is in brackets, as PX4 writes it."""
        return TextChannel("~text", Schema("~text", self.encoding), tuple(range(8)), 6, _text_columns, False)

    def layout(self, number: int) -> Layout:
        """Return the Layout of the channel's format."""
        name, layout, _ = self._channels[number]
        if layout is None:
            raise DefinitionError(f"{name} has no definition: its messages are bytes")
        return layout

    def time_field(self, number: int) -> tuple[str, int] | None:
        """Return ``timestamp`` and its unit, mostly microseconds."""
        stamp = self._channels[number][2]
        return None if stamp is None else ("timestamp", stamp.mul)


def _text_columns(lines: TextColumns) -> dict[str, Column]:
    n, text = len(lines.time), lines.text
    if lines.source.ends[-1]:
        named = zip(lines.source.to_pylist(), text.to_pylist(), strict=True)
        text = from_values(String(), [f"[{source}] {line}" if source else line for source, line in named])
    return {
        "level": Column("uint8", n, lines.level.astype(np.uint8)),
        "tag": Column("uint16", n, np.zeros(n, np.uint16)),
        "text": text,
    }


def base_name(topic: str) -> tuple[str, int]:
    """Return the name of a topic's format, and the instance number."""
    instance = _INSTANCE.match(topic)
    return (instance[1], int(instance[2])) if instance else (topic, 0)


def ros_names(log: Log) -> Mapping[str, tuple[str, str]]:
    """Return topic and type by topic of a ULog, as PX4's own conversion to bags names them.

    Instances have their number at the end, ``/px4/sensor_accel_1``; a topic with only the first instance has none.
    """
    names, instances = {}, dict[str, set[int]]()
    for topic, ch in log.channels.items():
        if not ch.reserved and ch.schema.encoding == "ulog":
            base, number = base_name(topic.partition("@")[0])
            instances.setdefault(base, set()).add(number)
    for topic, ch in log.channels.items():
        base, at, segment = topic.partition("@")
        base, number = base_name(base)
        if base in instances and not ch.reserved:
            several = instances[base] != {0}
            name = (
                f"/px4/{base.strip('/')}"
                + (f"_{number}" if several else "")
                + (f"_log{segment}" if at else "")
            )
            names[topic] = (name, f"px4_msgs/{type_of(base)}")
    return names


def type_of(name: str) -> str:
    """Return the type of a format: ``VehicleAttitude`` for ``vehicle_attitude``."""
    return "".join(word.title() for word in re.split(r"[^A-Za-z0-9]+", name)) or "Message"
