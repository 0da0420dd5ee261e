"""Logs read by pyulog, in the form of the oracle, with known mistakes of pyulog corrected."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pyulog

from support.oracles.ulog import OracleLog, Record


def load(data: bytes) -> Any:
    """Return a log read by pyulog, whose output is suppressed."""
    with contextlib.redirect_stdout(io.StringIO()):
        return pyulog.ULog(io.BytesIO(data))


def _column(rows: list[Record], path: str) -> list[Any]:
    name, bracket, index = path.rpartition("[")
    if path in rows[0].values:
        return [row.values[path] for row in rows]
    # pyulog gives texts letter by letter; the oracle as one value that ends at the first NUL.
    at = int(index[:-1])
    assert bracket
    return [(row.values[name].encode()[at : at + 1] or b"\0")[0] for row in rows]


def assert_same(log: OracleLog, peer: Any) -> None:
    """Check that all content that both readers support is equal, bit by bit."""
    found = {f"{d.name}[{d.multi_id}]" if d.multi_id else d.name: d.data for d in peer.data_list}
    assert len(log.segments) == 1
    assert set(found) == set(log.topics)
    for topic, columns in found.items():
        rows = log.segments[0].records[topic]
        shown = [path for path in columns if not path.rpartition(".")[2].startswith("_padding")]
        for path in shown:
            ours, theirs = np.array(_column(rows, path)), columns[path]
            if ours.dtype == bool:  # any value but zero is true; real logs hold 65, which pyulog passes on
                theirs = theirs != 0
            np.testing.assert_array_equal(theirs, ours, f"{topic}.{path}")
        letters = sum(isinstance(value, str) for value in rows[0].values.values())
        assert letters or len(shown) == len(rows[0].values)
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
