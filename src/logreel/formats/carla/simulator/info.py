"""The query ``show_recorder_file_info``: all events of a recording, as text and as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import DefinitionError
from logreel.formats.carla.actors import type_name
from logreel.formats.carla.columns import RecordingColumns
from logreel.formats.carla.records import END, HEAD
from logreel.formats.carla.simulator.packet_text import texts
from logreel.formats.carla.simulator.printing import (
    Wording,
    closing,
    number,
    opening,
    recording_summary,
    wording,
)
from logreel.io.source import FILE
from logreel.layout.nodes import Sequence as Counted
from logreel.registry.commands import Answer

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log, Message


EVENTS = ("actors", "actor_removals", "actor_parents", "collisions")


def info(log: Log, show_all: bool = False, release: str | None = None) -> Answer:
    """List the events of a recording: actors that are created, destroyed and attached, and collisions.

    show_all  True: the text also has every record of positions, lights, controls and so on; the rows are the same
    release   print as the simulator does from this release on: 0.9.4, 0.9.6, 0.9.10, 0.9.14, 0.9.15, 0.9.16, 0.9.17 or
              0.10; None: as the release that wrote the recording

    Raises UsageError for another release.
    """
    columns = RecordingColumns(log)
    about = recording_summary(columns)
    words = wording(release, log.metadata, log.channels)

    def lines() -> Iterator[str]:
        yield from opening(about)
        for text in _packet_texts(log, words, show_all):
            yield from text.split("\n")[:-1]
        if words.ends:
            yield ""
        yield from closing(about)

    return Answer("events", _events(columns), lines, about)


def _packet_texts(log: Log, words: Wording, show_all: bool) -> Iterator[str]:
    """Yield the text of each packet in file order."""
    frames, data = log.channels.get("frames"), log.index.chunks.view(FILE)
    iterators = {ch.number: texts(ch, words) for ch in _printable(log, words, show_all)}
    if frames is not None:
        iterators[frames.number] = _frame_lines(frames)
    title = ""
    for batch in log.index.select_batches(iterators, order="file"):
        for channel, offset in zip(batch.channel.tolist(), batch.offset.tolist(), strict=True):
            text = next(iterators[channel])
            if frames is not None and channel == frames.number:
                # A FrameEnd is not a message: it directly precedes the next FrameStart.
                if words.ends and data[max(offset - 2 * HEAD, 0) : offset - HEAD] == END:
                    yield "\n"
                title = text
                text = ""
            if title and (text or show_all):
                yield title
                title = ""
            yield text
    if words.ends and frames is not None and data[-HEAD:] == END:
        yield "\n"


def _printable(log: Log, words: Wording, show_all: bool) -> list[Channel]:
    """Return the channels that are printed; weather always is."""
    wanted = words.topics if show_all else [topic for topic in words.topics if topic == "weather"]
    return [log[topic] for topic in (*EVENTS, *wanted) if topic in log.channels]


def _frame_lines(frames: Channel) -> Iterator[str]:
    for frame, elapsed in zip(frames["frame"].tolist(), frames["elapsed"].tolist(), strict=True):
        yield f"Frame {frame} at {number(elapsed)} seconds\n"


def _events(columns: RecordingColumns) -> dict[str, Any]:
    """Return the rows: one per event, in the order in which the recorder writes them."""
    parts = [_created(columns), _removed(columns), _attached(columns), _collided(columns)]
    frame_row = np.concatenate([columns.frame_rows(topic) for topic in EVENTS])
    order = np.argsort(frame_row, kind="stable").tolist()
    names = list(dict.fromkeys(name for part in parts for name in part))
    events: dict[str, Any] = {
        "time_ns": columns.times(frame_row[order]),
        "frame": columns.frame_ids[frame_row[order]],
    }
    for name in names:
        values = [
            value
            for part, topic in zip(parts, EVENTS, strict=True)
            for value in part.get(name, [None] * len(columns(topic, "frame")))
        ]
        events[name] = [values[i] for i in order]
    return events


def _created(columns: RecordingColumns) -> dict[str, list[Any]]:
    ids = columns("actors", "id").tolist()
    return {
        "event": ["create"] * len(ids),
        "id": ids,
        "type": [type_name(t) for t in columns("actors", "type").tolist()],
        "description": columns("actors", "description").tolist(),
        "location": columns.vector("actors", "location").tolist(),
        "attributes": [list(map(dict, a)) for a in columns("actors", "attributes")],
    }


def _removed(columns: RecordingColumns) -> dict[str, list[Any]]:
    ids = columns("actor_removals", "id").tolist()
    return {"event": ["destroy"] * len(ids), "id": ids}


def _attached(columns: RecordingColumns) -> dict[str, list[Any]]:
    ids = columns("actor_parents", "child").tolist()
    return {"event": ["parent"] * len(ids), "id": ids, "other": columns("actor_parents", "parent").tolist()}


def _collided(columns: RecordingColumns) -> dict[str, list[Any]]:
    ids = columns("collisions", "actor1").tolist()
    return {
        "event": ["collision"] * len(ids),
        "id": ids,
        "other": columns("collisions", "actor2").tolist(),
        "collision_id": columns("collisions", "collision_id").tolist(),
    }


def frames(log: Log) -> Callable[[Sequence[Message]], list[str]]:
    """Return a function that describes the packets of a frame: records per kind, then each event."""
    words = wording(None, log.metadata, log.channels)

    @cache
    def event_texts(topic: str) -> dict[int, str]:
        """Return the text of each packet of a channel of events, by payload offset."""
        return dict(zip(log.index.offsets(log[topic].number).tolist(), texts(log[topic], words), strict=True))

    def describe(packets: Sequence[Message]) -> list[str]:
        title, counts, events = "", list[str](), list[str]()
        for packet in packets:
            topic = packet.channel.topic
            if topic == "frames":
                frame = packet.decode()
                title = f"Frame {frame['frame']} at {number(frame['elapsed'])} seconds"
            elif topic in EVENTS:
                events += event_texts(topic).get(packet.offset or 0, "").split("\n")[:-1]
            else:
                counts.append(f"{topic} {_record_count(packet)}".rstrip())
        return [": ".join(filter(None, [title, ", ".join(counts)])), *events]

    return describe


def _record_count(packet: Message) -> str:
    """Return the number of records that a packet states; empty if its kind has no count."""
    counted = _has_count(packet.channel) and len(packet.data) >= 2
    return str(int.from_bytes(packet.data[:2], "little")) if counted else ""


def _has_count(ch: Channel) -> bool:
    try:
        return isinstance(ch.layout.root, Counted)
    except DefinitionError:
        return False
