"""Logs read by pyulog, in the form of the oracle, with known mistakes of pyulog corrected."""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyulog

from support.oracles.ulog import OracleLog, Record


def load(data: bytes) -> Any:
    """Return a log read by pyulog, whose output is suppressed."""
    with contextlib.redirect_stdout(io.StringIO()):
        return pyulog.ULog(io.BytesIO(data))


@functools.lru_cache(maxsize=16)
def flight(path: Path) -> Any:
    """Return a file read by pyulog, once for all tests of it in this process."""
    return load(path.read_bytes())


def _column(values: dict[str, tuple[Any, ...]], path: str) -> Sequence[Any]:
    name, bracket, index = path.rpartition("[")
    if path in values:
        return values[path]
    # pyulog gives texts letter by letter; the oracle as one value that ends at the first NUL.
    at = int(index[:-1])
    assert bracket
    return [(text.encode()[at : at + 1] or b"\0")[0] for text in values[name]]


def _columns(rows: list[Record]) -> dict[str, tuple[Any, ...]]:
    topic = rows[0].topic
    assert all(row.topic is topic for row in rows)
    return topic.columns(row.payload for row in rows)


def assert_same(log: OracleLog, peer: Any) -> None:
    """Check that all content that both readers support is equal, bit by bit."""
    found = {f"{d.name}[{d.multi_id}]" if d.multi_id else d.name: d.data for d in peer.data_list}
    assert len(log.segments) == 1
    assert set(found) == set(log.segments[0].records)
    for topic, columns in found.items():
        values = _columns(log.segments[0].records[topic])
        shown = [path for path in columns if not path.rpartition(".")[2].startswith("_padding")]
        for path in shown:
            ours, theirs = np.array(_column(values, path)), columns[path]
            if ours.dtype == bool:  # any value but zero is true; real logs hold 65, which pyulog passes on
                theirs = theirs != 0
            np.testing.assert_array_equal(theirs, ours, f"{topic}.{path}")
        letters = sum(isinstance(column[0], str) for column in values.values())
        assert letters or len(shown) == len(values)
    assert log.start_us == peer.start_timestamp
    assert {name: value for name, value in log.infos.items() if not isinstance(value, list)} == {
        name: value for name, value in peer.msg_info_dict.items() if not isinstance(log.infos[name], list)
    }
    assert log.parameters == peer.initial_parameters
    assert log.changes == peer.changed_parameters
    for bit in (0, 1):
        assert log.defaults[bit] == peer.get_default_parameters(bit)
    assert [(ms, time) for time, ms in log.dropouts] == [(d.duration, d.timestamp) for d in peer.dropouts]
    plain = [(m.log_level - 0x30, None, m.timestamp, m.message) for m in peer.logged_messages]
    tagged = [
        (m.log_level - 0x30, m.tag, m.timestamp, m.message)
        for messages in peer.logged_messages_tagged.values()
        for m in messages
    ]
    assert [text for text in log.texts if text[1] is None] == plain
    assert sorted(text for text in log.texts if text[1] is not None) == sorted(tagged)
    assert set(log.info_multiple) == set(peer.msg_info_multiple_dict)
    for name, entries in peer.msg_info_multiple_dict.items():
        # pyulog decodes every part by itself and drops a letter that was cut in two: so does this comparison.
        texts = [
            [part.decode(errors="ignore") if isinstance(peers, str) else part for part, peers in pairs]
            for pairs in (
                zip(*both, strict=True) for both in zip(log.info_multiple[name], entries, strict=True)
            )
        ]
        assert texts == entries
