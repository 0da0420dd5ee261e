"""MCAP files cut at every byte and damaged in thousands of ways, against the plain reader."""

from __future__ import annotations

import os
import random
import struct
from collections import Counter
from functools import cache

import pytest
import zstandard
from mutations import mutate

import logreel
from logreel.errors import LogError
from support.builders.mcap_rows import Row, fast_rows
from support.harness.limits import limited, processor
from support.oracles import mcap_file as mcap_oracle
from support.samples.mcap.builder import MAGIC, START, Builder, record, string, tiny
from support.samples.mcap.walk import walk

CASES = int(os.environ.get("LOGREEL_FUZZ", "80"))
#: Of a processor: ten times what the slowest case takes here, or nearly.
SECONDS = 30.0
BASES = {
    "zstd": tiny(),
    "lz4": tiny(Builder("lz4", chunk_bytes=120)),
    "plain": tiny(Builder("", chunk_bytes=120)),
    "loose": tiny(Builder(None)),
    "no index": tiny(Builder("zstd", chunk_bytes=120, index=False)),
    "no summary": tiny(Builder("zstd", chunk_bytes=120, summary=False)),
}
#: Variants with uncompressed messages.
PLAIN = ("plain", "loose")


def _open(data: bytes) -> logreel.Log | None:
    try:
        return logreel.open(data)
    except LogError:
        return None


def short(out: Builder) -> bytes:
    """Return the same records as ``tiny`` with shorter texts."""
    out.schema(1, "w", "jsonschema", b"{}").channel(1, 1, "/w", "json", {"a": "b"}).channel(2, 0, "/r", "")
    for k, word in enumerate((b"1", b"", b"3")):
        time = START + (0, 30, 20)[k] * 10**6
        out.message(1, time, b'{"w":"%s"}' % word, k + 1, time - 1000).message(
            2, time + 5, bytes(range(3 * k)), k + 1
        )
    return out.metadata("m", {"c": "d"}).attachment("n", "text/plain", b"milk").bytes()


def kinds(data: bytes) -> set[int]:
    """Return the kinds of all records of a sound file, outside of chunks."""
    found, at = set(), len(MAGIC)
    while at < len(data) - len(MAGIC):
        kind, size = struct.unpack_from("<BQ", data, at)
        found.add(kind)
        at += 9 + size
    return found


#: As small as they can be with all kinds of records, and two chunks: each byte more is one more cut of a larger file.
CUT = {
    "zstd": short(Builder(library="", chunk_bytes=150)),
    "lz4": short(Builder("lz4", library="", chunk_bytes=150)),
    "plain": short(Builder("", library="", chunk_bytes=150)),
    "loose": short(Builder(None, library="")),
    "no index": short(Builder("zstd", library="", chunk_bytes=150, index=False)),
    "no summary": short(Builder("zstd", library="", chunk_bytes=150, summary=False)),
}


@cache
def _read(data: bytes) -> tuple[list[Row], list[Row], int]:
    """Return the rows that logreel reads, those of the oracle, and the number of problems.

    Samples begin with the same bytes as others, up to the first index or the summary.
    """
    log = logreel.open(data)
    return fast_rows(log), mcap_oracle.read(data).rows(), len(log.problems)


@pytest.mark.parametrize("base", BASES)
def test_every_cut_keeps_all_whole_messages_and_invents_none(base: str) -> None:
    data = CUT[base]
    assert kinds(data) == kinds(BASES[base])
    rows = Counter(mcap_oracle.read(data).rows())
    assert rows.total() == 6
    for cut in range(8, len(data)):
        got, due, problems = _read(data[:cut])
        assert Counter(due) <= Counter(got) <= rows, cut
        if base in PLAIN:
            assert got == due, cut
        assert problems, cut


@pytest.mark.parametrize("cut", range(8))
def test_file_cut_in_magic_raises_clear_error(cut: int) -> None:
    with pytest.raises(LogError):
        logreel.open(tiny()[:cut])


@pytest.mark.parametrize("base", BASES)
def test_damage_never_raises_hangs_or_loses_silently(base: str) -> None:
    data = BASES[base]
    for seed in range(CASES):
        broken = mutate(data, seed)
        with processor(SECONDS):
            log = _open(broken)
            if log is None:
                assert broken[:8] != MAGIC, seed
                continue
            got = fast_rows(log)
            for ch in log.channels.values():
                assert len(ch.to_arrow()) <= len(ch)
            assert log.metadata["mcap"]["library"] is not None
            for one in log.attachments.values():
                assert len(one.read()) == one.size
        judge = mcap_oracle.read(broken)
        if not log.problems:
            assert Counter(judge.rows()) <= Counter(got), seed
        index = log.index
        found = index.select(order="file")
        for chunk, at, size in zip(
            *(getattr(found, k).tolist() for k in ("chunk", "offset", "size")), strict=True
        ):
            assert 0 <= at <= at + size <= len(index.chunks[chunk]), seed
        for problem in log.problems:
            assert 0 <= problem.offset <= problem.offset + problem.size <= len(broken), (seed, problem)
        # Damage to the bytes of a packed chunk is found by its checksum alone.
        assert isinstance(log.verify(), tuple)


@pytest.mark.parametrize("base", PLAIN)
def test_reader_finds_all_that_plain_reader_finds(base: str) -> None:
    """Of undamaged messages, at most those of one damaged place are missing, and the loss is reported."""
    data = BASES[base]
    sound = Counter(row[1:] for row in mcap_oracle.read(data).rows())
    for seed in range(CASES):
        broken = mutate(data, seed)
        log = _open(broken)
        if log is None:
            continue
        judge = Counter(row[1:] for row in mcap_oracle.read(broken).rows())
        missing = (judge & sound) - Counter(row[1:] for row in fast_rows(log))
        assert not missing or log.problems, (seed, missing)


def test_noise_is_no_message() -> None:
    for seed in range(CASES // 2):
        rng = random.Random(seed)
        noise = rng.randbytes(rng.choice((0, 1, 3, 12, 100, 3000)))
        if seed % 3 == 0:
            noise = bytes(b & rng.choice((0x0F, 0xFF)) for b in noise)
        assert not fast_rows(logreel.open(MAGIC + noise)), seed


def test_damage_in_middle_loses_one_chunk() -> None:
    data = walk(4.0, Builder(chunk_bytes=1 << 13))
    sound = logreel.open(data)
    chunks = sound.metadata["mcap"]["chunks"]
    assert chunks > 8
    pos = sound.index.chunks.place_of(chunks // 2)
    broken = data[: pos + 60] + bytes(40) + data[pos + 100 :]
    log = logreel.open(broken)
    rows, due = Counter(fast_rows(log)), Counter(fast_rows(sound))
    assert rows <= due
    lost = int(sound.index.blocks.start[chunks // 2, -1] - sound.index.blocks.start[chunks // 2, 0])
    assert 0 < (due - rows).total() <= lost
    assert [p.code for p in log.problems if p.offset == pos and p.lost] == ["chunk", "index"]


@pytest.mark.parametrize("grow", [0, 1, 1000])
def test_wrong_index_is_corrected(grow: int) -> None:
    """Changes bytes of index records: only the checksum of the data section, which is optional, covers them."""
    data = bytearray(tiny(Builder("zstd", sums=False)))
    at = data.index(b"\x07", 300)
    while struct.unpack_from("<Q", data, at + 1)[0] != 6 + 16 * 3:
        at = data.index(b"\x07", at + 1)
    struct.pack_into("<Q", data, at + 15 + 8, 31 + grow)
    log = logreel.open(bytes(data))
    assert fast_rows(log) == fast_rows(logreel.open(tiny()))
    assert "index" in [p.code for p in log.problems]


# -------------------------------------------------------------------------------------------------------- bombs


def _chunk(stored: bytes, size: int, compression: str = "zstd") -> bytes:
    head = struct.pack("<QQQI", 0, 0, size, 0) + string(compression)
    return record(6, head + struct.pack("<Q", len(stored)) + stored)


@pytest.mark.parametrize("size", [1 << 40, (1 << 64) - 1, 4 << 30, 100])
def test_huge_chunk_size_is_refused(size: int) -> None:
    stored = zstandard.ZstdCompressor().compress(bytes(4 << 20))
    stored *= 40
    data = MAGIC + record(1, string("") * 2) + _chunk(stored, size)

    def read() -> None:
        log = logreel.open(data)
        assert not fast_rows(log)
        assert "chunk" in [p.code for p in log.problems]

    limited(read)


def test_many_channels_in_many_chunks() -> None:
    """A table of chunks and channels that is too large for the file is refused: 1 GiB, more than the child may take."""
    channels = b"".join(
        record(4, struct.pack("<HH", n, 0) + string(f"{n}") + string("") + string(b"")) for n in range(13_000)
    )
    message = record(5, struct.pack("<HIQQ", 1, 0, 0, 0))
    chunks = _chunk(zstandard.ZstdCompressor().compress(message), len(message)) * 11_000

    def read() -> None:
        with pytest.raises(logreel.UnsupportedError, match="channels in"):
            logreel.open(MAGIC + channels + chunks)

    limited(read)


def test_lengths_beyond_end_of_file() -> None:
    for kind in range(1, 16):
        for length in (1 << 63, (1 << 64) - 1, (1 << 62) + 7):
            log = logreel.open(MAGIC + struct.pack("<BQ", kind, length) + bytes(100))
            assert log.problems
    for name in ("index", "summary"):
        foot = struct.pack("<QQ", 8 if name == "index" else 1 << 60, 0)
        body = MAGIC + record(8, b"\xff" * 200) + record(2, foot + struct.pack("<I", 0)) + MAGIC
        assert not fast_rows(logreel.open(body))


def test_check_finds_wrong_checksum() -> None:
    for base, code in (("zstd", "crc"), ("plain", "crc"), ("loose", "crc")):
        data = bytearray(BASES[base])
        at = data.index(b"remember")
        data[at] ^= 1
        found = logreel.open(bytes(data)).verify()
        assert {f.code for f in found} == {code}
        assert any("attachment" in f.text for f in found), base
    data = bytearray(BASES["plain"])
    data[data.index(b'"one"') + 1] ^= 1
    found = logreel.open(bytes(data)).verify()
    assert sorted("chunk" in f.text for f in found) == [False, True]


def test_check_finds_wrong_chunk_times() -> None:
    data = bytearray(tiny(Builder(sums=False)))
    log = logreel.open(bytes(data))
    first = struct.pack("<QQ", log.start or 0, log.end or 0)
    for at in (data.index(first), data.rindex(first)):
        data[at] ^= 1
    found = {(f.code, f.severity) for f in logreel.open(bytes(data)).verify()}
    assert found == {("index", "warn")}
