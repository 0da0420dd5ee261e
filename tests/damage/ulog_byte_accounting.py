"""Check that a ULog scan accounts for every byte of its file: each is either read or reported as lost."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from logreel.formats.ulog.records import DATA_HEAD, FILE_HEADER, HEAD
from logreel.log.log import Log

Range = tuple[int, int]


def _size(data: np.ndarray, at: int) -> int:
    return HEAD + int(data[at]) + 256 * int(data[at + 1])


def accepted(log: Log) -> list[Range]:
    """Return the file intervals of all accepted records and file headers, unsorted."""
    saved, data = log.scan.saved, log.source.data
    assert saved is not None
    ranges = [(0, FILE_HEADER)]
    read_again = FILE_HEADER in saved.arrays["parsed"] or FILE_HEADER in (a for a, _ in lost(log))
    if log.source.head[18:19] == b"B" and not read_again:
        ranges.append((FILE_HEADER, FILE_HEADER + _size(data, FILE_HEADER)))
    own = zip(saved.plain["segments"], saved.plain["own_definitions"], strict=True)
    ranges += [(at, at + FILE_HEADER) for at, fresh in list(own)[1:] if fresh]
    for name in ("parsed", "notes"):
        ranges += [(at, at + _size(data, at)) for at in saved.arrays[name].tolist()]
    for ch in log.channels.values():
        if not ch.reserved:
            for at in log.index.offsets(ch.number).tolist():
                ranges.append((at - DATA_HEAD, at - DATA_HEAD + _size(data, at - DATA_HEAD)))
    return ranges


def lost(log: Log) -> list[Range]:
    """Return the file intervals reported as lost, without undeclared messages, which are reported as a sum."""
    return [(p.offset, p.offset + p.size) for p in log.problems if p.lost and p.code != "undeclared"]


def assert_accounted(log: Log) -> None:
    """Check that intervals read and lost cover the file, except for complete messages reported as undeclared."""
    tiles = sorted(accepted(log) + lost(log))
    for (a, b), (c, d) in pairwise(tiles):
        assert b <= c, f"bytes {a} to {b} and {c} to {d} overlap"
    gaps = [(b, c) for (_, b), (c, _) in pairwise([*tiles, (log.size, log.size)]) if b < c]
    undeclared = sum(p.size for p in log.problems if p.code == "undeclared")
    assert tiles[-1][1] <= log.size
    assert sum(c - b for b, c in gaps) == undeclared, f"neither read nor reported: {gaps[:5]}, {undeclared}"
    for a, b in gaps:
        while a < b:
            assert log.source.data[a + 2] == ord("D"), f"no message at {a}"
            a += _size(log.source.data, a)
        assert a == b
