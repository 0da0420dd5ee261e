"""BDDF files on web servers: the index of the file is used as far as the blocks agree with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import logreel
from conftest import SHARED
from logreel import errors as notices
from logreel.formats.bddf import index_reader
from logreel.io import source
from logreel.io.remote import object_store, remote_source
from logreel.io.remote import remote_source as sparse_copy
from support.builders.many_chunks import many_blocks_bddf
from support.harness.range_server import Served, serving_ranges
from support.samples.bddf.builder import T0, Builder, walk

pytest.importorskip("obstore", reason="needs obstore: pip install 'logreel[remote]'")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Return a server; each block is fetched by a request of its own, as far as that is possible."""
    monkeypatch.setattr(source, "HEAD_BYTES", 64)
    monkeypatch.setattr(remote_source, "SMALL_BYTES", 0)
    monkeypatch.setattr(object_store, "HEAD_BYTES", 64)
    monkeypatch.setattr(sparse_copy, "PAGE", 32)
    monkeypatch.setattr(sparse_copy, "GAP", 0)
    monkeypatch.setattr(index_reader, "TAIL_BYTES", 64)
    monkeypatch.setattr(index_reader, "UNIT", 128)
    monkeypatch.setattr(index_reader, "_TOGETHER", 64)
    monkeypatch.setattr(index_reader, "_DECLARATION", 64)
    with serving_ranges() as served:
        yield served


@pytest.fixture
def downloads() -> Iterator[list[str]]:
    """Return a list of what is said of logs that are read as a whole."""
    said: list[str] = []
    notices.listeners.append(said.append)
    yield said
    notices.listeners.remove(said.append)


def content_of(log: logreel.Log) -> dict[str, Any]:
    """Return everything that a log has."""
    return {
        "messages": [(m.time, m.channel.topic, m.offset, bytes(m.data)) for m in log.messages()],
        "in file order": [(m.time, bytes(m.data)) for m in log.messages(order="file", reverse=True)],
        "tables": {topic: str(table.to_pydict()) for topic, table in log.tables().items()},
        "channels": [
            (ch.topic, len(ch), ch.bytes, ch.start, ch.end, dict(ch.metadata)) for ch in log.values()
        ],
        "schemas": [ch.schema for ch in log.values()],
        "sizes": [log.index.sizes(ch.number).tolist() for ch in log.values()],
        "log": (log.start, log.end, log.version, dict(log.metadata), log.text),
        "problems": [(p.code, p.offset, p.size, p.lost, p.text) for p in log.problems],
    }


def same(served: Served, content: bytes) -> logreel.Log:
    """Return a remote log, after everything in it was compared with the local one."""
    url, local = served.put("log", content), content_of(logreel.open(content))
    # What reading alone asks for, and everything of one Log.
    assert content_of(logreel.open(url)) == local
    for number in range(len(logreel.open(content))):
        one, other = (list(logreel.open(what).values())[number] for what in (url, content))
        # As text, in which NaN equals NaN.
        assert str(one.to_arrow().to_pydict()) == str(other.to_arrow().to_pydict())
        assert str([m.decode() for m in one]) == str([m.decode() for m in other])
    return logreel.open(url)


def in_ranges(log: logreel.Log) -> bool:
    return log.format_state.found.ranged is not None


def rows_of(log: logreel.Log) -> list[tuple[int, str, bytes]]:
    return [(m.time, m.channel.topic, bytes(m.data)) for m in log.messages()]


def lines(blocks: int = 40) -> Builder:
    """Return two series of text with blocks in turn."""
    out = Builder()
    one, two = (out.messages(name, "text/plain", "line") for name in ("one", "two"))
    for i in range(blocks):
        out.data(two if i % 2 else one, T0 + i, f"line {i:4}".encode())
    return out


@pytest.mark.parametrize(
    "name", sorted(path.name for path in (SHARED / "data/bddf").glob("*.bddf")) or ["none"]
)
def test_samples_are_read_like_local_files(server: Served, name: str) -> None:
    path = SHARED / "data/bddf" / name
    if not path.is_file():
        pytest.skip("no samples of BDDF beside the repository (LOGREEL_SHARED)")
    same(server, path.read_bytes())


@pytest.mark.parametrize("made", [lambda: walk(4), many_blocks_bddf, lambda: lines().bytes()])
def test_built_files_are_read_in_ranges_like_local_files(
    server: Served, downloads: list[str], made: Callable[[], bytes]
) -> None:
    assert in_ranges(same(server, made()))
    assert downloads == []


def test_opening_reads_no_data_block(server: Served) -> None:
    content = many_blocks_bddf()
    log = logreel.open(server.put("log", content))
    assert logreel.info(log).channels == logreel.info(content).channels
    assert log["/often"].times.tolist() == logreel.open(content)["/often"].times.tolist()
    index = len(content) - index_reader.FooterIndex(source.Source.open(content)).places[0]
    # Also the two parts of the file with declarations.
    assert server.sent < index + 2048
    # Without the gaps and pages that join them, each declaration and index is one.
    assert len(server.asked) <= 16


def test_additional_indexes_of_a_window_are_read_from_its_blocks(server: Served) -> None:
    content = many_blocks_bddf()
    local, remote = logreel.open(content), logreel.open(server.put("log", content))
    server.forget()
    first = local["/double"].times[70]
    window = {"start": int(first), "end": int(first) + 2 * 10**8}
    found = remote["/double"].to_arrow(["turn", "back", "n"], **window)
    assert found.equals(local["/double"].to_arrow(["turn", "back", "n"], **window))
    assert 0 < found.num_rows < 10
    assert server.sent < len(content) / 20


def test_messages_in_order_are_fetched_together(server: Served) -> None:
    content = many_blocks_bddf()
    log = logreel.open(server.put("log", content))
    server.forget()
    assert rows_of(log) == rows_of(logreel.open(content))
    assert len(server.asked) <= 3
    assert server.sent <= len(content)


# ------------------------------------------------------------------------------------------- a wrong index


def test_a_file_whose_index_leaves_out_a_block_is_read_as_a_whole(
    server: Served, downloads: list[str]
) -> None:
    out = lines()
    entries, totals = bytes(out._entries[0]), list(out._totals)
    out.data(0, T0 + 99, b"not named")
    out._entries[0], out._totals = bytearray(entries), totals
    out.data(0, T0 + 100, b"the last")
    assert not in_ranges(same(server, out.bytes()))
    assert downloads


def test_a_file_whose_index_names_a_block_twice_is_read_as_a_whole(
    server: Served, downloads: list[str]
) -> None:
    out = lines()
    out._entries[1] += out._entries[0][: len(out._entries[0]) // 20]
    assert not in_ranges(same(server, out.bytes()))
    assert downloads


@pytest.mark.parametrize("change", ["swapped", "total", "place", "none", "beyond"])
def test_a_file_with_a_contradictory_index_is_read_as_a_whole(
    server: Served, downloads: list[str], change: str
) -> None:
    out = lines()
    match change:
        case "swapped":
            out._entries.reverse()
            out._entries[0] += out._entries[1]
        case "total":
            out._totals[1] += 1
        case "place":
            out._declared.reverse()
        case "beyond":
            out._declared[0] = 1 << 40
    content = bytearray(out.bytes(index=change != "none"))
    assert not in_ranges(same(server, bytes(content)))
    assert downloads


def test_blocks_with_another_time_than_the_index_says_are_a_problem(server: Served) -> None:
    out = lines()
    # Block 5 states another time of the same length than its entry; nothing else shows it.
    content = bytearray(out.bytes())
    at = content.index(b"line    5") - 1
    content[at] ^= 1
    remote = logreel.open(server.put("log", bytes(content)))
    assert in_ranges(remote)
    due = [row for row in rows_of(logreel.open(out.bytes())) if row[2] != b"line    5"]
    assert rows_of(remote) == due
    assert [(p.code, p.lost) for p in remote.problems] == [("index", True)]
    assert "line    5" not in remote["two"].to_arrow()["text"].to_pylist()


def test_an_index_that_swaps_series_gives_no_wrong_row(server: Served) -> None:
    out = lines()
    out._entries.reverse()
    remote = logreel.open(server.put("log", out.bytes()))
    local = logreel.open(out.bytes())
    assert set(rows_of(remote)) <= set(rows_of(local))
    assert not in_ranges(remote) or [p.lost for p in remote.problems] == [True, True]


def test_any_changed_byte_gives_the_content_of_the_local_file_or_a_problem(server: Served) -> None:
    content = lines(6).bytes()
    for at in range(4, len(content), 3):
        damaged = bytearray(content)
        damaged[at] ^= 0x15
        try:
            due, error = rows_of(logreel.open(bytes(damaged))), None
        except logreel.LogError as one:
            due, error = [], type(one)
        url = server.put("log", bytes(damaged))
        if error is not None:
            with pytest.raises(error):
                logreel.open(url)
            continue
        remote = logreel.open(url)
        found = rows_of(remote)
        assert found == due or (set(found) <= set(due) and any(p.lost for p in remote.problems)), at
