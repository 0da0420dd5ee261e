"""What a file says of itself and does not hold is a finding of ``check``, and is never trusted for memory or rows."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Iterator
from functools import cache

import pytest
from small_samples import SMALL

import logreel
from damage.structure import Stated, Structure, reseal
from logreel.errors import Finding, LogError

BAG = {
    "file header index_pos": "index",
    "file header conn_count": "index",
    "file header chunk_count": "index",
    "file header op": "header",
    "file header data length": "garbage",
    "chunk compression": "index",
    "chunk op": "index",
    "chunk size": "index chunk",
    "chunk data length": "index unfinished",
    "index ver": "index",
    "index conn": "index",
    "index count": "index",
    "index data length": "index",
    "index entry sec": "index",
    "index entry nsec": "index",
    "connection conn": "index",
    "connection type": "connection",
    "connection md5sum": "md5",
    "connection message_definition": "definition",
    "chunk info ver": "index",
    "chunk info chunk_pos": "index",
    "chunk info start_time": "index",
    "chunk info end_time": "index",
    "chunk info count": "index",
    "chunk info entry conn": "index",
    "chunk info entry count": "index",
}
MCAP = {
    "schema id": "definition",
    "schema name": "redefined",
    "schema encoding": "redefined",
    "channel id": "definition redefined",
    "channel topic": "redefined",
    "channel encoding": "redefined",
    "metadata name": "index",
    "attachment log time": "index",
    "attachment create time": "index",
    "attachment name": "index",
    "attachment media type": "index",
    "attachment data length": "crc garbage",
    "data-end opcode": "data-end index",
    "statistics messages": "statistics",
    "statistics schemas": "statistics",
    "statistics channels": "statistics",
    "statistics attachments": "statistics",
    "statistics metadata": "statistics",
    "statistics start": "statistics",
    "statistics end": "statistics",
    "statistics count channel": "statistics",
    "statistics count": "statistics",
    "attachment-index offset": "index",
    "attachment-index length": "index",
    "attachment-index log time": "index",
    "attachment-index create time": "index",
    "attachment-index data size": "index",
    "attachment-index name": "index",
    "attachment-index media type": "index",
    "metadata-index offset": "index",
    "metadata-index length": "index",
    "metadata-index name": "index",
    "summary-offset group": "index",
    "summary-offset start": "index",
    "summary-offset length": "index",
    "footer summary start": "index",
    "footer summary offset start": "index",
}
CHUNKS = {
    "statistics chunks": "statistics",
    "chunk start": "index",
    "chunk end": "index",
    "chunk uncompressed size": "chunk",
    "chunk records length": "statistics garbage chunk index",
    "chunk-index start": "index",
    "chunk-index end": "index",
    "chunk-index chunk offset": "index",
    "chunk-index chunk length": "index",
    "chunk-index index channel": "index",
    "chunk-index index offset": "index",
    "chunk-index index length": "index",
    "chunk-index compressed size": "index",
    "chunk-index uncompressed size": "index",
    "message-index channel": "index",
    "message-index entry time": "index",
    "message-index entry offset": "index",
}
#: By sample: fields, and codes of which a finding must have one.
STATEMENTS = {
    "bag 1.0": {"header quantity": "header"},
    "bag 1.1": {"message md5": "definition"},
    "bag 1.2": {
        "file header index_pos": "index",
        "file header op": "header",
        "file header data length": "garbage",
        "definition md5": "definition",
        "definition type": "definition",
        "definition def": "definition",
        "definition topic": "index",
        "index count": "index",
        "index topic": "index",
        "index type": "index",
        "index ver": "index",
        "index data length": "index garbage",
        "index entry sec": "index",
        "index entry nsec": "index",
        "index entry pos": "index",
    },
    "bag 2.0": {
        **BAG,
        "inner connection conn": "connection",
        "inner connection op": "chunk",
        "inner connection topic": "connection",
        "inner connection data length": "chunk",
        "inner message time": "index",
        "inner message conn": "index",
    },
    "bag 2.0 bz2": BAG,
    "bag 2.0 lz4": BAG,
    "ulog 1": {
        "B size": "garbage",
        "B appended offset 0": "offset",
        "B appended offset 1": "offset",
        "B appended offset 2": "offset",
        "F size": "garbage",
        "I key length": "information garbage",
        "P size": "garbage",
        "S magic": "sync",
        "D size": "garbage",
        "D msg id": "undeclared garbage",
    },
    "ulog appended": {"B appended offset 2": "offset", "D size": "garbage"},
    "bddf": {
        "file version major": "version",
        "file checksum type": "checksum",
        "file checksum bytes": "checksum",
        "series index": "index",
        "series hash": "hash",
        "series identifier series type": "hash",
        "data numbers item": "index",
        "data series": "index",
        "data block size": "index",
        "block index series": "index",
        "block index declared at": "index",
        "block index entry time seconds": "index",
        "block index entry offset": "index",
        "block index entry numbers item": "index",
        "block index total bytes": "index",
        "file index identifier series type": "index",
        "file index identifier spec": "index",
        "file index offsets item": "index",
        "file index hashes item": "index",
        "end block size": "end",
        "end index offset": "index",
        "end digest": "checksum",
    },
    "carla": {
        "packet 2 size": "head",
        "packet 2 count": "payload leftover",
        "actor attribute count": "payload leftover",
        "packet 6 size": "head",
        "packet 6 count": "garbage",
        "packet 8 count": "garbage",
        "packet 15 count": "payload",
        "packet 19 count": "payload leftover",
        "packet 21 count": "garbage payload leftover",
        "frame number": "frame_number",
    },
    "koblenz": {
        "index count": "index garbage",
        "index entry": "index",
        "laser count": "garbage leftover",
        "image size": "garbage leftover",
        "velodyne count": "garbage leftover",
        "laser name length": "garbage leftover",
    },
    "mcap": {**MCAP, **CHUNKS, "inner message log time": "index", "inner schema id": "definition"},
    "mcap zstd": {**MCAP, **CHUNKS},
    "mcap unchunked": MCAP,
}
CASES = [(sample, name) for sample, names in STATEMENTS.items() for name in names]
#: Bytes that opening and checking a small sample may take: far less than what lies of 2^31 and more ask for.
MEMORY = 48 << 20
#: Statements about messages themselves: which of them there are is what the statement says.
OF_MESSAGES = {
    "message md5",
    "data series",
    "data block size",
    "channel id",
    "channel topic",
    "series index",
    "D size",
}


@cache
def sound(
    sample: str,
) -> tuple[bytes, Structure, frozenset[tuple[str, int | None]], Counter[tuple[int, bytes]]]:
    data = SMALL[sample].make()
    known = frozenset((one.code, one.offset) for one in logreel.check(data).worse("warn"))
    return data, SMALL[sample].walk(data), known, messages(logreel.open(data))


def messages(log: logreel.Log) -> Counter[tuple[int, bytes]]:
    return Counter((one.time, bytes(one.data)) for one in log.messages(order="file"))


def lies(data: bytes, field: Stated) -> Iterator[bytes]:
    """Yield *data* with other values in a field: one more, nothing, and the greatest."""
    value = field.value(data)
    others = [value ^ 1] if field.how == "raw" else [value + 1, 0 if value else 2, field.greatest]
    yield from (field.with_value(data, other) for other in others if value != other <= field.greatest)


def resealed(sample: str, name: str, data: bytes) -> bytes:
    """Return *data* with a right checksum, so that it is not what reveals the lie."""
    return reseal(data) if sample == "bddf" and not name.startswith("end ") else data


def found(data: bytes | logreel.Log, known: frozenset[tuple[str, int | None]]) -> list[Finding]:
    return [one for one in logreel.check(data).worse("warn") if (one.code, one.offset) not in known]


def has_place(one: Finding) -> bool:
    """Return whether a finding says where: a place in the file, a channel, or the name of a type."""
    return (
        one.offset is not None or bool(one.topic) or (one.code in ("md5", "definition") and "/" in one.text)
    )


@pytest.mark.parametrize(("sample", "name"), CASES, ids=[f"{sample}-{name}" for sample, name in CASES])
def test_check_names_a_lie(sample: str, name: str) -> None:
    data, structure, known, there = sound(sample)
    fields = structure.named(name)
    for field in dict.fromkeys((fields[0], fields[-1])):
        for lie in lies(data, field):
            lie = resealed(sample, name, lie)
            try:
                log = logreel.open(lie)
                findings = found(log, known)
                rows = messages(log)
            except LogError:
                # Refused: a version or flag of the future.
                continue
            codes = {one.code for one in findings}
            due = set(STATEMENTS[sample][name].split())
            assert codes & due, (field, field.value(lie), codes)
            assert any(one.code in due and has_place(one) for one in findings), (
                field,
                findings,
            )
            if name not in OF_MESSAGES and "inner message" not in name:
                assert sum(rows.values()) <= sum(there.values()), (field, field.value(lie))


@pytest.mark.parametrize("sample", STATEMENTS)
def test_lies_are_not_trusted_for_memory(sample: str) -> None:
    data, structure, known, _ = sound(sample)
    found(data, known)
    tracemalloc.start()
    try:
        for name in structure.names:
            for field in structure.named(name)[:1]:
                if field.how == "raw":
                    continue
                lie = field.with_value(data, field.greatest)
                # Garbage of the logs before is collected some time later.
                tracemalloc.reset_peak()
                before = tracemalloc.get_traced_memory()[0]
                try:
                    log = logreel.open(resealed(sample, name, lie))
                    messages(log)
                except LogError:
                    pass
                peak = tracemalloc.get_traced_memory()[1] - before
                assert peak < MEMORY, (field, peak >> 20)
    finally:
        tracemalloc.stop()


def test_a_bag_1_2_cut_at_any_record_is_not_sound() -> None:
    """Its header states where the index is, so that whole records before the cut do not hide it."""
    data, structure, known, _ = sound("bag 1.2")
    for _, end, _ in structure.records[:-1]:
        assert found(data[:end], known), end


def test_genuine_habits_are_no_lies() -> None:
    """Entries that lead to the connection before a message, as recorders of 2010 wrote them, are tolerated."""
    data, structure, known, there = sound("bag 2.0")
    entry = structure.named("index entry offset")[0]
    connection = entry.with_value(data, 0)
    assert messages(logreel.open(connection)) == there
    assert not found(connection, known)
