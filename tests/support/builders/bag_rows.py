"""Messages of a bag as plain rows, to compare readers."""

from __future__ import annotations

import logreel
from logreel.log.log import Log
from support.oracles import rosbag as bag_oracle

Row = tuple[str, str, str, int, bytes]


def fast_rows(log: Log) -> list[Row]:
    """Return topic, type, checksum, time, payload of every message in file order, read by logreel."""
    return [
        (
            m.channel.metadata["topic"]
            if "topic" in m.channel.metadata
            else m.channel.topic.partition("[")[0],
            m.channel.schema.name,
            m.channel.metadata["md5sum"],
            m.time,
            bytes(m.data),
        )
        for m in log.messages(order="file")
    ]


def read_all(data: bytes) -> tuple[Log, list[Row]]:
    """Return the log in *data* and all its messages."""
    log = logreel.open(data)
    return log, fast_rows(log)


def plain_rows(bag: bag_oracle.Bag) -> list[Row]:
    """Return the same rows, read by the plain reader."""
    return [(m.topic, m.type, m.md5, m.time, m.payload) for m in bag.messages]
