"""Pieces of a file that are compared with their digests: those with used bytes, each once."""

from __future__ import annotations

import numpy as np
import pytest

from logreel.io import trusted_file as piece_digests
from logreel.io.trusted_file import PieceDigests, digests_of


def test_changed_pieces_are_returned_once_and_only_where_bytes_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(piece_digests, "PIECE_BYTES", 100)
    monkeypatch.setattr(piece_digests, "PAGE", 32)
    data = np.random.default_rng(1).integers(0, 256, 1050).astype(np.uint8)
    found = PieceDigests(data, digests_of(data))
    data[[150, 420, 1049]] ^= 1

    def changed(*intervals: tuple[int, int]) -> list[tuple[int, int]]:
        start, stop = np.array(intervals, np.int64).reshape(-1, 2).T
        return found.changed(start, stop)

    assert changed() == changed((0, 100), (200, 400), (150, 150)) == []
    assert changed((99, 101)) == [(100, 100)]
    assert changed((0, 400)) == []
    assert changed((399, 401), (1049, 1050)) == [(400, 100), (1000, 50)]
    assert changed((0, 1050)) == []


def test_pieces_grow_with_the_file() -> None:
    assert piece_digests.piece_bytes(1) == piece_digests.PIECE_BYTES
    most = piece_digests.PIECE_BYTES * piece_digests.MOST
    assert piece_digests.piece_bytes(most) == piece_digests.PIECE_BYTES
    assert piece_digests.piece_bytes(most + 1) == 2 * piece_digests.PIECE_BYTES
    assert digests_of(np.zeros(0, np.uint8)) == []


def test_every_changed_byte_and_pages_that_change_places_change_a_digest() -> None:
    page = piece_digests.PAGE
    data = np.random.default_rng(2).integers(0, 256, 3 * page + 5).astype(np.uint8)
    due = piece_digests.digest_of(data)
    for at in range(0, len(data), 7):
        changed = data.copy()
        changed[at] ^= 1 << at % 8
        assert piece_digests.digest_of(changed) != due
    swapped = np.concatenate([data[page : 2 * page], data[:page], data[2 * page :]])
    assert piece_digests.digest_of(swapped) != due
    for size in (0, 1, page - 1, page, page + 1):
        assert (
            piece_digests.digest_of(np.zeros(size, np.uint8))
            != piece_digests.digest_of(np.ones(size, np.uint8))
            or not size
        )
