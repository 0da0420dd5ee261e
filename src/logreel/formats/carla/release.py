"""Infer the release that wrote a recording from its content: no field states it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from logreel.formats.carla.definitions import layout, physics
from logreel.formats.carla.records import EVENT_ADD, PHYSICS, POSITION
from logreel.index.message_index import MessageIndex
from logreel.io.source import Source
from logreel.layout.layout import Layout
from logreel.layout.walker import extent, measuring

#: Bytes of a wheel in PhysicsControl in releases up to 0.9.11.
OLD_WHEEL = 36
#: Types of actors.
_OTHER, _SENSOR = 0, 5
#: Packets searched for one with records, and bytes of a packet that are decoded.
_PROBES, _BYTES = 256, 4 << 20


@dataclass(frozen=True)
class ReleaseEvidence:
    """The content of a recording that differs between releases.

    topics    topic by packet kind, for all kinds in the recording
    channels  channel number in *index* by packet kind
    has_frame  True if a frame is complete: each has all kinds of packets that its release writes
    """

    source: Source
    index: MessageIndex
    topics: dict[int, str]
    channels: dict[int, int]
    version: int
    wide: bool
    has_frame: bool

    def _packets(self, kind: int) -> Iterator[tuple[int, int]]:
        """Yield payload offset and size of the first packets of a kind that have records."""
        if kind not in self.channels:
            return
        from logreel.index.ranges import places

        channel = self.channels[kind]
        some = slice(0, min(_PROBES, int(self.index.counts[channel])))
        _, at, size = places(self.index, channel, some)
        yield from ((a, n) for a, n in zip(at.tolist(), size.tolist(), strict=True) if n > 2)

    def _first(self, kind: int, how: Layout) -> list[dict[str, Any]]:
        """Return the records of the first packet of a kind that has records and can be decoded."""
        from logreel.errors import DamagedError

        decode = how.decoder()
        for at, size in self._packets(kind):
            try:
                records: list[dict[str, Any]] = decode(self.source.view[at : at + min(size, _BYTES)])[
                    "records"
                ]
            except DamagedError:
                continue
            return records
        return []

    @cached_property
    def actors(self) -> list[dict[str, Any]]:
        """Actors at the beginning of the recording."""
        return self._first(EVENT_ADD, layout("actors", self.wide))

    @cached_property
    def physics(self) -> Layout | None:
        """Layout of PhysicsControl whose wheels fill a packet exactly, or None."""
        for at, size in self._packets(PHYSICS) if not self.wide else ():
            for stiffness in (True, False):
                how = physics(stiffness)
                if extent(measuring(how), self.source.data, at, at + size) == at + size:
                    return how
        return None

    @property
    def unreadable_physics(self) -> int | None:
        """Payload offset of the first packet of PhysicsControl if there are some and no layout fits one of them."""
        if self.wide or self.physics is not None:
            return None
        return next((at for at, _ in self._packets(PHYSICS)), None)

    @property
    def has_old_wheels(self) -> bool:
        """Whether PhysicsControl has the wheels of releases up to 0.9.11."""
        return self.physics == physics(False)

    @cached_property
    def attribute_base(self) -> int:
        """Number of the attribute type Bool, 0 or 1; inferred from attributes whose type is known."""
        for actor in self.actors:
            for one in actor["attributes"]:
                base = {"role_name": 3, "color": 4}.get(one["name"])
                if base is not None and one["type"] in (base, base + 1):
                    return int(one["type"] - base)
        return int(self.version >= 2)

    @property
    def is_dreyevr(self) -> bool:
        """Whether the fork DReyeVR wrote the recording: it has packets that no release has."""
        return bool({"packet_18", "packet_21"} & set(self.topics.values()))

    def release(self) -> str:
        """Return the releases that write such a file, e.g. ``0.9.12 to 0.9.13``; empty without packets.

        Of a recording that was cut in its first frame, packets of later releases may be missing: ``0.9.6 or later``.
        """
        found = self._release()
        if self.has_frame or not found or found.startswith("after ") or self.wide:
            return found
        return f"{found.partition(' ')[0]} or later"

    def _release(self) -> str:
        """Return the releases that write these kinds of packets, and no others."""
        kinds, names = set(self.topics), set(self.topics.values())
        if not kinds:
            return ""
        if self.wide:
            return "0.10"
        if self.version >= 2:
            return "after 0.9.16" if "weather" in names else "0.9.16"
        if self.topics.get(21) == "doors" or 23 in kinds:
            return "after 0.9.15"
        if 21 in kinds and not self.is_dreyevr:
            return "0.9.15"
        if 20 in kinds:
            return "0.9.14"
        if 10 in kinds:
            return self._release_2020()
        return "0.9.6 to 0.9.9" if 8 in kinds else "0.9.4 to 0.9.5"

    def _release_2020(self) -> str:
        """Return which of the releases 0.9.10 to 0.9.13, which have the same kinds of packets."""
        kinds = {actor["type"] for actor in self.actors}
        if self.physics == physics(True) or _SENSOR in kinds:
            return "0.9.12 to 0.9.13"
        others = {actor["id"] for actor in self.actors if actor["type"] == _OTHER}
        moving = {one["id"] for one in self._first(POSITION, layout("position", self.wide))}
        if others and moving:
            return ("0.9.11" if self.has_old_wheels else "0.9.11 to 0.9.13") if others & moving else "0.9.10"
        return "0.9.10 to 0.9.11" if self.has_old_wheels else "0.9.10 to 0.9.13"
