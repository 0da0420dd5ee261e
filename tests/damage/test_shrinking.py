"""Files that shrink or are overwritten while they are mapped: an error that names the file, never SIGBUS."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

import logreel
from logreel.kernels import mapguard
from support.builders.sample_logs import short_flight
from support.harness.cli_runner import Spawn

#: `make shrink` sets 200.
RUNS = int(os.environ.get("LOGREEL_SHRINK", "20"))
HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(not mapguard.AVAILABLE, reason="the platform has no SIGBUS")


def test_threads_survive_maps_that_shrink(spawn: Spawn) -> None:
    done = spawn(HERE / "shrinking.py", str(RUNS), "1", imported=True)
    assert done.returncode == 0, done.stderr.decode()


@pytest.fixture
def flight(tmp_path: Path) -> Path:
    path = tmp_path / "flight.ulg"
    path.write_bytes(short_flight())
    return path


def test_every_door_of_a_log_raises_after_the_file_shrank(flight: Path) -> None:
    log = logreel.open(flight)
    topics = [name for name in log if len(log[name]) and not log[name].reserved]
    message = next(iter(log.messages()))
    os.truncate(flight, 64)
    doors = {
        "to_arrow": lambda: log[topics[0]].to_arrow(),
        "batches": lambda: list(log[topics[1]].batches(10)),
        "to_numpy": lambda: log[topics[2]].to_numpy(),
        "field": lambda: log[topics[3]][log[topics[3]].fields[0]],
        "message": lambda: log[topics[0]][-1],
        "messages": lambda: list(log.messages()),
        "sizes": lambda: log.index.sizes(log[topics[4]].number),
        "tables": log.tables,
        "text": lambda: log.text,
        "metadata": lambda: log.metadata,
        "parameters": lambda: log.parameters,
        "decode": message.decode,
        "slice": lambda: logreel.slice(log, flight.with_name("out.ulg")),
        "check": lambda: logreel.check(log),
        "convert": lambda: logreel.convert(log, f"{flight.parent}/out.csv/"),
        "check_unchanged": log.check_unchanged,
    }
    found = {}
    for name, door in doors.items():
        try:
            door()
        except logreel.FileChangedError as error:
            found[name] = error.path
    assert found == dict.fromkeys(doors, str(flight))
    assert [path.name for path in flight.parent.iterdir()] == ["flight.ulg"]


def test_a_copy_over_an_open_log_is_an_error(flight: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.ulg"
    other.write_bytes(short_flight()[::-1] + b"more")
    log = logreel.open(flight)
    shutil.copyfile(other, flight)
    with pytest.raises(logreel.FileChangedError, match="overwritten"):
        log.tables()


def test_a_log_that_is_touched_appended_to_or_renamed_stays_valid(flight: Path) -> None:
    log = logreel.open(flight)
    os.utime(flight)
    assert log.tables()
    with open(flight, "ab") as out:
        out.write(b"more")
    os.rename(flight, flight.with_name("renamed.ulg"))
    flight.write_bytes(b"another file")
    assert log.tables()


FOREIGN = """
import mmap, os, sys, tempfile
{before}
import logreel
log = logreel.open(sys.argv[1])
{after}
file = tempfile.TemporaryFile()
file.truncate(1 << 16)
data = mmap.mmap(file.fileno(), 1 << 16)
os.truncate(file.fileno(), 0)
print("reads", flush=True)
data[5000]
print("survived")
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("import faulthandler; faulthandler.enable()", ""),
        ("", "import faulthandler; faulthandler.enable()"),
        ("", "import faulthandler; faulthandler.enable(); again = logreel.open(sys.argv[1])"),
        ("import signal; signal.signal(signal.SIGBUS, lambda *_: None)", ""),
        ("import signal; signal.signal(signal.SIGBUS, signal.SIG_IGN)", ""),
    ],
    ids=["alone", "faulthandler before", "faulthandler after", "faulthandler between", "handler", "ignored"],
)
def test_a_foreign_fault_ends_the_process_by_the_same_signal(
    spawn: Spawn, flight: Path, before: str, after: str
) -> None:
    done = spawn("-c", FOREIGN.format(before=before, after=after), flight)
    assert done.returncode == -signal.SIGBUS, done
    assert done.stdout == b"reads\n"
    assert (b"Bus error" in done.stderr) == ("faulthandler" in before + after)


OWN = """
import os, sys
{before}
import logreel
log = logreel.open(sys.argv[1]{options})
{after}
os.truncate(sys.argv[1], 0)
try:
    log.source.data.sum()
    log.tables()
except logreel.FileChangedError as error:
    print(error.offset)
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("import faulthandler; faulthandler.enable()", ""),
        ("", "pid = os.fork()\nif pid: sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"),
        ("", "import signal; signal.signal(signal.SIGBUS, signal.SIG_DFL); b = logreel.open(sys.argv[1])"),
    ],
    ids=["alone", "faulthandler before", "child", "handler replaced"],
)
def test_an_own_fault_is_survived(spawn: Spawn, flight: Path, before: str, after: str) -> None:
    done = spawn("-c", OWN.format(before=before, after=after, options=""), flight)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"0\n", b"")


def test_without_guard_the_signal_is_left_alone(spawn: Spawn, flight: Path) -> None:
    done = spawn("-c", OWN.format(before="", after="", options=", guard=False"), flight)
    assert done.returncode == -signal.SIGBUS


def test_a_signal_that_is_sent_ends_the_process(spawn: Spawn, flight: Path) -> None:
    text = "import logreel, os, sys, signal; log = logreel.open(sys.argv[1]); os.kill(os.getpid(), signal.SIGBUS)"
    assert spawn("-c", text, flight).returncode == -signal.SIGBUS


def test_many_maps_are_watched_and_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(5000))
    from logreel.io.source import Source

    sources = [Source.open(path) for _ in range(700)]
    numbers = {one._map._number for one in sources}
    assert len(numbers) == 700
    sources.clear()
    again = Source.open(path)
    assert again._map._number <= min(numbers) + 700
    os.truncate(path, 0)
    assert int(again.data.sum()) == 0
    with pytest.raises(logreel.FileChangedError):
        again.check()


def test_bytes_that_a_caller_mapped_are_watched(tmp_path: Path) -> None:
    import mmap

    import numpy as np

    for open_map in (
        lambda path: memoryview(mmap.mmap(os.open(path, os.O_RDONLY), 0, access=mmap.ACCESS_READ)),
        lambda path: memoryview(np.memmap(path, np.uint8, "r")),
    ):
        path = tmp_path / "a.ulg"
        path.write_bytes(short_flight())
        log = logreel.open(open_map(path))
        os.truncate(path, 0)
        with pytest.raises(logreel.FileChangedError):
            log.tables()


VERBS = {
    "info": ["info", "LOG"],
    "info --json": ["info", "--json", "LOG"],
    "summary": ["summary", "LOG"],
    "health": ["health", "LOG"],
    "cat": ["cat", "LOG"],
    "cat ndjson": ["cat", "LOG", "--format", "ndjson"],
    "schema": ["schema", "LOG", "vehicle_attitude"],
    "params": ["params", "LOG"],
    "text": ["text", "LOG"],
    "attachments": ["attachments", "LOG"],
    "stats": ["stats", "--fields", "LOG"],
    "check": ["check", "LOG"],
    "diff": ["diff", "LOG", "LOG"],
    "sql": ["sql", "select count(*) from vehicle_attitude", "LOG"],
    "report": ["report", "LOG", "-o", "OUT.html"],
    "play": ["play", "LOG", "--rate", "1000000"],
    "convert mcap": ["convert", "LOG", "OUT.mcap"],
    "convert parquet": ["convert", "LOG", "OUT.parquet/"],
    "convert csv": ["convert", "LOG", "OUT.csv/"],
    "slice": ["slice", "LOG", "-o", "OUT.ulg"],
    "merge": ["merge", "LOG", "LOG", "-o", "OUT.mcap"],
    "sort": ["sort", "LOG", "-o", "OUT.ulg"],
    "split": ["split", "LOG", "--every", "1s", "-o", "OUT"],
    "recover": ["recover", "LOG", "-o", "OUT.ulg"],
    "index": ["index", "LOG"],
}


@pytest.mark.parametrize("moment", ["mapped", "opened"])
def test_a_verb_whose_log_shrinks_fails_with_a_sentence(spawn: Spawn, flight: Path, moment: str) -> None:
    work = {"moment": moment, "left": 5000, "folder": str(flight.parent), "log": str(flight)}
    commands = {name: words for name, words in VERBS.items() if name != "index" or moment == "mapped"}
    done = spawn(
        HERE / "shrink_while.py", imported=True, input=json.dumps({**work, "commands": commands}).encode()
    )
    assert done.returncode == 0, (done.returncode, done.stderr.decode())
    found = json.loads(done.stdout)
    assert set(found) == set(commands)
    for verb, one in found.items():
        assert one["code"] == 1, (verb, one)
        assert "flight.ulg: the file was truncated from" in one["text"], (verb, one)
        assert "Traceback" not in one["text"], (verb, one)
        assert one["files"] == ["flight.ulg"], (verb, "an output that is not complete has no name", one)


def test_a_pyramid_whose_file_shrinks_is_an_error_and_built_again(tmp_path: Path) -> None:
    from contextlib import nullcontext

    import numpy as np

    from logreel.meaning.columns import FieldColumn
    from logreel.meaning.pyramids import Pyramid

    path, place = tmp_path / "a.ulg", tmp_path / "cache" / "a.logreel-pyramid"
    path.write_bytes(short_flight())
    ch = logreel.open(path)["vehicle_attitude"]
    field = FieldColumn(ch, "q[0]")
    due = Pyramid.build(field, "key", lambda part: None, nullcontext, str(place)).column(field)
    edges = np.array([int(ch.times[0]), int(ch.times[-1])])
    loaded = Pyramid.load(field, "key", str(place))
    column = loaded.column(field)
    assert np.array_equal(column.extrema(0, len(column), edges)[1], due.extrema(0, len(due), edges)[1])
    assert column.is_whole
    os.truncate(place, 100)
    with pytest.raises(logreel.FileChangedError):
        column.search(edges)
    assert not column.is_whole
    assert Pyramid.load(field, "key", str(place)) is None


def test_a_sidecar_that_shrinks_is_an_error(flight: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from logreel.registry import index_cache

    # Smaller ones are read, so that nothing can happen to them.
    monkeypatch.setattr(index_cache, "MAPPED_BYTES", 1)
    side = index_cache.write(str(flight))
    log = logreel.open(flight)
    assert log.source.is_restored
    os.truncate(side, 100)
    with pytest.raises(logreel.FileChangedError, match="truncated") as caught:
        log.tables()
    assert caught.value.path == str(side)
    assert logreel.open(flight).tables()


def test_the_viewer_lives_on_after_a_log_shrank(tmp_path: Path) -> None:
    from support.harness.viewing import viewing

    one, two = tmp_path / "one.ulg", tmp_path / "two.ulg"
    one.write_bytes(short_flight())
    two.write_bytes(short_flight())
    with viewing(one, two) as page:
        assert page.get("text").status == 200
        os.truncate(one, 5000)
        assert page.get("array", topic="vehicle_attitude", field="q", at=10**9).status in (404, 409, 422)
        assert page.get("array", "1", topic="vehicle_attitude", field="q", at=10**9).status == 200


def test_the_service_lives_on_after_a_log_shrank(tmp_path: Path) -> None:
    from support.harness.serving import running

    one, two = tmp_path / "one.ulg", tmp_path / "two.ulg"
    one.write_bytes(short_flight())
    two.write_bytes(short_flight())
    with running(tmp_path) as client:
        assert client.slice("one.ulg", format="mcap").status == 200
        path = client.path("one.ulg", format="mcap")
        os.truncate(one, 5000)
        assert client.ask(path).status in (200, 404, 409, 422), "cut, it is another log"
        assert client.slice("two.ulg", format="mcap").status == 200
