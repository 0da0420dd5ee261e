"""Which release wrote a recording: nothing says so, but what it holds does."""

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

#: Bytes of a wheel in PhysicsControl up to 0.9.11.
OLD_WHEEL = 36
_OTHER, _SENSOR = 0, 5
#: Packets looked at for one with content, and bytes of one that are decoded.
_PROBES, _BYTES = 256, 4 << 20


@dataclass(frozen=True)
class ReleaseEvidence:
    """What tells releases apart.

    topics    by kind, of the kinds that occur
    channels  number of each kind in *index*
    """

    source: Source
    index: MessageIndex
    topics: dict[int, str]
    channels: dict[int, int]
    version: int
    wide: bool

    def _packets(self, kind: int) -> Iterator[tuple[int, int]]:
        """Payload and size of the first packets of a kind that have content."""
        if kind not in self.channels:
            return
        from logreel.index.ranges import places

        channel = self.channels[kind]
        some = slice(0, min(_PROBES, int(self.index.counts[channel])))
        _, at, size = places(self.index, channel, some)
        yield from ((a, n) for a, n in zip(at.tolist(), size.tolist(), strict=True) if n > 2)

    def _first(self, kind: int, how: Layout) -> list[dict[str, Any]]:
        """The records of the first packet of a kind that has some."""
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
        """Who was there when the recording began."""
        return self._first(EVENT_ADD, layout("actors", self.wide))

    @cached_property
    def physics(self) -> Layout | None:
        """How PhysicsControl is laid out: which wheel fills the first packet exactly; None if neither does."""
        for at, size in self._packets(PHYSICS) if not self.wide else ():
            for stiffness in (True, False):
                how = physics(stiffness)
                if extent(measuring(how), self.source.data, at, at + size) == at + size:
                    return how
        return None

    @property
    def has_old_wheels(self) -> bool:
        """Whether ``physics`` has the wheels of releases up to 0.9.11."""
        return self.physics == physics(False)

    @cached_property
    def attribute_base(self) -> int:
        """0 where the types of attributes count from Bool = 0, 1 where from Bool = 1: a role is a text."""
        for actor in self.actors:
            for one in actor["attributes"]:
                base = {"role_name": 3, "color": 4}.get(one["name"])
                if base is not None and one["type"] in (base, base + 1):
                    return int(one["type"] - base)
        return int(self.version >= 2)

    @property
    def is_dreyevr(self) -> bool:
        """Whether the fork DReyeVR wrote it, which has packets of its own."""
        return bool({"packet_18", "packet_21"} & set(self.topics.values()))

    def release(self) -> str:
        """The releases that write such a file, e.g. ``0.9.12 to 0.9.13``; empty where there is nothing to tell."""
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
            return self._of_2020()
        return "0.9.6 to 0.9.9" if 8 in kinds else "0.9.4 to 0.9.5"

    def _of_2020(self) -> str:
        """Releases 0.9.10 to 0.9.13, which have the same packets."""
        kinds = {actor["type"] for actor in self.actors}
        if self.physics == physics(True) or _SENSOR in kinds:
            return "0.9.12 to 0.9.13"
        others = {actor["id"] for actor in self.actors if actor["type"] == _OTHER}
        moving = {one["id"] for one in self._first(POSITION, layout("position", self.wide))}
        if others and moving:
            return ("0.9.11" if self.has_old_wheels else "0.9.11 to 0.9.13") if others & moving else "0.9.10"
        return "0.9.10 to 0.9.11" if self.has_old_wheels else "0.9.10 to 0.9.13"
