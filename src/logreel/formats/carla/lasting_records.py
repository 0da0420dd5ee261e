"""Records that stay valid until they are replaced: actors, their parents and properties, scene lights, weather."""

from __future__ import annotations

from collections.abc import Iterator

from logreel.formats.carla.definitions import RAW, layout, physics, width
from logreel.formats.carla.records import EVENT_ADD, PHYSICS
from logreel.formats.carla.scan_builder import ScanBuilder
from logreel.layout.layout import Layout
from logreel.layout.walker import extent, measuring
from logreel.write.log_copier import Excerpt

_REMOVAL, _WEATHER = 3, 24
#: Kinds of packets whose records stay valid until they are replaced; True: the key of a record is the id of an actor.
_LASTING = {EVENT_ADD: True, 4: True, 11: False, 13: True, PHYSICS: True, 16: True, 17: True, _WEATHER: False}


def records_in_force(excerpt: Excerpt, kinds: list[int], before: int) -> dict[int, list[bytes]]:
    """Return the records that are valid at offset *before*, by wanted channel; *kinds*: packet kind by channel."""
    state: ScanBuilder = excerpt.log.format_state
    found: dict[int, dict[bytes, bytes]] = {}
    packets = sorted(
        (int(at), number)
        for number, kind in enumerate(kinds)
        if kind in _LASTING or kind == _REMOVAL
        for at in _with_records(state, number, before)
    )
    removed: set[bytes] = set()
    for at, number in packets:
        kind = kinds[number]
        last = found.setdefault(number, {})
        for record in _records(state, kind, at):
            key = b"" if kind == _WEATHER else record[:4]
            if kind == _REMOVAL:
                removed.add(key)
            elif kind == EVENT_ADD:
                removed.discard(key)
            # A repeated record moves to the end.
            last.pop(key, None)
            last[key] = record
    wanted = {}
    for number, last in found.items():
        kind = kinds[number]
        if kind in _LASTING and number in excerpt.rows:
            records = [r for key, r in last.items() if not (_LASTING[kind] and key in removed)]
            if records:
                wanted[number] = records
    return wanted


def payload_size(state: ScanBuilder, at: int) -> int:
    """Return the true bytes of the payload at offset *at*."""
    return state.found.resized.get(at, int.from_bytes(state.source.read(at - 4, 4), "little"))


def _with_records(state: ScanBuilder, number: int, before: int) -> list[int]:
    """Return the payload offsets of the packets of a channel that have records and are before offset *before*."""
    offset, size = state.index.offsets(number), state.index.sizes(number)
    found: list[int] = offset[(offset < before) & (size > 2)].tolist()
    return found


def _records(state: ScanBuilder, kind: int, at: int) -> Iterator[bytes]:
    """Yield the records of the packet with its payload at offset *at*."""
    source, size = state.source, payload_size(state, at)
    fixed, stop = width(state.found.topics[kind], state.found.wide), at + size
    if fixed:
        data = source.read(at + 2, size - 2)
        yield from (data[i : i + fixed] for i in range(0, len(data), fixed))
        return
    how = _layout(state, kind, at, stop)
    if how is RAW:
        return
    one, at = measuring(Layout(how.record, "record")), at + 2
    while at < stop:
        end = extent(one, source.data, at, stop)
        if end < 0:
            return
        yield source.read(at, end - at)
        at = end


def _layout(state: ScanBuilder, kind: int, at: int, stop: int) -> Layout:
    """Return the Layout of a packet; RAW if it is not known."""
    if kind != PHYSICS:
        return layout(state.found.topics[kind], state.found.wide)
    fitting = (
        how
        for how in map(physics, (True, False))
        if extent(measuring(how), state.source.data, at, stop) == stop
    )
    return RAW if state.found.wide else next(fitting, RAW)
