"""Comparison of the channels of two logs by their times and values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

import logreel

#: Channels that become the text channel of another format.
TEXTS = ("~text", "/rosout", "text", "TextM")
#: Topics of records without times: those before the first message have the start of the log.
UNTIMED = ("~parameter", "~dropout")


def have_same_values(one: logreel.Channel, two: logreel.Channel) -> bool:
    """Return whether the fields of all messages are equal as plain values; NaN equals NaN."""
    ours, theirs = (ch.to_arrow(explode=False).drop_columns(["time"]) for ch in (one, two))
    return have_same_bytes(ours, theirs) or have_same_texts(ours, theirs)


def have_same_bytes(one: pa.Table, two: pa.Table) -> bool:
    """Return whether two tables are the same in Arrow's stream format: equal, also in the signs of zeros and in NaN."""
    return bool(_stream(one).equals(_stream(two)))


def _stream(table: pa.Table) -> pa.Buffer:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return out.getvalue()


def have_same_texts(one: pa.Table, two: pa.Table) -> bool:
    """Return whether the columns of two tables have the same values as Python writes them, of whatever types."""
    is_alike = (one.column_names, one.num_rows) == (two.column_names, two.num_rows)
    return is_alike and all(
        have_same_bytes(ours, theirs) or repr(ours["value"].to_pylist()) == repr(theirs["value"].to_pylist())
        for ours, theirs in zip(_single(one), _single(two), strict=True)
    )


def _single(table: pa.Table) -> Iterator[pa.Table]:
    """Yield each column as a table, without what is said of the column."""
    for column in table.columns:
        yield pa.table([column], ["value"])


def assert_restored(before: Path, after: Path, told: Sequence[str]) -> None:
    """Compare two logs; a difference must be in the sentences *told*, which name the channel."""
    one, two = logreel.open(before), logreel.open(after)
    for topic, ch in one.channels.items():
        if not len(ch):
            continue
        if topic not in two.channels:
            assert any(f"channel {topic!r}" in text for text in told), (topic, told)
            continue
        found = two[topic]
        if topic in TEXTS and any(f"channel {topic!r}" in text for text in told):
            # Lines of text keep only what a text channel has, which is said.
            name = next(n for n in ("text", "msg", "message") if n in ch.fields)
            assert all(after.endswith(before) for before, after in zip(ch[name], found[name], strict=True)), (
                topic
            )
        else:
            assert (found.schema.name, found.schema.encoding) == (ch.schema.name, ch.schema.encoding)
            cut = any(f"channel {topic!r}" in text and "end at a NUL" in text for text in told)
            assert cut or have_same_values(found, ch), topic
        due = ch.times
        if topic.partition("@")[0] in UNTIMED:
            due = np.where(due == one.start, two.start, due)
        if not np.array_equal(found.times, due):
            assert any("were rounded" in text for text in told), (topic, told)
            assert np.abs(found.times - due).max() < 2000
