"""Training data from logs: writes what is new or has changed, and reuses the rest."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError, MissingDependencyError, UnsupportedError, UsageError
from logreel.io.arrays import I64
from logreel.io.atomic_file import exchange, sync_folder, target_of
from logreel.io.source import Source
from logreel.log.log import Channel, Log
from logreel.log.scan import Brief
from logreel.log.source_files import FOR_BOTH, decrypted_notes, refusal
from logreel.log.times import utc_shift
from logreel.outputs.dataset.episode import (
    FOLDER,
    Episode,
    EpisodeCamera,
    EpisodeColumn,
    EpisodeHead,
    EpisodeRecords,
    Stats,
    Store,
    as_arrays,
    as_lists,
    check_target,
    digest_of,
    locked,
    make_store,
    spec_data,
    typed,
    vector_stats,
)
from logreel.outputs.dataset.planning import LogPlan, Planned, SampledStretch, sync_data
from logreel.outputs.dataset.spec import Feature, Spec, read_spec
from logreel.outputs.media.pictures import CHAINED, RGB, Decoded, FrameDecoder, VideoFrame, frame_of
from logreel.outputs.registry import readers
from logreel.registry.open import as_open_log, open_log, several_logs

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.lenses import Picture
    from logreel.log.joined_log import Openable


#: Messages that are first searched for a key frame.
_BACK = 64


class BrokenPicturesError(LogError):
    """Pictures that cannot be decoded, or have another size; raised after all others were used.

    topic, times  the channel, and ns of these messages
    """

    def __init__(self, topic: str, times: set[int], why: str) -> None:
        super().__init__(f"{len(times)} picture{'s' * (len(times) != 1)} of {topic!r} cannot be used: {why}")
        self.topic, self.times = topic, times


def frames(
    ch: Channel, times: I64, size: tuple[int, int] | None, shape: tuple[int, int] | None
) -> Iterator[RGB]:
    """Yield uint8[height, width, 3] for each of *times*, which are times of messages of *ch* (ns), ascending.

    size   width and height that pictures are scaled to; None: as they are
    shape  height and width that they must have then; None: those of the first one

    A picture that cannot be used is replaced by zeros; after the last one BrokenPicturesError is raised, which names
    them. Needs ``logreel[train]``.
    """
    try:
        import av  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError("av", "train") from error
    expected = shape if size is None else (size[1], size[0])
    broken, why = set[int](), ""
    coming = _decoded(ch, np.unique(times), size)
    now, pixels, problem = next(coming, (None, None, ""))
    last: RGB | None = None
    for time in times.tolist():
        while now is not None and now < time:
            now, pixels, problem = next(coming, (None, None, ""))
        picture = pixels if now == time else None
        reason = problem if now == time else "it is missing"
        if picture is not None and expected is None:
            expected = picture.shape[:2]
        if picture is not None and picture.shape[:2] != expected:
            reason = (
                f"{picture.shape[1]} × {picture.shape[0]} pixels instead of {expected[1]} × {expected[0]}"  # type: ignore[index]
            )
            picture = None
        if picture is None:
            broken.add(time)
            why = why or reason
        last = picture
        yield np.zeros((*(expected or (2, 2)), 3), np.uint8) if last is None else last
    if broken:
        raise BrokenPicturesError(ch.topic, broken, why)


def first_shape(ch: Channel, times: I64, size: tuple[int, int] | None) -> tuple[int, int] | None:
    """Return height and width of the first picture of *ch* at *times* (ns) that can be decoded; None if none can."""
    if size is not None:
        return size[1], size[0]
    for _, pixels, _ in _decoded(ch, np.unique(times), None):
        if pixels is not None:
            return pixels.shape[0], pixels.shape[1]
    return None


def _decoded(ch: Channel, wanted: I64, size: tuple[int, int] | None) -> Iterator[Decoded]:
    """Yield time, pixels and problem of the pictures at the times *wanted*, ascending; some may be missing."""
    decoder = FrameDecoder(size)
    previous: tuple[int, VideoFrame | None, str] | None = None
    for picture in _pictures(ch, wanted):
        try:
            frame, problem = frame_of(picture), ""
        except UnsupportedError as error:
            frame, problem = None, error.text
        if frame is not None and frame.codec in CHAINED:
            yield from _among(decoder.chained(picture.time, frame), wanted)
            continue
        # Of several pictures at one time, the last one counts.
        if previous is not None and previous[0] != picture.time:
            yield decoder.single(*previous)
        previous = (picture.time, frame, problem) if _is_among(picture.time, wanted) else None
    if previous is not None:
        yield decoder.single(*previous)
    yield from _among(decoder.rest(), wanted)


def _among(decoded: Iterator[Decoded], wanted: I64) -> Iterator[Decoded]:
    return (frame for frame in decoded if _is_among(frame[0], wanted))


def _is_among(time: int, wanted: I64) -> bool:
    at = int(wanted.searchsorted(time))
    return at < len(wanted) and int(wanted[at]) == time


def _pictures(ch: Channel, wanted: I64) -> Iterator[Picture]:
    """Yield the pictures around *wanted* in order of time, with those that are needed to decode them."""
    if not len(wanted):
        return
    reads = readers(ch, "pictures")

    def between(start: int, end: int) -> Iterator[Picture]:
        return chain.from_iterable(read(ch, start, end) for read in reads)

    first, end = int(wanted[0]), int(wanted[-1]) + 1
    rows = ch.log.index.rows_between(ch.number, first, end)
    times = ch.times[rows]
    if (times[1:] < times[:-1]).any():
        for time in wanted.tolist():
            yield from between(time, time + 1)
        return
    start = _key_before(ch, first, between)
    yield from between(first if start is None else start, end)


def _key_before(ch: Channel, first: int, between: Any) -> int | None:
    """Return the time of the last key frame at or before *first* of a channel with video; None for other pictures."""
    earlier = np.sort(ch.times[ch.log.index.rows_between(ch.number, None, first + 1)])
    back = _BACK
    while True:
        start = int(earlier[max(0, len(earlier) - back)])
        key: int | None = None
        for picture in between(start, first + 1):
            try:
                frame = frame_of(picture)
            except UnsupportedError:
                continue
            if frame.codec not in CHAINED:
                return None
            key = picture.time if frame.key else key
        if key is not None or back >= len(earlier):
            return key
        back *= 4


#: Called with the number of logs that are done, and of all.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, repr=False)
class DatasetWritten(Brief):
    """What ``dataset`` wrote.

    path, to  folder and target
    episodes  one dict per episode, in order: ``log``, ``start_ns``, ``end_ns``, ``frames``, ``dropped``, ``task``, and
              ``sync`` with the error in time of each feature
    reused    number of episodes that are as they were
    reused_videos  number of videos of other episodes that are as they were
    notes     sentences about frames that the bounds of the specification leave out
    skipped   sentences about what is lost: logs and episodes that are left out, pictures that cannot be decoded
    """

    path: str
    to: str
    episodes: tuple[Mapping[str, Any], ...]
    reused: int
    reused_videos: int
    notes: tuple[str, ...]
    skipped: tuple[str, ...]

    @property
    def frames(self) -> int:
        """Number of frames of all episodes."""
        return sum(episode["frames"] for episode in self.episodes)

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        data = asdict(self) | {"frames": self.frames}
        lists = {"episodes": list(self.episodes), "notes": list(self.notes), "skipped": list(self.skipped)}
        return data | lists


def dataset(
    logs: Openable | Log | Iterable[Openable | Log],
    out: str | os.PathLike[str],
    spec: str | os.PathLike[str] | Mapping[str, Any] | Spec,
    *,
    to: str = "lerobot",
    progress: Progress | None = None,
    definitions: Definitions = (),
    decrypt: bool = False,
) -> DatasetWritten:
    """Write training data from *logs* into the folder *out*; return a summary.

    logs   open Logs, files, folders or patterns; each file is a log of its own
    out    a new folder, or one that this function wrote: then only what has changed is written
    spec   episodes, features, rate and bounds: a TOML file, or a mapping with the same keys
    to     ``lerobot``, ``zarr``, ``hdf5`` or ``lance``
    progress  called with the number of logs that are done, and of all
    definitions, decrypt  as for ``logreel.open``, for the logs opened here

    A finished episode stays valid whatever happens afterwards, and the same call continues an interrupted one. A log
    that cannot be used is left out, and reported in ``skipped``; if none can be used, its error is raised. Needs
    ``logreel[train]``.
    """
    chosen = read_spec(spec)
    check_target(to)
    sources: list[Any] = (
        [logs] if isinstance(logs, str | os.PathLike | bytes | Log) or hasattr(logs, "read") else list(logs)
    )
    if not sources:
        raise UsageError("there is no log")
    several = [log for entry in sources for log in several_logs(entry)]
    target = target_of(out, follow=True)
    if target.exists() and not target.is_dir():
        raise LogError("is a file, not a folder", path=os.fspath(out))
    with locked(target):
        _recover(target)
        job = _Job(several, chosen, to, definitions, progress, decrypt)
        existing = EpisodeRecords(target) if target.is_dir() else None
        if existing is None or not existing.head:
            # A run may have died before it wrote anything.
            if existing is not None and any(entry.name != FOLDER for entry in target.iterdir()):
                raise LogError("exists already, and is no dataset of logreel", path=os.fspath(out))
            is_new = not target.exists()
            target.mkdir(exist_ok=True)
            records = EpisodeRecords(target)
            records.create(to, chosen)
            sync_folder(target.parent)
            try:
                return job.run(records, None, os.fspath(out))
            except (LogError, OSError):
                _remove_unused(records, is_new)
                raise
        if existing.head["to"] != to:
            raise UsageError(
                f"was written for {existing.head['to']}, not {to}: use another folder", path=os.fspath(out)
            )
        if existing.head["spec"] == spec_data(chosen):
            try:
                done = job.run(existing, None, os.fspath(out))
                # What an interrupted run left that would have replaced it.
                shutil.rmtree(_next_of(target), ignore_errors=True)
                return done
            except _DivergedError:
                job = _Job(several, chosen, to, definitions, progress, decrypt)
        return _replaced(job, target, os.fspath(out))


def _remove_unused(records: EpisodeRecords, is_new: bool) -> None:
    """Remove what a run that failed has made, if it has not finished one episode."""
    target = records.root
    if records.episodes or any(file.name != FOLDER for file in target.iterdir()):
        return
    shutil.rmtree(target / FOLDER, ignore_errors=True)
    if is_new:
        with contextlib.suppress(OSError):
            target.rmdir()


def _next_of(target: Path) -> Path:
    return target.with_name(f".{target.name}.logreel-next")


def _old_of(target: Path) -> Path:
    return target.with_name(f".{target.name}.logreel-old")


def _recover(target: Path) -> None:
    """Finish the exchange of two folders that was interrupted."""
    if not target.exists() and _old_of(target).is_dir():
        os.rename(_old_of(target), target)
    shutil.rmtree(_old_of(target), ignore_errors=True)


def _replaced(job: _Job, target: Path, name: str) -> DatasetWritten:
    """Write the dataset beside the one at *target*, with what can be reused of that, and exchange both."""
    beside = _next_of(target)
    done: DatasetWritten | None = None
    if beside.is_dir():
        records = EpisodeRecords(beside)
        if records.head and records.head["to"] == job.to and records.head["spec"] == spec_data(job.spec):
            try:
                done = job.run(records, EpisodeRecords(target), name)
            except _DivergedError:
                job = _Job(job.logs, job.spec, job.to, job.definitions, job.progress, job.decrypt)
        if done is None:
            shutil.rmtree(beside)
    if done is None:
        beside.mkdir()
        records = EpisodeRecords(beside)
        records.create(job.to, job.spec)
        done = job.run(records, EpisodeRecords(target), name)
    sync_folder(beside)
    if exchange(beside, target):
        os.rename(beside, _old_of(target))
    else:
        os.rename(target, _old_of(target))
        os.rename(beside, target)
    sync_folder(target.parent)
    shutil.rmtree(_old_of(target), ignore_errors=True)
    return done


class _DivergedError(Exception):
    """Finished episodes that do not belong there."""


@dataclass
class _Old:
    """The dataset that is replaced: its episodes and pictures by key."""

    records: EpisodeRecords
    store: Store | None = None
    episodes: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    cameras: dict[str, tuple[Mapping[str, Any], str]] = field(default_factory=dict)
    logs: dict[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass
class _Job:
    """One run of ``dataset``."""

    logs: Sequence[Any]
    spec: Spec
    to: str
    definitions: Any
    progress: Progress | None
    decrypt: bool = False
    reused: int = 0
    reused_videos: int = 0
    index: int = 0
    notes: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    errors: list[LogError | OSError] = field(default_factory=list)

    def run(self, records: EpisodeRecords, old: EpisodeRecords | None, name: str) -> DatasetWritten:
        """Bring the dataset of *records* up to date, with what can be reused of *old*."""
        self.records, self.old = records, _known(old)
        self.store: Store | None = None
        if old is not None and (head := old.head_of(self.spec)) is not None:
            self.old.store = make_store(self.to, old.root, head, old.episodes)
        self._open_store()
        for number, what in enumerate(self.logs):
            self._one_log(number, what)
            if self.progress is not None:
                self.progress(number + 1, len(self.logs))
        if len(records.episodes) > self.index:
            raise _DivergedError
        if self.errors and len(self.errors) == len(self.logs):
            raise self.errors[0]
        if not self.index:
            raise UsageError(
                "there is not one frame: " + ([*self.skipped, *self.notes, "the logs are empty"][0])
            )
        if self.store is not None:
            self.store.finish(records.episodes)
        records.end(len(self.logs))
        return DatasetWritten(
            name,
            self.to,
            tuple(self._public(record) for record in records.episodes),
            self.reused,
            self.reused_videos,
            tuple(self.notes),
            tuple(self.skipped),
        )

    def _public(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return what users get of the record of an episode."""
        sync = {feature.name: record["sync"][feature.name] for feature in self.spec.features}
        return {key: record[key] for key in _PUBLIC} | {"sync": sync}

    def _open_store(self) -> None:
        head = self.records.head_of(self.spec)
        if head is not None:
            self.store = make_store(self.to, self.records.root, head, self.records.episodes)
            if self.records.episodes and not self.records.head["complete"]:
                # A run may have died after the last one was finished.
                self.store.publish(self.records.episodes)

    def _one_log(self, number: int, what: Any) -> None:
        """Write the episodes of one log that are not there yet."""
        name = _name_of(what)
        try:
            key = digest_of(_identity(what, self.definitions), name, spec_data(self.spec))
            if self._as_before(number, key):
                return
            self._restored = self.old.logs.get(key)
            if self._restored is not None and self._take_over(number, self._restored):
                return
            definitions = () if isinstance(what, Log) else self.definitions
            with as_open_log(what, definitions, self.decrypt) as log:
                self._write(number, key, log)
        except (LogError, OSError) as error:
            if isinstance(error, LogError) and isinstance(error, _FATAL):
                raise
            if isinstance(error, OSError) and not _is_of(error, what):
                raise
            self.errors.append(error)
            self.skipped.append(f"{name}: left out: {_text_of(error)}")
            self._finish_log(number, {"key": "", "log": name, "first": self.index, "broken": {}})

    def _finish_log(self, number: int, record: dict[str, Any]) -> None:
        record["end"] = self.index
        if number < len(self.records.logs) and self.records.logs[number] == record:
            return
        self.records.add_log(number, record)

    def _as_before(self, number: int, key: str) -> bool:
        """Return whether all episodes of a log are there already, in their place."""
        if number >= len(self.records.logs):
            return False
        before = self.records.logs[number]
        if (
            before["key"] != key
            or before["first"] != self.index
            or before["end"] > len(self.records.episodes)
        ):
            return False
        self.reused += before["end"] - before["first"]
        self.index = before["end"]
        self._say(before)
        return True

    def _take_over(self, number: int, log: Mapping[str, Any]) -> bool:
        """Copy all episodes of a log from the old dataset; return False if they are not there."""
        episodes = self.old.records.episodes[log["first"] : log["end"]]
        if self.old.store is None or len(episodes) != log["end"] - log["first"]:
            return False
        first = self.index
        for episode in episodes:
            self._add_old(episode)
        self._say(log)
        self._finish_log(number, {**log, "first": first})
        return True

    def _write(self, number: int, key: str, log: Log) -> None:
        """Write the episodes of an open log."""
        if (refused := refusal(log, FOR_BOTH)) is not None:
            raise refused
        known = self.old.logs.get(key) or {}
        plan = LogPlan(
            log, self.spec, {topic: set(times) for topic, times in known.get("broken", {}).items()}
        )
        for text in decrypted_notes(log):
            plan.note(text)
        first = self.index
        identity = _identity(log, self.definitions)
        mark = digest_of(identity)
        before = {topic: set(times) for topic, times in _broken_before(self.records, self.old, mark).items()}
        plan.broken = before | plan.broken
        for stretch in plan.stretches():
            waiting = stretch.parts()
            while waiting:
                times = waiting.pop(0)
                planned = stretch.episode(times)
                try:
                    self._one_episode(plan, stretch, planned, identity)
                except BrokenPicturesError as error:
                    plan.broken.setdefault(error.topic, set()).update(error.times)
                    plan.note(f"{error.text}; their frames are left out", True)
                    waiting = [*stretch.parts(times), *waiting]
        if lost := sum(problem.size for problem in log.problems if problem.lost):
            plan.note(f"the log is damaged: {lost} bytes could not be read", True)
        record = {
            "key": key,
            "log": log.name,
            "identity": mark,
            "first": first,
            "notes": plan.notes,
            "skipped": plan.skipped,
            "broken": {topic: sorted(times) for topic, times in plan.broken.items()},
        }
        self._say(record)
        self._finish_log(number, record)

    def _say(self, log: Mapping[str, Any]) -> None:
        """Repeat the sentences about a log."""
        self.notes += [f"{log['log']}: {text}" for text in log["notes"]]
        self.skipped += [f"{log['log']}: {text}" for text in log["skipped"]]

    def _one_episode(
        self, plan: LogPlan, stretch: SampledStretch, planned: Planned, identity: list[str]
    ) -> None:
        """Write one episode, or reuse it."""
        spec, log = self.spec, plan.log
        head = self._head(plan, stretch, planned)
        shapes = {column.name: column.shape for column in head.columns}
        cameras = {
            name: digest_of(
                identity,
                [picker.ch.topic, picker.feature.size, shapes[name], str(spec.rate), asdict(spec.video)],
                planned.pictures[name].tobytes(),
            )
            for name, picker in plan.pickers.items()
        }
        key = digest_of(
            identity,
            [column.as_dict() | {"name": column.name} for column in head.columns],
            [asdict(column) for column in spec.features],
            [str(spec.rate), planned.stretch.task, cameras],
            planned.times.tobytes(),
        )
        if self.index < len(self.records.episodes):
            if self.records.episodes[self.index]["key"] != key:
                raise _DivergedError
            self.index += 1
            self.reused += 1
            return
        if key in self.old.episodes:
            self._add_old(self.old.episodes[key])
            return
        vectors = {name: typed(values, _dtype(head, name)) for name, values in planned.vectors.items()}
        pictures = {}
        for name, picker in plan.pickers.items():
            if self.old.store is not None and cameras[name] in self.old.cameras:
                old_record, old_name = self.old.cameras[cameras[name]]
                pictures[name] = self._old_camera(old_record, old_name)
                self.reused_videos += 1
                continue
            pictures[name] = EpisodeCamera(
                (shapes[name][0], shapes[name][1]),
                len(planned.times),
                _reader(
                    picker.ch, planned.pictures[name], picker.feature, (shapes[name][0], shapes[name][1])
                ),
            )
        shift = utc_shift(log)
        record: dict[str, Any] = {
            "key": key,
            "cameras": cameras,
            "log": log.name,
            "start_ns": int(planned.times[0]),
            "end_ns": int(planned.times[-1]),
            "utc_offset_ns": shift,
            "dropped": planned.dropped,
            "task": planned.stretch.task,
            "sync": sync_data(spec, planned),
        }
        self._add(record, vectors, pictures, {name: vector_stats(values) for name, values in vectors.items()})

    def _head(self, plan: LogPlan, stretch: SampledStretch, planned: Planned) -> EpisodeHead:
        """Return what all episodes share; raises UsageError if those of this log have another shape."""
        columns = []
        known = self.records.head_of(self.spec)
        named = {feature.name: feature for feature in known.columns} if known is not None else {}
        for feature in self.spec.features:
            if feature.name in plan.samplers:
                sampler = plan.samplers[feature.name]
                column = EpisodeColumn(feature.name, (len(sampler.names),), sampler.names, feature.dtype)
                # Without names of its own, a feature is called by the topics of the first log.
                if feature.name in named and named[feature.name].shape == column.shape:
                    column = named[feature.name]
            elif feature.name in named:
                column = named[feature.name]
            else:
                picker = plan.pickers[feature.name]
                shape = first_shape(picker.ch, planned.pictures[feature.name], feature.size)
                if shape is None:
                    # All of them are broken.
                    times = set(planned.pictures[feature.name].tolist())
                    raise BrokenPicturesError(picker.ch.topic, times, "not one can be decoded")
                column = EpisodeColumn(feature.name, shape, (), "uint8", True)
            if feature.name in named and named[feature.name] != column:
                raise UsageError(
                    f"{feature.name} has {column.shape[0]} elements, "
                    f"but {named[feature.name].shape[0]} in the logs before",
                    path=plan.log.name,
                )
            columns.append(column)
        head = EpisodeHead(self.spec, tuple(columns))
        if known is None:
            self.records.set_columns(columns)
            self._open_store()
        return head

    def _old_camera(self, record: Mapping[str, Any], name: str) -> EpisodeCamera:
        camera = _opened_store(self.old.store).camera(record, name)
        camera.stats = as_arrays(record["stats"])[name]
        return camera

    def _add_old(self, old: Mapping[str, Any]) -> None:
        """Copy an episode of the old dataset, unless it is there already."""
        if self.index < len(self.records.episodes):
            if self.records.episodes[self.index]["key"] != old["key"]:
                raise _DivergedError
            self.index += 1
            self.reused += 1
            return
        if self.store is None:
            head = self.old.records.head_of(self.spec)
            self.records.set_columns(() if head is None else head.columns)
            self._open_store()
        cameras = {name: self._old_camera(old, name) for name in old["cameras"]}
        stats = {name: values for name, values in as_arrays(old["stats"]).items() if name not in cameras}
        record = {key: value for key, value in old.items() if key not in ("episode", "first", "stats")}
        self._add(record, _opened_store(self.old.store).vectors(old), cameras, stats)
        self.reused += 1

    def _add(
        self,
        record: dict[str, Any],
        vectors: Mapping[str, NDArray[Any]],
        cameras: Mapping[str, EpisodeCamera],
        stats: dict[str, Stats],
    ) -> None:
        """Store one more episode, and count it as finished."""
        store = _opened_store(self.store)
        before = self.records.episodes
        start = before[-1]["first"] + before[-1]["frames"] if before else 0
        count = len(next(iter(vectors.values()))) if vectors else next(iter(cameras.values())).count
        self.records.begin()
        episode = Episode(self.index, start, count, record["task"], vectors, cameras, stats)
        store.add(episode, before)
        numbers = {"episode": self.index, "first": start, "frames": count}
        self.records.add_episode(record | numbers | {"stats": as_lists(episode.all_stats())})
        store.publish(before)
        self.index += 1


#: Keys of the record of an episode that users get, besides the errors in time.
_PUBLIC = ("episode", "log", "start_ns", "end_ns", "utc_offset_ns", "first", "frames", "dropped", "task")
#: Errors that concern all logs, or nothing that a log can be blamed for.
_FATAL: tuple[type[Exception], ...] = (ImportError,)


def _opened_store(store: Store | None) -> Store:
    if store is None:
        raise LogError("the dataset has no columns")
    return store


def _dtype(head: EpisodeHead, name: str) -> str:
    return next(column.dtype for column in head.columns if column.name == name)


def _reader(ch: Any, times: Any, feature: Feature, shape: tuple[int, int]) -> Callable[[], Any]:
    return lambda: frames(ch, times, feature.size, shape)


def _known(old: EpisodeRecords | None) -> _Old:
    """Return what can be reused of the dataset that is replaced."""
    if old is None:
        return _Old(EpisodeRecords(Path(os.devnull)))
    known = _Old(old)
    for episode in old.episodes:
        known.episodes[episode["key"]] = episode
        for name, key in episode["cameras"].items():
            known.cameras[key] = (episode, name)
    known.logs = {episode["key"]: episode for episode in old.logs if episode["key"]}
    return known


def _broken_before(records: EpisodeRecords, old: _Old, identity: str) -> dict[str, list[int]]:
    """Return the pictures that an earlier run could not decode, of the log with the digest *identity*."""
    for log in chain(records.logs, old.records.logs):
        if log.get("identity") == identity:
            broken: dict[str, list[int]] = log["broken"]
            return broken
    return {}


def _name_of(what: Any) -> str:
    if isinstance(what, Log):
        return what.name
    if isinstance(what, str | os.PathLike):
        return os.fspath(what)
    if isinstance(what, list | tuple):
        return ", ".join(map(_name_of, what))
    return str(getattr(what, "name", "<bytes>"))


def _identity(what: Any, definitions: Any) -> list[str]:
    """Return texts that differ if the content of a log or of its definitions does."""
    if isinstance(what, Log):
        identities = [part.source.identity for part in what.parts]
        paths = [os.fspath(path) for path in what.definitions]
    else:
        several = what if isinstance(what, list | tuple) else [what]
        identities = [_opened(item) for item in several]
        listed = [definitions] if isinstance(definitions, str | os.PathLike) else definitions
        paths = [os.fspath(item) for item in listed if isinstance(item, str | os.PathLike)]
    return [*identities, *(text for path in paths for text in _files(Path(path)))]


def _opened(what: Any) -> str:
    if hasattr(what, "read"):
        # A stream can be read only once, by the Log.
        return os.urandom(16).hex()
    if isinstance(what, str) and "://" in what:
        with open_log(what) as log:
            return log.source.identity
    return Source.open(what).identity


def _files(path: Path) -> list[str]:
    every = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return [f"{file.name}-{file.stat().st_size}-{file.stat().st_mtime_ns}" for file in every]


def _text_of(error: LogError | OSError) -> str:
    """Return what an error of a log says, without the name of the log."""
    if isinstance(error, LogError):
        return error.text
    return error.strerror[:1].lower() + error.strerror[1:] if error.strerror else str(error)


def _is_of(error: OSError, what: Any) -> bool:
    """Return whether an OSError is about the file of a log, and not about the output."""
    return (
        isinstance(what, str | os.PathLike)
        and error.filename is not None
        and os.fspath(what) == error.filename
    )
