"""Continue an existing ULog: appended data, as the specification has it, up to three times.

Source: the page "ULog File Format" of the PX4 guide, section "Flag Bits Message".
"""

from __future__ import annotations

import struct
from typing import Any

from logreel.errors import LogError, UsageError
from logreel.formats.ulog import records
from logreel.formats.ulog.definitions import Definitions, parse_format
from logreel.formats.ulog.information import pack_record
from logreel.formats.ulog.non_data_records import NonDataRecords
from logreel.formats.ulog.records import FILE_HEADER, FLAGS, FLAGS_AT
from logreel.formats.ulog.writer import UlogWriter
from logreel.io.append_file import Appender
from logreel.log.log import Log

#: Positions of the incompatible flags and of the offsets of appended parts in the payload of the flags.
_INCOMPATIBLE, _OFFSETS = 8, 16
_DATA_APPENDED = 1


def append(out: Appender, log: Log, **options: Any) -> UlogWriter:
    """Return the writer that continues *log*, which may end inside a record; flags are added if it has none.

    Raises UsageError for the start time, which is in the header; LogError for a file of several logs, and for one that
    was appended to three times.
    """
    if "started" in options:
        raise UsageError("the start time stands in the header of the log, which is kept", path=log.name)
    writer = UlogWriter(out, **options)
    state: NonDataRecords = log.format_state
    if len(state.found.segments) > 1:
        raise LogError(
            f"contains {len(state.found.segments)} logs, one after another",
            path=log.name,
            hint="write one by logreel.slice(path, new, segment=1), and append to that",
        )
    has_flags = state.found.begin > FILE_HEADER
    payload = state.source.read(FLAGS_AT, FLAGS) if has_flags else bytes(FLAGS)
    offsets = list(records.parse_flags(payload)[2])
    free = [i for i, offset in enumerate(offsets) if not offset]
    if not free or any(offsets[free[0] :]) or any(p.code == "offset" for p in log.problems):
        raise LogError(
            "has been appended to three times, as often as a ULog can be"
            if not free
            else "has appended offsets that do not fit the file",
            path=log.name,
            hint="write it in one part by logreel.sort, and append to that",
        )
    out.keep_old(log.size)
    if not has_flags:
        out.splice(FILE_HEADER, 0, pack_record("B", payload))
    flags = bytearray(payload)
    flags[_INCOMPATIBLE] |= _DATA_APPENDED
    struct.pack_into("<Q", flags, _OFFSETS + 8 * free[0], out.tell())
    out.patch(FLAGS_AT, bytes(flags))
    writer.go_on(_definitions(state), _message_ids(state), flags[0])
    writer.continue_channels(log)
    return writer


def _definitions(state: NonDataRecords) -> Definitions:
    definitions = Definitions()
    for payload in state.formats():
        definitions.add(parse_format(payload))
    return definitions


def _message_ids(state: NonDataRecords) -> dict[tuple[str, int], int]:
    """Return the message id of each subscribed name and instance; a second topic of an id is ignored, as in reading."""
    topics = dict[int, tuple[str, int]]()
    for at in state.keyed.positions("A"):
        instance, number, name = records.parse_subscription(records.payload_at(state.source, at))
        topics.setdefault(number, (name, instance))
    ids = dict[tuple[str, int], int]()
    for number, topic in topics.items():
        ids.setdefault(topic, number)
    return ids
