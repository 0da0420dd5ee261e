"""Two-pass writing: a stream has the same bytes as the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logreel.errors import LogError, UnsupportedError
from logreel.io import two_pass
from logreel.io.append_file import Appender
from logreel.io.two_pass import DryRun, Edit, StreamOut

PIECES = st.lists(st.binary(max_size=40), min_size=1, max_size=12)
PLACES = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 20)), max_size=4)


def write(out: Appender, pieces: list[bytes], patches: list[tuple[int, int]], splice: int | None) -> None:
    """Append *pieces*, apply the *patches* that do not overlap, and replace 3 bytes at *splice* if possible."""
    total, free = sum(map(len, pieces)), list[range]()
    for n, piece in enumerate(pieces):
        (out.put if n % 2 else out.write)(memoryview(piece))
        out.commit()
    for place, size in patches:
        here = range(place, place + size)
        if size and place + size <= total and not any(set(here) & set(one) for one in free):
            free.append(here)
            out.patch(place, b"#" * size)
    if (
        splice is not None
        and splice + 3 <= total
        and not any(set(range(splice, splice + 3)) & set(r) for r in free)
    ):
        out.splice(splice, 3, b"<longer>")
        assert out.tell() == total + 5
        out.write(b"end")
    out.finish()


class Plain(Appender):
    """An Appender that keeps the content in memory."""

    def __init__(self) -> None:
        self.bytes = bytearray()

    def tell(self) -> int:
        return len(self.bytes)

    def write(self, piece: Any) -> None:
        self.bytes += piece

    def put(self, piece: Any) -> None:
        self.bytes += piece

    def commit(self) -> None:
        pass

    def patch(self, place: int, piece: Any) -> None:
        self.bytes[place : place + len(piece)] = piece

    def splice(self, place: int, size: int, piece: Any) -> None:
        self.bytes[place : place + size] = piece

    def finish(self) -> None:
        pass


@given(PIECES, PLACES, st.none() | st.integers(0, 200), st.integers(1, 60), st.integers(-1, 400))
def test_stream_has_the_bytes_of_the_file(
    pieces: list[bytes], patches: list[tuple[int, int]], splice: int | None, size: int, kept: int
) -> None:
    plain = Plain()
    write(plain, pieces, patches, splice)
    due = bytes(plain.bytes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(two_pass, "PIECE", size)
        patch.setattr(two_pass, "KEPT", kept)
        dry_run = DryRun("a")
        write(dry_run, pieces, patches, splice)
        assert dry_run.tell() == len(due)
        assert dry_run.content in (due, None)
        assert (dry_run.content is None) == (len(due) - 5 * (len(due) > sum(map(len, pieces))) > kept)
        sent: list[bytes] = []
        write(StreamOut("a", sent.append, dry_run.edits), pieces, patches, splice)
    assert b"".join(sent) == due
    assert all(sent)


def test_later_changes_without_a_dry_run_are_refused() -> None:
    dry_run = DryRun("a.log")
    dry_run.write(bytes(20))
    dry_run.patch(4, b"ab")
    dry_run.patch(4, b"cd")
    assert dry_run.edits == [Edit(4, 2, b"cd")]
    for place, size in ((3, 2), (4, 1), (5, 4), (19, 2)):
        with pytest.raises(UnsupportedError, match="changed too often"):
            dry_run.patch(place, bytes(size))
    dry_run.splice(10, 2, b"longer")
    with pytest.raises(UnsupportedError):
        dry_run.patch(0, b"x")


@pytest.mark.parametrize("edits", [[], [Edit(4, 1, b"x")]])
def test_changes_missing_in_the_dry_run_are_an_error(edits: list[Edit]) -> None:
    stream = StreamOut("a.log", list[bytes]().append, edits)
    stream.write(bytes(20))
    with pytest.raises(LogError, match="changed by another program"):
        stream.patch(4, b"ab")


@pytest.mark.parametrize("place", [19, 20, 40])
def test_stream_shorter_than_its_dry_run_is_an_error(place: int) -> None:
    stream = StreamOut("a.log", list[bytes]().append, [Edit(place, 4, b"1234")])
    stream.write(bytes(20))
    with pytest.raises(LogError, match="changed by another program"):
        stream.finish()


def test_again_writes_the_same_bytes(tmp_path: Path) -> None:
    def make(out: Appender) -> None:
        for n in range(100):
            out.write(bytes([n]))
            out.commit()
        out.flush()
        seen.clear()
        out.again(seen.extend, 50)
        out.finish()

    seen = bytearray()
    make(Appender(tmp_path / "a"))
    due = bytes(range(50))
    assert seen == due
    for out in (DryRun("a", make=make), StreamOut("a", list[bytes]().append, make=make)):
        make(out)
        assert seen == due
    with pytest.raises(UnsupportedError, match="has to be read again"):
        make(DryRun("a"))


def test_errors_of_callbacks_end_the_work() -> None:
    def fail(*_: Any) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        DryRun("a", fail).write(b"x")
    stream = StreamOut("a", fail)
    with pytest.raises(InterruptedError):
        stream.put(bytes(two_pass.PIECE))
    stream.leave()
    stream.discard()


@pytest.mark.parametrize("kept", [1 << 20, 3000, 100])
def test_bddf_index_is_built_from_passing_blocks(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from random import Random

    from logreel.formats.bddf import writer as module
    from logreel.formats.bddf.writer import IndexFromFile
    from logreel.io.source import Source
    from support.samples.bddf.builder import walk

    data = walk()
    end = int.from_bytes(data[-32:-24], "little")
    # The index starts before the file index: IndexFromFile builds it.
    source = Source.open(data[: _index_of(data, end)])
    due = b"".join(bytes(piece) for piece in IndexFromFile(source).pieces(source.size))
    assert data[source.size :].startswith(due[:1000])
    monkeypatch.setattr(module, "KEPT", kept)
    shown: list[int] = []

    def again(take: Any, upto: int) -> None:
        shown.append(upto)
        take(data[:upto])

    for seed in range(8):
        random, follower, at = Random(seed), module.IndexFromStream(again), 0
        while at < source.size:
            step = random.choice((1, 7, 100, 5000))
            follower.follow(data[at : min(at + step, source.size)])
            at += step
        assert b"".join(bytes(piece) for piece in follower.pieces(source.size)) == due
    assert bool(shown) == (kept < 1 << 20)
    assert set(shown) <= {source.size}


def _index_of(data: bytes, last: int) -> int:
    """Return the offset of the index of the first series, read from the file index."""
    from logreel.formats.bddf.index_reader import FooterIndex
    from logreel.io.source import Source

    return int(min(FooterIndex(Source.open(data)).file.offsets, default=last))
