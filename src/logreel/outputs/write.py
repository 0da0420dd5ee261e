"""Writing one file or a folder of files for each Shape, and the summary of a conversion."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from threading import RLock
from typing import IO, TYPE_CHECKING, Any, TypeVar

from logreel._version import __version__
from logreel.errors import DefinitionError, LogError
from logreel.log.scan import Brief
from logreel.log.source_files import inputs_of
from logreel.ops.json_values import to_json_values
from logreel.ops.query.align import Alignment
from logreel.outputs.files import (
    MANIFEST,
    MANIFEST_KEY,
    file_names,
    new_file,
    new_folder,
    new_table,
    sync_all,
    synced,
)
from logreel.outputs.media.items import write_items
from logreel.outputs.registry import Job, Output, Shape
from logreel.outputs.tables.combined import aligned_table, long_table, write_lines

if TYPE_CHECKING:
    from logreel.log.log import Channel
    from logreel.ops.query.windows import OnsetWindow
    from logreel.ops.rewrite.proof import Ledger


Item = TypeVar("Item")

#: Files written in parallel: writing takes about as long as decoding, and each file has a row group in memory.
FILES = 2


class Stopped(Exception):
    """Raised in a task after another one failed."""


class DecodeLock:
    """Lets one thread at a time decode, since logs are not thread-safe."""

    def __init__(self) -> None:
        self._lock = RLock()
        self.stopped = False

    def call(self, work: Callable[[], Item]) -> Item:
        """Return the result of *work*, called with the lock held; raises Stopped after a failure."""
        with self._lock:
            if self.stopped:
                raise Stopped
            return work()

    def each(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield *items*, each produced with the lock held."""
        left = iter(items)
        while (item := self.call(lambda: next(left, None))) is not None:
            yield item


def run_parallel(tasks: Sequence[Callable[[], Item]], decode_lock: DecodeLock) -> list[Item]:
    """Run *tasks* in threads and return their results in order; the first failure stops all and is raised."""
    pool = ThreadPoolExecutor(min(FILES, os.cpu_count() or 1))
    try:
        futures = [pool.submit(task) for task in tasks]
        done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        errors = [error for future in done if (error := future.exception()) is not None]
        for error in sorted(errors, key=lambda error: isinstance(error, Stopped)):
            raise error
        return [future.result() for future in futures]
    finally:
        decode_lock.stopped = True
        pool.shutdown(cancel_futures=True)


#: Suffix of lines of JSON, which hold messages, or rows of one table of several channels.
LINES = ".ndjson"


@dataclass(frozen=True, slots=True)
class Written:
    """Number of rows of one channel, and its file or folder; None if it has no rows."""

    topic: str
    file: str | None
    rows: int


@dataclass(frozen=True, slots=True, repr=False)
class Converted(Brief):
    """Summary of a conversion.

    skipped  a sentence for each thing that could not be written
    notes    a sentence for each remark that is no loss
    shared   number of rows of the table shared by all channels; None if there is no such table
    windows  the windows that were converted, if it was asked for these
    ledger   what became of the values of each channel, where messages of ROS 1 became those of ROS 2 or back
    """

    path: str
    channels: tuple[Written, ...]
    skipped: tuple[str, ...]
    notes: tuple[str, ...] = ()
    shared: int | None = None
    windows: tuple[OnsetWindow, ...] = ()
    ledger: tuple[Ledger, ...] = ()

    @property
    def rows(self) -> int:
        """Number of rows of all channels, or of the table that they share."""
        return sum(channel.rows for channel in self.channels) if self.shared is None else self.shared

    def as_dict(self) -> dict[str, Any]:
        """Return the plain data of ``convert --json``."""
        return {
            "output": self.path,
            "channels": [asdict(channel) for channel in self.channels],
            "shared": self.shared,
            "skipped": list(self.skipped),
            "notes": list(self.notes),
            **({"windows": [window.as_dict() for window in self.windows]} if self.windows else {}),
            "ledger": [entry.as_dict() for entry in self.ledger],
        }


def one_table(job: Job, output: Output, name: str, force: bool, how: Alignment | None) -> Converted:
    """Write all channels as one table: aligned, or long if *how* is None."""
    schema, batches = long_table(job) if how is None else aligned_table(job, how)
    write = write_lines if output.suffix == LINES else output.write
    try:
        rows = new_table(name, force, write, schema, batches, job.stream)
    except conversion_errors() as error:
        raise LogError(f"the table cannot be written: {reason(error)}", path=name) from error
    file = os.path.basename(name)
    counts = [(ch.topic, job.rows.get(ch.topic, 0)) for ch in job.channels]
    channels = tuple(Written(topic, file if count else None, count) for topic, count in counts)
    return Converted(name, channels, tuple(job.skipped), tuple(job.notes), rows, job.windows)


def one_for_all(job: Job, output: Output, name: str, force: bool) -> Converted:
    """Write all channels into one file."""
    with new_file(name, force, job.stream, not output.media) as out:
        write_job(out, job, output)
    file = os.path.basename(name)
    rows = [(ch.topic, job.rows.get(ch.topic, 0)) for ch in job.channels]
    channels = tuple(Written(topic, file if count else None, count) for topic, count in rows)
    return Converted(name, channels, tuple(job.skipped), tuple(job.notes), windows=job.windows)


def one_channel(job: Job, output: Output, name: str, force: bool) -> Converted:
    """Write the only channel as one table."""
    (ch,) = job.channels
    with new_file(name, force, job.stream, not output.media) as out:
        write_job(out, job, output)
    written = Written(ch.topic, os.path.basename(name), job.rows.get(ch.topic, 0))
    return Converted(name, (written,), tuple(job.skipped), tuple(job.notes), windows=job.windows)


def one_video(job: Job, output: Output, name: str, force: bool) -> Converted:
    """Write the only channel as one video."""
    (ch,) = job.channels
    with new_file(name, force, job.stream, True) as out:
        output.write(out, job, ch)
        if job.skipped and not job.rows:
            raise LogError(f"nothing could be written: {job.skipped[0]}", path=job.log.name)
    written = Written(ch.topic, os.path.basename(name), job.rows.get(ch.topic, 0))
    return Converted(name, (written,), tuple(job.skipped), tuple(job.notes), windows=job.windows)


def write_job(out: IO[bytes], job: Job, output: Output) -> None:
    """Write an output that is one file, of all channels of *job* or its only one, to *out*, without seeking.

    Raises LogError if a channel cannot be written.
    """
    if output.shape is Shape.WHOLE:
        output.write(out, job)
        return
    (ch,) = job.channels
    schema, batches, _ = job.table(ch)
    try:
        output.write(out, schema, batches)
    except conversion_errors() as error:
        raise LogError(
            f"channel {ch.topic!r} cannot be written: {reason(error)}", path=job.log.name
        ) from error


def conversion_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions for a channel that cannot be decoded, or that an output cannot store."""
    import pyarrow as pa

    return (DefinitionError, pa.ArrowInvalid, pa.ArrowNotImplementedError)


def reason(error: Exception) -> str:
    """Return the first line of the text of an exception."""
    return error.text if isinstance(error, LogError) else str(error).partition("\n")[0]


def one_folder(job: Job, output: Output, name: str, force: bool) -> Converted:
    """Write a folder with a file or folder per channel, and a manifest."""
    items = output.shape is Shape.ITEMS
    files = file_names((ch.topic for ch in job.channels), "" if items else output.suffix)
    with new_folder(name, force, inputs_of(job.log)) as folder:
        paths = {topic: folder / file for topic, file in files.items()}
        make = {Shape.ITEMS: _write_folders, Shape.VIDEOS: _write_videos}.get(output.shape, _write_files)
        written_topics = make(job, output, paths)
        written = [
            Written(
                ch.topic, files[ch.topic] if ch.topic in written_topics else None, job.rows.get(ch.topic, 0)
            )
            for ch in job.channels
        ]
        if job.skipped and not any(written_channel.file for written_channel in written):
            raise LogError(f"nothing could be written: {job.skipped[0]}", path=job.log.name)
        if items:
            sync_all()
        with synced(folder / MANIFEST) as out:
            write_manifest(out, job, written)
    return Converted(name, tuple(written), tuple(job.skipped), tuple(job.notes), windows=job.windows)


def _write_folders(job: Job, output: Output, paths: dict[str, Path]) -> set[str]:
    """Write the folder of each channel; return the topics with content."""
    for ch in job.channels:
        write_items(paths[ch.topic], job, ch, output)
    return {*job.rows}


def _write_files(job: Job, output: Output, paths: dict[str, Path]) -> set[str]:
    """Write the file of each channel in parallel; return the topics with rows that can be decoded."""
    decode_lock = DecodeLock()
    # Longest first, so that both threads finish at about the same time.
    longest = sorted(job.channels, key=lambda ch: ch.bytes, reverse=True)
    tasks = [partial(write_file, job, ch, output, paths[ch.topic], decode_lock) for ch in longest]
    results = dict(zip((ch.topic for ch in longest), run_parallel(tasks, decode_lock), strict=True))
    job.skipped += [why for ch in job.channels if (why := results[ch.topic][1])]
    return {topic for topic, (written, _) in results.items() if written}


def write_file(
    job: Job, ch: Channel, output: Output, path: Path, decode_lock: DecodeLock
) -> tuple[bool, str]:
    """Write one file of a folder; return whether it was written, and the reason if the channel was left out."""
    try:
        schema, batches, any_rows = decode_lock.call(lambda: job.table(ch))
        if not any_rows:
            return False, ""
        with synced(path) as out:
            output.write(out, schema, decode_lock.each(batches))
    except conversion_errors() as error:
        path.unlink(missing_ok=True)
        job.rows.pop(ch.topic, None)
        return False, f"channel {ch.topic!r} was left out: {reason(error)}"
    return True, ""


def _write_videos(job: Job, output: Output, paths: dict[str, Path]) -> set[str]:
    """Write the video of each channel; return the topics with pictures."""
    for ch in job.channels:
        path = paths[ch.topic]
        with synced(path) as out:
            output.write(out, job, ch)
        if ch.topic not in job.rows:
            path.unlink()
    return {*job.rows}


def _chosen_fields(job: Job, ch: Channel) -> dict[str, Any]:
    """Return the manifest entry for the chosen fields of *ch*; empty for all fields."""
    fields = job.fields.get(ch.topic)
    return {} if fields is None else {"fields": fields}


def write_manifest(out: IO[bytes], job: Job, written: list[Written]) -> None:
    """Write manifest.json: source, interval, options, channels with their files, and problems."""
    log = job.log
    manifest = {
        MANIFEST_KEY: 1,
        "made_by": f"logreel {__version__}",
        "source": {
            "name": os.path.basename(log.name),
            "format": log.format,
            "version": log.version,
            "size": log.size,
            "epoch": log.epoch,
            "start_ns": log.start,
            "end_ns": log.end,
            "utc_offset_ns": log.utc_offset,
        },
        "interval": {"start_ns": job.start, "end_ns": job.end},
        "utc": job.utc,
        "interpolate": job.interpolate,
        "channels": [
            {
                **asdict(written_channel),
                "type": ch.schema.name,
                "encoding": ch.schema.encoding,
                **_chosen_fields(job, ch),
            }
            for written_channel, ch in zip(written, job.channels, strict=True)
        ],
        "skipped": job.skipped,
        "metadata": to_json_values(log.metadata),
        "problems": [problem.as_dict() for problem in log.problems],
    }
    out.write(json.dumps(manifest, indent=1, allow_nan=False).encode() + b"\n")
