"""Writes many logs into a dataset: only what is new or has changed, each log in one step."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from logreel.errors import LogError, UnknownFormatError, UsageError
from logreel.fleet.catalogue_row import FAILED, OK, CatalogueRow, merged
from logreel.fleet.dataset import (
    Dataset,
    DatasetFile,
    LogPlace,
    Manifest,
    create_dataset,
    date_folder,
    locked,
    read_json,
    write_json,
)
from logreel.fleet.jobs import Job, Result, conform_job, final_path, part_of, plan_job, plan_name, write_job
from logreel.fleet.local import LocalEngine
from logreel.fleet.plans import PlanOptions, ReadOptions, Task
from logreel.fleet.source_files import (
    Fingerprint,
    content_digest,
    error_text,
    fingerprint,
    is_content_key,
    is_other_file,
    is_path_key,
    path_key,
    source_paths,
)
from logreel.fleet.upkeep import remove_manifests, settle
from logreel.io.atomic_file import sync_file, sync_folder
from logreel.io.source import is_url
from logreel.log.scan import Brief
from logreel.ops.selection import check_keywords, keywords

if TYPE_CHECKING:
    from logreel.fleet.topic_schema import TopicSchema

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

    new, changed, unchanged  logs that were written, that were written because a file has other content now or had to be
               read again, and files that were left as they were
    moved, copies  files with the content of a log that is known already, or of a file before them: the log lay at
               another place, which does not exist any more; or it lies at both
    removed    logs of the dataset that lay where the sources are, but do not exist any more; their rows are kept
    ignored    files that are no logs: they are not named as logs are, and no format knows them
    damaged, failed  of all logs that were asked for, also unchanged ones: those with losses, and those of which nothing
               could be read
    rows, parts  rows and files that were written
    notes      what was done where versions of a topic differ, one sentence for each column; and encrypted logs
    """

    new: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    copies: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    rows: int = 0
    parts: int = 0
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``fleet ingest --json``."""
        return asdict(self)


@keywords(ReadOptions, PlanOptions)
def ingest(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    dataset: str | os.PathLike[str],
    *,
    decrypt: bool = False,
    engine: str | Engine = "local",
    workers: int | None = None,
    timestamps: str = "us",
    progress: Callable[[str, int, int], None] | None = None,
    **options: Unpack[ReadOptions],
) -> Ingested:
    """Write the messages and the catalogue rows of many logs into a dataset; return what was done.

    sources   files, folders or patterns, as for ``plan``
    dataset   folder of the dataset; created if missing
    topics, fields, start, end, around, target_bytes  as for ``plan``; those of a dataset, and *timestamps*, stay as
              they were in its first run
    definitions  as for ``plan``. Logs that lacked some are read again when there are others
    decrypt   True: also write encrypted logs, whose messages are not encrypted in the dataset; False: they get a row of
              the catalogue with the reason, and the next run tries them again
    engine    ``local``, ``ray``, or an object with ``run`` as that of ``LocalEngine``
    workers   processes of the local engine; None: one per processor
    timestamps  unit of the columns that are timestamps: ``us``, as Spark, Delta and Iceberg have them, with a column of
              integers in ns beside each; or ``ns``, without
    progress  called after each log with its path, the number of logs done, and the number of logs to do

    A log is its content, wherever it lies: a file that has the bytes of a log of the dataset is another place of that
    log. A file with other bytes than in the last run is a new log, which replaces the old one unless that lies at
    another place. Files whose size, time of modification, head and tail are those of the last run are not read again.
    A run that was ended, by Ctrl-C or in any other way, leaves a dataset with complete logs only; the next one
    continues with the plans and tasks that are missing. The result does not depend on the engine or the number of
    workers.

    Raises UnknownFormatError if there is no log and a file was named that is none; UsageError for a dataset with other
    options, for no sources, for an unknown engine, and as ``plan`` for other arguments; LogError for a folder that is
    no dataset, or that another process writes; OSError if the dataset cannot be written.
    """
    check_keywords(ingest, options)
    checked = PlanOptions.of(options, decrypt, timestamps)
    roots = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    paths = source_paths(roots)
    chosen = engine_of(engine, workers)
    target = create_dataset(dataset, checked.choice)
    with locked(target), contextlib.ExitStack() as stack:
        if chosen is not engine:
            stack.callback(chosen.close)
        return _Run(target, checked, chosen, progress).ingest(paths, [_absolute(root) for root in roots])


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


@dataclass(frozen=True, slots=True)
class _Seen:
    """A log that lies at a place; *is_found*: its content was looked at, because the place is new or has changed."""

    key: str
    place: LogPlace
    is_found: bool = False


#: Logs that are published together at most, with one wait for the disk, and seconds between two times.
BATCH_LOGS, BATCH_SECONDS = 32, 1.0


@dataclass(slots=True)
class _Complete:
    """A log whose tasks are done, to be published: its manifest without parts, the files, and the ids of its jobs."""

    path: str
    manifest: Manifest
    made: list[Mapping[str, Any]]
    jobs: list[str]


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
        #: Where logs lie now, by key; and keys of logs whose last place another log has now, by the key of that one.
        self.places: dict[str, list[LogPlace]] = {}
        self.replaced: dict[str, list[str]] = {}
        self.count = 0
        #: Logs that wait to be published, and when some were published last.
        self.complete: list[_Complete] = []
        self.published_at = -inf
        #: Whether jobs sync their files: where they run on other machines, whose memory this one cannot sync.
        self.sync = not isinstance(engine, LocalEngine)
        #: Whether an earlier run did not end, so that files may lie about that no manifest names.
        self.unclean = any(dataset.stage.iterdir())
        (dataset.stage / "running").touch()

    def ingest(self, paths: Sequence[str], roots: Sequence[str]) -> Ingested:
        """Write what is new or has changed of *paths*, which were found below *roots*."""
        settle(self.dataset)
        known = self.dataset.manifests
        places = {place.path: (key, place) for key, manifest in known.items() for place in manifest.places}
        seen: dict[str, _Seen] = {}
        todo = []
        for path in paths:
            key, place = places.get(path, ("", None))
            if place is None and is_other_file(path):
                self.done.ignored.append(path)
            elif place is not None and not os.path.lexists(path) and not is_url(path):
                # It is one of those that were removed.
                continue
            elif place is not None and not self._has_to_be_read_again(known[key]) and _is_at(place):
                seen[path] = _Seen(key, place)
                self.done.unchanged.append(path)
            else:
                todo.append(path)
        if not seen and not todo and self.done.ignored and set(roots).intersection(self.done.ignored):
            raise UnknownFormatError("not a log of a known format", path=self.done.ignored[0])
        pending = self._plan(todo, seen)
        self._find_places(pending, seen, places, paths)
        self.done.removed = [
            manifest.row.path
            for manifest in known.values()
            if not any(_lies(place.path) for place in self.places.get(manifest.key, manifest.places))
            and any(_is_below(place.path, roots) for place in manifest.places)
        ]
        # Of a file that could not be read and is gone there is nothing to keep.
        gone = [
            key
            for key, manifest in known.items()
            if manifest.row.path in self.done.removed and is_path_key(key)
        ]
        remove_manifests(self.dataset, gone)
        changed = self._unify(pending)
        self._place(pending)
        for key in dict.fromkeys(manifest.key for manifest in seen.values()):
            if key in known and key not in pending:
                self._note_state(known[key].row)
        self._write(pending)
        self._conform(changed, set(pending))
        self._clean()
        return self.done

    def _note_state(self, row: CatalogueRow) -> None:
        """Note a log with losses, also one that an earlier run has written."""
        if row.status == FAILED:
            self.done.failed[row.path] = row.error
        elif row.status != OK:
            self.done.damaged.append(row.path)

    def _has_to_be_read_again(self, manifest: Manifest) -> bool:
        lacking = manifest.row.lacks_definitions and manifest.definitions != self.definitions
        return manifest.again or lacking

    def _plan(self, paths: Sequence[str], seen: dict[str, _Seen]) -> dict[str, _Pending]:
        """Return the tasks of each log in the order of *paths*, by key; collect the columns of their topics.

        Enters into *seen* which log lies at each path.
        """
        from logreel.fleet.topic_schema import TopicSchema

        results: dict[str, Result] = {}
        # Logs of one version have the same columns, which are kept once.
        columns: dict[str, dict[str, str]] = {}
        order: dict[str, str] = {}
        for path, result in self._plans(paths):
            if "tasks" in result:
                text = json.dumps(result["schemas"], sort_keys=True)
                order[path] = hashlib.blake2b(text.encode()).hexdigest()
                columns.setdefault(order[path], result.pop("schemas"))
            results[path] = result
        pending: dict[str, _Pending] = {}
        # In the order of the paths, so that columns do not depend on which worker was faster.
        known: set[tuple[str, str]] = set()
        for path in paths:
            result = results[path]
            if "key" in result:
                key, tasks = result["key"], result.get("tasks", ())
                mark = None if result["mark"] is None else Fingerprint(**result["mark"])
            else:
                mark = _fingerprint(path)
                key, tasks = path_key(path), [Task(path, mark, 0, 1, (), error=result["error"]).as_dict()]
            seen[path] = _Seen(key, LogPlace(path, mark), is_found=True)
            if not tasks or key in pending:
                continue
            pending[key] = _Pending([Task.from_dict(task) for task in tasks], bool(result.get("again", True)))
            self.done.notes += result.get("notes", ())
            for topic, text in columns[order[path]].items() if path in order else ():
                if (topic, text) in known:
                    continue
                known.add((topic, text))
                schema = TopicSchema.of_text(topic, text)
                old = self.schemas.get(topic) or self.dataset.stored_schema(topic)
                self.schemas[topic] = schema if old is None else old.merged(schema)
        return pending

    def _plans(self, paths: Sequence[str]) -> Iterator[tuple[str, Result]]:
        """Yield each path with its plan: first those that an earlier run, which did not end, has kept."""
        sizes: dict[int | None, list[str]] = {}
        for key, manifest in self.dataset.manifests.items():
            if is_content_key(key) and not self._has_to_be_read_again(manifest):
                sizes.setdefault(manifest.row.size, []).append(key)
        jobs = []
        for path in paths:
            mark = _fingerprint(path)
            alike = () if mark is None else sizes.get(mark.size, ())
            job = plan_job(path, mark, self.options, self.definitions, alike, self.dataset.stage, self.sync)
            with contextlib.suppress(OSError, LogError, KeyError, TypeError):
                result: Result = read_json(self.dataset.stage / plan_name(job))
                if "tasks" in result or result["key"] in self.dataset.manifests:
                    yield path, result
                    continue
            jobs.append(job)
        for job, result in self.engine.run(jobs):
            yield job["path"], result

    def _find_places(
        self,
        pending: Mapping[str, _Pending],
        seen: Mapping[str, _Seen],
        places: Mapping[str, tuple[str, LogPlace]],
        paths: Sequence[str],
    ) -> None:
        """Find out where each log of *seen* lies now; note what is new, changed, moved, copied or replaced.

        A place that does not exist any more is forgotten if the log lies at another one. A log of which all places
        have other content now is replaced by what lies at the first of them.
        """
        known = self.dataset.manifests
        now: dict[str, list[LogPlace]] = {}
        for path in paths:
            if path in seen:
                now.setdefault(seen[path].key, []).append(seen[path].place)
        touched = set(now) | {key for path, (key, _) in places.items() if path in seen}
        for key in sorted(touched):
            old = known[key].places if key in known else ()
            earlier = {place.path for place in old}
            here = {place.path: place for place in now.get(key, ())}
            fresh = [place for path, place in here.items() if path not in earlier]
            # A place that this run looked at holds the log only if it was seen there.
            left = [
                here.get(place.path, place) for place in old if place.path in here or place.path not in seen
            ]
            lying = [place for place in left if place.path in here or _lies(place.path)]
            if lying_or_last := [*fresh, *lying] or left:
                self.places[key] = lying_or_last
            else:
                successor = next(seen[place.path].key for place in old)
                self.replaced.setdefault(successor, []).append(key)
        for path, sighting in seen.items():
            if not sighting.is_found:
                continue
            before = places[path][0] if path in places else ""
            is_first = now[sighting.key][0].path == path
            if before and (before != sighting.key or sighting.key in pending):
                self.done.changed.append(path)
            elif before:
                # Only the time of modification is another one.
                self.done.unchanged.append(path)
            elif sighting.key in pending and sighting.key not in known and is_first:
                self.done.new.append(path)
            elif sighting.key in known and not any(_lies(place.path) for place in known[sighting.key].places):
                self.done.moved.append(path)
            else:
                self.done.copies.append(path)

    def _place(self, pending: Mapping[str, _Pending]) -> None:
        """Note new places of logs that are not written now."""
        for key, places in self.places.items():
            if key in pending:
                continue
            manifest = self.dataset.manifests[key]
            replaced = tuple(self.replaced.get(key, ()))
            if tuple(places) != manifest.places or replaced:
                self._replace([dataclasses.replace(manifest.at(places), replaces=replaced)])

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
        return self._schema(topic).digest

    def _schema(self, topic: str) -> TopicSchema:
        return self.schemas.get(topic) or self.dataset.schema(topic)

    def _write(self, pending: Mapping[str, _Pending]) -> None:
        """Write the logs, each soon after its last task is done."""
        texts = {topic: schema.text() for topic, schema in self.schemas.items()}
        stage = self.dataset.stage

        def jobs() -> Iterator[Job]:
            for key, log in pending.items():
                for task in log.tasks:
                    job = write_job(task, texts, stage, self.definitions, self.options.timestamps, self.sync)
                    log.jobs[task.number] = job
                    if task.error:
                        row = CatalogueRow(path=task.path, status=FAILED, error=task.error)
                        log.results[task.number] = {"row": row.as_dict(), "parts": [], "again": log.again}
                    elif (stored := self._stored(job, task)) is not None:
                        log.results[task.number] = stored
                    else:
                        yield job
                self._commit(key, log, len(pending))

        try:
            for job, result in self.engine.run(jobs()):
                key = job["task"]["log"]
                log = pending[key]
                number = job["task"]["number"]
                if "row" not in result:
                    row = CatalogueRow(path=job["task"]["path"], status=FAILED, error=result["error"])
                    result = {"row": row.as_dict(), "parts": [], "again": True}
                log.results[number] = result
                self._commit(key, log, len(pending))
        finally:
            # Also of a run that is interrupted.
            self._publish_complete(len(pending))

    def _stored(self, job: Job, task: Task) -> Result | None:
        """Return the result of a task that an earlier run has finished, with all its files; else None."""
        try:
            result: Result = read_json(self.dataset.stage / f"{job['id']}.json")
            row = CatalogueRow.from_dict(result["row"])
            # After a power failure a file may have its size, but not its content.
            is_complete = all(
                (file := self._find(made, row)) is not None
                and content_digest(os.fspath(file)) == made["digest"]
                for made in result["parts"]
            )
        except (OSError, LogError, KeyError, TypeError):
            return None
        return result if is_complete and _fingerprint(task.path) == task.fingerprint else None

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

    def _commit(self, key: str, log: _Pending, total: int) -> None:
        """Have a log published, soon, if all its tasks are done.

        First the files of some logs are synced and get their names, then manifests name them.
        """
        # An engine may ask for more jobs only after the result of the last one has come, which has published the log.
        if log.is_committed or len(log.results) < len(log.tasks):
            return
        log.is_committed = True
        rows = [CatalogueRow.from_dict(log.results[n]["row"]) for n in range(len(log.tasks))]
        row = merged(rows)
        row.log, path = key, log.tasks[0].path
        if is_content_key(key):
            row.digest = key
        again = any(log.results[n]["again"] for n in log.results)
        made = [part for n in range(len(log.tasks)) for part in log.results[n]["parts"]]
        if row.status == FAILED:
            # Of a log that could not be read to its end, nothing is published.
            made, row.rows = [], {}
        known = self.definitions if row.lacks_definitions else ""
        manifest = Manifest(row, (), again, known, replaces=tuple(self.replaced.get(key, ())))
        self.complete.append(
            _Complete(path, manifest.at(self.places[key]), made, [job["id"] for job in log.jobs.values()])
        )
        # Of thousands of logs, only those that are being written stay in memory.
        log.tasks, log.results, log.jobs = [], {}, {}
        if len(self.complete) >= BATCH_LOGS or monotonic() - self.published_at >= BATCH_SECONDS:
            self._publish_complete(total)
            self.published_at = monotonic()

    def _publish_complete(self, total: int) -> None:
        """Publish the logs that wait; *total*: logs of the run."""
        logs, self.complete = [self._synced(log) for log in self.complete], []
        parts = self._publish([(log.made, log.manifest.row) for log in logs])
        self._replace(
            [
                dataclasses.replace(log.manifest, parts=tuple(own))
                for log, own in zip(logs, parts, strict=True)
            ]
        )
        for log, own in zip(logs, parts, strict=True):
            for job in log.jobs:
                (self.dataset.stage / f"{job}.json").unlink(missing_ok=True)
            self.done.rows += sum(part.rows for part in own)
            self.done.parts += len(own)
            self._note_state(log.manifest.row)
            self.count += 1
            if self.progress is not None:
                self.progress(log.path, self.count, total)

    def _synced(self, log: _Complete) -> _Complete:
        """Return *log* with its files safe on the disk; as one that failed if the disk does not take one of them."""
        try:
            self._sync(log.made, log.manifest.row)
        except OSError as error:
            for made in log.made:
                (self.dataset.stage / os.path.basename(made["staged"])).unlink(missing_ok=True)
            text = f"its rows cannot be written to the disk: {error_text(error)}"
            row = dataclasses.replace(log.manifest.row, status=FAILED, error=text, rows={})
            return dataclasses.replace(
                log, manifest=dataclasses.replace(log.manifest, row=row, again=True), made=[]
            )
        return log

    def _sync(self, parts: Iterable[Mapping[str, Any]], row: CatalogueRow) -> None:
        """Wait until the disk has the files of a log, unless its jobs did; the next find that theirs is done."""
        for made in () if self.sync else parts:
            source = self._find(made, row)
            if source is not None:
                sync_file(source)

    def _publish(
        self, logs: Sequence[tuple[Sequence[Mapping[str, Any]], CatalogueRow]]
    ) -> list[list[DatasetFile]]:
        """Move files of logs, which are safe on the disk, to their places; return them as parts of each log."""
        moves: list[tuple[Path, Path]] = []
        parts: list[list[DatasetFile]] = []
        for made, row in logs:
            date = date_folder(row)
            parts.append([part_of(file, final_path(file, date)) for file in made])
            for file, part in zip(made, parts[-1], strict=True):
                source, target = self._find(file, row), self.dataset.path / part.path
                if source is None:
                    raise LogError(
                        f"a file that was just written is gone: {file['staged']}", path=os.fspath(target)
                    )
                moves.append((source, target))
        folders = set[Path]()
        for source, target in moves:
            if source != target:
                if not target.parent.is_dir():
                    target.parent.mkdir(parents=True)
                    folders.update((target.parent.parent, self.dataset.path))
                os.replace(source, target)
            folders.add(target.parent)
        for folder in sorted(folders):
            sync_folder(folder)
        return parts

    def _replace(self, manifests: Sequence[Manifest]) -> None:
        """Write manifests; then remove what they replace: files that only the old ones name, and other logs."""
        for manifest in manifests:
            manifest.write(self.dataset.logs_folder)
        if manifests:
            sync_folder(self.dataset.logs_folder)
        for manifest in manifests:
            old = self.dataset.manifests.get(manifest.key)
            kept = {part.path for part in manifest.parts}
            for part in old.parts if old is not None else ():
                if part.path not in kept:
                    (self.dataset.path / part.path).unlink(missing_ok=True)
            if old is not None:
                self.dataset.manifests[manifest.key] = manifest
        settle(self.dataset, manifests)

    def _conform(self, topics: Sequence[str], written: set[str]) -> None:
        """Give the files of logs that were not *written* now the columns that their topics have now."""
        texts = {topic: self._schema(topic).text() for topic in topics}
        digests = {topic: self._digest(topic) for topic in topics}
        jobs = []
        for key, made in self.dataset.manifests.items():
            old = [p for p in made.parts if p.topic in texts and p.columns != digests[p.topic]]
            if old and key not in written:
                jobs.append(conform_job(self.dataset.path, key, old, texts, self.dataset.stage, self.sync))
        for job, result in self.engine.run(jobs):
            if "parts" not in result:
                raise LogError(
                    f"older files cannot be given the new columns: {result['error']}",
                    path=self.dataset.manifests[job["log"]].row.path,
                )
            manifest = self.dataset.manifests[job["log"]]
            self._sync(result["parts"], manifest.row)
            fresh = dict(
                zip(
                    (made["old"] for made in result["parts"]),
                    self._publish([(result["parts"], manifest.row)])[0],
                    strict=True,
                )
            )
            self._replace(
                [dataclasses.replace(manifest, parts=tuple(fresh.get(p.path, p) for p in manifest.parts))]
            )

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


def _is_at(place: LogPlace) -> bool:
    """Return whether the file at a place is the one that was there."""
    return _fingerprint(place.path) == place.fingerprint


def _lies(path: str) -> bool:
    """Return whether there may be a log at *path*; nothing is asked of servers."""
    return is_url(path) or os.path.lexists(path)


def _is_below(path: str, roots: Sequence[str]) -> bool:
    """Return whether *path* is one of *roots* or lies below one; a pattern counts as its folder."""
    for root in roots:
        plain = root
        while any(c in plain for c in "*?["):
            plain = os.path.dirname(plain)
        if path == plain or path.startswith(plain.rstrip(os.sep) + os.sep):
            return True
    return False
