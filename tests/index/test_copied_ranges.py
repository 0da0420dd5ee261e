"""Messages of one size that are little of their packed chunks are copied out of them; all others stay there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import logreel
from logreel.errors import FileChangedError
from logreel.index.gather import payload_ranges
from support.harness.equal_tables import have_same_bytes
from support.samples.ulog.builder import flight


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("packed") / "flight.mcap"
    logreel.convert(flight(20), path, raw=True, compression="zstd", chunk_bytes=32 << 10)
    return path


@pytest.mark.parametrize("step", [None, 1, 3])
def test_the_bytes_are_those_of_the_messages(packed: Path, step: int | None) -> None:
    copied = 0
    with logreel.open(packed) as log:
        # Sizes are known once chunks were read.
        payloads = {topic: [bytes(m.data) for m in log.messages(topic)] for topic in log.channels}
        for topic, ch in log.channels.items():
            every = slice(5, len(ch) - 1)
            rows = every if step is None else np.arange(len(ch))[every][::step]
            wanted = payloads[topic][every][:: step or 1]
            pieces = list(payload_ranges(log.index, ch.number, rows))
            got = [
                bytes(piece.data[at : at + size])
                for piece in pieces
                for at, size in zip(piece.offset.tolist(), piece.size.tolist(), strict=True)
            ]
            assert got == wanted
            copied += len(got) > 1 and sum(len(piece.data) for piece in pieces) == len(b"".join(got))
    assert copied > 3


def test_columns_are_the_same_however_often_they_are_read(packed: Path) -> None:
    with logreel.open(packed) as log, logreel.open(flight(20)) as source:
        channels = [ch for ch in log.channels.values() if not ch.reserved and len(ch)]
        wanted = {ch.topic: source[ch.topic].to_arrow().replace_schema_metadata() for ch in channels}
        for _ in range(3):
            for ch in channels:
                # As bytes, in which NaN is NaN.
                assert have_same_bytes(ch.to_arrow().replace_schema_metadata(), wanted[ch.topic]), ch.topic


def test_a_chunk_that_unpacks_to_less_than_before_is_told(
    packed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with logreel.open(packed) as log:
        ch = log["sensor_gps"]
        size = sum(len(piece.data) for piece in payload_ranges(log.index, ch.number, slice(0, len(ch))))
        assert sum(len(p.data) for p in payload_ranges(log.index, ch.number, slice(0, len(ch)))) < size
        unpack = type(log.index.chunks).__getitem__
        monkeypatch.setattr(type(log.index.chunks), "__getitem__", lambda chunks, n: unpack(chunks, n)[:100])
        with pytest.raises(FileChangedError, match="changed while they were read"):
            list(payload_ranges(log.index, ch.number, slice(0, len(ch))))
