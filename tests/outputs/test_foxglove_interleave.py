"""Interleaved messages equal the output of the encoders for whole channels."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap.writer import Writer

import logreel
from logreel.errors import DefinitionError
from logreel.ops.rewrite import streams
from logreel.ops.rewrite.parts import Part, select_part
from logreel.ops.selection import Selection
from logreel.outputs.foxglove import exchange
from logreel.outputs.foxglove.exchange import Interleaving
from logreel.outputs.foxglove.exchange import interleave as interleaved_channels
from support.builders.contents import SAMPLES, sample

Row = tuple[int, int, bytes]


def rows_of(mixed: Interleaving, part: Part) -> tuple[list[Row], dict[str, list[int]]]:
    """Return time, channel and payload of each message in order, and the side columns."""
    rows, beside = list[Row](), defaultdict[str, list[int]](list)
    for batch in mixed.batches(part):
        payloads = batch.payloads.in_one()
        lists = (one.tolist() for one in (batch.time, batch.channel, payloads.start, payloads.size))
        rows += [(t, c, payloads.data[s : s + n].tobytes()) for t, c, s, n in zip(*lists, strict=True)]
        for name, values in batch.more.items():
            beside[name] += values.tolist()
    return rows, beside


def due(mixed: Interleaving, part: Part) -> dict[int, list[Row]]:
    """Return the expected messages by channel, encoded through columns at once."""
    numbers = {ch.topic: ch.number for ch in part.channels}
    kept = [topic for topic, n in numbers.items() if n not in mixed.instead]
    found = defaultdict[int, list[Row]](list)
    for m in part.log.messages(kept) if kept else ():
        found[m.channel.number].append((m.time, m.channel.number, bytes(m.data)))
    every = [*mixed.instead.items(), *enumerate(mixed.added, len(part.log.channels))]
    for n, encoder in every:
        got = replace(encoder, straight=None).encode()
        for i in got.time.argsort(kind="stable").tolist():
            found[n].append((int(got.time[i]), n, got.data[got.start[i] : got.start[i + 1]].tobytes()))
    return found


def check(path: Path) -> tuple[Interleaving, dict[str, list[int]]]:
    part = select_part(logreel.open(path))
    mixed = interleaved_channels(part.log, part.channels)
    rows, beside = rows_of(mixed, part)
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    found = defaultdict[int, list[Row]](list)
    for row in rows:
        found[row[1]].append(row)
    assert found == {n: some for n, some in due(mixed, part).items() if some}
    # Of one time what is made of columns comes last, and the added channels behind all others.
    passing = {n for n in part.rows if n not in mixed.instead or mixed.instead[n].straight}
    ranks = [(t, (c not in passing) + (c >= len(part.log.channels))) for t, c, _ in rows]
    assert ranks == sorted(ranks)
    return mixed, beside


@pytest.mark.parametrize("suffix", SAMPLES)
@pytest.mark.parametrize("window", [1 << 14, 16 << 20])
def test_interleaved_samples_equal_the_expected_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, window: int
) -> None:
    monkeypatch.setattr(exchange, "WINDOW", window)
    monkeypatch.setattr(streams, "BYTES", max(2000, window >> 3))
    mixed, _ = check(sample(tmp_path, suffix))
    straight = [one for one in mixed.instead.values() if one.straight]
    assert (len(straight) > 3) == (suffix == ".ulg")


def test_unchanged_messages_are_mixed_with_translated_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages of equal size in a file without chunks are written directly; one channel describes itself."""
    logreel.convert(sample(tmp_path, ".ulg"), tmp_path / "raw.mcap", raw=True)
    with (tmp_path / "raw.mcap").open("rb") as source, (tmp_path / "a.mcap").open("wb") as out:
        writer, ids = Writer(out, use_chunking=False), dict[int, int]()
        writer.start()
        notes = writer.register_channel("notes", "json", writer.register_schema("n", "jsonschema", b"{}"))
        for n, (schema, channel, message) in enumerate(make_reader(source).iter_messages()):
            if channel.id not in ids:
                kept = writer.register_schema(schema.name, schema.encoding, schema.data) if schema else 0
                ids[channel.id] = writer.register_channel(
                    channel.topic, channel.message_encoding, kept, channel.metadata
                )
            time = message.log_time
            writer.add_message(ids[channel.id], time, message.data, time + 5, sequence=n)
            if n % 3 == 0:
                writer.add_message(notes, time, b'{"n": %d}' % n, time + 7, sequence=n)
        writer.finish()
    monkeypatch.setattr(streams, "BYTES", 3000)
    mixed, beside = check(tmp_path / "a.mcap")
    part = select_part(logreel.open(tmp_path / "a.mcap"))
    assert sum(one.straight is not None for one in mixed.instead.values()) > 3
    rows, _ = rows_of(mixed, part)
    number = part.log["notes"].number
    for (time, channel, payload), published, sequence in zip(
        rows, beside["publish_time"], beside["sequence"], strict=True
    ):
        told = (7, int(payload[6:-1])) if channel == number else (0, 0)
        assert (published - time, sequence) == told


def test_messages_out_of_order_are_interleaved_by_time(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    from support.samples.ulog.builder import Builder

    flight = Builder(start_us=1_000_000).flags().format("g:uint64_t timestamp;double lat;double lon;")
    flight.format("h:uint64_t timestamp;char[5] word;uint8_t[3] n;").subscribe("g", 0).subscribe("h", 1)
    for i, time in enumerate(rng.integers(1, 50, 200).tolist()):
        one = time.to_bytes(8, "little")
        flight.data(i % 2, one + (b"ab\0\xff\x81\0\x01\x80" if i % 2 else rng.random(2).tobytes()))
    (tmp_path / "a.ulg").write_bytes(flight.bytes())
    mixed, _ = check(tmp_path / "a.ulg")
    assert [one.straight is not None for one in mixed.instead.values()][:2] == [True, False]
    assert len(mixed.added) == 1


def test_channels_that_cannot_be_encoded_are_skipped(tmp_path: Path) -> None:
    part = select_part(logreel.open(sample(tmp_path, ".ulg")))
    mixed = interleaved_channels(part.log, part.channels)

    def fail(*_: object) -> None:
        raise DefinitionError("no use")

    mixed.added[:] = [replace(one, fill=fail) for one in mixed.added]
    rows, _ = rows_of(mixed, part)
    assert {row[1] for row in rows} == {n for n in mixed.instead if part.count(n)}
    assert mixed.skipped == [f"channel {one.topic!r} was left out: no use" for one in mixed.added]
    assert list(mixed.batches(select_part(part.log, Selection(start=1 << 62)))) == []
