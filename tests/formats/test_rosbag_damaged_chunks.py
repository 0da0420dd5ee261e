"""Compressed chunks that are cut or damaged: their whole blocks are read."""

from __future__ import annotations

import bz2
import random
from typing import Any

import pytest

from support.builders.bag_rows import plain_rows, read_all
from support.builders.bag_variants import many
from support.oracles import rosbag as bag_oracle
from support.samples.rosbag.builder import (
    CHATTER,
    START,
    Builder,
    lz4_frame,
    string,
    version_2_0,
)


def _unsqueezable(n: int) -> list[Any]:
    rng = random.Random(5)
    return [(CHATTER, START + k, string(rng.randbytes(5000).hex())) for k in range(n)]


@pytest.mark.parametrize(
    "options", [{}, {"linked": True}, {"block_size": 5, "block_checksums": True}, {"content_size": True}]
)
def test_whole_blocks_of_a_cut_lz4_chunk_are_read(options: dict[str, Any]) -> None:
    options = {"block_size": 4, **options}
    out = Builder("lz4", pack=lambda data: lz4_frame(data, **options), chunk_bytes=1 << 30, finished=False)
    data = version_2_0(_unsqueezable(80), out)
    whole = plain_rows(bag_oracle.read(data))
    assert len(whole) == 80
    for cut in (len(data) * 9 // 10, len(data) * 3 // 4, len(data) // 2):
        log, rows = read_all(data[:cut])
        judge = plain_rows(bag_oracle.read(data[:cut]))
        assert rows == judge == whole[: len(rows)]
        assert any(p.code == "chunk" and p.lost for p in log.problems)
    assert 20 < len(rows) < 50


def test_whole_blocks_of_a_cut_bz2_chunk_are_read() -> None:
    # Of the shortest blocks, 100 kB.
    out = Builder("bz2", pack=lambda data: bz2.compress(data, 1), chunk_bytes=1 << 30, finished=False)
    data = version_2_0(_unsqueezable(40), out)
    whole = plain_rows(bag_oracle.read(data))
    log, rows = read_all(data[: len(data) * 2 // 3])
    assert rows == plain_rows(bag_oracle.read(data[: len(data) * 2 // 3])) == whole[: len(rows)]
    assert 10 < len(rows) < 27
    assert any(p.code == "chunk" and p.lost for p in log.problems)


@pytest.mark.parametrize("compression", ["bz2", "lz4"])
@pytest.mark.parametrize("indexed", [True, False])
def test_one_wrong_bit_in_a_compressed_chunk_is_reported(compression: str, indexed: bool) -> None:
    out = Builder(compression, chunk_bytes=20_000, finished=indexed)
    sound = version_2_0(many(), out)
    at = sound.index(b"op=\x05") + 60
    whole = plain_rows(bag_oracle.read(sound))
    for shift in range(0, 4000, 131):
        broken = bytearray(sound)
        broken[at + shift] ^= 4
        log, rows = read_all(bytes(broken))
        assert any(p.lost for p in log.problems), shift
        assert len(rows) <= len(whole)
        for ch in log.channels.values():
            assert len(ch.to_arrow()) <= len(ch)
