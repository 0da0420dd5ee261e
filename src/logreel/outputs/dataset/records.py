"""What a dataset knows about itself: the specification, and for each log and episode where it comes from.

OUT/logreel/dataset.json               target, specification, columns, whether it is complete
OUT/logreel/episodes/episode-000000.json   one per finished episode; only these count
OUT/logreel/logs/log-000000.json       one per finished log
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

from logreel.errors import LogError
from logreel.io.atomic_file import make_folders
from logreel.io.locking import is_at, lock
from logreel.outputs.dataset.episode import Column, Head
from logreel.outputs.dataset.spec import Spec
from logreel.outputs.files import new_file

FOLDER, MARK = "logreel", "logreel_training_data"
#: Changes when the same specification leads to another content.
VERSION = 1


def digest_of(*parts: Any) -> str:
    """Return a digest of JSON data and bytes."""
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        raw = part if isinstance(part, bytes) else json.dumps(part, sort_keys=True, default=_plain).encode()
        found.update(len(raw).to_bytes(8, "little") + raw)
    return found.hexdigest()


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Fraction) else list(value)


def spec_data(spec: Spec) -> dict[str, Any]:
    """Return a specification as JSON data."""
    data: dict[str, Any] = json.loads(json.dumps(asdict(spec), default=_plain))
    return data


class Records:
    """The records of the dataset at *root*; they may be those of an interrupted run.

    head      content of ``dataset.json``; empty if there is no dataset
    episodes  records of the finished episodes
    logs      records of the finished logs
    """

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root / FOLDER
        self.head: dict[str, Any] = {}
        if (self.folder / "dataset.json").exists():
            self.head = _read(self.folder / "dataset.json")
        if self.head and self.head.get(MARK) != VERSION:
            raise LogError("is a dataset of another version of logreel", path=os.fspath(root))
        self.episodes = list(_numbered(self.folder / "episodes", "episode"))
        self.logs = list(_numbered(self.folder / "logs", "log"))

    def create(self, to: str, spec: Spec) -> None:
        """Begin a dataset."""
        for name in ("episodes", "logs"):
            make_folders(self.folder / name)
        self.write_head({MARK: VERSION, "to": to, "spec": spec_data(spec), "complete": False})

    def write_head(self, head: Mapping[str, Any]) -> None:
        """Replace ``dataset.json``."""
        self.head = dict(head)
        _write(self.folder / "dataset.json", self.head)

    def head_of(self, spec: Spec) -> Head | None:
        """Return what all episodes share; None as long as there is none."""
        columns = self.head.get("columns")
        if columns is None:
            return None
        return Head(spec, tuple(Column.of(one["name"], one) for one in columns))

    def set_columns(self, columns: Iterable[Column]) -> None:
        """Store the columns."""
        self.write_head(self.head | {"columns": [{"name": one.name, **one.as_dict()} for one in columns]})

    def add_episode(self, record: Mapping[str, Any]) -> None:
        """Count one more episode as finished."""
        _write(self.folder / "episodes" / f"episode-{len(self.episodes):06d}.json", record)
        self.episodes.append(dict(record))

    def add_log(self, number: int, record: Mapping[str, Any]) -> None:
        """Count a log as finished; later ones are not any more."""
        del self.logs[number:]
        _write(self.folder / "logs" / f"log-{number:06d}.json", record)
        self.logs.append(dict(record))

    def end(self, logs: int) -> None:
        """Mark the dataset as complete, and forget logs beyond the given number."""
        del self.logs[logs:]
        for path in sorted((self.folder / "logs").glob("log-*.json")):
            if int(path.stem.partition("-")[2]) >= logs:
                path.unlink()
        for path in self.root.rglob(".logreel-*.partial"):
            with contextlib.suppress(OSError):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        if not self.head["complete"]:
            self.write_head(self.head | {"complete": True})

    def begin(self) -> None:
        """Mark the dataset as not complete."""
        if self.head["complete"]:
            self.write_head(self.head | {"complete": False})


def _numbered(folder: Path, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the records of a folder, up to the first one that is missing."""
    number = 0
    while (path := folder / f"{kind}-{number:06d}.json").exists():
        yield _read(path)
        number += 1


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise LogError(f"is damaged: {error}", path=os.fspath(path)) from None
    if not isinstance(data, dict):
        raise LogError("is damaged: no JSON object", path=os.fspath(path))
    return data


def _write(path: Path, data: Mapping[str, Any]) -> None:
    with new_file(path, force=True) as out:
        out.write(json.dumps(data, sort_keys=True, indent=1).encode() + b"\n")


@contextlib.contextmanager
def locked(root: Path) -> Iterator[None]:
    """Lock the dataset at *root* against other processes that write; raises LogError if one does."""
    # A lock in the folder would be lost when the folder is exchanged.
    path = root.with_name(f".{root.name}.logreel-lock")
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        try:
            if not lock(handle):
                raise LogError("is being written by another process", path=os.fspath(root))
            if not is_at(handle, path):
                # The process that had it has just removed it.
                continue
            try:
                yield
            finally:
                with contextlib.suppress(OSError):
                    path.unlink()
            return
        finally:
            os.close(handle)
