"""Header of a new recording, and the recordings that are merged into it."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from logreel.errors import UsageError
from logreel.formats.carla.scan_builder import ScanBuilder
from logreel.log.log import Channel, Log

_MAGIC = b"CARLA_RECORDER"
_LONGEST, _DATE_AT = 32767, 18
#: Bytes of a packet without records.
_EMPTY = 2
#: Ids listed in a note.
_LISTED = 5


def seconds_of(date: object) -> int:
    """Return a date in ISO 8601 as seconds since 1970, UTC by default; raises UsageError for other text."""
    try:
        moment = datetime.fromisoformat(str(date))
    except ValueError:
        raise UsageError(f"date {date!r:.60}: expected ISO 8601 such as 2023-11-14T22:13:20Z") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def pack_header(version: int | str, date: int | str, town: str) -> bytes:
    """Return the header of a recording; raises UsageError for values that do not fit into it."""
    name = str(town).encode()
    if len(name) > _LONGEST:
        raise UsageError(f"a map name of {len(name)} bytes; a CARLA recording holds at most {_LONGEST}")
    try:
        fixed = struct.pack("<HH14sq", int(version), len(_MAGIC), _MAGIC, int(date))
    except (struct.error, ValueError, OverflowError) as error:
        raise UsageError(f"version {version}, date {date}: {error}") from None
    return fixed + struct.pack("<H", len(name)) + name


def header_of(log: Log) -> bytes:
    """Return the header bytes of a recording; a damaged header is rebuilt as far as possible."""
    state: ScanBuilder = log.format_state
    if all(problem.code != "header" for problem in log.problems):
        return state.source.read(0, state.found.header.size)
    # Version 2 introduced the other numbering of attribute types.
    version = 1 + int(log.metadata["attribute_base"])
    date = int.from_bytes(state.source.read(_DATE_AT, 8), "little", signed=True)
    return pack_header(version, date, "")


@dataclass(slots=True)
class SourceRecordings:
    """Recordings whose packets are written into one recording."""

    logs: list[Log] = field(default_factory=list)

    def add(self, log: Log) -> list[str]:
        """Add a recording; return sentences about metadata that is left out.

        Raises UsageError if its vectors have another width than those of the first recording.
        """
        state: ScanBuilder = log.format_state
        self.logs.append(log)
        first: ScanBuilder = self.logs[0].format_state
        if state.found.wide != first.found.wide:
            raise UsageError(
                "has vectors of another width than the first recording: they cannot be one", path=log.name
            )
        losses = []
        for what, mine, due in (
            ("map", state.found.header.map, first.found.header.map),
            ("version", state.found.header.version, first.found.header.version),
        ):
            if mine != due:
                losses.append(
                    f"{what} {mine!r} of {log.name}: a recording has one, that of the first, {due!r}"
                )
        return losses

    def collisions(self) -> list[str]:
        """Return a sentence if actors of several recordings have the same id, since packets only state the id."""
        seen, twice = np.zeros(0, np.uint32), np.zeros(0, np.uint32)
        with_actors = [log for log in self.logs if "actors" in log and _has_records(log["actors"])]
        for log in with_actors if len(with_actors) > 1 else ():
            ids = np.unique(np.ma.compressed(log["actors"]["id"])).astype(np.uint32)
            twice = np.union1d(twice, np.intersect1d(seen, ids))
            seen = np.union1d(seen, ids)
        if not len(twice):
            return []
        some = ", ".join(map(str, twice[:_LISTED].tolist())) + ", …" * (len(twice) > _LISTED)
        return [
            f"{len(twice)} actors are in several recordings by the same id ({some}): nothing distinguishes them now"
        ]


def _has_records(channel: Channel) -> bool:
    return bool((channel.log.index.sizes(channel.number) > _EMPTY).any())
