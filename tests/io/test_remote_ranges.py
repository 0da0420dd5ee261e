"""Indexed logs on web servers: only what is needed is fetched, and damage of an index is reported."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import logreel
from logreel.formats.bddf import index_reader
from logreel.formats.mcap import index_builder, reader
from logreel.io.remote import object_store, remote_source
from logreel.io.source import Source
from support.builders.many_chunks import START, STEP, many_blocks_bddf, many_chunks_bag, many_chunks_mcap
from support.harness.range_server import Served, serving_ranges

pytest.importorskip("obstore", reason="needs obstore: pip install 'logreel[remote]'")

KINDS = ("bag-none", "bag-lz4", "bag-bz2", "mcap-none", "mcap-lz4", "mcap-zstd", "bddf-none")
#: A window that lies in a few chunks of the middle, and one of no message.
WINDOW = START + 290 * STEP, START + 310 * STEP


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Return a server; small requests, so that small logs have many."""
    monkeypatch.setattr(remote_source, "SMALL_BYTES", 0)
    monkeypatch.setattr(object_store, "HEAD_BYTES", 8192)
    monkeypatch.setattr(remote_source, "PAGE", 256)
    monkeypatch.setattr(remote_source, "GAP", 512)
    monkeypatch.setattr(index_builder, "SMALL", 0)
    monkeypatch.setattr(reader, "TAIL_BYTES", 1024)
    monkeypatch.setattr(index_reader, "TAIL_BYTES", 1024)
    monkeypatch.setattr(index_reader, "UNIT", 4096)
    with serving_ranges() as served:
        yield served


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], bytes]:
    """Return a function that builds a log of a kind, once."""
    folder = tmp_path_factory.mktemp("many")

    @functools.cache
    def made(kind: str) -> bytes:
        form, compression = kind.split("-")
        if form == "bddf":
            return many_blocks_bddf()
        if form == "mcap":
            return many_chunks_mcap(compression)
        return many_chunks_bag(folder / "many.bag", compression)

    return made


def summary_at(content: bytes) -> int:
    """Return where the summary of a log begins, as its first or last record says."""
    if content[:1] == b"#":
        at = content.index(b"index_pos=") + len(b"index_pos=")
        return int.from_bytes(content[at : at + 8], "little")
    if content[:4] == b"BDDF":
        return index_reader.FooterIndex(Source.open(content)).places[0]
    return int.from_bytes(content[-28:-20], "little")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_of_a_remote_log_is_that_of_the_local_one(
    server: Served, build: Callable[[str], bytes], kind: str
) -> None:
    content = build(kind)
    url, local = server.put("log", content), logreel.open(content)
    assert len(local["/rare"]) == 5
    asks: list[Callable[[logreel.Log], object]] = [
        lambda log: log["/rare"].to_arrow(),
        lambda log: log["/late"].to_arrow(start=WINDOW[0], end=WINDOW[1]),
        lambda log: log["/late"].to_arrow(["n"], start=WINDOW[0], end=WINDOW[1]),
        lambda log: log["/double"]["n"].tolist(),
        lambda log: log["/double"].times.tolist(),
        lambda log: [
            (m.time, m.channel.topic, bytes(m.data)) for m in log.messages(start=WINDOW[0], end=WINDOW[1])
        ],
        lambda log: [(m.time, bytes(m.data)) for m in log.messages(["/late", "/rare"], reverse=True)],
        lambda log: [(m.time, bytes(m.data)) for m in log.messages(order="file")],
        lambda log: len(log["/often"]),
        lambda log: [(ch.topic, ch.start, ch.end, ch.bytes, dict(ch.metadata)) for ch in log.values()],
        lambda log: (log.start, log.end, dict(log.metadata), log.problems),
        lambda log: [(a.name, a.read()) for a in log.attachments.values()],
        lambda log: {topic: str(table) for topic, table in log.tables().items()},
        lambda log: log.index.sizes(log["/double"].number).tolist(),
    ]
    due = [ask(local) for ask in asks]
    for ask, answer in zip(asks, due, strict=True):
        assert ask(logreel.open(url)) == answer
    # All of them of one Log, so that parts are read at different times.
    remote = logreel.open(url)
    assert [ask(remote) for ask in asks] == due
    # All side columns, such as the connection of each message of a bag.
    for number in range(len(local.index.rules)):
        for name in local.index.rules[number].side_columns:
            found = logreel.open(url).index.side_column(number, name)
            assert found is not None
            assert found.tolist() == local.index.side_column(number, name).tolist()  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", KINDS)
def test_open_and_info_read_the_summary_only(
    server: Served, build: Callable[[str], bytes], kind: str
) -> None:
    content = build(kind)
    url = server.put("log", content)
    found = logreel.info(url)
    assert found.messages == logreel.info(content).messages
    # Head and summary, and index records of the first and last chunk of each channel.
    assert server.sent <= 8192 + len(content) - summary_at(content) + 6144
    assert len(server.asked) <= 12


@pytest.mark.parametrize("kind", KINDS)
def test_a_window_reads_its_chunks_only(server: Served, build: Callable[[str], bytes], kind: str) -> None:
    content = build(kind)
    log = logreel.open(server.put("log", content))
    server.forget()
    assert log["/often"].to_arrow(start=WINDOW[0], end=WINDOW[1]).num_rows == 10
    assert server.sent < len(content) / 4
    assert len(server.asked) <= 8
    server.forget()
    log["/often"].to_arrow(start=WINDOW[0], end=WINDOW[1])
    assert server.asked == []


@pytest.mark.parametrize("kind", ["bag-none", "bag-lz4", "mcap-zstd", "bddf-none"])
def test_a_slice_and_sql_of_a_window_read_its_chunks_only(
    server: Served, build: Callable[[str], bytes], kind: str, tmp_path: Path
) -> None:
    pytest.importorskip("duckdb", reason="needs duckdb: pip install 'logreel[sql]'")
    content = build(kind)
    url = server.put("log", content)
    out = tmp_path / f"out.{kind.split('-')[0]}"
    logreel.slice(url, out, topics="/often", start=WINDOW[0], end=WINDOW[1])
    assert server.sent < 8192 + len(content) / 2
    due = logreel.open(content)["/often"].to_arrow(start=WINDOW[0], end=WINDOW[1])
    assert logreel.open(out)["/often"]["n"].tolist() == due["n"].to_pylist()
    server.forget()
    query = f"SELECT n FROM often WHERE time_ns >= {WINDOW[0]} AND time_ns < {WINDOW[1]}"
    assert logreel.sql(query, url)["n"].to_pylist() == due["n"].to_pylist()
    assert server.sent < 8192 + len(content) / 2


def test_check_and_recover_read_the_whole_log(
    server: Served, build: Callable[[str], bytes], tmp_path: Path
) -> None:
    content = bytearray(build("bag-none"))
    at = content.find(b"message 300 ")
    head = content.rfind(b"time=", 0, at)
    content[head + 5] ^= 1
    local = logreel.check(bytes(content))
    assert local.findings
    found = logreel.check(server.put("log", bytes(content)))
    assert [f.code for f in found.findings] == [f.code for f in local.findings]
    assert server.sent >= len(content)


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_index_is_reported_and_no_message_of_others_is_wrong(
    server: Served, build: Callable[[str], bytes], kind: str
) -> None:
    """Change bytes all over the log: messages of the remote log are those of the local one, or it has a Problem."""
    content = build(kind)
    sound = logreel.open(content)
    due = {(m.time, m.channel.topic, bytes(m.data)) for m in sound.messages()}
    for n in range(12):
        damaged = bytearray(content)
        damaged[len(content) * (2 * n + 1) // 24] ^= 0x15
        try:
            local = logreel.open(bytes(damaged))
            # In the order of the file, as that of a set does not matter: it takes less.
            there = {(m.time, m.channel.topic, bytes(m.data)) for m in local.messages(order="file")}
            local_problems = bool(local.problems)
        except logreel.LogError:
            continue
        remote = logreel.open(server.put("log", bytes(damaged)))
        found = {(m.time, m.channel.topic, bytes(m.data)) for m in remote.messages()}
        assert found == there or remote.problems, n
        # What cannot be seen from a damaged payload is the same for both.
        assert len(found - due) <= len(there - due) + 1, n
        assert len(found) >= len(there) - 60, n
        assert local_problems or found == there or remote.problems


def with_unknown_record(content: bytes, op: bytes) -> bytes:
    """Return a bag in which the first record of this kind in the second half is of an unknown kind."""
    at = content.index(op, len(content) // 2) + len(op) - 1
    return content[:at] + b"\x09" + content[at + 1 :]


def test_messages_of_a_chunk_with_a_damaged_index_record_are_read_from_the_chunk(
    server: Served, build: Callable[[str], bytes]
) -> None:
    content = with_unknown_record(build("bag-lz4"), b"op=\x04")
    remote = logreel.open(server.put("log", content))
    found = [(m.time, m.channel.topic, bytes(m.data)) for m in remote.messages()]
    due = [(m.time, m.channel.topic, bytes(m.data)) for m in logreel.open(build("bag-lz4")).messages()]
    assert found == due
    assert [(p.code, p.lost) for p in remote.problems] == [("index", False)]
    assert server.sent < len(content) * 2


def test_a_chunk_without_header_is_a_problem_and_the_others_are_read(
    server: Served, build: Callable[[str], bytes]
) -> None:
    remote = logreel.open(server.put("log", with_unknown_record(build("bag-none"), b"op=\x05")))
    found = {bytes(m.data) for m in remote.messages()}
    due = {bytes(m.data) for m in logreel.open(build("bag-none")).messages()}
    assert found < due
    assert len(due) - len(found) < 60
    assert [(p.code, p.lost) for p in remote.problems] == [("index", True)]


@pytest.mark.parametrize("kind", ["bag-none", "mcap-zstd", "bddf-none"])
def test_a_cut_log_is_downloaded_and_read_like_a_local_one(
    server: Served, build: Callable[[str], bytes], kind: str
) -> None:
    content = build(kind)[:-3000]
    remote, local = logreel.open(server.put("log", content)), logreel.open(content)
    assert [(m.time, bytes(m.data)) for m in remote.messages()] == [
        (m.time, bytes(m.data)) for m in local.messages()
    ]
    assert [p.code for p in remote.problems] == [p.code for p in local.problems]
    assert server.sent == pytest.approx(len(content), abs=len(content) // 20)


def test_a_strict_log_is_read_as_a_whole(server: Served, build: Callable[[str], bytes]) -> None:
    content = bytearray(build("bag-lz4"))
    content[content.index(b"op=\x04", len(content) // 2) + 3] = 9
    with pytest.raises(logreel.DamagedError):
        logreel.open(server.put("log", bytes(content)), strict=True)


def test_other_limits_do_not_make_a_log_be_read_as_a_whole(
    server: Served, build: Callable[[str], bytes]
) -> None:
    content = build("bag-lz4")
    logreel.open(server.put("log", content), limits=logreel.Limits(cache_bytes=1 << 20))
    assert server.sent < len(content) / 2


def test_a_first_chunk_of_a_wrong_size_is_a_problem(server: Served, build: Callable[[str], bytes]) -> None:
    content = bytearray(build("bag-none"))
    at = content.index(b"op=\x05")
    head = content.rindex(b"compression=", 0, at + 40) if b"compression=" in content[: at + 40] else at
    start = content.index(b"size=", min(head, at)) + len(b"size=") + 4
    stated = int.from_bytes(content[start : start + 4], "little")
    assert stated < 1 << 16
    content[start : start + 4] = (1 << 20).to_bytes(4, "little")
    remote = logreel.open(server.put("log", bytes(content)))
    due = {bytes(m.data) for m in logreel.open(build("bag-none")).messages()}
    assert {bytes(m.data) for m in remote.messages()} < due
    assert [(p.code, p.lost) for p in remote.problems] == [("index", True)]
