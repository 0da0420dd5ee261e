"""``logreel.du`` and the verb: every byte of a file is counted once, compared with plain walks over the records."""

from __future__ import annotations

import bz2
import io
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import logreel
from logreel.ops.inspect import du as module
from logreel.ops.inspect.du import Usage
from support.builders.contents import SAMPLES, real
from support.harness.cli_runner import Run
from support.samples.mcap.walk import walk
from support.samples.rosbag.builder import START, drive
from support.samples.rosbag.builder import Builder as Bag
from support.samples.rosbag.old import Topic


def total(found: Usage) -> int:
    return sum(one.stored_bytes for one in found.topics) + sum(found.other.values())


def check(found: Usage, size: int) -> None:
    assert total(found) == found.size == size
    assert all(count > 0 for count in found.other.values())
    for one in found.topics:
        assert 0 <= one.payload_bytes <= one.record_bytes
        assert one.messages > 0
        assert one.ratio is None or one.ratio > 0


@pytest.mark.parametrize("suffix", SAMPLES)
def test_the_bytes_add_up_to_the_size_of_the_file(suffix: str) -> None:
    data = SAMPLES[suffix]()
    found = logreel.du(data)
    check(found, len(data))
    log = logreel.open(data)
    counted = {one.topic: (one.messages, one.payload_bytes) for one in found.topics}
    wanted = {ch.topic: (len(ch), log.index.bytes_of(ch.number)) for ch in log.match(None) if len(ch)}
    assert counted == wanted
    assert "damage" not in found.other
    assert found.other.get("messages of no channel", 0) == 0
    # Little of a sound file is of no known kind; of a database, pages are not told apart.
    assert found.other.get("other", 0) <= len(data) // 100 or suffix == ".db3"


@pytest.mark.parametrize("suffix", SAMPLES)
def test_the_bytes_of_damaged_files_add_up(suffix: str) -> None:
    data = SAMPLES[suffix]()
    for n in range(1, 9):
        part = bytearray(data[: len(data) * n // 9])
        for at in range(n * 977, len(part), 40_009 + n):
            part[at] ^= 0xFF
        try:
            log = logreel.open(bytes(part))
        except logreel.LogError:
            continue
        found = logreel.du(log)
        check(found, len(part))
        assert found.as_dict()["size"] == len(part)
        counted = {one.topic: (one.messages, one.payload_bytes) for one in found.topics}
        wanted = {ch.topic: (len(ch), log.index.bytes_of(ch.number)) for ch in log.match(None) if len(ch)}
        assert counted == wanted


def test_the_bytes_of_real_files_add_up(shared: Path) -> None:
    seen = 0
    for suffix in (".ulg", ".bag", ".bddf", ".log", ".mcap"):
        for path in real(shared, suffix)[:12]:
            if path.stat().st_size > 2_000_000:
                continue
            try:
                found = logreel.du(path)
            except logreel.LogError:
                continue
            seen += 1
            check(found, path.stat().st_size)
    assert seen > 5


def ulog_records(data: bytes) -> Iterator[tuple[str, bytes]]:
    at = 16
    while at < len(data):
        size, kind = struct.unpack_from("<HB", data, at)
        yield chr(kind), data[at + 3 : at + 3 + size]
        at += 3 + size


def test_records_of_a_ulog_are_those_of_a_plain_walk() -> None:
    data = SAMPLES[".ulg"]()
    found = logreel.du(data)
    sizes = Counter[str]()
    by_id = Counter[int]()
    names = {}
    for kind, content in ulog_records(data):
        sizes[kind] += len(content) + 3
        if kind == "A":
            multi, number = struct.unpack_from("<BH", content)
            names[number] = content[3:].decode() + (f"[{multi}]" if multi else "")
        if kind == "D":
            by_id[struct.unpack_from("<H", content)[0]] += len(content) + 3
    assert {one.topic: one.record_bytes for one in found.topics} == {names[n]: by_id[n] for n in by_id}
    assert all(one.stored_bytes == one.record_bytes for one in found.topics)
    assert found.other["definitions"] == sizes["F"] + sizes["A"] + sizes["R"]
    assert found.other["parameters"] == sizes["P"] + sizes["Q"]
    assert found.other["metadata"] == sizes["I"] + sizes["M"]
    assert found.other["text"] == sizes["L"] + sizes["C"]
    assert found.other["file header"] == 16 + sizes["B"]
    assert found.chunks == ()


@pytest.mark.parametrize("compression", ["", "lz4", "zstd"])
def test_messages_of_an_mcap_are_those_of_the_mcap_library(compression: str) -> None:
    reader = pytest.importorskip("mcap.reader")
    from support.samples.mcap.builder import Builder

    data = walk(3.0, Builder(compression=compression) if compression else Builder())
    found = logreel.du(data)
    check(found, len(data))
    sizes, counts = Counter[str](), Counter[str]()
    read = reader.make_reader(io.BytesIO(data))
    for _, channel, message in read.iter_messages(log_time_order=False):
        sizes[channel.topic] += len(message.data)
        counts[channel.topic] += 1
    assert {one.topic: one.payload_bytes for one in found.topics} == sizes
    assert {one.topic: one.record_bytes for one in found.topics} == {
        topic: size + 31 * counts[topic] for topic, size in sizes.items()
    }
    summary = read.get_summary()
    stated = [
        (c.chunk_start_offset, c.compression or "none", c.compressed_size, c.uncompressed_size)
        for c in summary.chunk_indexes
    ]
    assert [(c.offset, c.compression, c.stored_bytes, c.size) for c in found.chunks] == stated
    assert sum(c.messages for c in found.chunks) == sum(counts.values())
    if compression:
        assert all((one.ratio or 0) > 1 for one in found.topics)


def bag_records(data: bytes) -> Iterator[tuple[dict[bytes, bytes], bytes, int]]:
    """Yield header fields, data and size of each record."""
    at = 0
    while at < len(data):
        (n,) = struct.unpack_from("<I", data, at)
        header, fields, i = data[at + 4 : at + 4 + n], {}, 0
        while i < n:
            (size,) = struct.unpack_from("<I", header, i)
            name, _, value = header[i + 4 : i + 4 + size].partition(b"=")
            fields[name] = value
            i += 4 + size
        (size,) = struct.unpack_from("<I", data, at + 4 + n)
        yield fields, data[at + 8 + n : at + 8 + n + size], 8 + n + size
        at += 8 + n + size


@pytest.mark.parametrize("compression", ["none", "bz2"])
def test_records_of_a_bag_are_those_of_a_plain_walk(compression: str) -> None:
    data = drive(2.0, compression, chunk_bytes=60_000)
    found = logreel.du(data)
    check(found, len(data))
    records, kinds, topics = Counter[bytes](), Counter[int](), dict[bytes, str]()
    stored = []
    line = data.index(b"\n") + 1
    for fields, content, size in bag_records(data[line:]):
        if fields[b"op"] != b"\x05":
            kinds[fields[b"op"][0]] += size
            continue
        stored.append(len(content))
        kinds[5] += size - len(content)
        for inner, _, size in bag_records(bz2.decompress(content) if compression == "bz2" else content):
            if inner[b"op"] == b"\x02":
                records[inner[b"conn"]] += size
            else:
                topics[inner[b"conn"]] = inner[b"topic"].decode()
    by_topic = Counter[str]()
    for conn, size in records.items():
        by_topic[topics[conn]] += size
    assert {one.topic: one.record_bytes for one in found.topics} == by_topic
    assert found.other["index"] == kinds[4] + kinds[6]
    assert found.other["chunk headers"] == kinds[5]
    assert found.other["file header"] == line + kinds[3]
    assert [one.stored_bytes for one in found.chunks] == stored
    assert "other" not in found.other


def test_record_headers_of_a_bag_are_found_whatever_the_numbers_of_its_connections_are() -> None:
    """The end of a header with the connection 8 looks like a header of 8 bytes, if op is its last field."""
    bag = Bag()
    topics = [bag.connection(Topic(f"t{n}", "std_msgs/Int32")) for n in range(60)]
    for n, number in enumerate(topics):
        bag.message(number, START + n, struct.pack("<i", n))
    found = logreel.du(bag.bytes())
    assert {one.record_bytes - one.payload_bytes for one in found.topics} == {46}


def test_a_compressed_chunk_is_divided_exactly() -> None:
    assert module._divided(10, {"a": 1, "b": 1, "c": 1}) in (
        {"a": 4, "b": 3, "c": 3}, {"a": 3, "b": 4, "c": 3}, {"a": 3, "b": 3, "c": 4},
    )  # fmt: skip
    assert module._divided(7, {"a": 0, 3: 5}) == {"a": 0, 3: 7}
    assert module._divided(7, {}) == {"other": 7}
    for total in range(40):
        parts = module._divided(total, {n: n * n for n in range(7)})
        assert sum(parts.values()) == total
        assert all(abs(part - total * n * n / 91) < 1 for n, part in parts.items())


@pytest.mark.parametrize("suffix", [".ulg", ".bag", ".mcap"])
def test_a_format_that_does_not_describe_its_records_adds_up_too(
    suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = SAMPLES[suffix]()
    known = logreel.du(data)
    monkeypatch.setattr(module, "storage_of", lambda log: None)
    found = logreel.du(data)
    check(found, len(data))
    payloads = {one.topic: one.payload_bytes for one in known.topics}
    assert {one.topic: one.payload_bytes for one in found.topics} == payloads
    assert set(found.other) <= {"other", "damage"}
    if suffix == ".ulg":
        records = {one.topic: one.record_bytes for one in known.topics}
        assert all(records[one.topic] <= one.record_bytes for one in found.topics)


def test_du_prints_tables_and_json(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.bag").write_bytes(drive(2.0, "bz2", chunk_bytes=60_000))
    Path("b.ulg").write_bytes(SAMPLES[".ulg"]())
    done = run("du", "a.bag")
    lines = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert lines[1].split() == ["topic", "messages", "payload", "records", "stored", "share", "ratio"]
    assert lines[-1].split()[0] == "total"
    assert lines[-1].split()[-3:-1] == [str(Path("a.bag").stat().st_size), "100.0"]
    assert "chunk at" in run("du", "a.bag", "--chunks").out
    done = run("du", "b.ulg", "--chunks")
    assert done.out.splitlines()[1].split() == ["topic", "messages", "payload", "records", "stored", "share"]
    assert done.out.splitlines()[-1] == "no chunks"
    both = run("du", "a.bag", "b.ulg", "--json").out.splitlines()
    assert len(both) == 2
    found = run("du", "a.bag", "--json").json
    assert sum(one["stored_bytes"] for one in found["topics"] + found["other"]) == found["size"]
    assert sum(one["share"] for one in found["topics"] + found["other"]) == pytest.approx(1)
    assert run("du", "absent.bag").code == 1


def test_several_files_as_one_log_are_refused(tmp_path: Path) -> None:
    for name in ("a_0.bag", "a_1.bag"):
        (tmp_path / name).write_bytes(drive(2.0))
    with pytest.raises(logreel.UsageError, match="these are several files; call du for each"):
        logreel.du([tmp_path / "a_0.bag", tmp_path / "a_1.bag"])


def test_an_empty_log_has_only_a_header() -> None:
    data = Bag().bytes()
    found = logreel.du(data)
    check(found, len(data))
    assert found.topics == ()
