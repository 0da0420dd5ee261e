"""MCAP files whose index or statistics leave out messages: all messages are read or reported."""

from __future__ import annotations

import io
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import zstandard

import logreel
from logreel.formats.mcap import chunks as packing
from logreel.formats.mcap import index_builder
from support.harness.cli_runner import Run
from support.samples.mcap.builder import MAGIC, START, message, pairs, record, string

Entries = dict[int, list[tuple[int, int]]]
#: Two chunks of five messages, of two channels.
MESSAGES = [(1 + k % 2, START + k * 1000, b'{"n": %d%s}' % (k, b" " * (k % 3 * 9))) for k in range(10)]
DUE = Counter((f"/{channel}", time, data) for channel, time, data in MESSAGES)


def _same(entries: Entries) -> Entries:
    return entries


@dataclass
class SyntheticMessages:
    """An MCAP built byte by byte.

    index       what the index of each chunk names, from what it should; None: it has no index records
    chunks      the numbers of the chunks that the summary describes
    statistics  messages and counts by channel that they state, from the true ones; None: there are none
    repeat      whether the summary repeats schemas and channels
    summary     whether there is one
    """

    index: Callable[[Entries], Entries | None] = _same
    chunks: Callable[[list[int]], list[int]] = list
    statistics: Callable[[dict[int, int]], dict[int, int]] | None = dict
    repeat: bool = True
    summary: bool = True
    compression: str = "zstd"
    indexed_extras: bool = True
    between: bytes = b""
    behind_chunk: bytes = b""
    longer: bool = False
    out: bytearray = field(default_factory=bytearray)

    def bytes(self) -> bytes:
        out = self.out = bytearray(MAGIC + record(1, string("") + string("by hand")))
        schema = record(3, struct.pack("<H", 1) + string("word") + string("jsonschema") + string(b"{}"))
        channels = [
            record(4, struct.pack("<HH", n, 1) + string(f"/{n}") + string("json") + pairs({})) for n in (1, 2)
        ]
        infos = []
        for half in (MESSAGES[:5], MESSAGES[5:]):
            infos.append(self.chunk(schema + b"".join(channels), half))
        extras = self.extras()
        out += self.between
        out += record(15, struct.pack("<I", zlib.crc32(out)))
        start = len(out) if self.summary else 0
        if self.summary:
            out += (schema + b"".join(channels)) * self.repeat
            if self.statistics is not None:
                stated = self.statistics(dict(Counter(channel for channel, _, _ in MESSAGES)))
                many = self.chunks([0, 1])
                content = struct.pack("<QHIIII", sum(stated.values()), 1, 2, 1, 1, len(many))
                content += struct.pack("<QQ", MESSAGES[0][1], MESSAGES[-1][1])
                content += string(b"".join(struct.pack("<HQ", *one) for one in stated.items()))
                out += record(11, content)
            out += b"".join(infos[n] for n in self.chunks([0, 1]))
            out += extras * self.indexed_extras
        foot = struct.pack("<BQQQ", 2, 20, start, 0)
        out += foot + struct.pack("<I", zlib.crc32(out[start:] + foot) if start else 0) + MAGIC
        return bytes(out)

    def chunk(self, definitions: bytes, half: list[tuple[int, int, bytes]]) -> bytes:
        body, entries = bytearray(definitions), Entries()
        for channel, time, data in half:
            entries.setdefault(channel, []).append((time, len(body)))
            body += message(channel, time, data)
        times = half[0][1], half[-1][1]
        stored = zstandard.ZstdCompressor().compress(bytes(body)) if self.compression else bytes(body)
        at = len(self.out)
        head = struct.pack("<QQQI", *times, len(body), zlib.crc32(body)) + string(self.compression)
        self.out += record(6, head + struct.pack("<Q", len(stored)) + stored)
        length, offsets = len(self.out) - at, b""
        self.out += self.behind_chunk
        length += len(self.behind_chunk) * self.longer
        for channel, rows in (self.index(entries) or {}).items():
            offsets += struct.pack("<HQ", abs(channel), len(self.out))
            content = b"".join(struct.pack("<QQ", *row) for row in rows)
            self.out += record(7, struct.pack("<H", abs(channel)) + string(content))
        info = struct.pack("<QQQQ", *times, at, length) + string(offsets)
        info += struct.pack("<Q", len(self.out) - at - length) + string(self.compression)
        return record(8, info + struct.pack("<QQ", len(stored), len(body)))

    def extras(self) -> bytes:
        """Write an attachment and a metadata record; return their indexes."""
        at = len(self.out)
        content = struct.pack("<QQ", START, START) + string("notes.txt") + string("text/plain")
        content += struct.pack("<Q", 4) + b"milk"
        self.out += record(9, content + struct.pack("<I", zlib.crc32(content)))
        after = len(self.out)
        made = struct.pack("<QQQQQ", at, after - at, START, START, 4) + string("notes.txt")
        made = record(10, made + string("text/plain"))
        self.out += record(12, string("robot") + pairs({"name": "walker"}))
        return made + record(13, struct.pack("<QQ", after, len(self.out) - after) + string("robot"))


def _empty(entries: Entries) -> Entries:
    return {channel: [] for channel in entries}


def _part(entries: Entries) -> Entries:
    return {channel: rows[:1] for channel, rows in entries.items()}


def _one_channel(entries: Entries) -> Entries:
    return {1: entries[1]}


def _swapped(entries: Entries) -> Entries:
    return {1: entries[2], 2: entries[1]}


def _doubled(entries: Entries) -> Entries:
    return {channel: [row for row in rows for _ in range(2)] for channel, rows in entries.items()}


def _none(entries: Entries) -> None:
    return None


INDEXES = {
    "none": _none,
    "empty": _empty,
    "a part": _part,
    "one channel": _one_channel,
    "swapped": _swapped,
    "doubled": _doubled,
}
#: What the statistics say: the truth, as many messages as such an index names, nothing at all, or nothing by channel.
STATISTICS = ("true", "as the index", "none", "zero")


def with_wrong_index(index: str, statistics: str, compression: str = "zstd", **other: object) -> bytes:
    tell = INDEXES[index]
    rows = [tell({c: [(0, 0)] * n for c, n in half}) or {} for half in (((1, 3), (2, 2)), ((1, 2), (2, 3)))]
    named = Counter({c: sum(len(half.get(c, [])) for half in rows) for c in (1, 2)})
    said: dict[str, Callable[[dict[int, int]], dict[int, int]] | None] = {
        "true": dict,
        "as the index": lambda _: dict(named),
        "none": None,
        "zero": lambda _: {},
    }
    return SyntheticMessages(tell, statistics=said[statistics], compression=compression, **other).bytes()  # type: ignore[arg-type]


def rows(log: logreel.Log) -> Counter[tuple[str, int, bytes]]:
    return Counter((m.channel.topic, m.time, bytes(m.data)) for m in log.messages())


@pytest.fixture(params=["small", "large"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether files count as small, so that their chunks are read on opening."""
    if request.param == "large":
        monkeypatch.setattr(index_builder, "SMALL", 0)
        monkeypatch.setattr(index_builder, "UNCOUNTED", 0)
    return str(request.param)


@pytest.mark.parametrize("compression", ["zstd", ""])
@pytest.mark.parametrize("statistics", STATISTICS)
@pytest.mark.parametrize("index", INDEXES)
def test_recover_writes_messages_that_no_index_names(
    index: str, statistics: str, compression: str, size: str, tmp_path: Path
) -> None:
    data = with_wrong_index(index, statistics, compression)
    logreel.recover(data, tmp_path / "x.mcap")
    log = logreel.open(tmp_path / "x.mcap")
    assert rows(log) == DUE
    assert not log.problems
    assert log.attachments["notes.txt"].read() == b"milk"
    assert log.metadata["robot"] == {"name": "walker"}


@pytest.mark.parametrize("statistics", STATISTICS)
@pytest.mark.parametrize("index", INDEXES)
def test_messages_missing_in_the_index_are_read_or_reported_as_lost(
    index: str, statistics: str, size: str
) -> None:
    log = logreel.open(with_wrong_index(index, statistics))
    got = rows(log)
    lost = [p for p in log.problems if p.lost]
    assert got == DUE or lost
    if size == "small" or index in ("none", "empty") or (statistics == "true" and index != "swapped"):
        assert got == DUE
        assert not lost or index == "swapped"
    assert got <= DUE, "no message comes twice"
    sound = index == "none" and statistics == "true"
    assert sound or log.problems or (index == "none" and statistics == "none")


@pytest.mark.parametrize("index", INDEXES)
def test_check_finds_messages_that_no_index_names(index: str, size: str) -> None:
    found = logreel.check(with_wrong_index(index, "as the index")).findings
    assert any(f.at_least("warn") for f in found)
    sound = logreel.check(SyntheticMessages().bytes()).findings
    assert not [f for f in sound if f.at_least("warn")]


@pytest.mark.parametrize("index", ["empty", "a part"])
def test_every_command_has_the_messages_of_a_file_with_an_empty_index(
    index: str, tmp_path: Path, run: Run
) -> None:
    path = tmp_path / "x.mcap"
    path.write_bytes(with_wrong_index(index, "as the index"))
    summary = logreel.info(path)
    assert summary.messages == 10
    assert {p.code for p in summary.problems} == {"index", "statistics"}
    assert not any(p.lost for p in summary.problems)
    code, out, _ = run("cat", str(path), "--format", "ndjson")
    assert (code, len(out.splitlines())) == (0, 10)
    for verb in ("slice", "recover"):
        assert run(verb, str(path), "-o", str(tmp_path / f"{verb}.mcap"))[0] == 0
        assert logreel.open(tmp_path / f"{verb}.mcap").message_count == 10
    assert run("convert", "--raw", str(path), str(tmp_path / "y.mcap"))[0] == 0
    assert logreel.open(tmp_path / "y.mcap").message_count == 10


def test_omissions_of_a_large_file_are_reported_and_recovered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: Run
) -> None:
    monkeypatch.setattr(index_builder, "SMALL", 0)
    path = tmp_path / "x.mcap"
    path.write_bytes(with_wrong_index("a part", "as the index"))
    done = run("cat", str(path), "--format", "ndjson")
    assert (done.code, len(done.out.splitlines())) == (3, 4)
    done = run("recover", str(path), "-o", str(tmp_path / "sound.mcap"))
    assert (done.code, logreel.open(tmp_path / "sound.mcap").message_count) == (0, 10)
    log = logreel.open(path)
    logreel.recover(log, tmp_path / "again.mcap")
    assert any("which were read" in p.text for p in log.problems)
    assert not any(p.lost for p in log.problems)


def test_opening_names_the_index_that_leaves_something_out() -> None:
    (problem,) = logreel.open(with_wrong_index("empty", "true")).problems
    assert (problem.code, problem.lost) == ("index", False)
    assert "name 0 messages where 10 are" in problem.text


def test_a_chunk_that_the_summary_leaves_out_is_read(size: str) -> None:
    for statistics in (dict, None, lambda _: {1: 3, 2: 2}):
        log = logreel.open(SyntheticMessages(chunks=lambda _: [0], statistics=statistics).bytes())
        assert rows(log) == DUE
        assert [p.code for p in log.problems] == ["index"]


@pytest.mark.parametrize("said", [{}, {1: 10}, {1: 5, 2: 4}, {1: 5, 2: 5, 3: 1}])
def test_wrong_statistics_are_reported_and_lose_no_message(said: dict[int, int], size: str) -> None:
    log = logreel.open(SyntheticMessages(statistics=lambda _: said).bytes())
    assert rows(log) == DUE
    assert [p.code for p in log.problems] == ["index"]
    assert "statistics" in {
        f.code for f in logreel.check(SyntheticMessages(statistics=lambda _: said).bytes()).findings
    }


def test_definitions_only_in_chunks_are_read(size: str) -> None:
    log = logreel.open(SyntheticMessages(repeat=False).bytes())
    assert rows(log) == DUE
    assert not log.problems


@pytest.mark.parametrize("index", INDEXES)
def test_index_without_a_summary_loses_no_message(index: str, tmp_path: Path) -> None:
    data = SyntheticMessages(INDEXES[index], summary=False).bytes()
    assert rows(logreel.open(data)) == DUE
    logreel.recover(data, tmp_path / "x.mcap")
    assert rows(logreel.open(tmp_path / "x.mcap")) == DUE


def test_attachments_and_metadata_that_no_index_names_are_read(tmp_path: Path) -> None:
    data = SyntheticMessages(indexed_extras=False).bytes()
    log = logreel.open(data)
    assert log.attachments["notes.txt"].read() == b"milk"
    assert log.metadata["robot"] == {"name": "walker"}
    assert not log.problems
    second = record(12, string("second") + pairs({"a": "b"}))
    found = logreel.check(SyntheticMessages(between=second).bytes()).findings
    assert {f.code for f in found if f.at_least("warn")} == {"index", "statistics"}
    assert any("leaves out 1 metadata" in f.text for f in found)


def test_a_large_sound_file_is_opened_by_its_summary_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_builder, "SMALL", 0)
    monkeypatch.setattr(packing, "unpack", lambda *_: pytest.fail("a chunk was unpacked"))
    monkeypatch.setattr(index_builder, "unpack", lambda *_: pytest.fail("a chunk was unpacked"))
    log = logreel.open(SyntheticMessages().bytes())
    assert log.message_count == 10
    assert not log.problems


def test_a_chunk_of_definitions_alone_is_no_problem() -> None:
    body = record(4, struct.pack("<HH", 9, 0) + string("/nine") + string("") + pairs({}))
    head = struct.pack("<QQQI", 0, 0, len(body), 0) + string("") + struct.pack("<Q", len(body))
    log = logreel.open(SyntheticMessages(between=record(6, head + body), chunks=lambda _: [0, 1]).bytes())
    assert rows(log) == DUE


def _hidden() -> Iterator[tuple[str, bytes]]:
    yield "a message", message(1, START + 99, b"hidden")
    body = message(2, START + 98, b"hidden")
    head = struct.pack("<QQQI", START + 98, START + 98, len(body), 0) + string("")
    yield "a chunk", record(6, head + struct.pack("<Q", len(body)) + body)


@pytest.mark.parametrize("longer", [False, True])
@pytest.mark.parametrize(("what", "hidden"), list(_hidden()))
def test_messages_between_a_chunk_and_its_index_are_read(
    what: str, hidden: bytes, longer: bool, size: str, tmp_path: Path
) -> None:
    """*longer*: the summary says that they belong to the chunk."""
    data = SyntheticMessages(behind_chunk=hidden, longer=longer).bytes()
    log = logreel.open(data)
    assert sum(rows(log).values()) == 12
    assert log.problems
    logreel.recover(data, tmp_path / "x.mcap")
    assert logreel.open(tmp_path / "x.mcap").message_count == 12


@pytest.mark.parametrize(("what", "hidden"), list(_hidden()))
def test_messages_after_the_last_index_are_read(what: str, hidden: bytes, tmp_path: Path) -> None:
    data = SyntheticMessages(between=hidden).bytes()
    log = logreel.open(data)
    assert sum(rows(log).values()) == 11
    assert log.problems
    logreel.recover(data, tmp_path / "x.mcap")
    assert logreel.open(tmp_path / "x.mcap").message_count == 11


def test_builder_makes_valid_files() -> None:
    """The mcap library accepts the files that the other tests treat as valid."""
    from mcap.reader import make_reader

    for data in (SyntheticMessages().bytes(), SyntheticMessages(compression="").bytes()):
        reader = make_reader(io.BytesIO(data), validate_crcs=True)
        got = Counter((c.topic, m.log_time, m.data) for _, c, m in reader.iter_messages())
        assert got == DUE
