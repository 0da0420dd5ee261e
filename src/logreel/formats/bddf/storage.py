"""Blocks of a BDDF file by kind, for ``logreel du``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.formats.bddf.records import DATA, DESCRIPTOR, END, END_BYTES
from logreel.io.arrays import I64
from logreel.io.source import Buffer
from logreel.registry import format as storage
from logreel.registry.format import Storage, StoredRecord

#: Descriptor blocks by the first byte of their message, which is the tag of its only field.
KINDS = {0x0A: storage.FILE_HEADER, 0x12: storage.DEFINITIONS, 0x1A: storage.INDEX, 0x22: storage.INDEX}
MAGIC = b"BDDF"
#: Longest DataDescriptor that is looked for, bytes.
_LONGEST = 4096


def _records(data: Buffer, at: int, end: int) -> Iterator[StoredRecord]:
    if at == 0 and data[:4].tobytes() == MAGIC:
        yield StoredRecord(storage.FILE_HEADER, 4)
        at = 4
    while end - at >= 8:
        word = int.from_bytes(data[at : at + 8].tobytes(), "little")
        block_type, size = word >> 56, word & (1 << 56) - 1
        record_size = END_BYTES if block_type == END else size + (12 if block_type == DATA else 8)
        if record_size > end - at:
            return
        what = "other blocks"
        if block_type == DATA:
            what = storage.UNASSIGNED
        elif block_type == END:
            what = storage.INDEX
        elif block_type == DESCRIPTOR and size:
            what = KINDS.get(int(data[at + 8]), what)
        yield StoredRecord(what, record_size)
        at += record_size


def _heads(data: Buffer, start: I64, size: I64) -> I64:
    """Return int64[n]: bytes of each data block before its payload; 0 where no block begins."""
    sizes = np.zeros(len(start), np.int64)
    left = np.arange(len(start))
    for n in range(_LONGEST):
        if not len(left):
            break
        at = start[left] - n - 12
        fits = at >= 0
        head = np.ascontiguousarray(data[at[fits, None] + np.arange(12)])
        words, lengths = head[:, :8].copy().view("<u8")[:, 0], head[:, 8:].copy().view("<u4")[:, 0]
        # The kind of a data block is 0, so the word is the size.
        fits[fits] = (words == (size[left][fits] + n).astype(np.uint64)) & (lengths == n)
        sizes[left[fits]] = n + 12
        left = left[~fits]
    return sizes


STORAGE = Storage(_heads, _records)
