"""A dataset of many logs: Parquet by topic and day, and a catalogue of manifests, which says what is in it.

DATASET/topic=…/date=…/part-….parquet   messages
DATASET/_catalog/dataset.json           options, version
DATASET/_catalog/logs/….json            a manifest per log
DATASET/_catalog/topics/….json          columns of a topic
DATASET/_catalog/stage/                 what is being written
DATASET/_catalog/lock                   locked by the process that writes
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from logreel.errors import LogError, TopicError, UsageError
from logreel.fleet.catalogue_row import CatalogueRow
from logreel.fleet.source_files import CATALOGUE, Fingerprint
from logreel.io.arrays import check_arrow_threads
from logreel.io.atomic_file import sync_folder
from logreel.io.platform import FLAGS, lock
from logreel.io.source import is_url
from logreel.log.scan import Brief

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

    from logreel.fleet.topic_schema import TopicSchema


MANIFEST_VERSION = 2
_KEY = re.compile(r"[a-z0-9-]{8,64}")
#: Longest name of a folder of a topic; longer ones, and the empty topic, end with a digest.
_MAX_NAME = 200


@dataclass(frozen=True, slots=True, repr=False)
class DatasetFile(Brief):
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
    parts: tuple[DatasetFile, ...] = field(default=())
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
        """Write the manifest to *folder* in one step, replacing the one of another version of the log.

        The caller syncs *folder*, once for all manifests that it writes.
        """
        data = {"version": MANIFEST_VERSION, "row": self.row.as_dict(), "again": self.again}
        data |= {"definitions": self.definitions, "replaces": list(self.replaces)}
        data["places"] = [asdict(place) for place in self.places]
        data["parts"] = [asdict(part) for part in self.parts]
        write_json(folder / f"{self.key}.json", data, sync_name=False)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Return the manifest at *path*; raises LogError if it cannot be used."""
        data = read_json(path)
        try:
            if data["version"] != MANIFEST_VERSION:
                raise LogError(f"a manifest of version {data['version']}", path=os.fspath(path))
            parts = tuple(DatasetFile(**part) for part in data["parts"])
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


def write_json(path: Path, data: Mapping[str, Any], sync: bool = True, sync_name: bool = True) -> None:
    """Write a file of JSON that appears, or replaces the old one, in one step.

    It survives a power failure; without *sync*, whoever reads it after one may find a damaged file, and without
    *sync_name* the old one, until the folder is synced.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    text = json.dumps(data, sort_keys=True).encode() + b"\n"
    try:
        with open(temporary, "wb") as out:
            out.write(text)
            if sync:
                out.flush()
                os.fsync(out.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    if sync and sync_name:
        sync_folder(path.parent)


def read_json(path: Path) -> Any:
    """Return the content of a file of JSON; raises LogError if it is none."""
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise LogError(f"is damaged: {error}", path=os.fspath(path)) from None


#: Characters of a key that are enough to mean it.
KEY_LENGTH = 6
VERSION, MARK = 2, "logreel_dataset"


class Dataset:
    """A dataset that ``logreel.fleet.ingest`` wrote, as it was when it was opened.

    path  its folder

    Raises UsageError for a folder that is no dataset.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.catalogue = self.path / CATALOGUE
        self.options: Mapping[str, Any] = _options(self.catalogue / "dataset.json", os.fspath(path))

    def __repr__(self) -> str:
        return f"<logreel.fleet.Dataset {os.fspath(self.path)!r}: {len(self.manifests)} logs>"

    @property
    def logs_folder(self) -> Path:
        """Folder of the manifests."""
        return self.catalogue / "logs"

    @property
    def stage(self) -> Path:
        """Folder of what is being written."""
        return self.catalogue / "stage"

    def manifest_file(self, key: str) -> Path:
        """Return the path of the manifest of a log."""
        return self.logs_folder / f"{key}.json"

    @cached_property
    def manifests(self) -> dict[str, Manifest]:
        """Manifests by key of the log, in order of the paths; raises LogError if one is damaged."""
        manifests = [Manifest.load(path) for path in sorted(self.logs_folder.glob("*.json"))]
        replaced = {key for manifest in manifests for key in manifest.replaces}
        ordered = sorted(manifests, key=lambda manifest: (manifest.row.path, manifest.key))
        return {manifest.key: manifest for manifest in ordered if manifest.key not in replaced}

    def keys_of(self, log: str) -> list[str]:
        """Return the keys of the logs that *log* means: a key or the begin of one, a path, or a folder of logs.

        Raises UsageError for the begin of several keys.
        """
        if log in self.manifests:
            return [log]
        path = log if is_url(log) else os.path.abspath(log)
        below = path.rstrip("/") + "/"
        keys = [
            key
            for key, manifest in self.manifests.items()
            if any(place.path == path or place.path.startswith(below) for place in manifest.places)
        ]
        if keys or len(log) < KEY_LENGTH:
            return keys
        keys = [key for key in self.manifests if key.startswith(log)]
        if len(keys) > 1:
            raise UsageError(f"{log} begins the keys of {len(keys)} logs: give more of it")
        return keys

    @property
    def rows(self) -> list[CatalogueRow]:
        """Rows of the catalogue in order of the paths."""
        return [manifest.row for manifest in self.manifests.values()]

    @cached_property
    def parts(self) -> dict[str, list[DatasetFile]]:
        """Files by topic, in order of the logs."""
        parts: dict[str, list[DatasetFile]] = {}
        for manifest in self.manifests.values():
            for part in manifest.parts:
                parts.setdefault(part.topic, []).append(part)
        return dict(sorted(parts.items()))

    @property
    def topics(self) -> list[str]:
        """Names of all topics."""
        return list(self.parts)

    def schema(self, topic: str) -> TopicSchema:
        """Return the columns of a topic; raises TopicError if the dataset does not have it."""
        schema = self.stored_schema(topic)
        if schema is None:
            raise TopicError("topic", topic, self.topics, path=os.fspath(self.path))
        return schema

    def stored_schema(self, topic: str) -> TopicSchema | None:
        """Return the columns of a topic; None if the dataset does not have it."""
        from logreel.fleet.topic_schema import TopicSchema

        path = self.schema_file(topic)
        return TopicSchema.of_text(topic, read_json(path)["schema"]) if path.exists() else None

    def schema_file(self, topic: str) -> Path:
        """Return the path of the file with the columns of a topic."""
        return self.catalogue / "topics" / f"{topic_folder(topic).removeprefix('topic=')}.json"

    def arrow(self, topic: str) -> ds.Dataset:
        """Return a topic as a ``pyarrow.dataset.Dataset``, for DuckDB, polars and pyarrow.

        Raises TopicError if the dataset does not have it, MemoryError or RuntimeError without room for threads that
        read it.
        """
        import pyarrow.dataset as ds

        check_arrow_threads()
        schema = self.schema(topic).schema.remove_metadata()
        files = [os.path.join(self.path, part.path) for part in self.parts.get(topic, [])]
        return ds.dataset(files, schema=schema, format="parquet")

    def table(self, topic: str, columns: list[str] | None = None) -> pa.Table:
        """Return a topic as a table, in order of the logs; raises TopicError if the dataset does not have it."""
        return self.arrow(topic).to_table(columns=columns)

    def logs(self) -> pa.Table:
        """Return the catalogue as a table, a row per log; columns as in docs/howto/fleet.md."""
        from logreel.fleet.catalogue_row import catalogue_table

        return catalogue_table(self.rows)

    def part_table(self) -> pa.Table:
        """Return all files as a table: log, topic, path, rows, size, digest."""
        import pyarrow as pa

        texts = [pa.field(name, pa.string()) for name in ("log", "topic", "path")]
        numbers = [pa.field(name, pa.int64()) for name in ("rows", "size")]
        fields: list[pa.Field[Any]] = [*texts, *numbers, pa.field("digest", pa.string())]
        schema = pa.schema(fields)
        rows = [
            {
                "log": manifest.key,
                "topic": part.topic.encode("utf-8", "replace").decode(),
                "path": part.path,
                "rows": part.rows,
                "size": part.size,
                "digest": part.digest,
            }
            for manifest in self.manifests.values()
            for part in manifest.parts
        ]
        return pa.Table.from_pylist(rows, schema)

    def files(self) -> Iterator[str]:
        """Yield the paths in the dataset of all files that have the name of a part, of manifests or not."""
        for folder in sorted(self.path.glob("topic=*")):
            for file in sorted(folder.glob("date=*/*")):
                yield file.relative_to(self.path).as_posix()

    def orphans(self) -> list[str]:
        """Return the paths in the dataset of files that no manifest names: a run left them that did not end."""
        named = {part.path for parts in self.parts.values() for part in parts}
        return [path for path in self.files() if path not in named]


def _options(path: Path, name: str) -> Mapping[str, Any]:
    try:
        data = read_json(path)
    except FileNotFoundError:
        raise UsageError("is no dataset of logreel", path=name) from None
    if not isinstance(data, dict) or data.get(MARK) != VERSION:
        raise UsageError(
            "is a dataset of another version of logreel: ingest the logs again, into another folder",
            path=name,
        )
    options: Mapping[str, Any] = data["options"]
    return options


def create_dataset(path: str | os.PathLike[str], options: Mapping[str, Any]) -> Dataset:
    """Return the dataset at *path*; create it if there is nothing.

    Raises LogError for a folder with other content, UsageError for a dataset that was made with other options.
    """
    folder = Path(path)
    file = folder / CATALOGUE / "dataset.json"
    if not file.exists():
        if folder.exists() and (
            not folder.is_dir() or any(name.name != CATALOGUE for name in folder.iterdir())
        ):
            raise LogError("exists already, and is no dataset of logreel", path=os.fspath(path))
        if not folder.absolute().parent.is_dir():
            raise LogError("cannot be written: there is no such folder as its parent", path=os.fspath(path))
        for name in ("logs", "topics", "stage"):
            (folder / CATALOGUE / name).mkdir(parents=True, exist_ok=True)
        # In this order, so that after a power failure a dataset that is there has all its folders.
        for made in (folder.absolute().parent, folder, folder / CATALOGUE):
            sync_folder(made)
        write_json(file, {MARK: VERSION, "options": dict(options)})
    dataset = Dataset(folder)
    if dict(dataset.options) != dict(options):
        raise UsageError(
            "was made with other topics, fields, times, windows, sizes of tasks or timestamps: use those, or another "
            "folder",
            path=os.fspath(path),
        )
    return dataset


@contextlib.contextmanager
def locked(dataset: Dataset) -> Iterator[None]:
    """Lock *dataset* against other processes that write; raises LogError if one does."""
    handle = os.open(dataset.catalogue / "lock", os.O_RDWR | os.O_CREAT | FLAGS, 0o666)
    try:
        if not lock(handle):
            raise LogError("is being written by another process", path=os.fspath(dataset.path))
        yield
    finally:
        os.close(handle)
