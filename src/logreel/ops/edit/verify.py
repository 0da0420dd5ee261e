"""Comparison of an edited log with its source: what should not have changed is the same, byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.index.ranges import Rows
from logreel.index.rules import FieldAt
from logreel.io.arrays import I64
from logreel.io.chunks import Buffer
from logreel.log.log import Channel, Log
from logreel.ops.edit.field_edits import Editor, FieldEdit, digests
from logreel.ops.edit.plan import editor_of
from logreel.ops.rewrite.parts import Part
from logreel.ops.rewrite.streams import in_file_order

#: Return uint64[n, 2]: digests of the messages data[start:start + size].
Digest = Callable[[Buffer, I64, I64], NDArray[np.uint64]]


def verify(
    part: Part,
    log: Log,
    names: Mapping[str, Channel],
    editors: Mapping[int, Editor],
    expected: Mapping[int, NDArray[np.uint64]],
    moved: bool,
    by_time: Mapping[int, Collection[str]],
) -> list[str]:
    """Return sentences about differences between *log*, the new one, and what it should be.

    names     channels of the source by their names in the new log
    editors   editors by channel number of the source
    expected  digests of the changed messages, by channel number of the source
    moved     True: log times change
    by_time   fields that the writer sets by the times of messages, by channel number of the source
    """
    pairs = {
        source.number: log[name]
        for name, source in names.items()
        if name in log and part.log.index.rules[source.number].synthetic is None
    }
    sources = {source.number: source for source in names.values()}
    before: dict[int, list[Digest]] = {}
    after: dict[int, list[Digest]] = {}
    for number, new in pairs.items():
        editor = editors.get(number)
        if editor is None and moved and by_time.get(number):
            edit = FieldEdit("time", tuple(by_time[number]), clears=True)
            editor = editor_of(sources[number], [edit])
        old = part.log.index.rules[number].time if moved else None
        now = log.index.rules[new.number].time if moved else None
        before[number] = [_digest(editor, old)]
        after[new.number] = [_digest(editor, now)] + ([whole_digest(now)] if number in expected else [])
    old_digests = _digests(part.log, {number: part.rows[number] for number in pairs}, before)
    new_digests = _digests(log, {ch.number: slice(0, len(ch)) for ch in pairs.values()}, after)
    wrong: list[str] = []
    for number, new in pairs.items():
        mine, its = old_digests[number][0], new_digests[new.number]
        # Counts were compared before; messages that cannot be changed are left out.
        if len(mine) == len(its[0]) and not np.array_equal(mine, its[0]):
            wrong.append(f"messages of {new.topic!r} differ where nothing was to be changed")
        if number in expected and not np.array_equal(expected[number], its[1]):
            wrong.append(f"messages of {new.topic!r} are not those that were written")
    texts = {source.number: log[name] for name, source in names.items() if name in log}
    return wrong + _remaining(log, texts, editors)


def check_metadata(
    log: Log,
    title: str,
    path: str,
    removed: Iterable[str],
    by_channel: Mapping[str, Mapping[str, Any]],
) -> None:
    """Raise UsageError if *log*, the new one, lacks metadata that were set, or has some that were removed."""
    for key in removed:
        if key in log.metadata:
            raise UsageError(f"{title} cannot be without metadata {key!r}", path=path)
    for topic, entries in by_channel.items():
        metadata = log[topic].metadata if topic in log else {}
        headers = metadata.get("headers", ())
        for key in entries:
            if key not in metadata and not any(key in one for one in headers):
                raise UsageError(f"channels of {title} have no place for {key!r}", path=path)


def whole_digest(time: object) -> Digest:
    """Return the digest of whole messages; *time*: rule of log times that change, which do not count, or None."""
    return _digest(None, time)


def _digest(editor: Editor | None, time: object) -> Digest:
    """Return the digest of messages without the fields that change; *time*: as for ``whole_digest``."""
    if isinstance(time, FieldAt) and time.offset >= 0:
        place, width = time.offset, time.width

        def without_time(data: Buffer, start: I64, size: I64) -> NDArray[np.uint64]:
            data = data.copy()
            rows = start[size >= place + width]
            data[(rows + place)[:, None] + np.arange(width)] = 0
            return digests(data, size) if editor is None else editor.untouched(data, start, size)

        return without_time
    return (lambda data, start, size: digests(data, size)) if editor is None else editor.untouched


def _digests(
    log: Log, rows: Mapping[int, Rows], how: Mapping[int, list[Digest]]
) -> dict[int, list[NDArray[np.uint64]]]:
    """Return the digests of the messages of each channel in file order, in one pass over the log."""
    none = np.empty((0, 2), np.uint64)
    found = {number: [[none] for _ in how[number]] for number in rows}
    for number, data, start, size in _messages(log, rows):
        for digest, parts in zip(how[number], found[number], strict=True):
            parts.append(digest(data, start, size))
    return {number: [np.concatenate(parts) for parts in each] for number, each in found.items()}


def _remaining(log: Log, pairs: Mapping[int, Channel], editors: Mapping[int, Editor]) -> list[str]:
    """Return a sentence for each channel of the new log that still has what an edit was to change."""
    changed = {new.number: editors[number] for number, new in pairs.items() if number in editors}
    topics = {ch.number: ch.topic for ch in pairs.values()}
    wrong: dict[str, None] = {}
    rows = {number: slice(0, log.index.count(number)) for number in changed}
    for number, data, start, size in _messages(log, rows):
        kinds = changed[number].remaining(data, start, size)
        wrong |= dict.fromkeys(f"{topics[number]!r} still has what was to be changed: {k}" for k in kinds)
    return list(wrong)


def _messages(log: Log, rows: Mapping[int, Rows]) -> Iterator[tuple[int, Buffer, I64, I64]]:
    """Yield messages of channels in one pass over the log: the channel, payloads joined, their starts and sizes."""
    for batch in in_file_order(Part(log, rows)) if rows else ():
        for place, number in enumerate(batch.channels.tolist()):
            mine = np.flatnonzero(batch.queue == place)
            if len(mine):
                some = batch.payloads.rows(mine)
                yield number, some.joined(), np.cumsum(some.size) - some.size, some.size
