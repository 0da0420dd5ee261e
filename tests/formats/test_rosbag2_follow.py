"""Databases of ROS 2 that SQLite and logreel are writing: each message is yielded once, with all parts in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.registry.open_growing import open_growing
from support.samples.rosbag2.builder import START, TOPICS, Message, add, text, walk, write

#: Seconds for which messages are waited for at most.
PATIENCE = 60
Row = tuple[str, int, bytes]


def rows(messages: Iterable[Message]) -> list[Row]:
    return [(TOPICS[topic - 1].name, time, data) for topic, time, data in messages]


class Follower:
    """Follows a log in a thread; *got*: its messages so far."""

    def __init__(self, log: Any) -> None:
        self.got, self._stop = list[Row](), threading.Event()
        self._log, self._thread = log, threading.Thread(target=self._run)

    def _run(self) -> None:
        for m in self._log.follow(stop=self._stop):
            self.got.append((m.channel.topic, m.time, bytes(m.data)))

    def wait(self, count: int) -> None:
        """Wait until there are *count* messages."""
        end = time.monotonic() + PATIENCE
        while len(self.got) < count and time.monotonic() < end:
            time.sleep(0.01)

    def __enter__(self) -> Follower:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


class Recorder:
    """A process that writes messages by SQLite; only others than itself see the locks of a process."""

    CODE = """
import json, sys
from pathlib import Path
from support.samples.rosbag2.builder import add, write
path, mode = sys.argv[1:]
database = write(Path(path), [])
database.execute(f"PRAGMA journal_mode={mode}")
database.execute("PRAGMA wal_autocheckpoint=40")
print("begun", flush=True)
for line in sys.stdin:
    database.execute("BEGIN")
    add(database, [(topic, time, bytes.fromhex(data)) for topic, time, data in json.loads(line)])
    database.execute("COMMIT")
    print("put", flush=True)
database.close()
"""

    def __init__(self, path: Path, mode: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", self.CODE, str(path), mode],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._wait("begun")

    def _wait(self, word: str) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == f"{word}\n"

    def put(self, messages: Iterable[Message]) -> None:
        """Write messages as one transaction."""
        assert self._process.stdin is not None
        lines = [(topic, time, bytes(data).hex()) for topic, time, data in messages]
        self._process.stdin.write(f"{json.dumps(lines)}\n")
        self._process.stdin.flush()
        self._wait("put")

    def close(self) -> None:
        """Close the database."""
        self._process.communicate()
        assert self._process.returncode == 0


#: Messages that fit into pages that are there, and large ones.
SIZES: dict[str, Callable[[], list[Message]]] = {
    "small": lambda: [(1, START + n, text(str(n))) for n in range(300)],
    "large": lambda: walk(300, 9000),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", ["MEMORY", "WAL", "DELETE"])
def test_what_sqlite_commits_is_yielded_once(tmp_path: Path, mode: str, size: str) -> None:
    """Also messages for which the file gets no byte more, those in the write-ahead log, and after its checkpoints."""
    messages, path = SIZES[size](), tmp_path / "a.db3"
    database = Recorder(path, mode)
    with logreel.open(path) as log, Follower(log) as follower:
        for lo in range(0, len(messages), 7):
            database.put(messages[lo : lo + 7])
            if lo < 100:
                # In step, so that each commit is a look of its own.
                follower.wait(min(lo + 7, len(messages)))
                assert follower.got == rows(messages)[: lo + 7]
        follower.wait(len(messages))
        database.close()
        time.sleep(0.3)
    assert follower.got == rows(messages)
    log = logreel.open(path)
    assert (log.message_count, log.problems) == (len(messages), ())


def test_a_journal_that_comes_and_goes_never_stops_an_open(tmp_path: Path) -> None:
    """SQLite removes it with each transaction, also between two looks at it."""
    path, over = tmp_path / "a.db3", threading.Event()
    write(path, walk(3, 10)).close()

    def transactions() -> None:
        journal = tmp_path / "a.db3-journal"
        while not over.is_set():
            journal.write_bytes(b"journal")
            journal.unlink()

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(transactions)
        try:
            for _ in range(300):
                with logreel.open(path) as log:
                    assert log.message_count == 3
        finally:
            over.set()
        writing.result()


def test_a_transaction_that_is_being_written_is_waited_for(tmp_path: Path) -> None:
    """Pages come one after another; what of them is there is neither yielded nor a problem."""
    path, source = tmp_path / "a.db3", tmp_path / "source.db3"
    database = write(source, walk(30, 6000))
    before = source.read_bytes()
    add(database, [(topic, time + 10**12, data) for topic, time, data in walk(60, 6000)])
    database.commit()
    database.close()
    after = source.read_bytes()
    path.write_bytes(before)
    log = open_growing(path)
    assert log is not None
    with path.open("r+b") as file:
        for at in range(0, len(after), 4096):
            file.seek(at)
            file.write(after[at : at + 4096])
            file.flush()
            log.refresh()
            assert log.message_count == (30 if at + 4096 < len(after) else 90)
            assert log.problems == ()


def test_a_folder_is_followed_part_after_part(tmp_path: Path) -> None:
    folder, messages = tmp_path / "drive", walk(90, 3000)
    folder.mkdir()
    database = Recorder(folder / "drive_0.db3", "WAL")
    database.put(messages[:10])
    log = open_growing(folder)
    assert log is not None
    with Follower(log) as follower:
        for part in range(3):
            for lo in range(30 * part + 10 * (part == 0), 30 * part + 30, 10):
                database.put(messages[lo : lo + 10])
                time.sleep(0.05)
            database.close()
            if part < 2:
                database = Recorder(folder / f"drive_{part + 1}.db3", "WAL")
        follower.wait(90)
    assert follower.got == rows(messages)
    assert Path(log.name).name == "drive_2.db3"


def test_a_folder_that_logreel_records_is_followed(tmp_path: Path) -> None:
    follower: Follower | None = None

    def lines() -> Iterable[str]:
        nonlocal follower
        for n in range(40):
            line = {"topic": "/count", "time_ns": START + n * 10**9, "data": {"data": n}}
            yield json.dumps(line)
            if n == 5:
                log = open_growing(tmp_path / "drive")
                assert log is not None
                assert Path(log.name).name == "drive_0.db3"
                follower = Follower(log).__enter__()
            # Longer than messages may stay in memory: the file has to be there before the sixth one.
            time.sleep(0.02)

    logreel.record(lines(), f"{tmp_path}/drive/", split_duration="8s", ahead=0, flush_every=0.01)
    assert follower is not None
    follower.wait(40)
    follower.__exit__()
    assert [time for _, time, _ in follower.got] == [START + n * 10**9 for n in range(40)]
    assert len(logreel.open(tmp_path / "drive").parts) == 5


def test_a_folder_of_mcap_is_followed_part_after_part(tmp_path: Path) -> None:
    """Files grow byte by byte, as ``ros2 bag record -s mcap`` writes them: there is no summary before their end."""
    folder, messages = tmp_path / "drive", walk(90, 300)
    folder.mkdir()
    contents = list[bytes]()
    for part in range(3):
        with logreel.create(tmp_path / "part.mcap", profile="ros2", chunk_bytes=500, force=True) as w:
            numbers = [
                w.add_channel(topic.name, logreel.Schema(topic.type, "ros2msg", topic.definition))
                for topic in TOPICS
            ]
            for topic, at, data in messages[30 * part : 30 * part + 30]:
                w.write(numbers[topic - 1], at, data)
        contents.append((tmp_path / "part.mcap").read_bytes())
    (folder / "drive_0.mcap").write_bytes(contents[0][:2000])
    log = open_growing(folder)
    assert log is not None
    with Follower(log) as follower:
        for part, content in enumerate(contents):
            with (folder / f"drive_{part}.mcap").open("ab") as file:
                for lo in range(file.tell(), len(content), 1500):
                    file.write(content[lo : lo + 1500])
                    file.flush()
                    time.sleep(0.01)
        follower.wait(90)
    assert follower.got == rows(messages)
    assert Path(log.name).name == "drive_2.mcap"
