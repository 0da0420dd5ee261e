"""Plans: how many logs are cut by their index into tasks of bounded size, as plain data, and what is read of them."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypedDict, Unpack

import numpy as np

from logreel.errors import LogError, NotFoundError, TopicError, UsageError
from logreel.fleet.source_files import (
    Fingerprint,
    content_digest,
    error_text,
    fingerprint,
    is_other_file,
    open_part,
    source_paths,
)
from logreel.index.block_table import TIME_MIN
from logreel.index.channel_index import TIMES_AT_ONCE
from logreel.index.gather import Rows
from logreel.io.arrays import I64
from logreel.io.source import is_url
from logreel.log.scan import Brief
from logreel.log.times import stored_times, time_ns
from logreel.log.topic_match import check_pattern, listed
from logreel.ops.query.windows import check_conditions, windows_in
from logreel.ops.selection import Around, check_keywords, keywords
from logreel.schemas.catalogue import data_folder

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.fleet.task_reader import TaskReader
    from logreel.fleet.topic_schema import TopicSchema
    from logreel.io.source import Definitions
    from logreel.log.log import Channel, Log
    from logreel.log.times import Time


#: What is done with an open log and the names of channels.
Look = Callable[["Log", Iterable[str]], None]


@dataclass(frozen=True, slots=True)
class LogWindow:
    """Some channels of a log in a window of time (ns of its clock, half-open), and what the index says they hold."""

    topics: tuple[str, ...]
    start: int | None
    end: int | None
    bytes: int
    messages: int


@dataclass(frozen=True, slots=True)
class Cut:
    """The windows of one log; none if it cannot be opened, for which *error* is the reason, or if nothing is wanted."""

    fingerprint: Fingerprint | None
    windows: tuple[LogWindow, ...]
    error: str = ""


class _Load(NamedTuple):
    """A channel with the messages of the interval: how many, and their payload bytes."""

    ch: Channel
    messages: int
    bytes: int


def cut_log(path: str, options: PlanOptions, passing: Collection[int] = (), look: Look | None = None) -> Cut:
    """Return the windows of about ``options.target_bytes`` of the log at *path*; one if it is downloaded as a whole.

    passing  error numbers of faults that may pass, for which OSError is raised, and also MemoryError if there are any;
             all else that is wrong with the file is in the result
    look     called with the log, while it is open, and the topics of its windows
    """
    mark = None
    try:
        mark = fingerprint(path)
        with open_part(path, options.definitions, options.types) as log:
            try:
                first, last = _interval(log, options)
                channels = _chosen(log, options.topics)
            except UsageError as error:
                return Cut(mark, (), error.text)
            # Each task would download all of it again.
            is_downloaded = is_url(path) and not log.index.reads_in_ranges
            target = sys.maxsize if is_downloaded else options.target_bytes
            windows: list[LogWindow] = []
            for start, end in _spans(log, options, first, last):
                loads = [_load(log, ch, start, end) for ch in channels]
                if start is not None or end is not None:
                    loads = [load for load in loads if load.messages]
                windows += _log_windows(log, loads, start, end, target)
            cut = Cut(mark, tuple(windows))
            if look is not None:
                look(log, dict.fromkeys(topic for window in cut.windows for topic in window.topics))
            return cut
    except (LogError, OSError, MemoryError) as error:
        # Memory that ends says nothing about the log.
        if (isinstance(error, OSError) and error.errno in passing) or (
            passing and isinstance(error, MemoryError)
        ):
            raise
        return Cut(mark, (), error_text(error))


def _spans(
    log: Log, options: PlanOptions, first: int | None, last: int | None
) -> Iterable[tuple[int | None, int | None]]:
    """Return the intervals that are read: all between *first* and *last*, or the windows in it.

    A log without the topic or field of a condition has no windows, as one in which it never begins to hold.
    """
    if not options.conditions:
        return [(first, last)]
    around = Around(options.conditions, *options.lengths)
    try:
        return [(window.start, window.end) for window in windows_in(log, around, (first, last))]
    except NotFoundError:
        return []


def _interval(log: Log, options: PlanOptions) -> tuple[int | None, int | None]:
    """Return the interval in ns of the clock of *log*, empty where the end comes before the start in a short log.

    Raises UsageError for wall-clock times if the log does not tell how its clock relates to UTC.
    """
    if log.start is None:
        return None, None
    first, last = (None if t is None else time_ns(t, log) for t in (options.start, options.end))
    return first, last if first is None or last is None else max(first, last)


def _chosen(log: Log, topics: Sequence[str] | None) -> list[Channel]:
    """Return the channels that any of *topics* selects, in file order; a log may have none of some."""
    matches: dict[str, Channel] = {}
    for topic in [None] if topics is None else topics:
        with suppress(TopicError):
            matches |= {ch.topic: ch for ch in log.match(topic)}
    return [ch for name, ch in log.channels.items() if name in matches]


def _load(log: Log, ch: Channel, first: int | None, last: int | None) -> _Load:
    """Return how much of a channel lies in the interval."""
    count = len(ch)
    size = ch.bytes if log.index.sizes_are_cheap else None
    if size is None:
        # Sizes of compressed messages are known only after decompression.
        size = log.size * count // max(1, sum(map(len, log.channels.values())))
    if first is None and last is None:
        return _Load(ch, count, size)
    rows: Any = log.index.rows_between(ch.number, first, last, keep=False)
    inside = len(range(*rows.indices(count))) if isinstance(rows, slice) else len(rows)
    return _Load(ch, inside, size * inside // max(1, count))


def _log_windows(
    log: Log, loads: list[_Load], first: int | None, last: int | None, target: int
) -> list[LogWindow]:
    """Return large channels divided by time, and groups of small ones, in order of the first channel of each."""
    windows: list[LogWindow] = []
    group: list[_Load] = []

    def close() -> None:
        if group:
            names = tuple(load.ch.topic for load in group)
            total = sum(load.bytes for load in group), sum(load.messages for load in group)
            windows.append(LogWindow(names, first, last, *total))
            group.clear()

    for load in loads:
        if load.bytes > target and load.messages > 1:
            close()
            windows += _windows(log, load, first, last, target)
            continue
        if sum(load_of_channel.bytes for load_of_channel in group) + load.bytes > target:
            close()
        group.append(load)
    close()
    return windows


def _windows(log: Log, load: _Load, first: int | None, last: int | None, target: int) -> list[LogWindow]:
    """Return windows of one channel with about equal numbers of messages.

    The first and the last window have the bounds of the interval, so that together they hold each of its messages
    once, in any order of times.
    """
    ch = load.ch
    count = min(-(-load.bytes // target), load.messages)
    at = np.arange(1, count, dtype=np.int64) * load.messages // count
    rows = log.index.rows_between(ch.number, first, last, keep=False)
    earliest, sample = _ordered_times(log, ch, rows, at)
    edges = [int(t) for t in np.unique(sample) if t > earliest]
    # Numbers of messages before each edge.
    before = np.zeros(len(edges), np.int64)
    for times in _times_of(log, ch, rows):
        before += np.sort(times).searchsorted(edges)
    bounds = [first, *edges, last]
    places = [0, *before.tolist(), load.messages]
    return [
        LogWindow((ch.topic,), bounds[n], bounds[n + 1], load.bytes * m // max(1, load.messages), m)
        for n, m in enumerate(np.diff(places).tolist())
    ]


def _times_of(log: Log, ch: Channel, rows: Rows) -> Iterator[I64]:
    """Yield int64[k]: the times of messages at *rows*, TIMES_AT_ONCE at most."""
    first, last = (rows.start, rows.stop) if isinstance(rows, slice) else (0, len(rows))
    for lo in range(first, last, TIMES_AT_ONCE):
        hi = min(lo + TIMES_AT_ONCE, last)
        part = np.arange(lo, hi, dtype=np.int64) if isinstance(rows, slice) else rows[lo:hi]
        yield log.index.times_at(ch.number, part)


def _ordered_times(log: Log, ch: Channel, rows: Rows, at: I64) -> tuple[int, I64]:
    """Return the earliest time of the messages at *rows*, and int64[k]: those at places *at* in the order of time.

    Only if times go back, all of them are in memory at once.
    """
    done, parts, firsts, latest = 0, list[I64](), list[int](), TIME_MIN
    for times in _times_of(log, ch, rows):
        if int(times[0]) < latest or np.any(times[1:] < times[:-1]):
            ordered = np.sort(np.concatenate(list(_times_of(log, ch, rows))))
            return int(ordered[0]), ordered[at]
        parts.append(times[at[(at >= done) & (at < done + len(times))] - done])
        firsts.append(int(times[0]))
        done, latest = done + len(times), int(times[-1])
    return firsts[0], np.concatenate(parts)


#: Units of the columns that are timestamps.
UNITS = ("us", "ns")
#: Payload bytes of a task, unless chosen.
TARGET_BYTES = 256 << 20


class ReadOptions(TypedDict, total=False):
    """What is read of many logs, as keyword arguments; see ``plan``."""

    topics: str | Iterable[str] | None
    fields: str | Iterable[str] | None
    start: Time | None
    end: Time | None
    around: Around | str | None
    target_bytes: int
    definitions: Definitions


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What is read of each log.

    topics, fields  names and patterns of channels, and paths of fields; None: all
    start, end   times that are relative to each log, or not; int: ns of its clock; None: no bound
    conditions   of windows, and *lengths* before, after and to debounce in ns, as of an Around; empty: all
    target_bytes  payload bytes of a task
    definitions, types  as in a Task
    decrypt      True: what is in encrypted logs may be written
    timestamps   unit of the columns that are timestamps, as of ``ingest``
    """

    topics: tuple[str, ...] | None = None
    fields: tuple[str, ...] | None = None
    start: int | str | None = None
    end: int | str | None = None
    conditions: tuple[str, ...] = ()
    lengths: tuple[int, ...] = ()
    target_bytes: int = TARGET_BYTES
    definitions: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    decrypt: bool = False
    timestamps: str = "ns"

    @classmethod
    def of(cls, options: ReadOptions, decrypt: bool = False, timestamps: str = "ns") -> Self:
        """Return the *options* that users give, checked, and those of ``ingest``.

        Raises UsageError for a size below 1, a time, a pattern or a condition that cannot be read, and an end before
        the start; LogError for definitions that do not exist.
        """
        topics, fields = options.get("topics"), options.get("fields")
        target_bytes = options.get("target_bytes", TARGET_BYTES)
        if timestamps not in UNITS:
            raise UsageError(f"timestamps are in {' or '.join(UNITS)}, not {timestamps!r}")
        if target_bytes < 1:
            raise UsageError(f"a task has 1 byte or more, not {target_bytes}")
        for pattern in () if topics is None else listed(topics):
            check_pattern(pattern)
        first, last = stored_times(options.get("start"), options.get("end"))
        paths, types = _definitions(options.get("definitions", ()))
        around = options.get("around")
        windows = None if around is None else Around.of(around)
        if windows is not None:
            check_conditions(windows)
        return cls(
            None if topics is None else tuple(listed(topics)),
            None if fields is None else tuple(listed(fields)),
            first,
            last,
            () if windows is None else windows.texts,
            () if windows is None else windows.lengths,
            target_bytes,
            paths,
            types,
            decrypt,
            timestamps,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the options as JSON data."""
        data = asdict(self)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in data.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the options of ``as_dict``."""
        values: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in data.items()}
        return cls(**values)

    @property
    def choice(self) -> dict[str, Any]:
        """The options, as JSON data, that all logs of a dataset share: all but the definitions."""
        data = self.as_dict()
        # Datasets of all messages are those of versions that had no windows.
        windows = ("conditions", "lengths") if self.conditions else ()
        names = ("topics", "fields", "start", "end", "target_bytes", "timestamps", *windows)
        return {name: data[name] for name in names}

    def definitions_digest(self) -> str:
        """Return a digest of all definitions that are not in logs: those given, and those of the user."""
        digest = hashlib.blake2b(digest_size=12)
        own = data_folder()
        roots = [*self.definitions, *([] if own is None else [os.fspath(own / "definitions")])]
        for root in roots:
            for path in _files(root):
                name = os.path.relpath(path, root)
                digest.update(f"{name}\0{content_digest(path)}\0".encode("utf-8", "surrogateescape"))
        digest.update(
            "\0".join([*filter(str.isidentifier, self.definitions), *self.types]).encode(
                "utf-8", "surrogateescape"
            )
        )
        return digest.hexdigest()


def _definitions(definitions: Definitions) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return absolute paths, and types as ``TOPIC=TYPE``."""
    several = [definitions] if isinstance(definitions, str | os.PathLike | Mapping) else list(definitions)
    paths, types = list[str](), dict[str, str]()
    for source in several:
        if isinstance(source, Mapping):
            types |= source
            continue
        name = os.fspath(source)
        if not os.path.exists(source):
            if all(part.isidentifier() for part in name.split(".")):
                # An importable module.
                paths.append(name)
                continue
            raise LogError("there are no definitions: no such file, folder or module", path=name)
        paths.append(os.path.abspath(source))
    return tuple(dict.fromkeys(paths)), tuple(
        f"{topic}={name_of_type}" for topic, name_of_type in sorted(types.items())
    )


def _files(root: str) -> Iterator[str]:
    """Yield a file, or the regular files in and below a folder that are not hidden, sorted."""
    if os.path.isfile(root):
        yield root
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name[:1] != ".")
        for name in sorted(files):
            path = Path(folder, name)
            if name[:1] != "." and path.is_file():
                yield os.fspath(path)


#: Version of the JSON and Parquet forms of a plan.
VERSION = 1
_KEY = b"logreel_plan"


@dataclass(frozen=True, slots=True, repr=False)
class Task(Brief):
    """A part of a log that is read at once: some topics, a window of time.

    path         absolute path of the log
    fingerprint  of the file when the plan was made; None if it could not be looked at
    number, of   number of the task among the tasks of its log, and how many these are
    topics       names of the channels; empty for a log that cannot be read
    fields       paths of the fields; None: all
    start, end   ns of the log's clock, half-open; None: no bound
    bytes, messages  payload bytes and messages, estimated from the index
    error        why the log cannot be read; empty if it can
    definitions  absolute paths of message definitions, for logs without them; *types*: types of topics, each
                 ``TOPIC=TYPE``, for logs without them
    log          key of the log in a dataset, which its rows have in the column ``log``; empty: they have the path
    """

    path: str
    fingerprint: Fingerprint | None
    number: int
    of: int
    topics: tuple[str, ...]
    fields: tuple[str, ...] | None = None
    start: int | None = None
    end: int | None = None
    bytes: int = 0
    messages: int = 0
    error: str = ""
    definitions: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    log: str = ""

    @property
    def key(self) -> str:
        """Digest of everything that decides what is read: equal for equal tasks in any process."""
        text = json.dumps(self.as_dict(), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    def read(self, columns: Sequence[str] | None = None, *, facts: bool | None = None) -> TaskReader:
        """Return an iterator of ``pyarrow.RecordBatch`` of bounded size, topic by topic.

        columns  names of columns to decode; None: all
        facts    whether ``row`` has a digest of the file and the facts of its summary; None: only for the first task
                 of a log

        Its attribute ``row`` is the catalogue row of the task when the iterator ends. It raises nothing for a log that
        is damaged, gone or changed: the row says so. See ``TaskReader``.
        """
        from logreel.fleet.task_reader import TaskReader

        return TaskReader(self, columns, self.number == 0 if facts is None else facts)

    def as_dict(self) -> dict[str, Any]:
        """Return the task as JSON data."""
        data = {member.name: getattr(self, member.name) for member in dataclass_fields(self)}
        data["fingerprint"] = None if self.fingerprint is None else self.fingerprint.as_dict()
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the task of ``as_dict``; raises KeyError or TypeError for other data."""
        mark, fields = data["fingerprint"], data["fields"]
        return cls(
            **{
                **data,
                "fingerprint": None if mark is None else Fingerprint(**mark),
                "topics": tuple(data["topics"]),
                "fields": None if fields is None else tuple(fields),
                "definitions": tuple(data["definitions"]),
                "types": tuple(data["types"]),
            }
        )


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Brief):
    """Tasks that together read many logs, each message once; plain data that can be pickled and stored.

    tasks         in order of the paths; those of one log in order of topics, then of time
    target_bytes  payload bytes at which logs were divided
    """

    tasks: tuple[Task, ...]
    target_bytes: int = TARGET_BYTES

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    @property
    def paths(self) -> list[str]:
        """Paths of the logs, also of those that cannot be read."""
        return list(dict.fromkeys(task.path for task in self.tasks))

    @property
    def topics(self) -> list[str]:
        """Names of the topics of all logs, in order of their first appearance."""
        return list(dict.fromkeys(topic for task in self.tasks for topic in task.topics))

    @property
    def errors(self) -> dict[str, str]:
        """Why logs cannot be read, by path."""
        return {task.path: task.error for task in self.tasks if task.error}

    def for_topics(self, topics: str | Iterable[str]) -> Plan:
        """Return the tasks that read any of *topics*, without the others; each log keeps its first task."""
        wanted = set(listed(topics))
        tasks = []
        for task in self.tasks:
            kept = tuple(topic for topic in task.topics if topic in wanted)
            if kept or task.number == 0:
                tasks.append(replace(task, topics=kept))
        return replace(self, tasks=tuple(tasks))

    def schemas(self) -> dict[str, TopicSchema]:
        """Return the columns of each topic over all logs; opens every log, but decodes nothing."""
        from logreel.fleet.topic_schema import schemas_of

        return schemas_of(self)

    def table(self) -> pa.Table:
        """Return the tasks as a table, a row per task."""
        import pyarrow as pa

        rows = []
        for task in self.tasks:
            row = task.as_dict()
            row |= {name: list(row[name]) for name in ("topics", "definitions", "types")}
            row["fields"] = None if task.fields is None else list(task.fields)
            rows.append(row)
        texts = pa.list_(pa.string())
        mark = pa.struct([("size", pa.int64()), ("mtime_ns", pa.int64()), ("digest", pa.string())])
        columns: list[tuple[str, pa.DataType]] = [("path", pa.string()), ("fingerprint", mark)]
        columns += [("number", pa.int64()), ("of", pa.int64()), ("topics", texts), ("fields", texts)]
        columns += [(name, pa.int64()) for name in ("start", "end", "bytes", "messages")]
        columns += [("error", pa.string()), ("definitions", texts), ("types", texts), ("log", pa.string())]
        about = json.dumps({"version": VERSION, "target_bytes": self.target_bytes})
        return pa.Table.from_pylist(rows, pa.schema(columns, metadata={_KEY: about.encode()}))

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the plan: as Parquet if *path* ends with ``.parquet``, else as JSON.

        Raises LogError if the file exists and *force* is False.
        """
        from logreel.outputs.files import new_file

        with new_file(path, force) as out:
            if os.fspath(path).endswith(".parquet"):
                import pyarrow.parquet as pq

                pq.write_table(self.table(), out, compression="zstd")
            else:
                about = {"logreel_plan": VERSION, "target_bytes": self.target_bytes}
                data = {**about, "tasks": [task.as_dict() for task in self.tasks]}
                out.write(json.dumps(data, indent=1).encode() + b"\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the plan that ``write`` wrote; raises UsageError for any other file."""
        try:
            return cls._load(os.fspath(path))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError("is not a plan of logreel", path=os.fspath(path)) from error

    @classmethod
    def _load(cls, path: str) -> Self:
        if path.endswith(".parquet"):
            import pyarrow.parquet as pq

            with pq.ParquetFile(path) as file:
                table = file.read(use_threads=False)
            about = json.loads((table.schema.metadata or {})[_KEY])
            version, rows = about["version"], table.to_pylist()
        else:
            with open(path, "rb") as file:
                about = json.loads(file.read())
            version, rows = about["logreel_plan"], about["tasks"]
        if version != VERSION:
            raise UsageError(f"a plan of version {version}: make it again", path=path)
        return cls(tuple(map(Task.from_dict, rows)), int(about["target_bytes"]))


@keywords(ReadOptions, PlanOptions)
def plan(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], **options: Unpack[ReadOptions]
) -> Plan:
    """Return a Plan that reads many logs in tasks of bounded size.

    sources  files, folders or patterns. Files that are not named as logs are, and that no format knows, are left out.
             A log that cannot be read is a task with an error, which yields a row of the catalogue and no messages
    topics   names, patterns or conditions, as for ``Log.match``; None: all but reserved ones. Logs without any of
             them are tasks without topics
    fields   paths of fields; topics have those of them that they define; None: all
    start, end   as for ``Channel.to_arrow``, for each log: ``"+5s"`` is 5 s after the start of each. A log without
             messages in the interval is a task without topics; one that does not tell how its clock relates to UTC is
             a task with an error if the time is one of UTC
    around   only windows around the moments at which a condition begins to hold, as of a Selection: tasks are parts of
             windows. A log without any is a task without topics
    target_bytes  payload bytes of a task: smaller topics share a task, larger ones are divided by time. A remote log
             that is downloaded as a whole is one task, since each task would download all of it again
    definitions  as for ``logreel.open``: files and folders, and mappings of topics to types

    Raises UsageError for a size below 1, for no sources, for a pattern without matches, for a time or condition that
    cannot be read, and for an end before the start; LogError for definitions that do not exist.
    """
    check_keywords(plan, options)
    checked = PlanOptions.of(options)
    tasks: list[Task] = []
    for path in source_paths(sources):
        if is_other_file(path):
            continue
        tasks += tasks_of(path, checked)
    return Plan(tuple(tasks), checked.target_bytes)


def tasks_of(
    path: str, options: PlanOptions, passing: Collection[int] = (), look: Look | None = None
) -> list[Task]:
    """Return the tasks of one log, one at least.

    passing  error numbers of faults that may pass, for which OSError is raised, and also MemoryError if there are any
    look     called with the log, while it is open, and the topics of its windows
    """
    cut = cut_log(path, options, passing, look)
    first = Task(
        path,
        cut.fingerprint,
        0,
        max(1, len(cut.windows)),
        (),
        options.fields,
        error=cut.error,
        definitions=options.definitions,
        types=options.types,
    )
    return [
        replace(
            first, number=n, topics=p.topics, start=p.start, end=p.end, bytes=p.bytes, messages=p.messages
        )
        for n, p in enumerate(cut.windows)
    ] or [first]
