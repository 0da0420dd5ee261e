"""Pieces of a file that are compared with their digests: those with used bytes, each once."""

from __future__ import annotations

import numpy as np
import pytest

from logreel.io import piece_digests
from logreel.io.piece_digests import PieceDigests, digests_of


def test_changed_pieces_are_returned_once_and_only_where_bytes_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(piece_digests, "PIECE_BYTES", 100)
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
