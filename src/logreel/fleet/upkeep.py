"""Upkeep of a dataset: what it says of its logs, whether its files are as they were written, and removing logs."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from logreel.errors import LogError
from logreel.fleet.catalogue_row import DAMAGED, FAILED, HOUR, LONGEST, CatalogueRow
from logreel.fleet.dataset import Dataset, DatasetFile, Manifest, locked, read_json, write_json
from logreel.fleet.source_files import content_digest, error_text
from logreel.io.atomic_file import sync_folder
from logreel.log.scan import Brief
from logreel.registry.registry import log_suffixes

#: A topic that this share of the logs of a format and vehicle has is missed in the others; of so many logs at least.
USUAL, LEAST = 0.5, 3


@dataclass(frozen=True, slots=True, repr=False)
class Status(Brief):
    """The state of a dataset.

    logs, ok, damaged, failed  numbers of logs
    again       logs whose reading failed by a fault that may pass: the next run reads them
    topics, parts, rows, size  what is in it, size in bytes
    planned, unfinished  logs that were planned, and tasks that were done, by a run that did not end; the next one need
                not repeat them
    orphans     files that such a run left
    """

    path: str
    logs: int
    ok: int
    damaged: int
    failed: int
    again: int
    topics: int
    parts: int
    rows: int
    size: int
    planned: int
    unfinished: int
    orphans: int

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``fleet status --json``."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Hours:
    """Time recorded by one vehicle with one firmware; empty texts where the logs do not tell."""

    vehicle: str
    firmware: str
    logs: int
    hours: float


@dataclass(frozen=True, slots=True, repr=False)
class FleetReport(Brief):
    """What a dataset says of a fleet.

    damaged     logs with losses or topics that cannot be decoded: path, bytes lost, first problem
    failed      why logs cannot be read, by path
    missing     topics that most logs of the same format have, and this one does not, by path
    hours       time by vehicle and firmware; of logs in *clocks* that of their sound part
    clocks      why the clock of a log is implausible, by path
    spans       hours from the first to the last time of logs in which that is more than a year, by path
    duplicates  places of logs that lie at several ones
    notes       what was done where versions of a topic differ, one sentence for each column
    """

    path: str
    damaged: list[tuple[str, int, str]] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    missing: dict[str, list[str]] = field(default_factory=dict)
    hours: list[Hours] = field(default_factory=list)
    clocks: dict[str, str] = field(default_factory=dict)
    spans: dict[str, float] = field(default_factory=dict)
    duplicates: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def unrelated(self) -> Counter[str]:
        """Numbers of files in *failed* that are not named as logs are, by suffix."""
        return Counter(os.path.splitext(path)[1].lower() for path in self.failed if self.is_unrelated(path))

    def is_unrelated(self, path: str) -> bool:
        """Return whether a file is not named as logs of any format are."""
        return not path.lower().endswith(log_suffixes())

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``fleet report --json``."""
        data = asdict(self)
        data["damaged"] = [
            {"log": path, "lost_bytes": lost, "problem": text} for path, lost, text in self.damaged
        ]
        return data


def status(dataset: Dataset | str | os.PathLike[str]) -> Status:
    """Return the state of a dataset; raises UsageError for a folder that is none."""
    result = dataset if isinstance(dataset, Dataset) else Dataset(dataset)
    counts = Counter(row.status for row in result.rows)
    parts = [part for parts_of_topic in result.parts.values() for part in parts_of_topic]
    return Status(
        os.fspath(result.path),
        len(result.rows),
        counts["ok"],
        counts[DAMAGED],
        counts[FAILED],
        sum(manifest.again for manifest in result.manifests.values()),
        len(result.topics),
        len(parts),
        sum(part.rows for part in parts),
        sum(part.size for part in parts),
        sum(1 for _ in result.stage.glob("*.plan")),
        sum(1 for _ in result.stage.glob("*.json")),
        len(result.orphans()),
    )


def report(dataset: Dataset | str | os.PathLike[str]) -> FleetReport:
    """Return what a dataset says of its fleet; raises UsageError for a folder that is none."""
    result = dataset if isinstance(dataset, Dataset) else Dataset(dataset)
    rows = result.rows
    readable = [row for row in rows if row.status != FAILED]
    return FleetReport(
        os.fspath(result.path),
        [(row.path, row.lost_bytes, _first_problem(row)) for row in rows if row.status == DAMAGED],
        {row.path: row.error for row in rows if row.status == FAILED},
        _missing(readable),
        _hours(readable),
        {row.path: row.clock_reason for row in readable if row.clock_reason},
        {row.path: hours for row in readable if (hours := _span(row)) > LONGEST / HOUR},
        _duplicates(readable),
        [
            f"{topic}: {name}: {note}"
            for topic in result.topics
            for name, note in result.schema(topic).notes.items()
        ],
    )


def _first_problem(row: CatalogueRow) -> str:
    lost = [problem["text"] for problem in row.problems if problem["lost"]]
    return next(iter([*lost, *row.undecodable.values()]), "")


def _missing(rows: Sequence[CatalogueRow]) -> dict[str, list[str]]:
    """Return the topics that each log lacks, and most logs of its format have with messages."""
    topics: dict[str, list[str]] = {}
    for name in sorted({row.format for row in rows}):
        alike = [row for row in rows if row.format == name]
        if len(alike) < LEAST:
            continue
        counts = Counter(topic for row in alike for topic, n in row.topics.items() if n and topic[:1] != "~")
        usual = sorted(topic for topic, n in counts.items() if n > USUAL * len(alike))
        for row in alike:
            if lacking := [topic for topic in usual if not row.topics.get(topic)]:
                topics[row.path] = lacking
    return dict(sorted(topics.items()))


def _hours(rows: Sequence[CatalogueRow]) -> list[Hours]:
    logs: Counter[tuple[str, str]] = Counter()
    hours = dict[tuple[str, str], float]()
    for row in rows:
        key = row.vehicle, row.firmware
        logs[key] += 1
        hours[key] = hours.get(key, 0.0) + (row.duration_ns or 0) / HOUR
    return [Hours(*key, logs[key], hours[key]) for key in sorted(logs)]


def _span(row: CatalogueRow) -> float:
    """Return the hours from the first to the last time of a log."""
    return 0.0 if row.start_ns is None or row.end_ns is None else (row.end_ns - row.start_ns) / HOUR


def _duplicates(rows: Sequence[CatalogueRow]) -> list[list[str]]:
    groups: dict[tuple[str, int | None], list[str]] = {}
    for row in rows:
        if row.digest:
            # Remote logs of one entity tag are several logs.
            groups.setdefault((row.digest, row.size), []).extend(row.paths or [row.path])
    return sorted(paths for paths in groups.values() if len(paths) > 1)


#: Name of the file in the stage that names the files of logs that are being removed.
JOURNAL = "removing"


@dataclass(slots=True, repr=False)
class Removed(Brief):
    """What ``remove`` did.

    logs     paths of each log that was removed, by its key
    rows, parts  rows and files that are gone
    unknown  what was asked for and is not in the dataset
    """

    logs: dict[str, list[str]] = field(default_factory=dict)
    rows: int = 0
    parts: int = 0
    unknown: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``fleet remove --json``."""
        return asdict(self)


def remove(
    dataset: str | os.PathLike[str], logs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
) -> Removed:
    """Delete logs from a dataset: their rows, files and rows of the catalogue; return what was removed.

    logs  keys, or begins of keys of six characters or more; paths; or folders, for all logs in and below them. A log
          that lies at several places is removed as a whole by any of them. The files of the logs themselves stay

    A log is removed in one step: whenever the machine stops, all of it is there or nothing. What the dataset does not
    have is in the result, so that removing twice is no error.

    Raises UsageError for a folder that is no dataset, and for the begin of several keys; LogError if another process
    writes the dataset; OSError if it cannot be written.
    """
    target, done = Dataset(dataset), Removed()
    wanted = [logs] if isinstance(logs, str | os.PathLike) else list(logs)
    with locked(target):
        settle(target)
        keys: dict[str, None] = {}
        for name in [os.fspath(item) for item in wanted]:
            own = target.keys_of(name)
            keys |= dict.fromkeys(own)
            if not own:
                done.unknown.append(name)
        chosen = [target.manifests[key] for key in keys]
        if not chosen:
            return done
        paths = [part.path for manifest in chosen for part in manifest.parts]
        # A run that dies from here on is completed by the next one.
        write_json(target.stage / JOURNAL, {"parts": paths})
        remove_manifests(target, keys)
        _remove_files(target, paths)
        (target.stage / JOURNAL).unlink()
        for manifest in chosen:
            done.logs[manifest.key] = list(manifest.row.paths)
            done.rows += sum(part.rows for part in manifest.parts)
            done.parts += len(manifest.parts)
    return done


def settle(dataset: Dataset, manifests: Sequence[Manifest] | None = None) -> None:
    """Complete what a run left that died while it removed or replaced logs of *dataset*, which is locked.

    manifests  those that may name logs that they replace; None: all
    """
    if manifests is None:
        with contextlib.suppress(FileNotFoundError, LogError, KeyError):
            paths = read_json(dataset.stage / JOURNAL)["parts"]
            named = {part.path for manifest in dataset.manifests.values() for part in manifest.parts}
            _remove_files(dataset, [path for path in paths if path not in named])
            (dataset.stage / JOURNAL).unlink()
        for partial in dataset.stage.glob(f".{JOURNAL}.*.partial"):
            partial.unlink()
        manifests = list(dataset.manifests.values())
    for manifest in manifests:
        if not manifest.replaces:
            continue
        paths = []
        for key in manifest.replaces:
            with contextlib.suppress(FileNotFoundError):
                paths += [part.path for part in Manifest.load(dataset.manifest_file(key)).parts]
        remove_manifests(dataset, manifest.replaces)
        _remove_files(dataset, paths)
        plain = dataclasses.replace(manifest, replaces=())
        plain.write(dataset.logs_folder)
        sync_folder(dataset.logs_folder)
        if manifest.key in dataset.manifests:
            dataset.manifests[manifest.key] = plain


def remove_manifests(dataset: Dataset, keys: Iterable[str]) -> None:
    """Take logs out of *dataset*, which is locked; their files are orphans then."""
    for key in keys:
        dataset.manifest_file(key).unlink(missing_ok=True)
        dataset.manifests.pop(key, None)
    sync_folder(dataset.logs_folder)


def _remove_files(dataset: Dataset, paths: Iterable[str]) -> None:
    """Remove files that no manifest names, and folders that are empty then."""
    folders: set[Path] = set()
    for path in paths:
        file = dataset.path / path
        file.unlink(missing_ok=True)
        folders.add(file.parent)
    for folder in sorted(folders):
        for empty in (folder, folder.parent):
            # Those with other files stay.
            with contextlib.suppress(OSError):
                empty.rmdir()


@dataclass(frozen=True, slots=True, repr=False)
class Verified(Brief):
    """The result of ``verify``.

    files, rows  that are as the catalogue says
    wrong   why files are not, by path in the dataset; manifests too
    orphans  files that no manifest names; they are not part of the dataset
    """

    path: str
    files: int
    rows: int
    wrong: dict[str, str]
    orphans: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``fleet verify --json``."""
        return asdict(self)


def verify(dataset: str | os.PathLike[str]) -> Verified:
    """Read every file of a dataset and compare digest, size and number of rows with the catalogue.

    Raises UsageError for a folder that is no dataset. Everything else that is wrong is in the result.
    """
    opened = Dataset(dataset)
    wrong: dict[str, str] = {}
    files = rows = 0
    named = set()
    manifests: dict[Path, Manifest] = {}
    for path in sorted(opened.logs_folder.glob("*.json")):
        try:
            manifests[path] = Manifest.load(path)
        except LogError as error:
            wrong[path.relative_to(opened.path).as_posix()] = error.text
    replaced = {key for manifest in manifests.values() for key in manifest.replaces}
    for path, manifest in manifests.items():
        name = path.relative_to(opened.path).as_posix()
        if manifest.key in replaced:
            continue
        if path.stem != manifest.key:
            wrong[name] = "is the manifest of another log"
        counted: dict[str, int] = {}
        for part in manifest.parts:
            named.add(part.path)
            counted[part.topic] = counted.get(part.topic, 0) + part.rows
            why = _fault(opened.path, part)
            if why:
                wrong[part.path] = why
            else:
                files, rows = files + 1, rows + part.rows
        if counted != {topic: n for topic, n in manifest.row.rows.items() if n}:
            wrong.setdefault(name, "its files do not have the rows that were read from the log")
    orphans = [path for path in opened.files() if path not in named]
    return Verified(os.fspath(opened.path), files, rows, wrong, orphans)


def _fault(folder: Path, part: DatasetFile) -> str:
    """Return what is wrong with a file; empty if it is as the catalogue says."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / part.path
    try:
        size = path.stat().st_size
        if size != part.size:
            return f"has {size} bytes instead of {part.size}"
        if content_digest(os.fspath(path)) != part.digest:
            return "has other content than when it was written"
        count = pq.read_metadata(path).num_rows
    except (OSError, pa.ArrowException) as error:
        return error_text(error)
    return "" if count == part.rows else f"has {count} rows instead of {part.rows}"
