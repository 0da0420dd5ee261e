"""Schemas of new CARLA recordings: kinds of packets by topic, and checks that payloads are such packets."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass
from logreel.errors import DefinitionError, UsageError
from logreel.formats.carla import definitions
from logreel.formats.carla.records import FRAME_END, INSERTED, LAST_KIND, PHYSICS, RELEASED, SHIFTING, TOPICS
from logreel.index.channel_index import FieldAt
from logreel.io.arrays import I64
from logreel.io.source import Buffer
from logreel.kernels import layout as kernel
from logreel.layout.layout import Layout
from logreel.layout.program import compile_layout
from logreel.log.scan import Schema
from logreel.write.schema_maker import SchemaMaker

KINDS = 256
_COUNT = 2
_KINDS_BY_TOPIC = {topic: kind for kind, topic in TOPICS.items()} | {"frame_counter": 18}
_RAW = re.compile(r"packet_(\d{1,3})")


@dataclass(frozen=True, slots=True)
class Dialect:
    """Variant of the packet layouts that a release writes.

    wide       True: vectors of float64, as on the UE5 line
    stiffness  True: wheels of 48 bytes, as from 0.9.12 on, else 36
    """

    wide: bool = False
    stiffness: bool = True

    def layout(self, topic: str) -> Layout:
        """Return the Layout of the packets of a topic; RAW for unknown topics."""
        if topic == TOPICS[PHYSICS] and not self.wide:
            return definitions.physics(self.stiffness)
        return definitions.layout(topic, self.wide)

    def kind_of(self, topic: str, schema: Schema, metadata: Mapping[str, Any], foreign: bool) -> int:
        """Return the kind of the packets of a channel: ``packet`` in *metadata*, else the usual one of the topic.

        foreign  True: the packets are from another recording, which may be that of a fork

        Raises DefinitionError for another encoding, UsageError for a topic that no recording has.
        """
        if schema.encoding != "carla":
            raise DefinitionError(
                "a CARLA recording holds only packets of CARLA, of encoding 'carla': those of a recording, or of a log "
                f"that was converted from one; messages of encoding {schema.encoding!r} do not become packets"
            )
        raw = _RAW.fullmatch(topic)
        usual = int(raw[1]) if raw else self._usual(topic)
        packet = int(metadata.get("packet", usual))
        if not 0 <= packet < KINDS or packet == FRAME_END:
            raise UsageError(
                f"a CARLA recording has no channel {topic!r}: it names channels by their packets"
            )
        fits = packet == usual and (foreign or packet > LAST_KIND) if raw else _is_possible(packet, topic)
        if not fits:
            due = repr(TOPICS.get(packet, f"packet_{packet}"))
            text = f"a CARLA recording names channels by their packets; kind {packet} is {due}"
            raise UsageError(f"{topic!r}: {text}")
        return packet

    def _usual(self, topic: str) -> int:
        moved = INSERTED if self.wide else RELEASED
        return (_KINDS_BY_TOPIC | {name: packet for packet, name in moved.items()}).get(topic, -1)

    def misfits(self, topic: str, data: NDArray[np.uint8], start: I64, size: I64) -> NDArray[np.bool_]:
        """Return bool[n]: True for payloads that are not packets of a topic."""
        layout = self.layout(topic)
        bad = size < layout.measure.least
        if layout.measure.size is not None:
            return np.asarray(size != layout.measure.size)
        width = definitions.width(topic, self.wide)
        if width:
            rest = np.flatnonzero(~bad)
            bad[rest] = size[rest] != _COUNT + width * FieldAt(0, _COUNT).read(data, start[rest])
        elif layout is not definitions.RAW:
            bad = _misfits_layout(layout, data, start, size)
            if topic == TOPICS[PHYSICS]:
                bad &= _misfits_layout(definitions.physics(not self.stiffness), data, start, size)
        return bad


def _misfits_layout(layout: Layout, data: NDArray[np.uint8], start: I64, size: I64) -> NDArray[np.bool_]:
    """Return bool[n]: True for payloads that a Layout does not fill exactly."""
    program, status = compile_layout(layout), np.zeros(len(start), np.uint8)
    counts = np.zeros(len(program.columns), np.int64)
    kernel.count(data, start, start + size, program.ops, counts, status)
    return np.asarray(status != kernel.OK)


def _is_possible(packet: int, topic: str) -> bool:
    """Return True if packets of a kind can have a topic."""
    if packet in TOPICS:
        return topic == TOPICS[packet]
    return packet in SHIFTING and topic in (*RELEASED.values(), "frame_counter")


class CarlaSchemaMaker(SchemaMaker):
    """Makes schemas, which are kinds of packets.

    dialect  layouts of the release that is written
    topics   topic by channel number
    """

    encoding = "carla"

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.dialect = Dialect(False, True)
        self.topics: list[str] = []
        self._are_frames: list[bool] = []

    def add_channel(self, topic: str, is_frame: bool) -> None:
        """Add the next channel; *is_frame*: its messages are the starts of frames."""
        self.topics.append(topic)
        self._are_frames.append(is_frame)

    def schema_from_layout(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return the schema of *topic*; it does not depend on the fields."""
        schema = Schema(topic, self.encoding)
        try:
            self.dialect.kind_of(topic, schema, {}, False)
        except UsageError as error:
            raise DefinitionError(error.text) from None
        return schema

    def layout(self, number: int) -> Layout:
        """Return the Layout of the packets of a channel."""
        return self.dialect.layout(self.topics[number])

    def computed_fields(self, number: int) -> Collection[str]:
        """Return ``frame``: readers add the frame number to packets other than FrameStart."""
        return () if self._are_frames[number] else ("frame",)

    def time_dependent_fields(self, number: int) -> Collection[str]:
        """Return the fields of frames."""
        return ("frame", "duration", "elapsed") if self._are_frames[number] else ()

    def misfits(self, number: int, data: Buffer, start: I64, size: I64) -> NDArray[np.bool_]:
        """Return bool[n]: True for payloads that are not packets of a channel."""
        return self.dialect.misfits(self.topics[number], data, start, size)
