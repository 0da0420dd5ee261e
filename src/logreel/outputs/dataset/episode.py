"""Episodes of a dataset: values and frames, their statistics, the store for them, and records of what is complete."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError, UsageError
from logreel.io.atomic_file import is_at, make_folders
from logreel.io.platform import FLAGS, lock
from logreel.outputs.dataset.spec import Spec
from logreel.outputs.files import new_file
from logreel.registry.registry import lazy

QUANTILES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}
#: All statistics of a feature.
KEYS = ("min", "max", "mean", "std", "count", *QUANTILES)
Stats = dict[str, NDArray[Any]]
#: Pictures are thinned out to about this many rows or columns.
_SIDE, _LARGE = 150, 300


def vector_stats(values: NDArray[Any]) -> Stats:
    """Return min, max, mean, std, count and quantiles of each column of *values* [n, k]."""
    numbers = values.astype(np.float64)
    stats: Stats = {
        "min": numbers.min(axis=0),
        "max": numbers.max(axis=0),
        "mean": numbers.mean(axis=0),
        "std": numbers.std(axis=0),
        "count": np.array([len(numbers)]),
    }
    quantiles = np.quantile(numbers, list(QUANTILES.values()), axis=0)
    return stats | dict(zip(QUANTILES, quantiles, strict=True))


def sampled_frames(count: int) -> set[int]:
    """Return the frames of an episode whose pictures are used for statistics."""
    number = max(min(count, 100), min(int(count**0.75), 10_000))
    return {int(i) for i in np.round(np.linspace(0, count - 1, number))}


class PictureStats:
    """Statistics of pictures per colour, of values from 0 to 1; exact for the pixels that are used."""

    def __init__(self, frames: int) -> None:
        self._chosen = sampled_frames(frames)
        self._seen = self._used = 0
        self._counts = np.zeros((3, 256), np.int64)

    def add(self, pixels: NDArray[np.uint8]) -> None:
        """Use the next picture, [height, width, 3], if it is among the chosen ones."""
        if self._seen in self._chosen:
            height, width = pixels.shape[:2]
            step = max(height, width) // _SIDE if max(height, width) >= _LARGE else 1
            thin = pixels[::step, ::step]
            for colour in range(3):
                self._counts[colour] += np.bincount(thin[..., colour].reshape(-1), minlength=256)
            self._used += 1
        self._seen += 1

    def result(self) -> Stats:
        """Return the statistics, each but the count with the shape [3, 1, 1]."""
        levels = np.arange(256) / 255
        total = self._counts.sum(axis=1)
        mean = (self._counts * levels).sum(axis=1) / total
        spread = (self._counts * (levels - mean[:, None]) ** 2).sum(axis=1) / total
        running = np.cumsum(self._counts, axis=1)
        at = {
            "min": np.array([levels[np.flatnonzero(row)[0]] for row in self._counts]),
            "max": np.array([levels[np.flatnonzero(row)[-1]] for row in self._counts]),
            "mean": mean,
            "std": np.sqrt(spread),
        }
        for name, part in QUANTILES.items():
            at[name] = np.array(
                [levels[row.searchsorted(part * n)] for row, n in zip(running, total, strict=True)]
            )
        stats = {name: values.reshape(3, 1, 1) for name, values in at.items()}
        return stats | {"count": np.array([self._used])}


def combined(first: Mapping[str, Stats], two: Mapping[str, Stats]) -> dict[str, Stats]:
    """Return the statistics of two sets of episodes; quantiles are the means of both, weighted by count."""
    return {name: _both(first[name], two[name]) if name in first else two[name] for name in two}


def _both(first: Stats, two: Stats) -> Stats:
    n, m = float(first["count"][0]), float(two["count"][0])

    def mean(key: str) -> NDArray[Any]:
        weighted: NDArray[Any] = (first[key] * n + two[key] * m) / (n + m)
        return weighted

    middle = mean("mean")
    spread = [part["std"] ** 2 + (part["mean"] - middle) ** 2 for part in (first, two)]
    stats: Stats = {
        "min": np.minimum(first["min"], two["min"]),
        "max": np.maximum(first["max"], two["max"]),
        "mean": middle,
        "std": np.sqrt((spread[0] * n + spread[1] * m) / (n + m)),
        "count": first["count"] + two["count"],
    }
    return stats | {key: mean(key) for key in QUANTILES}


def as_lists(stats: Mapping[str, Stats]) -> dict[str, dict[str, Any]]:
    """Return statistics as JSON data."""
    return {name: {key: value.tolist() for key, value in values.items()} for name, values in stats.items()}


def as_arrays(stats: Mapping[str, Mapping[str, Any]]) -> dict[str, Stats]:
    """Return statistics from JSON data."""
    return {name: {key: np.array(value) for key, value in values.items()} for name, values in stats.items()}


RGB = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class EpisodeColumn:
    """One feature of a dataset: the same for all of its episodes.

    shape     number of elements of a vector; height and width of pictures
    names     of the elements; empty for pictures
    dtype     NumPy type; ``uint8`` for pictures
    pictures  whether it is pictures
    """

    name: str
    shape: tuple[int, ...]
    names: tuple[str, ...]
    dtype: str
    pictures: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the column as JSON data."""
        return {
            "shape": list(self.shape),
            "names": list(self.names),
            "dtype": self.dtype,
            "pictures": self.pictures,
        }

    @classmethod
    def of(cls, name: str, data: Mapping[str, Any]) -> EpisodeColumn:
        """Return the column from JSON data."""
        return cls(name, tuple(data["shape"]), tuple(data["names"]), data["dtype"], data["pictures"])


@dataclass
class EpisodeCamera:
    """Pictures of an episode.

    shape   height and width
    count   number of frames
    read    returns the pictures in order, uint8[height, width, 3]; may raise after the last one
    video   the same as a video file that the target has made before, or None
    stats   known after the pictures were read
    """

    shape: tuple[int, int]
    count: int
    read: Callable[[], Iterator[RGB]]
    video: Path | None = None
    stats: Stats | None = None

    def frames(self) -> Iterator[RGB]:
        """Yield the pictures, and collect their statistics."""
        if self.stats is not None:
            yield from self.read()
            return
        stats = PictureStats(self.count)
        for pixels in self.read():
            stats.add(pixels)
            yield pixels
        self.stats = stats.result()


@dataclass
class Episode:
    """One episode.

    index, start  number of the episode, and of its first frame, in the dataset
    count         number of frames
    task          what is done, in words
    vectors       by feature: [count, k] of its type
    cameras       by feature
    stats         of the vectors
    """

    index: int
    start: int
    count: int
    task: str
    vectors: Mapping[str, NDArray[Any]]
    cameras: Mapping[str, EpisodeCamera]
    stats: dict[str, Stats] = field(default_factory=dict)

    def all_stats(self) -> dict[str, Stats]:
        """Return the statistics of all features; call it after the pictures were read."""
        return self.stats | {
            name: camera.stats for name, camera in self.cameras.items() if camera.stats is not None
        }


@dataclass(frozen=True)
class EpisodeHead:
    """What all episodes of a dataset share."""

    spec: Spec
    columns: tuple[EpisodeColumn, ...]

    @property
    def vectors(self) -> list[EpisodeColumn]:
        """Columns that are vectors."""
        return [column for column in self.columns if not column.pictures]

    @property
    def cameras(self) -> list[EpisodeColumn]:
        """Columns that are pictures."""
        return [column for column in self.columns if column.pictures]

    def picture_shape(self, name: str) -> tuple[int, int]:
        """Return height and width of the pictures of a feature."""
        ((height, width),) = (camera.shape for camera in self.cameras if camera.name == name)
        return height, width


#: What a finished episode is: JSON data, see ``records``.
Record = Mapping[str, Any]


class Store(Protocol):
    """A dataset of one target in a folder, made with ``(root, head, records)``.

    root     its folder
    head     what all episodes share
    records  the episodes that are complete; what else is in the folder does not count, and is overwritten

    Raises MissingDependencyError without the library that it needs, UsageError for a *head* that it cannot store.
    """

    def add(self, episode: Episode, records: Sequence[Record]) -> None:
        """Store one more episode; the dataset can be loaded at any moment, with it or without it.

        records  the episodes before it
        """
        ...

    def publish(self, records: Sequence[Record]) -> None:
        """Let readers see all of *records*, whose content was added; may be repeated."""
        ...

    def vectors(self, record: Record) -> dict[str, NDArray[Any]]:
        """Return the vectors of an episode, by feature."""
        ...

    def camera(self, record: Record, name: str) -> EpisodeCamera:
        """Return the pictures of an episode."""
        ...

    def finish(self, records: Sequence[Record]) -> None:
        """Remove what does not belong to the dataset."""
        ...


#: The store of each target.
TARGETS: dict[str, Callable[[Path, EpisodeHead, Sequence[Record]], Store]] = {
    "lerobot": lazy("logreel.outputs.dataset.lerobot:LeRobotStore"),
    "zarr": lazy("logreel.outputs.dataset.stores:ZarrStore"),
    "hdf5": lazy("logreel.outputs.dataset.stores:Hdf5Store"),
    "lance": lazy("logreel.outputs.dataset.stores:LanceStore"),
}


def make_store(to: str, root: Path, head: EpisodeHead, records: Sequence[Record]) -> Store:
    """Return the store of the target *to* at *root*; raises UsageError for an unknown one."""
    check_target(to)
    return TARGETS[to](root, head, records)


def check_target(to: str) -> None:
    """Raise UsageError for an unknown target."""
    if to not in TARGETS:
        raise UsageError(f"{to!r} is no target; there are: {', '.join(TARGETS)}")


def checked_index(record: Record) -> int:
    """Return the number of an episode."""
    return int(record["episode"])


def typed(values: NDArray[np.float64], dtype: str) -> NDArray[Any]:
    """Return *values* as another type; for integers rounded, and limited to what the type holds."""
    numpy_type = np.dtype(dtype)
    if numpy_type.kind == "b":
        booleans: NDArray[Any] = values != 0
        return booleans
    if numpy_type.kind in "iu":
        info = np.iinfo(numpy_type)
        # The largest int64 is no float64: limit it to the one below.
        most = np.nextafter(2.0**63, 0) if numpy_type == np.int64 else float(info.max)
        return np.rint(values).clip(float(info.min), most).astype(numpy_type)
    with np.errstate(over="ignore"):
        return values.astype(numpy_type)


def link(src: str | os.PathLike[str], dst: str | os.PathLike[str]) -> None:
    """Give a file a second name, or copy it where that is not possible."""
    import shutil

    try:
        os.link(src, dst)
    except OSError:
        shutil.copyfile(src, dst)


FOLDER, MARK = "logreel", "logreel_training_data"
#: Changes when the same specification leads to another content.
VERSION = 1


def digest_of(*parts: Any) -> str:
    """Return a digest of JSON data and bytes."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        raw = part if isinstance(part, bytes) else json.dumps(part, sort_keys=True, default=_plain).encode()
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Fraction) else list(value)


def spec_data(spec: Spec) -> dict[str, Any]:
    """Return a specification as JSON data."""
    data: dict[str, Any] = json.loads(json.dumps(asdict(spec), default=_plain))
    return data


class EpisodeRecords:
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

    def head_of(self, spec: Spec) -> EpisodeHead | None:
        """Return what all episodes share; None as long as there is none."""
        columns = self.head.get("columns")
        if columns is None:
            return None
        return EpisodeHead(spec, tuple(EpisodeColumn.of(column["name"], column) for column in columns))

    def set_columns(self, columns: Iterable[EpisodeColumn]) -> None:
        """Store the columns."""
        self.write_head(
            self.head | {"columns": [{"name": column.name, **column.as_dict()} for column in columns]}
        )

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


def _numbered(folder: Path, prefix: str) -> Iterator[dict[str, Any]]:
    """Yield the records of a folder, up to the first one that is missing."""
    number = 0
    while (path := folder / f"{prefix}-{number:06d}.json").exists():
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
        handle = os.open(path, os.O_RDWR | os.O_CREAT | FLAGS, 0o666)
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
