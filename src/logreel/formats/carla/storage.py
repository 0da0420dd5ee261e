"""Packets of a CARLA recording by kind, for ``logreel du``."""

from __future__ import annotations

from collections.abc import Iterator

from logreel.formats.carla.records import FRAME_END, HEAD, TOPICS, read_header
from logreel.io.source import Buffer, Source
from logreel.registry import format as storage
from logreel.registry.format import Storage, StoredRecord


def _records(data: Buffer, at: int, end: int) -> Iterator[StoredRecord]:
    if at == 0:
        header = read_header(Source.open(data[: min(end, 1 << 17)].tobytes()))
        if header is None:
            return
        yield StoredRecord(storage.FILE_HEADER, header.size)
        at = header.size
    while end - at >= HEAD:
        packet_type, size = int(data[at]), int.from_bytes(data[at + 1 : at + HEAD].tobytes(), "little")
        if at + HEAD + size > end or (packet_type != FRAME_END and packet_type not in TOPICS):
            return
        yield StoredRecord("ends of frames" if packet_type == FRAME_END else storage.UNASSIGNED, HEAD + size)
        at += HEAD + size


STORAGE = Storage(HEAD, _records)
