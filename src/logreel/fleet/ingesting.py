"""Writes many logs into a dataset: only what is new or has changed, each log in one step."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from logreel.errors import LogError, UsageError
from logreel.fleet.catalogue_row import FAILED, OK, CatalogueRow, merged
from logreel.fleet.dataset import Dataset, create_dataset, locked
from logreel.fleet.jobs import Job, Result, conform_job, final_path, part_of, plan_job, write_job
from logreel.fleet.local import LocalEngine
from logreel.fleet.manifest import Manifest, Part, date_folder, read_json, write_json
from logreel.fleet.options import TARGET_BYTES, PlanOptions
from logreel.fleet.plans import Task
from logreel.fleet.source_files import Fingerprint, fingerprint, source_paths
from logreel.io.atomic_file import sync_folder
from logreel.io.remote.address import is_url
from logreel.log.brief import Brief

if TYPE_CHECKING:
    from logreel.fleet.topic_schema import TopicSchema
    from logreel.io.source import Definitions
    from logreel.log.times import Time

ENGINES = ("local", "ray")


class Engine(Protocol):
    """Does jobs somewhere."""

    name: str

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Result]]:
        """Yield each job with its result, in any order."""

    def close(self) -> None:
        """End what the engine keeps for another run."""


@dataclass(slots=True, repr=False)
class Ingested(Brief):
    """What a run of ``ingest`` did; paths of logs.

    new, changed, unchanged  logs that were written, written again, and left as they were
    removed    logs of the dataset that lie where the sources are, but do not exist any more; their rows are kept
    damaged, failed  of all logs that were asked for, also unchanged ones: those with losses, and those of which nothing
               could be read
    rows, parts  rows and files that were written
    notes      what was done where versions of a topic differ, one sentence for each column; and encrypted logs
    """

    new: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    rows: int = 0
    parts: int = 0
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``fleet ingest --json``."""
        return asdict(self)


def ingest(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    dataset: str | os.PathLike[str],
    *,
    topics: str | Iterable[str] | None = None,
    fields: str | Iterable[str] | None = None,
    start: Time | None = None,
    end: Time | None = None,
    definitions: Definitions = (),
    decrypt: bool = False,
    engine: str | Engine = "local",
    workers: int | None = None,
    target_bytes: int = TARGET_BYTES,
    progress: Callable[[str, int, int], None] | None = None,
) -> Ingested:
    """Write the messages and the catalogue rows of many logs into a dataset; return what was done.

    sources   files, folders or patterns, as for ``plan``
    dataset   folder of the dataset; created if missing
    topics, fields, start, end, target_bytes  as for ``plan``; those of a dataset stay as they were in its first run
    definitions  as for ``plan``. Logs that lacked some are read again when there are others
    decrypt   True: also write encrypted logs, whose messages are not encrypted in the dataset; False: they get a row of
              the catalogue with the reason, and the next run tries them again
    engine    ``local``, ``ray``, or an object with ``run`` as that of ``LocalEngine``
    workers   processes of the local engine; None: one per processor
    progress  called after each log with its path, the number of logs done, and the number of logs to do

    Logs whose size, time of modification, head and tail are those of the last run are not read again. A run that was
    ended, by Ctrl-C or in any other way, leaves a dataset with complete logs only; the next one continues with the
    tasks that are missing. The result does not depend on the engine or the number of workers.

    Raises UsageError for a dataset with other options, for no sources, for an unknown engine, and as ``plan`` for
    other arguments; LogError for a folder that is no dataset, or that another process writes; OSError if the dataset
    cannot be written.
    """
    options = PlanOptions.of(topics, fields, start, end, target_bytes, definitions, decrypt)
    given = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    paths = source_paths(given)
    chosen = engine_of(engine, workers)
    target = create_dataset(dataset, options.choice)
    with locked(target), contextlib.ExitStack() as stack:
        if chosen is not engine:
            stack.callback(chosen.close)
        return _Run(target, options, chosen, progress).ingest(paths, [_absolute(one) for one in given])


def engine_of(engine: str | Engine, workers: int | None) -> Engine:
    """Return the engine of that name; raises UsageError for an unknown one, MissingDependencyError without Ray."""
    if not isinstance(engine, str):
        return engine
    if engine == "local":
        return LocalEngine(workers)
    if engine == "ray":
        from logreel.fleet.ray import RayEngine

        return RayEngine(workers)
    raise UsageError(f"no engine {engine!r}; there are: {', '.join(ENGINES)}")


@dataclass(slots=True)
class _Pending:
    """A log that is being written: its tasks, and the results so far by number."""

    tasks: list[Task]
    again: bool = False
    is_committed: bool = False
    results: dict[int, Result] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)


class _Run:
    """One run over a dataset, which is locked."""

    def __init__(
        self,
        dataset: Dataset,
        options: PlanOptions,
        engine: Engine,
        progress: Callable[[str, int, int], None] | None,
    ) -> None:
        self.dataset, self.options, self.engine, self.progress = dataset, options, engine, progress
        self.definitions = options.definitions_digest()
        self.done = Ingested()
        self.schemas: dict[str, TopicSchema] = {}
        self.count = 0
        #: Whether an earlier run did not end, so that files may lie about that no manifest names.
        self.unclean = any(dataset.stage.iterdir())
        (dataset.stage / "running").touch()

    def ingest(self, paths: Sequence[str], roots: Sequence[str]) -> Ingested:
        """Write what is new or has changed of *paths*, which were found below *roots*."""
        known = self.dataset.manifests
        todo = []
        for path in paths:
            if path in known and not self._has_to_be_read_again(known[path]) and _same(known[path].row, path):
                self.done.unchanged.append(path)
                self._note_state(path, known[path].row)
            else:
                (self.done.changed if path in known else self.done.new).append(path)
                todo.append(path)
        present = set(paths)
        self.done.removed = [
            path
            for path in known
            if path not in present and _is_below(path, roots) and not os.path.lexists(path)
        ]
        pending = self._plan(todo)
        changed = self._unify(pending)
        self._write(pending)
        self._conform(changed, set(pending))
        self._clean()
        return self.done

    def _note_state(self, path: str, row: CatalogueRow) -> None:
        """Note a log with losses, also one that an earlier run has written."""
        if row.status == FAILED:
            self.done.failed[path] = row.error
        elif row.status != OK:
            self.done.damaged.append(path)

    def _has_to_be_read_again(self, manifest: Manifest) -> bool:
        lacking = manifest.row.lacks_definitions and manifest.definitions != self.definitions
        return manifest.again or lacking

    def _plan(self, paths: Sequence[str]) -> dict[str, _Pending]:
        """Return the tasks of each log in the order of *paths*; collect the columns of their topics."""
        from logreel.fleet.topic_schema import TopicSchema

        found: dict[str, _Pending] = {}
        # Logs of one version have the same columns, which are kept once.
        columns: dict[str, dict[str, str]] = {}
        order: dict[str, str] = {}
        for job, result in self.engine.run(plan_job(path, self.options) for path in paths):
            path = job["path"]
            if "tasks" in result:
                found[path] = _Pending(
                    [Task.from_dict(task) for task in result["tasks"]], bool(result.get("again"))
                )
                self.done.notes += result.get("notes", ())
                key = json.dumps(result["schemas"], sort_keys=True)
                order[path] = hashlib.blake2b(key.encode()).hexdigest()
                columns.setdefault(order[path], result["schemas"])
            else:
                mark = _fingerprint(path)
                found[path] = _Pending([Task(path, mark, 0, 1, (), error=result["error"])], again=True)
        # In the order of the paths, so that columns do not depend on which worker was faster.
        known: set[tuple[str, str]] = set()
        for key in dict.fromkeys(order[path] for path in paths if path in order):
            for topic, text in columns[key].items():
                if (topic, text) in known:
                    continue
                known.add((topic, text))
                one = TopicSchema.of_text(topic, text)
                old = self.schemas.get(topic) or self.dataset.stored_schema(topic)
                self.schemas[topic] = one if old is None else old.merged(one)
        return {path: found[path] for path in paths}

    def _unify(self, pending: Mapping[str, _Pending]) -> list[str]:
        """Store the columns of topics that have new ones; return the topics of which older files differ."""
        changed = []
        for topic, schema in self.schemas.items():
            old = self.dataset.stored_schema(topic)
            if old is not None and old.schema.equals(schema.schema, check_metadata=True):
                continue
            self.done.notes += [
                f"{topic}: {name}: {note}"
                for name, note in schema.notes.items()
                if old is None or old.notes.get(name) != note
            ]
            write_json(self.dataset.schema_file(topic), {"topic": topic, "schema": schema.text()})
        current = {topic: self._digest(topic) for topic in self.dataset.parts}
        for topic, parts in self.dataset.parts.items():
            if any(part.columns != current[topic] for part in parts):
                changed.append(topic)
        return changed

    def _digest(self, topic: str) -> str:
        from logreel.fleet.jobs import schema_digest

        return schema_digest(self._schema(topic).schema)

    def _schema(self, topic: str) -> TopicSchema:
        return self.schemas.get(topic) or self.dataset.schema(topic)

    def _write(self, pending: Mapping[str, _Pending]) -> None:
        """Write the logs, each as soon as its last task is done."""
        texts = {topic: schema.text() for topic, schema in self.schemas.items()}
        stage = self.dataset.stage

        def jobs() -> Iterator[Job]:
            for path, one in pending.items():
                for task in one.tasks:
                    job = write_job(task, texts, stage, self.definitions)
                    one.jobs[task.number] = job
                    if task.error:
                        row = CatalogueRow(path=path, status=FAILED, error=task.error)
                        if (mark := task.fingerprint) is not None:
                            row.size, row.mtime_ns, row.fingerprint = mark.size, mark.mtime_ns, mark.digest
                        one.results[task.number] = {"row": row.as_dict(), "parts": [], "again": one.again}
                    elif (stored := self._stored(job, task)) is not None:
                        one.results[task.number] = stored
                    else:
                        yield job
                self._commit(path, one, len(pending))

        for job, result in self.engine.run(jobs()):
            path = job["task"]["path"]
            one = pending[path]
            number = job["task"]["number"]
            if "row" not in result:
                row = CatalogueRow(path=path, status=FAILED, error=result["error"])
                if (mark := one.tasks[number].fingerprint) is not None:
                    row.size, row.mtime_ns, row.fingerprint = mark.size, mark.mtime_ns, mark.digest
                result = {"row": row.as_dict(), "parts": [], "again": True}
            one.results[number] = result
            self._commit(path, one, len(pending))

    def _stored(self, job: Job, task: Task) -> Result | None:
        """Return the result of a task that an earlier run has finished, with all its files; else None."""
        try:
            result: Result = read_json(self.dataset.stage / f"{job['id']}.json")
            row = CatalogueRow.from_dict(result["row"])
            whole = all(self._find(made, row) is not None for made in result["parts"])
        except (OSError, LogError, KeyError, TypeError):
            return None
        return result if whole and _fingerprint(task.path) == task.fingerprint else None

    def _find(self, made: Mapping[str, Any], row: CatalogueRow) -> Path | None:
        """Return where a file that a job made is: in the stage, or already in its place."""
        for path in (
            self.dataset.stage / os.path.basename(made["staged"]),
            self.dataset.path / final_path(made, date_folder(row)),
        ):
            with contextlib.suppress(OSError):
                if path.stat().st_size == made["size"]:
                    return path
        return None

    def _commit(self, path: str, one: _Pending, total: int) -> None:
        """Publish a log if all its tasks are done: first its files get their names, then the manifest names them."""
        # An engine may ask for more jobs only after the result of the last one has come, which has published the log.
        if one.is_committed or len(one.results) < len(one.tasks):
            return
        one.is_committed = True
        rows = [CatalogueRow.from_dict(one.results[n]["row"]) for n in range(len(one.tasks))]
        row = merged(rows)
        again = any(one.results[n]["again"] for n in one.results)
        made = [part for n in range(len(one.tasks)) for part in one.results[n]["parts"]]
        if row.status == FAILED:
            # Of a log that could not be read to its end, nothing is published.
            made, row.rows = [], {}
        parts = self._publish(made, row)
        known = self.definitions if row.lacks_definitions else ""
        self._replace(Manifest(row, tuple(parts), again, known))
        for job in one.jobs.values():
            (self.dataset.stage / f"{job['id']}.json").unlink(missing_ok=True)
        # Of thousands of logs, only those that are being written stay in memory.
        one.tasks, one.results, one.jobs = [], {}, {}
        self.done.rows += sum(part.rows for part in parts)
        self.done.parts += len(parts)
        self._note_state(path, row)
        self.count += 1
        if self.progress is not None:
            self.progress(path, self.count, total)

    def _publish(self, made: Sequence[Mapping[str, Any]], row: CatalogueRow) -> list[Part]:
        """Move files from the stage to their places; return them as parts."""
        parts, folders = [], set()
        for one in made:
            path = final_path(one, date_folder(row))
            target = self.dataset.path / path
            source = self._find(one, row)
            if source is None:
                raise LogError(
                    f"a file that was just written is gone: {one['staged']}", path=os.fspath(target)
                )
            if source != target:
                if not target.parent.is_dir():
                    target.parent.mkdir(parents=True)
                    folders.add(target.parent.parent)
                    folders.add(self.dataset.path)
                os.replace(source, target)
            folders.add(target.parent)
            parts.append(part_of(one, path))
        for folder in sorted(folders):
            sync_folder(folder)
        return parts

    def _replace(self, manifest: Manifest) -> None:
        """Write a manifest; then remove the files that only the old one names."""
        old = self.dataset.manifests.get(manifest.row.path)
        manifest.write(self.dataset.logs_folder)
        kept = {part.path for part in manifest.parts}
        for part in old.parts if old is not None else ():
            if part.path not in kept:
                (self.dataset.path / part.path).unlink(missing_ok=True)

    def _conform(self, topics: Sequence[str], written: set[str]) -> None:
        """Give the files of logs that were not *written* now the columns that their topics have now."""
        texts = {topic: self._schema(topic).text() for topic in topics}
        digests = {topic: self._digest(topic) for topic in topics}
        jobs = []
        for path, one in self.dataset.manifests.items():
            old = [p for p in one.parts if p.topic in texts and p.columns != digests[p.topic]]
            if old and path not in written:
                jobs.append(conform_job(self.dataset.path, path, old, texts, self.dataset.stage))
        for job, result in self.engine.run(jobs):
            if "parts" not in result:
                raise LogError(
                    f"older files cannot be given the new columns: {result['error']}", path=job["log"]
                )
            manifest = self.dataset.manifests[job["log"]]
            fresh = dict(
                zip(
                    (one["old"] for one in result["parts"]),
                    self._publish(result["parts"], manifest.row),
                    strict=True,
                )
            )
            self._replace(replace(manifest, parts=tuple(fresh.get(p.path, p) for p in manifest.parts)))

    def _clean(self) -> None:
        """Remove what earlier runs left in the stage, and files that no manifest names."""
        for path in self.dataset.stage.iterdir():
            path.unlink()
        if self.unclean:
            for orphan in Dataset(self.dataset.path).orphans():
                (self.dataset.path / orphan).unlink()
        for folder in (self.dataset.logs_folder, self.dataset.catalogue, self.dataset.catalogue / "topics"):
            for path in folder.glob(".*.partial"):
                path.unlink()


def _fingerprint(path: str) -> Fingerprint | None:
    try:
        return fingerprint(path)
    except (OSError, LogError):
        return None


def _absolute(source: str | os.PathLike[str]) -> str:
    text = os.fspath(source)
    return text if is_url(text) else os.path.abspath(text)


def _same(row: CatalogueRow, path: str) -> bool:
    """Return whether the file at *path* is the one that *row* describes."""
    mark = _fingerprint(path)
    if mark is None:
        return row.size is None
    return (mark.size, mark.mtime_ns, mark.digest) == (row.size, row.mtime_ns, row.fingerprint)


def _is_below(path: str, roots: Sequence[str]) -> bool:
    """Return whether *path* is one of *roots* or lies below one; a pattern counts as its folder."""
    for root in roots:
        plain = root
        while any(c in plain for c in "*?["):
            plain = os.path.dirname(plain)
        if path == plain or path.startswith(plain.rstrip(os.sep) + os.sep):
            return True
    return False
