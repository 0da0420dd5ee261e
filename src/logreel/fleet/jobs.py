"""The work that an engine distributes: jobs in and results out are JSON data, so that any process can do them."""

from __future__ import annotations

import errno
import gc
import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from logreel._version import __version__
from logreel.errors import LogError, heard
from logreel.fleet.catalogue_row import FAILED
from logreel.fleet.dataset import DatasetFile, topic_folder, write_json
from logreel.fleet.plans import PlanOptions, Task, tasks_of
from logreel.fleet.source_files import Fingerprint, bytes_digest, content_digest, error_text, log_key
from logreel.io.arrays import alone
from logreel.log.source_files import FOR_BOTH, decrypted_notes, refusal

if TYPE_CHECKING:
    import io

    from logreel.fleet.topic_schema import TopicSchema
    from logreel.log.log import Log
    from logreel.outputs.tables.columnar import NestedTable

Job = dict[str, Any]
Result = dict[str, Any]
#: Faults of disks, networks and memory that may pass, how often a job is tried, and the seconds before the second time.
PASSING = frozenset(
    {
        errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.EBUSY, errno.EMFILE, errno.ENFILE, errno.ENOMEM
    }
)  # fmt: skip
TRIES, WAIT = 3, 0.1
#: Bytes of logs that are opened before those that are closed are removed from memory.
COLLECT_BYTES = 16 << 20
#: Bytes of logs that were opened since then.
_opened = 0


def do_job(job: Job) -> Result:
    """Return the result of *job*; the key ``do`` names the function.

    Faults of disks, networks and memory are tried TRIES times. Never raises for what is wrong with a log.
    """
    try:
        # Jobs of other processes use the other processors.
        return alone(lambda: _JOBS[job["do"]](job))
    finally:
        _collect(job)


def _collect(job: Job) -> None:
    """Free closed logs, which circles of references hold with their index and their mapping, once they are large."""
    global _opened
    path = job["path"] if job["do"] == "plan" else job["task"]["path"] if job["do"] == "write" else ""
    with suppress(OSError, ValueError):
        _opened += os.path.getsize(path)
    # Takes 20 ms or more, as long as a small log.
    if _opened >= COLLECT_BYTES:
        gc.collect()
        _opened = 0


def _plan(job: Job) -> Result:
    """Return the key of a log, its tasks, and the columns of its topics as text; keep them in the stage.

    Of a log whose key is one of ``known``, only that: it lies at another place. An error without tasks says why the key
    could not be found out.
    """
    result = _planned(job)
    mark = result.get("mark")
    # With the same fingerprint, another run gets the same result.
    if not result["again"] and mark is not None and mark == job["mark"]:
        write_json(Path(job["stage"]) / plan_name(job), result, sync=job["sync"])
    return result


def _planned(job: Job) -> Result:
    for attempt in range(TRIES):
        try:
            key, mark = log_key(job["path"])
            break
        except (LogError, OSError) as error:
            fault = error_text(error)
        time.sleep(WAIT * 2**attempt)
    else:
        return {"error": fault, "again": True}
    about = {"key": key, "mark": None if mark is None else mark.as_dict(), "again": False}
    if key in job["known"]:
        return about
    planned = _tasks(job)
    for task in planned["tasks"]:
        if task["fingerprint"] is not None and task["fingerprint"] != about["mark"]:
            return {"error": "the file changes while it is read", "again": True}
        task["log"] = key
    return about | planned


def _tasks(job: Job) -> Result:
    """Return the tasks of a log, and the columns of its topics as text."""
    from logreel.fleet.topic_schema import log_schemas

    options, path, fault = PlanOptions.from_dict(job["options"]), job["path"], ""
    schemas_by_topic: dict[str, TopicSchema] = {}
    notes: list[str] = []
    is_refused = False

    def look(log: Log, topics: Iterable[str]) -> None:
        nonlocal is_refused
        error = None if options.decrypt else refusal(log, FOR_BOTH)
        is_refused = error is not None
        if error is not None:
            raise error
        notes[:] = [*downloads, *decrypted_notes(log, options.decrypt)]
        schemas_by_topic.update(log_schemas(log, topics, options.fields, options.timestamps))

    for attempt in range(TRIES):
        try:
            with heard() as downloads:
                tasks = tasks_of(path, options, PASSING, look)
            schemas = {topic: schema.text() for topic, schema in schemas_by_topic.items()}
            about = {"notes": notes, "again": is_refused}
            return {"tasks": [task.as_dict() for task in tasks], "schemas": schemas, **about}
        except (LogError, OSError, MemoryError) as error:
            fault = error_text(error)
        time.sleep(WAIT * 2**attempt)
    return {"tasks": [Task(path, None, 0, 1, (), error=fault).as_dict()], "schemas": {}, "again": True}


@lru_cache(1024)
def _schema_of(topic: str, text: str) -> TopicSchema:
    """Return the columns that a job states as text; the jobs of a run have the same ones."""
    from logreel.fleet.topic_schema import TopicSchema

    return TopicSchema.of_text(topic, text)


def _write(job: Job) -> Result:
    """Write the messages of a task to files in the stage of a dataset; return its row and what they are."""
    task = Task.from_dict(job["task"])
    schemas = {topic: _schema_of(topic, text) for topic, text in job["schemas"].items()}
    for attempt in range(TRIES):
        result, passing = _write_once(task, schemas, job)
        if not passing:
            break
        time.sleep(WAIT * 2**attempt)
    if result["row"]["status"] != FAILED:
        write_json(Path(job["stage"]) / f"{job['id']}.json", result, sync=job["sync"])
    return result


def _write_once(task: Task, schemas: Mapping[str, TopicSchema], job: Job) -> tuple[Result, bool]:
    """Return the result, and whether a fault ended it that may pass."""
    from logreel.fleet.task_reader import TaskReader

    # Files that were written with other definitions have other names: until a manifest names these, it names those.
    mark = hashlib.blake2b(job["definitions"].encode(), digest_size=4).hexdigest()
    writer = PartWriter(Path(job["stage"]), f"{task.log}-{mark}-{task.number}", job["sync"], schemas)
    reader = TaskReader(task, None, task.number == 0, schemas, timestamps=job["timestamps"])
    try:
        for batch in reader:
            writer.write(batch)
        parts = writer.close()
    except BaseException:
        writer.discard()
        raise
    if reader.row.status == FAILED:
        writer.discard()
        parts = []
    error = reader.error
    passing = isinstance(error, MemoryError) or (error is not None and error.errno in PASSING)
    return {"row": reader.row.as_dict(), "parts": parts, "again": passing}, passing


#: Bytes of rows of a topic up to which its file is made in memory, and written at once.
IN_MEMORY = 4 << 20


class PartWriter:
    """Writes batches to Parquet, a file for each topic in turn.

    name  begin of the final names of the files; until they are published they have names of their own in *stage*
    sync  whether each file is synced to disk; else whoever publishes them does it for the files of many logs
    schemas  columns of topics, as batches have them; those of others are looked at for each file
    """

    def __init__(
        self, stage: Path, name: str, sync: bool, schemas: Mapping[str, TopicSchema] = MappingProxyType({})
    ) -> None:
        self._stage, self._name, self._token, self._sync = stage, name, secrets.token_hex(6), sync
        self._schemas = schemas
        self._made: list[dict[str, Any]] = []
        self._topic: str | None = None
        self._schema: Any = None
        #: Rows that wait in memory, and their bytes; then the table that is written, and its file.
        self._waiting: list[Any] = []
        self._bytes = 0
        self._table: Any = None
        self._file: Any = None

    def write(self, batch: Any) -> None:
        """Append rows to the file of the topic that the metadata of the schema names."""
        import pyarrow as pa

        topic = batch.schema.metadata[b"topic"].decode("utf-8", "surrogatepass")
        if topic != self._topic:
            self._finish()
            self._start(topic, batch.schema)
        plain = pa.RecordBatch.from_arrays(batch.columns, schema=self._schema)
        self._made[-1]["rows"] += batch.num_rows
        if self._table is not None:
            self._table.write(plain)
            return
        self._waiting.append(plain)
        self._bytes += plain.nbytes
        if self._bytes > IN_MEMORY:
            self._file = open(self._path, "xb")  # noqa: SIM115
            self._table = self._started(self._file)

    def _start(self, topic: str, schema: Any) -> None:
        number = len(self._made)
        staged = f"{self._token}-{number}.parquet"
        from logreel.fleet.topic_schema import TopicSchema

        columns = self._schemas.get(topic) or TopicSchema(topic, schema)
        self._schema, self._topic = columns.stored, topic
        name = f"{self._name}-{number}"
        self._made.append(
            {"topic": topic, "staged": staged, "name": name, "rows": 0, "columns": columns.digest}
        )

    @property
    def _path(self) -> Path:
        return self._stage / str(self._made[-1]["staged"])

    def _started(self, out: Any) -> NestedTable:
        """Return a table, written to *out*, with the rows that wait."""
        from logreel.outputs.tables.columnar import NestedTable

        table = NestedTable(out, self._schema)
        for batch in self._waiting:
            table.write(batch)
        self._waiting, self._bytes = [], 0
        return table

    def _finish(self) -> None:
        """Complete the file of the topic; without rows, there is none."""
        if self._table is None and not (self._made and self._made[-1]["rows"]):
            return
        content = self._in_memory() if self._table is None else None
        if content is None:
            self._table.close()
        else:
            # Unbuffered, since it is written at once.
            self._file = open(self._path, "xb", buffering=0)  # noqa: SIM115
            _write_all(self._file, content)
        if self._sync:
            self._file.flush()
            os.fsync(self._file.fileno())
        self._file.close()
        self._table = None
        made, path = self._made[-1], os.fspath(self._path)
        made["size"] = os.path.getsize(path) if content is None else len(content)
        made["digest"] = content_digest(path) if content is None else bytes_digest(content)

    def _in_memory(self) -> memoryview:
        """Return the whole file with the rows that wait; small files, most of them, are made faster so."""
        import pyarrow as pa

        out = pa.BufferOutputStream()
        self._started(out).close()
        return memoryview(out.getvalue())

    def close(self) -> list[dict[str, Any]]:
        """Complete the last file; return what the files are. Topics without rows have none."""
        self._finish()
        return [part for part in self._made if part["rows"]]

    def discard(self) -> None:
        """Remove all files."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
        for part in self._made:
            (self._stage / part["staged"]).unlink(missing_ok=True)


def _write_all(file: io.FileIO, content: memoryview) -> None:
    """Write all of *content*, of which the system may take a part at a time."""
    while content:
        content = content[file.write(content) :]


def _conform(job: Job) -> Result:
    """Write parts with the columns that their topics have now; return what the new files are.

    The job: ``dataset``, ``stage``, ``log`` (path), ``parts``, ``schemas`` by topic.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from logreel.fleet.topic_schema import cast_array, schema_digest

    schemas = {topic: _schema_of(topic, text).schema for topic, text in job["schemas"].items()}
    parts: list[dict[str, Any]] = []
    for old in (DatasetFile(**part) for part in job["parts"]):
        topic = old.topic.encode("utf-8", "surrogatepass")
        schema = pa.schema([f.remove_metadata() for f in schemas[old.topic]], metadata={b"topic": topic})
        stem = Path(old.path).stem.removeprefix("part-").partition("_")[0]
        writer = PartWriter(Path(job["stage"]), f"{stem}_{schema_digest(schema)}", job["sync"])
        try:
            with pq.ParquetFile(os.path.join(job["dataset"], old.path)) as file:
                for batch in file.iter_batches(1 << 16, use_threads=False):
                    own = dict(zip(batch.schema.names, batch.columns, strict=True))
                    rows = batch.num_rows
                    arrays = [
                        cast_array(own[f.name], f.type) if f.name in own else pa.nulls(rows, f.type)
                        for f in schema
                    ]
                    writer.write(pa.RecordBatch.from_arrays(arrays, schema=schema))
            made = writer.close()
        except BaseException:
            writer.discard()
            raise
        # One file in, one file out: the number of the name stays.
        parts += [written | {"name": written["name"].rpartition("-")[0], "old": old.path} for written in made]
    return {"parts": parts}


def final_path(made: Mapping[str, Any], date: str) -> str:
    """Return the path in the dataset of a file that a job made."""
    return f"{topic_folder(made['topic'])}/{date}/part-{made['name']}.parquet"


def part_of(made: Mapping[str, Any], path: str) -> DatasetFile:
    """Return a file that a job made as a part at *path*."""
    return DatasetFile(made["topic"], path, made["rows"], made["size"], made["digest"], made["columns"])


def plan_job(
    path: str,
    mark: Fingerprint | None,
    options: PlanOptions,
    definitions: str,
    known: Sequence[str],
    stage: Path,
    sync: bool = True,
) -> Job:
    """Return the job that plans the log at *path*.

    mark    fingerprint of the file now
    definitions  digest of the definitions that are not in logs
    known   keys of logs that need not be planned
    sync    whether files are synced to disk by the job
    """
    own = None if mark is None else mark.as_dict()
    text = json.dumps([__version__, path, own, options.as_dict(), definitions], sort_keys=True)
    return {
        "do": "plan",
        "id": hashlib.blake2b(text.encode(), digest_size=12).hexdigest(),
        "path": path,
        "mark": own,
        "options": options.as_dict(),
        "known": list(known),
        "stage": os.fspath(stage),
        "sync": sync,
    }


def plan_name(job: Job) -> str:
    """Return the name of the file in the stage that keeps the result of a job of ``plan_job``."""
    return f"{job['id']}.plan"


def write_job(
    task: Task,
    schemas: Mapping[str, str],
    stage: Path,
    definitions: str,
    timestamps: str,
    sync: bool = True,
) -> Job:
    """Return the job that writes a task; ``id`` is equal only for jobs with equal results.

    definitions  digest of the definitions that are not in logs
    timestamps   unit of the columns that are timestamps
    sync         whether files are synced to disk by the job
    """
    own = {topic: schemas[topic] for topic in task.topics if topic in schemas}
    text = "\n".join([task.key, definitions, *(f"{topic} {text}" for topic, text in sorted(own.items()))])
    name = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return {
        "do": "write",
        "id": name,
        "task": task.as_dict(),
        "schemas": own,
        "stage": os.fspath(stage),
        "definitions": definitions,
        "timestamps": timestamps,
        "sync": sync,
    }


def conform_job(
    dataset: Path,
    log: str,
    parts: list[DatasetFile],
    schemas: Mapping[str, str],
    stage: Path,
    sync: bool = True,
) -> Job:
    """Return the job that writes *parts* of a log with new columns; *sync*: whether it syncs them to disk."""
    own = {part.topic: schemas[part.topic] for part in parts}
    return {
        "do": "conform",
        "dataset": os.fspath(dataset),
        "log": log,
        "parts": [asdict(part) for part in parts],
        "schemas": own,
        "stage": os.fspath(stage),
        "sync": sync,
    }


_JOBS: dict[str, Callable[[Job], Result]] = {"plan": _plan, "write": _write, "conform": _conform}
