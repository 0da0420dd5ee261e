"""Recovery of every cut of small logs of every format and version keeps all messages that are whole, and invents none.

A naive oracle says which messages are whole: records that a plain walker of the sound file finds before the cut, and in
compressed chunks those that the library of the compression unpacks from what is left. ``make fuzz`` tries every cut.
"""

from __future__ import annotations

import bz2
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from small_samples import CARLA, SMALL, Small

import logreel
from damage.structure import Structure, mcap
from damage.structure.rosbag import walk_records
from logreel.errors import LogError

FUZZ = "LOGREEL_FUZZ" in os.environ
#: Cuts of each sample; all of them for ``make fuzz``, which also cuts recordings of every release of CARLA.
CUTS = 1 << 30 if FUZZ else 14
SAMPLES = SMALL | CARLA if FUZZ else SMALL
SUFFIXES = {
    "rosbag": ".bag",
    "ulog": ".ulg",
    "bddf": ".bddf",
    "carla": ".rec",
    "koblenz": ".vel",
    "mcap": ".mcap",
}

Message = tuple[str, int, bytes]


@dataclass(frozen=True)
class Whole:
    """The messages of a sound file in file order, and how many of them are whole in its first bytes.

    ends    for each message outside of compressed chunks the offset where its record ends
    chunks  compressed chunks: start and end of the stored bytes, compression, where each message in it ends
    """

    messages: list[Message]
    ends: list[int]
    chunks: list[tuple[int, int, str, list[int]]]

    def due(self, data: bytes, cut: int) -> list[Message]:
        """Return the messages that are whole in data[:cut]."""
        if not self.chunks:
            return [one for one, end in zip(self.messages, self.ends, strict=True) if end <= cut]
        found, first = list[Message](), 0
        for begin, end, compression, ends in self.chunks:
            there = unpacked(data[begin : min(end, cut)], compression) if cut > begin else 0
            found += self.messages[first : first + sum(one <= there for one in ends)]
            first += len(ends)
        return found


def unpacked(stored: bytes, compression: str) -> int:
    """Return how many bytes the library of a compression unpacks from the beginning of a chunk."""
    if compression == "bz2":
        return len(bz2.BZ2Decompressor().decompress(stored))
    if compression == "lz4":
        import lz4.frame

        try:
            return len(lz4.frame.LZ4FrameDecompressor().decompress(stored))
        except RuntimeError:
            return 0
    import zstandard

    try:
        return len(zstandard.ZstdDecompressor().decompressobj().decompress(stored))
    except zstandard.ZstdError:
        return 0


def content(log: logreel.Log) -> list[Message]:
    """Return the messages of a log in file order, by what rewriting keeps; without frames, which others complete."""
    found = []
    for one in log.messages(order="file"):
        topic = one.channel.topic
        if log.format == "koblenz":
            topic = f"{one.channel.metadata['type_id']} {one.channel.metadata['version']}"
        if not (log.format == "carla" and topic == "frames"):
            found.append((topic, one.time, bytes(one.data)))
    return found


def of_messages(small: Small, structure: Structure) -> Iterator[int]:
    """Yield the ends of the records of messages of a file without compressed chunks, in file order."""
    for _, end, kind in structure.records:
        is_message = {
            "rosbag": kind in ("message", "inner message"),
            "ulog": kind == "D",
            "bddf": kind == "data",
            "carla": kind not in "01",
            "koblenz": True,
            "mcap": kind in ("message", "inner message"),
        }[small.format]
        if is_message:
            yield end


def whole(small: Small, data: bytes) -> Whole:
    """Return which messages are whole before any cut."""
    messages = content(logreel.open(data))
    structure = small.walk(data)
    chunks = []
    for begin, end, kind in structure.records:
        if kind != "chunk":
            continue
        if small.format == "rosbag":
            stored = next(f for f in structure.named("chunk data length") if begin < f.at < end)
            compression = next(f for f in structure.named("chunk compression") if begin < f.at < end)
            name = data[compression.at : compression.end].decode()
            start = stored.end
        else:
            length = next(f for f in structure.named("chunk records length") if begin < f.at < end)
            field = next((f for f in structure.named("chunk compression") if begin < f.at < end), None)
            name, start = data[field.at : field.end].decode() if field else "", length.end
        if name in ("", "none"):
            continue
        stop = start + stored.value(data) if small.format == "rosbag" else start + length.value(data)
        inside = plain(data[start:stop], name)
        ends = [
            to - 8 * (small.format == "mcap") for _, to, what in inner(small, inside) if what == "message"
        ]
        chunks.append((start, stop, name, ends))
    if chunks:
        assert sum(len(ends) for *_, ends in chunks) == len(messages)
        return Whole(messages, [], chunks)
    ends = sorted(of_messages(small, structure))
    assert len(ends) == len(messages), (len(ends), len(messages))
    return Whole(messages, ends, [])


def plain(stored: bytes, compression: str) -> bytes:
    """Return the content of a whole chunk."""
    if compression == "bz2":
        return bz2.decompress(stored)
    if compression == "lz4":
        import lz4.frame

        return bytes(lz4.frame.decompress(stored))
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj().decompress(stored)


def inner(small: Small, inside: bytes) -> list[tuple[int, int, str]]:
    """Return the records in a chunk."""
    if small.format == "rosbag":
        out = Structure(len(inside))
        walk_records(inside, 0, len(inside), out, "")
        return out.records
    return mcap(bytes(8) + inside + bytes(8)).records


@pytest.mark.parametrize("sample", SAMPLES)
def test_recall_is_one_and_nothing_is_invented_at_every_cut(sample: str, tmp_path: Path) -> None:
    small = SAMPLES[sample]
    data = small.make()
    known, out = whole(small, data), tmp_path / f"out{SUFFIXES[small.format]}"
    every = Counter(known.messages)
    fmt = logreel.open(data).format
    due_sum = kept_sum = 0
    refused: list[tuple[int, int]] = []
    for cut in range(len(data) - 1, 3, -max(1, len(data) // CUTS)):
        due = Counter(known.due(data, cut))
        due_sum += due.total()
        try:
            logreel.recover(logreel.open(data[:cut], format=fmt), out, force=True)
        except LogError:
            refused.append((cut, due.total()))
            continue
        log = logreel.open(out)
        found = Counter(content(log))
        assert not due - found, (cut, list(due - found)[:2])
        assert not found - every, (cut, list(found - every)[:2])
        assert not [one for one in log.problems if one.lost], cut
        kept_sum += (found & due).total()
    assert not [one for one in refused if one[1]], "cuts with whole messages that were refused"
    assert kept_sum == due_sum
