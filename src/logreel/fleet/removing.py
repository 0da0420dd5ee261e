"""Removes logs from a dataset: rows, files and the row of the catalogue."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from logreel.errors import LogError
from logreel.fleet.dataset import Dataset, locked
from logreel.fleet.manifest import Manifest, read_json, write_json
from logreel.io.atomic_file import sync_folder
from logreel.log.brief import Brief

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
