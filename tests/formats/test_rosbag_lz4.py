"""LZ4 chunks: all legal sequences of frames, and the valid prefix of cut ones."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import lz4.frame
import numpy as np
import pytest

import logreel
from logreel.io.lz4_frames import unpack_lz4
from support.builders.bag_rows import fast_rows, plain_rows
from support.builders.bag_variants import many
from support.harness.limits import limited, processor
from support.oracles import rosbag as bag_oracle
from support.samples.rosbag.builder import Builder, lz4_frame, version_2_0

SKIPPED = struct.pack("<II", 0x184D2A5C, 7) + b"a note\n"
EMPTY = lz4_frame(b"")


def _pieces(data: bytes) -> list[bytes]:
    """Return *data* as frames with different flags."""
    third = len(data) // 3
    return [
        lz4_frame(data[:third]),
        lz4_frame(data[third : 2 * third], 4, linked=True, checksum=False),
        lz4_frame(data[2 * third :], 7, block_checksums=True, content_size=True),
    ]


SEQUENCES: dict[str, Callable[[bytes], bytes]] = {
    "three": lambda data: b"".join(_pieces(data)),
    "skippable first": lambda data: SKIPPED + lz4_frame(data),
    "skippable last": lambda data: lz4_frame(data) + SKIPPED,
    "skippable between": lambda data: SKIPPED.join(_pieces(data)),
    "empty ones": lambda data: EMPTY + EMPTY.join(_pieces(data)) + EMPTY,
}


def _content(n: int = 40_000) -> bytes:
    rng = random.Random(3)
    return b"".join(rng.randbytes(rng.randrange(30)) + bytes(rng.randrange(600)) for _ in range(n // 300))


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize("name", SEQUENCES)
def test_every_sequence_of_frames_is_decompressed(name: str, finished: bool) -> None:
    data = version_2_0(many(), Builder("lz4", SEQUENCES[name], 9000, finished=finished))
    log = logreel.open(data)
    assert fast_rows(log) == plain_rows(bag_oracle.read(version_2_0(many(), Builder(chunk_bytes=9000))))
    assert [p.code for p in log.problems] == ([] if finished else ["index"])


@pytest.mark.parametrize("linked", [True, False])
@pytest.mark.parametrize("block_size", [4, 7])
@pytest.mark.parametrize("checksums", [True, False])
def test_every_truncation_gives_the_valid_prefix(linked: bool, block_size: int, checksums: bool) -> None:
    content = _content()
    frame = lz4_frame(content, block_size, linked, checksums, checksums, checksums)
    rng = random.Random(1)
    for cut in [
        *range(12),
        *(rng.randrange(len(frame)) for _ in range(100)),
        *range(len(frame) - 12, len(frame)),
    ]:
        data, wrong, left = unpack_lz4(np.frombuffer(frame[:cut], np.uint8), len(content) + 1)
        assert content.startswith(data.tobytes())
        assert wrong
        assert len(data) > 0.9 * cut - 1000
    data, wrong, left = unpack_lz4(np.frombuffer(frame, np.uint8), len(content) + 1)
    assert (data.tobytes(), wrong, left) == (content, "", 0)


@pytest.mark.parametrize("limit", [1, 100, 13_333, 13_334, 39_999])
@pytest.mark.parametrize("name", SEQUENCES)
def test_output_is_limited(name: str, limit: int) -> None:
    content = _content()
    data, _, _ = unpack_lz4(np.frombuffer(SEQUENCES[name](content), np.uint8), limit)
    assert data.tobytes() == content[:limit]


def test_most_of_a_cut_chunk_of_usual_size_is_read() -> None:
    """ROS writes one block of up to 1 MiB, which would be lost if only complete blocks were read."""
    data = version_2_0(many(1500), Builder("lz4", finished=False))
    whole = plain_rows(bag_oracle.read(data))
    at = data.rindex(b"op=\x05")
    end = data.index(b"count=", at)
    for share in (0.5, 0.9):
        log = logreel.open(data[: int(at + share * (end - at))])
        rows = fast_rows(log)
        assert rows == whole[: len(rows)]
        assert len(rows) > (share - 0.15) * len(whole)
        assert any(p.code == "chunk" and p.lost for p in log.problems)


@pytest.mark.parametrize(
    "frame", [struct.pack("<II", 0x184D2A50, 0), lz4.frame.compress(b""), b"\x04\x22\x4d\x18"]
)
def test_many_small_frames_take_no_time(frame: bytes) -> None:
    packed = np.frombuffer(frame * ((1 << 20) // len(frame)), np.uint8)
    with processor(10):
        data, _, _ = unpack_lz4(packed, 1 << 20)
    assert len(data) == 0


def test_huge_lengths_take_no_memory() -> None:
    head = b"\x04\x22\x4d\x18\x64\x60\x85"
    frames = [head + struct.pack("<I", n) + bytes(100) for n in (0x7FFFFFFF, 0xFFFFFFFF, 1 << 30)]
    frames.append(struct.pack("<II", 0x184D2A50, 0xFFFFFFFF) + bytes(100))

    def job() -> None:
        for frame in frames:
            data, wrong, _ = unpack_lz4(np.frombuffer(frame, np.uint8), 1 << 28)
            assert len(data) <= 200
            assert wrong

    limited(job)
