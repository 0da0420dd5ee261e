"""Compares the files of a dataset with its catalogue, after it has been copied or kept for years."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from logreel.errors import LogError
from logreel.fleet.cut import error_text
from logreel.fleet.dataset import Dataset
from logreel.fleet.manifest import Manifest, Part
from logreel.fleet.source_files import content_digest
from logreel.log.brief import Brief


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


def _fault(folder: Path, part: Part) -> str:
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
