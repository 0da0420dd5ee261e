"""Messages of an MCAP as rows, read by logreel and by the mcap library."""

from __future__ import annotations

import io
from typing import Any

import logreel

Row = tuple[str, int, int, int, bytes]


def fast_rows(log: logreel.Log) -> list[Row]:
    """Return recorded topic, time, publish time, sequence and payload in file order."""
    found: list[tuple[tuple[int, int], Row]] = []
    index = log.index
    for ch in log.channels.values():
        topic = ch.metadata.get("topic", ch.topic)
        publish, sequence = (
            index.side_column(ch.number, "publish_time"),
            index.side_column(ch.number, "sequence"),
        )
        assert publish is not None
        assert sequence is not None
        places = zip(
            index.times(ch.number).tolist(),
            index.chunk_of(ch.number).tolist(),
            index.offsets(ch.number).tolist(),
            index.sizes(ch.number).tolist(),
            publish.tolist(),
            sequence.tolist(),
            strict=True,
        )
        for time, chunk, offset, size, early, number in places:
            if offset:
                payload = index.chunks[chunk][offset : offset + size].tobytes()
                found.append(((chunk, offset), (topic, time, early, number, payload)))
    return [row for _, row in sorted(found, key=lambda one: one[0])]


def library_rows(data: bytes) -> list[Row]:
    """Return the same rows, read by the mcap library, which verifies checksums."""
    from mcap.reader import make_reader

    reader = make_reader(io.BytesIO(data), validate_crcs=True)
    return [
        (channel.topic, m.log_time, m.publish_time, m.sequence, m.data)
        for _, channel, m in reader.iter_messages(log_time_order=False)
    ]


def library_summary(data: bytes) -> Any:
    """Return the summary, read by the mcap library."""
    from mcap.reader import make_reader

    return make_reader(io.BytesIO(data), validate_crcs=True).get_summary()
