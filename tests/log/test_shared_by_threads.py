"""Threads share one open log: each gets what one thread alone gets, also from what is made when it is first used.

LOGREEL_SOAK sets the number of rounds. All of it holds with a global lock, too; without one (a free-threaded Python)
threads meet far more often.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.io import source
from logreel.log.log import kept_property
from support.builders import growing_samples
from support.builders.sample_logs import damaged
from support.formats import builtin_formats, small_log

ROUNDS = int(os.environ.get("LOGREEL_SOAK", "1"))
THREADS = 4
MAX_CHANNELS = 4
#: Chunks that fit into this are few, so that threads drop and unpack them all the time.
NARROW = logreel.Limits(cache_bytes=1 << 16)

LOGS: dict[str, Callable[[], bytes]] = {
    **{name: partial(small_log, name) for name in builtin_formats()},
    "damaged ulog": damaged,
    **{
        name: growing_samples.SAMPLES[name][1]
        for name in ("mcap zstd", "mcap lz4", "bag 2.0 bz2", "bag 2.0 lz4", "bag 1.2", "bddf values")
    },
}
Question = Callable[[logreel.Log], Any]
Row = tuple[int, bytes]


@pytest.fixture(autouse=True)
def switching() -> Iterator[None]:
    """Let threads that have a global lock change places all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


@cache
def content(name: str) -> bytes:
    return LOGS[name]()


@contextmanager
def errors_as_answers(answers: dict[str, Any], key: str) -> Iterator[None]:
    try:
        yield
    except logreel.LogError as error:
        answers[key] = type(error)


def raw(value: Any) -> bytes:
    """Return what differs where a value of an array of objects does: an array as bytes, not as numbers in a text."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"{value.dtype.str}{value.shape}".encode() + value.tobytes()
    return repr(value).encode()


def digest(values: Any) -> str:
    array = np.ma.asarray(values)
    if array.dtype == object:
        data = b"".join(map(raw, array.tolist()))
    else:
        data = array.filled(0).tobytes() + np.ma.getmaskarray(array).tobytes()
    return f"{array.dtype}{array.shape}{hashlib.sha1(data).hexdigest()}"


def ends(table: Any) -> tuple[Any, ...]:
    """Return what a table is like, and its first and last rows; NaN equals NaN."""
    rows = [*table.slice(0, 5).to_pylist(), *table.slice(max(0, table.num_rows - 5)).to_pylist()]
    # The name of the log is in the metadata of the schema.
    return table.schema.to_string(show_schema_metadata=False), table.num_rows, repr(rows)


def numbers(topic: str, log: logreel.Log) -> Any:
    return {name: digest(values) for name, values in log[topic].to_numpy().items()}


def overview(topic: str, log: logreel.Log) -> Any:
    ch = log[topic]
    return (
        ch.start,
        ch.end,
        len(ch),
        ch.rate,
        ch.bytes,
        ch.time_label,
        ch.is_uniform,
        ch.fields,
        dict(ch.facts),
    )


def messages(topic: str, log: logreel.Log) -> Any:
    ch = log[topic]
    found = [(m.time, digest(np.frombuffer(m.data, np.uint8)), m.offset) for m in islice(ch, 10)]
    for m in islice(log.messages(topic), 3):
        found.append((m.time, repr(m.decode()), m.channel is ch))
    for row in (0, len(ch) - 1, len(ch) // 2) if len(ch) else ():
        found.append((ch[row].time, bytes(ch[row].data), repr(ch[row].decode())))
    return found


def parts(topic: str, log: logreel.Log) -> Any:
    ch = log[topic]
    return [[ends(batch) for batch in islice(ch.batches(7), 3)], ends(ch.to_arrow(ch.fields[:2]))]


OF_CHANNELS: dict[str, Callable[[str, logreel.Log], Any]] = {
    "table": lambda topic, log: ends(log[topic].to_arrow()),
    "numbers": numbers,
    "overview": overview,
    "messages": messages,
    "parts": parts,
    "one field": lambda topic, log: digest(log[topic][log[topic].fields[0]]),
}
OF_LOGS: dict[str, Question] = {
    "topics": lambda log: list(log),
    "text": lambda log: log.text,
    "parameters": lambda log: repr(dict(log.parameters)),
    "metadata": lambda log: repr(dict(log.metadata)),
    "attachments": lambda log: {name: each.read() for name, each in log.attachments.items()},
    "times": lambda log: (log.start, log.end, log.duration, log.utc_offset, log.utc_notes, log.version),
    "segments": lambda log: (log.segments, log.message_count),
    "first segment": lambda log: {topic: len(ch) for topic, ch in log.segment(1).items()},
    "match": lambda log: [ch.topic for ch in log.match("re:.*")],
    "tables": lambda log: {topic: ends(table) for topic, table in log.tables().items()},
    "in order": lambda log: [(m.time, m.channel.topic) for m in islice(log.messages(), 200)],
    "reversed": lambda log: [(m.time, m.channel.topic) for m in islice(log.messages(reverse=True), 50)],
    "actors": lambda log: {n: ends(actor.trajectory()) for n, actor in islice(log.actors.items(), 4)},
    "verify": lambda log: log.verify(),
    "repr": repr,
}


def answers(log: logreel.Log, questions: Sequence[tuple[str, Question]]) -> dict[str, Any]:
    """Return the answers to *questions*, asked in this order."""
    given: dict[str, Any] = {}
    for key, ask in questions:
        with errors_as_answers(given, key):
            given[key] = ask(log)
    return given


@cache
def expected(name: str) -> tuple[list[tuple[str, Question]], dict[str, Any], list[str]]:
    """Return questions, what one thread answers, and the Problems that it has seen then."""
    log = logreel.open(content(name))
    questions = list(OF_LOGS.items())
    random = Random(name)
    # Enough to meet, and a few that are empty; all of them would take minutes.
    for topic in random.sample(list(log), min(MAX_CHANNELS, len(log))):
        questions += [(f"{key} of {topic}", partial(ask, topic)) for key, ask in OF_CHANNELS.items()]
    return questions, answers(log, questions), told(log)


def told(log: logreel.Log) -> list[str]:
    return sorted(str(problem.as_dict()) for problem in log.problems)


def at_once(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Return the values of all calls, which begin at the same moment in a thread each."""
    gate, values = threading.Barrier(len(calls)), [None] * len(calls)
    errors = list[BaseException]()

    def work(n: int) -> None:
        gate.wait()
        try:
            values[n] = calls[n]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return values


def differing(given: dict[str, Any], due: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {key: (given.get(key), value) for key, value in due.items() if given.get(key) != value}


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        *((name, None) for name in LOGS),
        *((name, NARROW) for name in ("mcap", "mcap zstd", "rosbag", "bag 2.0 bz2")),
    ],
)
def test_threads_that_share_a_log_read_what_one_thread_reads(
    name: str, limits: logreel.Limits | None
) -> None:
    questions, due, problems = expected(name)
    for n in range(ROUNDS):
        random, log = Random(n), logreel.open(content(name), **({"limits": limits} if limits else {}))
        # In the same order in all threads, everything is first used by all at once; else, different things are.
        orders = [list(questions) for _ in range(THREADS)]
        for order in orders:
            Random(n if n % 2 else random.random()).shuffle(order)
        for given in at_once([partial(answers, log, order) for order in orders]):
            assert differing(given, due) == {}
        assert told(log) == problems


class Owner:
    """Stands for a Log; *meanwhile* is called while the value is computed."""

    def __init__(self, meanwhile: Callable[[Owner], None]) -> None:
        self.scan, self.meanwhile = object(), [meanwhile]

    @kept_property
    def value(self) -> object:
        scan = self.scan
        if self.meanwhile:
            self.meanwhile.pop()(self)
        return scan, object()


def test_the_value_that_is_kept_first_is_that_of_all_threads() -> None:
    others = list[object]()

    def read(owner: Owner) -> None:
        # A lock that the first thread holds would keep this one waiting.
        thread = threading.Thread(target=lambda: others.append(owner.value), daemon=True)
        thread.start()
        thread.join(60)

    owner = Owner(read)
    assert owner.value is owner.value is others[0]


def test_a_value_of_content_that_was_replaced_meanwhile_is_not_kept() -> None:
    owner = Owner(lambda owner: setattr(owner, "scan", "new"))
    assert owner.value[0] != "new"
    assert owner.value[0] == "new"


def first_used(log: logreel.Log, topic: str) -> tuple[Any, ...]:
    return log.channels, log[topic], log[topic].layout, log.text


@pytest.mark.parametrize("name", ["ulog", "rosbag", "mcap", "bddf"])
def test_what_is_made_once_is_the_same_object_in_all_threads(name: str) -> None:
    for _ in range(ROUNDS * 5):
        log = logreel.open(content(name))
        topic = next(topic for topic, ch in log.derive().items() if len(ch))
        seen = at_once([partial(first_used, log, topic)] * THREADS)
        assert all(one is other for values in seen for one, other in zip(values, seen[0], strict=True))
        assert next(log.messages(topic)).channel is seen[0][1]


@pytest.mark.parametrize("name", builtin_formats())
def test_threads_open_one_file_and_its_index(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGREEL_CACHE", str(tmp_path / "cache"))
    questions, due, _ = expected(name)
    # Names of files are no part of the answers.
    few = [question for question in questions if question[0] != "repr"][::5]
    for n in range(ROUNDS):
        path = tmp_path / f"{n}.log"
        path.write_bytes(content(name))
        for given in at_once([lambda path=path: answers(logreel.open(path), few)] * THREADS):
            assert differing(given, {key: due[key] for key, _ in few}) == {}


FRESH = """
import sys, threading
sys.setswitchinterval(1e-5)
import logreel
paths = sys.argv[1:]
gate, seen = threading.Barrier(len(paths)), [None] * len(paths)
def work(n):
    gate.wait()
    log = logreel.open(paths[n])
    rows = {topic: (ch.to_arrow().num_rows, len(ch.to_numpy()), len(list(ch))) for topic, ch in log.items()}
    seen[n] = rows, len(log.text), len(log.parameters), len(log.problems)
threads = [threading.Thread(target=work, args=(n,)) for n in range(len(paths))]
for thread in threads: thread.start()
for thread in threads: thread.join()
half = len(paths) // 2
assert None not in seen and seen[:half] == seen[half:], seen
if hasattr(sys, "_is_gil_enabled"):
    print("gil", sys._is_gil_enabled())
"""


def test_modules_are_first_imported_by_threads_at_once(tmp_path: Path) -> None:
    paths = []
    for name in builtin_formats():
        (tmp_path / name).write_bytes(content(name))
        paths.append(str(tmp_path / name))
    for _ in range(-(-ROUNDS // 4)):
        done = subprocess.run(
            [sys.executable, "-c", FRESH, *paths, *paths],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "LOGREEL_CACHE": "off"},
        )
        assert (done.returncode, done.stderr) == (0, "")
        # Neither a kernel nor a library that reading needs switches the lock on.
        if sysconfig.get_config_var("Py_GIL_DISABLED") and os.environ.get("PYTHON_GIL") != "1":
            assert done.stdout.split() == ["gil", "False"]


@pytest.mark.parametrize("name", ["ulog", "bag 2.0 lz4", "mcap zstd"])
def test_without_a_lock_every_message_has_a_view_of_its_own(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    due = [
        (m.time, bytes(m.data), m.data.readonly) for m in islice(logreel.open(content(name)).messages(), 200)
    ]
    monkeypatch.setattr(source, "SHARES_VIEWS", False)
    log = logreel.open(content(name))
    found = list(islice(log.messages(), 200))
    assert [(m.time, bytes(m.data), m.data.readonly) for m in found] == due
    # Two slices of one memoryview have the same owner.
    assert len({id(m.data.obj) for m in found}) == len(found)
    assert log.source.view is not log.source.view


class Followed:
    """A file that grows by fortieths while a thread follows it and others read the same Log."""

    def __init__(self, path: Path, name: str) -> None:
        file_format, build = growing_samples.SAMPLES[name]
        self.path, self.data = path, build()
        self.due = rows_of(logreel.open(self.data, format=file_format))
        self.begun, self.step = len(self.data) // 8, max(1, len(self.data) // 40)
        path.write_bytes(self.data[: self.begun])
        self.log = logreel.open(path, format=file_format)
        self.seen: dict[str, list[Row]] = {topic: [] for topic in self.due}
        self.stop = threading.Event()

    def follow(self) -> None:
        for m in self.log.follow(stop=self.stop, poll=0.0005):
            self.seen[m.channel.topic].append((m.time, bytes(m.data)))

    def grow(self) -> None:
        try:
            for at in range(self.begun, len(self.data), self.step):
                with self.path.open("ab") as out:
                    out.write(self.data[at : at + self.step])
                self.stop.wait(0.003)
            for _ in range(1000):
                if sum(map(len, self.seen.values())) == sum(map(len, self.due.values())):
                    break
                self.stop.wait(0.01)
        finally:
            self.stop.set()

    def read(self) -> None:
        log = self.log
        while True:
            is_last = self.stop.is_set()
            for topic, ch in list(log.items()):
                if not ch.reserved:
                    self.read_channel(ch, self.due[topic])
            assert repr(log)
            assert log.start is None or log.end is None or log.start <= log.end
            for values in (log.problems, log.text, log.segments, dict(log.metadata)):
                assert values is not None
            if is_last:
                break

    def read_channel(self, ch: logreel.Channel, due: list[Row]) -> None:
        """Compare what a channel has now with the first messages of all."""
        assert ch.log is self.log
        assert log_of(ch) is self.log
        got = [(m.time, bytes(m.data)) for m in ch]
        assert got == due[: len(got)]
        times = ch.times.tolist()
        assert times == [time for time, _ in due[: len(times)]]
        assert ch.start in (None, due[0][0])
        if len(ch):
            assert (ch[0].time, bytes(ch[0].data)) == due[0]
            columns = ch.to_numpy()
            assert {len(column) for column in columns.values()} == {len(columns["time"])}
            assert ch.to_arrow().num_rows >= len(times)


def log_of(ch: logreel.Channel) -> logreel.Log:
    return next(iter(ch)).channel.log if len(ch) else ch.log


def rows_of(log: logreel.Log) -> dict[str, list[Row]]:
    return {topic: [(m.time, bytes(m.data)) for m in ch] for topic, ch in log.items() if not ch.reserved}


@pytest.mark.parametrize("name", ["mcap long", "bddf long", "bag long", "mcap zstd", "bag 2.0 lz4"])
def test_others_read_a_log_that_one_thread_follows(name: str, tmp_path: Path) -> None:
    for n in range(ROUNDS):
        case = Followed(tmp_path / f"{n}.log", name)
        at_once([case.follow, case.grow, case.read, case.read])
        assert case.seen == case.due
        case.log.refresh()
        assert rows_of(case.log) == case.due
        for topic, ch in case.log.items():
            if not ch.reserved and len(ch):
                # Nothing is kept of an earlier state.
                assert (ch.start, ch.end) == (case.due[topic][0][0], case.due[topic][-1][0])
                assert len(ch.to_arrow()) == len(ch)
        case.log.close()
