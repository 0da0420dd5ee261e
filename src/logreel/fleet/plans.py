"""Plans: how the reading of many logs is divided into tasks of bounded size, as plain data."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from typing import TYPE_CHECKING, Any, Self

from logreel.errors import UsageError
from logreel.fleet.cut import Look, cut_log
from logreel.fleet.options import TARGET_BYTES, PlanOptions
from logreel.fleet.source_files import Fingerprint, is_other_file, source_paths
from logreel.log.brief import Brief
from logreel.log.topic_match import listed

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.fleet.task_reader import TaskReader
    from logreel.fleet.topic_schema import TopicSchema
    from logreel.io.source import Definitions
    from logreel.log.times import Time

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
        data = {one.name: getattr(self, one.name) for one in dataclass_fields(self)}
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
        found = []
        for task in self.tasks:
            some = tuple(topic for topic in task.topics if topic in wanted)
            if some or task.number == 0:
                found.append(replace(task, topics=some))
        return replace(self, tasks=tuple(found))

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


def plan(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    topics: str | Iterable[str] | None = None,
    fields: str | Iterable[str] | None = None,
    start: Time | None = None,
    end: Time | None = None,
    target_bytes: int = TARGET_BYTES,
    definitions: Definitions = (),
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
    target_bytes  payload bytes of a task: smaller topics share a task, larger ones are divided by time. A remote log
             that is downloaded as a whole is one task, since each task would download all of it again
    definitions  as for ``logreel.open``: files and folders, and mappings of topics to types

    Raises UsageError for a size below 1, for no sources, for a pattern without matches, for a time that cannot be read,
    and for an end before the start; LogError for definitions that do not exist.
    """
    options = PlanOptions.of(topics, fields, start, end, target_bytes, definitions)
    tasks: list[Task] = []
    for path in source_paths(sources):
        if is_other_file(path):
            continue
        tasks += tasks_of(path, options)
    return Plan(tuple(tasks), target_bytes)


def tasks_of(
    path: str, options: PlanOptions, passing: Collection[int] = (), look: Look | None = None
) -> list[Task]:
    """Return the tasks of one log, one at least.

    passing  error numbers of faults that may pass, for which OSError is raised, and also MemoryError if there are any
    look     called with the log, while it is open, and the topics of its pieces
    """
    found = cut_log(path, options, passing, look)
    first = Task(
        path,
        found.fingerprint,
        0,
        max(1, len(found.pieces)),
        (),
        options.fields,
        error=found.error,
        definitions=options.definitions,
        types=options.types,
    )
    return [
        replace(
            first, number=n, topics=p.topics, start=p.start, end=p.end, bytes=p.bytes, messages=p.messages
        )
        for n, p in enumerate(found.pieces)
    ] or [first]
