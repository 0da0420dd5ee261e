"""What a dataset says of a fleet: damaged logs, missing topics, hours by vehicle and firmware, duplicates."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from logreel.fleet.catalogue_row import DAMAGED, FAILED, CatalogueRow
from logreel.fleet.clocks import HOUR, LONGEST
from logreel.fleet.dataset import Dataset
from logreel.log.brief import Brief
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
    found = dataset if isinstance(dataset, Dataset) else Dataset(dataset)
    counts = Counter(row.status for row in found.rows)
    parts = [part for some in found.parts.values() for part in some]
    return Status(
        os.fspath(found.path),
        len(found.rows),
        counts["ok"],
        counts[DAMAGED],
        counts[FAILED],
        sum(one.again for one in found.manifests.values()),
        len(found.topics),
        len(parts),
        sum(part.rows for part in parts),
        sum(part.size for part in parts),
        sum(1 for _ in found.stage.glob("*.plan")),
        sum(1 for _ in found.stage.glob("*.json")),
        len(found.orphans()),
    )


def report(dataset: Dataset | str | os.PathLike[str]) -> FleetReport:
    """Return what a dataset says of its fleet; raises UsageError for a folder that is none."""
    found = dataset if isinstance(dataset, Dataset) else Dataset(dataset)
    rows = found.rows
    readable = [row for row in rows if row.status != FAILED]
    return FleetReport(
        os.fspath(found.path),
        [(row.path, row.lost_bytes, _first_problem(row)) for row in rows if row.status == DAMAGED],
        {row.path: row.error for row in rows if row.status == FAILED},
        _missing(readable),
        _hours(readable),
        {row.path: row.clock_reason for row in readable if row.clock_reason},
        {row.path: hours for row in readable if (hours := _span(row)) > LONGEST / HOUR},
        _duplicates(readable),
        [
            f"{topic}: {name}: {note}"
            for topic in found.topics
            for name, note in found.schema(topic).notes.items()
        ],
    )


def _first_problem(row: CatalogueRow) -> str:
    lost = [problem["text"] for problem in row.problems if problem["lost"]]
    return next(iter([*lost, *row.undecodable.values()]), "")


def _missing(rows: Sequence[CatalogueRow]) -> dict[str, list[str]]:
    """Return the topics that each log lacks, and most logs of its format have with messages."""
    found: dict[str, list[str]] = {}
    for name in sorted({row.format for row in rows}):
        alike = [row for row in rows if row.format == name]
        if len(alike) < LEAST:
            continue
        counts = Counter(topic for row in alike for topic, n in row.topics.items() if n and topic[:1] != "~")
        usual = sorted(topic for topic, n in counts.items() if n > USUAL * len(alike))
        for row in alike:
            if lacking := [topic for topic in usual if not row.topics.get(topic)]:
                found[row.path] = lacking
    return dict(sorted(found.items()))


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
