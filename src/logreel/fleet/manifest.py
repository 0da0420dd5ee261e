"""Manifests: one file of JSON per log, which names the Parquet files with its messages. Only what they name exists."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from logreel.errors import LogError
from logreel.fleet.catalogue_row import CatalogueRow
from logreel.fleet.source_files import Fingerprint
from logreel.io.atomic_file import sync_folder
from logreel.log.brief import Brief

VERSION = 2
_KEY = re.compile(r"[a-z0-9-]{8,64}")
#: Longest name of a folder of a topic; longer ones, and the empty topic, end with a digest.
_MAX_NAME = 200


@dataclass(frozen=True, slots=True, repr=False)
class Part(Brief):
    """One Parquet file of a dataset.

    path    in the dataset, with slashes
    rows, size, digest   number of rows, bytes, and BLAKE2b (16 bytes, hexadecimal) of the file
    columns  digest of the schema of the topic with which it was written
    """

    topic: str
    path: str
    rows: int
    size: int
    digest: str
    columns: str


@dataclass(frozen=True, slots=True, repr=False)
class LogPlace(Brief):
    """Where a log lies, and the fingerprint that its file had there; None if it cannot be read."""

    path: str
    fingerprint: Fingerprint | None


@dataclass(frozen=True, slots=True, repr=False)
class Manifest(Brief):
    """All that a dataset has of one log: its row of the catalogue, its files, and where it lies.

    again  True: reading failed by a fault that may pass, so the next run tries again
    definitions  of a log that lacks definitions: digest of those that were known; with others, the next run tries again
    places  newest first; the last known one if it lies nowhere
    replaces  keys of logs that lay where this one lies now: they are no part of the dataset, whether their manifests
            have been removed already or not
    """

    row: CatalogueRow
    parts: tuple[Part, ...] = field(default=())
    again: bool = False
    definitions: str = ""
    places: tuple[LogPlace, ...] = ()
    replaces: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Key of the log, and name of the manifest."""
        return self.row.log

    def at(self, places: Iterable[LogPlace]) -> Self:
        """Return the manifest of the same log with other places, one at least."""
        ordered = tuple(places)
        mark = ordered[0].fingerprint
        row = replace(self.row, path=ordered[0].path, paths=[place.path for place in ordered])
        if mark is not None:
            row.size, row.mtime_ns, row.fingerprint = mark.size, mark.mtime_ns, mark.digest
        return replace(self, row=row, places=ordered)

    def write(self, folder: Path) -> None:
        """Write the manifest to *folder* in one step, replacing the one of another version of the log."""
        data = {"version": VERSION, "row": self.row.as_dict(), "again": self.again}
        data |= {"definitions": self.definitions, "replaces": list(self.replaces)}
        data["places"] = [asdict(place) for place in self.places]
        write_json(folder / f"{self.key}.json", data | {"parts": [asdict(part) for part in self.parts]})

    @classmethod
    def load(cls, path: Path) -> Self:
        """Return the manifest at *path*; raises LogError if it cannot be used."""
        data = read_json(path)
        try:
            if data["version"] != VERSION:
                raise LogError(f"a manifest of version {data['version']}", path=os.fspath(path))
            parts = tuple(Part(**part) for part in data["parts"])
            for part in parts:
                check_part_path(part.path)
            row = CatalogueRow.from_dict(data["row"])
            replaces = tuple(map(str, data["replaces"]))
            for key in (row.log, *replaces):
                if not _KEY.fullmatch(key):
                    raise ValueError(f"{key!r} is no key of a log")
            places = tuple(_place(**place) for place in data["places"])
            return cls(row, parts, bool(data["again"]), str(data["definitions"]), places, replaces)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise LogError(f"is no manifest of a log: {error}", path=os.fspath(path)) from None


def _place(path: str, fingerprint: Mapping[str, Any] | None) -> LogPlace:
    return LogPlace(path, None if fingerprint is None else Fingerprint(**fingerprint))


def check_part_path(path: str) -> None:
    """Raise ValueError for a path that does not lie in a folder of a topic of the dataset."""
    names = path.split("/")
    plain = len(names) == 3 and not {"..", ".", ""}.intersection(names) and "\\" not in path
    if not (plain and names[0].startswith("topic=") and names[1].startswith("date=")):
        raise ValueError(f"{path!r} is no part of a dataset")


def topic_folder(topic: str) -> str:
    """Return the name of the folder of a topic: percent-encoded, so that no topic leaves the dataset."""
    text = quote(topic.encode("utf-8", "surrogatepass"), safe="")
    if not text or len(text) > _MAX_NAME:
        digest = hashlib.blake2b(topic.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        # An escape is not cut into two.
        text = f"{text[:_MAX_NAME].rpartition('%')[0] or text[:_MAX_NAME]}-{digest}"
    return f"topic={text}"


def date_folder(row: CatalogueRow) -> str:
    """Return the name of the folder of a day: that on which the log begins, in UTC, or ``unknown``."""
    if row.start_utc_ns is not None:
        try:
            return f"date={datetime.fromtimestamp(row.start_utc_ns // 10**9, UTC):%Y-%m-%d}"
        except (ValueError, OverflowError, OSError):
            pass
    return "date=unknown"


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write a file of JSON that appears, or replaces the old one, in one step and survives a crash."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    text = json.dumps(data, sort_keys=True).encode() + b"\n"
    try:
        with open(temporary, "wb") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def read_json(path: Path) -> Any:
    """Return the content of a file of JSON; raises LogError if it is none."""
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise LogError(f"is damaged: {error}", path=os.fspath(path)) from None
