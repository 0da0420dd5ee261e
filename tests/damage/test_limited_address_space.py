"""Queries in a process whose address space is limited, as by ``ulimit -v``, end with an answer or a message.

DuckDB's threads end the process where they cannot allocate; Arrow waits forever for a thread that cannot start.
"""

from __future__ import annotations

import _thread
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from harness import SANITIZED
from logreel.fleet import ingest
from logreel.io import arrays as thread_room
from logreel.ops.query.topic_table import filter_rows
from support.harness.cli_runner import environment
from support.samples.ulog.builder import flight

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or SANITIZED, reason="needs /proc, and no sanitizer in the process"
)

#: Limits the address space to what is used and so many MiB.
LIMIT = """
import os, resource, sys
def limit(room):
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (room << 20),) * 2)
def threads():
    return len(os.listdir("/proc/self/task"))
"""
#: Runs command lines in forks, each in its own limit; what one needs is imported once.
COMMANDS = """
import json, signal
import duckdb, pyarrow.dataset, pyarrow.parquet, logreel
from logreel.cli import main
for line in sys.stdin:
    room, words, *outputs = json.loads(line)
    child = os.fork()
    if not child:
        for number, path in enumerate(outputs, 1):
            os.dup2(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), number)
        # Arrow may wait forever.
        signal.alarm(60)
        limit(room)
        code = main(words)
        sys.stdout.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
#: Runs a command line in a limit of so many MiB.
Limited = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limited]:
    folder = tmp_path_factory.mktemp("limited")
    outputs = [folder / "out", folder / "err"]
    command = [sys.executable, "-c", LIMIT + COMMANDS]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment()) as server:
        assert server.stdin is not None
        assert server.stdout is not None

        def run(room: int, *words: object) -> subprocess.CompletedProcess[str]:
            print(json.dumps([room, [*map(str, words)], *map(str, outputs)]), file=server.stdin, flush=True)
            code = int(server.stdout.readline())  # type: ignore[union-attr]
            return subprocess.CompletedProcess(words, code, *(path.read_text() for path in outputs))

        yield run


def python(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", LIMIT + code]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=60)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    (folder / "a.ulg").write_bytes(flight(5.0))
    ingest(folder / "a.ulg", folder / "fleet")
    return folder


@pytest.mark.parametrize("room", [8, 20, 40, 180, 400])
def test_a_query_of_a_fleet_ends(limited: Limited, fleet: Path, room: int) -> None:
    """Before: waited forever at 16 MiB, ended by signal 11 at most limits up to 600 MiB."""
    query = "SELECT count(*) AS n FROM battery_status"
    done = limited(room, "fleet", "query", query, fleet / "fleet", "--format", "ndjson")
    if done.returncode == 0:
        assert '"n":' in done.stdout
    else:
        assert done.returncode == 1, (done.returncode, done.stderr)
        assert "memory" in done.stderr
        assert "internal error" not in done.stderr
    assert done.returncode == 0 or room < 400


@pytest.mark.parametrize("room", [8, 20, 40, 180, 400])
@pytest.mark.parametrize(
    "arguments",
    [
        ["sql", "SELECT count(*) FROM battery_status WHERE time_ns > 0", "a.ulg"],
        ["cat", "a.ulg", "--where", "battery_status.voltage_v > 0", "-n", "3"],
    ],
)
def test_a_query_of_a_log_ends(limited: Limited, fleet: Path, arguments: list[str], room: int) -> None:
    done = limited(room, *(fleet / "a.ulg" if word == "a.ulg" else word for word in arguments))
    assert done.returncode in (0, 1), (done.returncode, done.stderr)
    assert done.returncode == 0 or ("memory" in done.stderr and "internal error" not in done.stderr)
    assert done.returncode == 0 or room < 400


def test_duckdb_has_no_threads_of_its_own_in_a_limited_process() -> None:
    code = """
from logreel.ops.query.sql import connect, import_duckdb
limit(1 << 12)
before = threads()
con = connect(import_duckdb())
print(con.sql("SELECT sum(n) FROM range(100000) AS one(n)").fetchall(), threads() - before)
"""
    assert python(code).stdout == "[(4999950000,)] 0\n"


def test_arrow_has_one_thread_of_each_kind_in_a_limited_process() -> None:
    code = """
import pyarrow
from logreel.io.arrays import check_arrow_threads
limit(1 << 12)
check_arrow_threads()
print(pyarrow.cpu_count(), pyarrow.io_thread_count())
limit(100)
try:
    check_arrow_threads()
except MemoryError as error:
    print(error)
"""
    assert python(code).stdout == "1 1\nless than 160 MiB of address space are left\n"


def test_threads_that_are_refused_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a limit of the processes in a container."""
    before = pa.cpu_count(), pa.io_thread_count()
    thread_room.check_arrow_threads()
    assert (pa.cpu_count(), pa.io_thread_count()) == before
    start, started = _thread.start_new_thread, []

    def some(*arguments: object) -> int:
        if len(started) == 3:
            raise RuntimeError("can't start new thread")
        started.append(1)
        return start(*arguments)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(_thread, "start_new_thread", some)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        thread_room.check_arrow_threads()


def test_threads_that_die_at_once_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_thread, "start_new_thread", lambda *_: 1)
    monkeypatch.setattr(thread_room, "PATIENCE", 0.01)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        thread_room.check_arrow_threads()


@pytest.mark.parametrize(
    "condition",
    [
        pc.field("a") > 2,
        pc.field("b") == "x",
        pc.field("a").is_null(),
        (pc.field("a") > 1) & (pc.field("b") != "y"),
    ],
)
def test_rows_are_filtered_as_by_arrow(condition: pc.Expression) -> None:
    table = pa.table({"a": [1, 2, None, 4, 5], "b": ["x", None, "y", "x", "y"]})
    both = pa.concat_tables([table, table])
    assert filter_rows(both, condition).equals(both.filter(condition))
    assert filter_rows(both.slice(0, 0), condition).schema == table.schema


def test_a_condition_that_does_not_fit_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid):
        filter_rows(pa.table({"a": [1]}), pc.field("z") > 1)
