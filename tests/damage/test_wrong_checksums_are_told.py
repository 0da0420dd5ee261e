"""Messages whose checksum says that they are not what was written: no verb that gives them on ends with 0."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import logreel
from support.harness.cli_runner import Run
from support.samples.rosbag.builder import drive

#: Verbs that copy messages, and verbs that read them; TOPIC is a channel with messages.
COPYING = (
    "recover -o OUT",
    "slice -o OUT",
    "slice -t /imu -o OUT",
    "slice -S +0.1s -E -0.1s -o OUT",
    "sort -o OUT",
    "merge -o OUT",
    "edit --rename /imu=/inertia -o OUT",
    "migrate -o OUT",
    "split --every 1s -o OUT.d",
    "convert --raw OUT.mcap",
)
READING = ("cat", "stats --fields", "convert OUT.csv/", "health", "summary", "du", "SQL")


def chunks_of(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield offset and content of the chunk records of an MCAP file."""
    at = 8
    while at + 9 <= len(data):
        if data[at] == 6:
            yield at, at + 9
        at += 9 + int.from_bytes(data[at + 1 : at + 9], "little")


@cache
def converted(seconds: float, name: str, **options: object) -> bytes:
    """Return a drive as a file of another format."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        logreel.convert(drive(seconds), path, **options)
        return path.read_bytes()


@pytest.fixture(params=["none", "zstd", "lz4"])
def mcap(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An MCAP file in which one chunk has another checksum than its messages."""
    path = tmp_path / f"{request.param}.mcap"
    data = bytearray(converted(3.0, "a.mcap", raw=True, compression=request.param, chunk_bytes=1 << 17))
    places = [content for _, content in chunks_of(data)]
    assert len(places) > 2
    data[places[1] + 24] ^= 1
    path.write_bytes(data)
    return path


def words(line: str, path: Path, tmp_path: Path) -> list[str]:
    verb, *options = line.replace("OUT", str(tmp_path / f"out{path.suffix}")).split()
    if verb == "SQL":
        return ["sql", "SELECT count(*), sum(linear_acceleration.x) FROM imu", str(path)]
    return [verb, str(path), *options]


@pytest.mark.parametrize("line", COPYING)
def test_messages_of_a_chunk_with_a_wrong_checksum_are_copied_with_exit_code_3(
    line: str, mcap: Path, tmp_path: Path, run: Run
) -> None:
    done = run(*words(line, mcap, tmp_path))
    assert done.code == 3, done.err
    assert "of the log could not be read" in done.err


@pytest.mark.parametrize("line", READING)
def test_messages_of_a_compressed_chunk_with_a_wrong_checksum_are_read_with_exit_code_3(
    line: str, mcap: Path, tmp_path: Path, run: Run
) -> None:
    if mcap.stem == "none":
        pytest.skip("where only some bytes of a chunk are read, its checksum is not compared")
    assert run(*words(line, mcap, tmp_path)).code == 3


def test_a_slice_before_a_chunk_with_a_wrong_checksum_has_exit_code_0(
    mcap: Path, tmp_path: Path, run: Run
) -> None:
    with logreel.open(mcap) as log:
        start = log.start
        assert start is not None
    done = run("slice", mcap, "-t", "/imu", "-E", f"{start + 10**7}ns", "-o", tmp_path / "out.mcap")
    assert done.code == 0, done.err


def test_the_checksum_of_a_chunk_is_told_once_by_check(mcap: Path) -> None:
    (found,) = [one for one in logreel.check(mcap).findings if "checksum of a chunk" in one.text]
    assert found.severity == "error"
    with logreel.open(mcap) as log:
        logreel.sort(log, mcap.with_name("sorted.mcap"))
        logreel.slice(log, mcap.with_name("again.mcap"))
        assert [problem.code for problem in log.problems] == ["crc"]


@pytest.mark.parametrize("line", [one for one in COPYING if "recover" not in one])
def test_a_log_whose_checksum_is_wrong_is_copied_with_exit_code_3(
    line: str, tmp_path: Path, run: Run
) -> None:
    path = tmp_path / "drive.bddf"
    data = bytearray(converted(2.0, "a.bddf"))
    # The checksum at the end, not the messages, so that nothing else tells.
    data[-20] ^= 1
    path.write_bytes(data)
    done = run(*words(line, path, tmp_path))
    assert done.code == 3, done.err


def test_counts_of_damaged_chunks_in_a_query_are_told(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "drive.bag"
    data = bytearray(drive(3.0, compression="lz4"))
    at = data.index(b"op=\x05")
    data[at + 4000 : at + 4400] = b"\xff" * 400
    path.write_bytes(data)
    done = run("sql", "SELECT sum(messages) AS n FROM logreel.channels", path, "--json")
    assert done.code == 3
    assert "could not be read" in done.err
    assert [problem["code"] for problem in done.json["problems"]]
    assert run("sql", "SELECT log FROM logreel.logs", path).code == 0


def test_du_counts_what_is_left_of_a_damaged_chunk(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "rotten.mcap"
    data = bytearray(converted(3.0, "a.mcap", raw=True, compression="zstd"))
    _, content = next(chunks_of(data))
    data[content + 60 : content + 90] = b"\xff" * 30
    path.write_bytes(data)
    done = run("du", path)
    assert (done.code, "internal" in done.err) == (3, False), done.err


def test_messages_that_decode_to_other_sizes_are_left_out_of_a_conversion(tmp_path: Path, run: Run) -> None:
    first, path = tmp_path / "flight.ulg", tmp_path / "flight.mcap"
    from support.samples.ulog.builder import flight

    first.write_bytes(flight(2.0))
    logreel.convert(first, path, compression="none")
    with logreel.open(path) as log:
        ch = log["vehicle_attitude"]
        message = ch[5]
        due = len(ch)
        data = bytearray(path.read_bytes())
        place = message.offset
        assert place is not None
        payload = bytes(message.data)
    # A list of four numbers becomes one of three.
    at = data.index(payload, place - len(payload))
    packed = payload.index(b"\x10", 9)
    for size in (16, 32):
        if bytes([size]) in payload:
            packed = payload.index(bytes([size]))
            data[at + packed] -= 4 if size == 16 else 8
            break
    path.write_bytes(data)
    done = run("convert", path, tmp_path / "back.ulg")
    assert done.code == 3, done.err
    with logreel.open(tmp_path / "back.ulg") as new:
        assert len(new["vehicle_attitude"]) == due - 1
