"""What the shapes of outputs are made of: files, folders of files, and what tells of these."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from logreel._version import __version__
from logreel.errors import DefinitionError, LogError
from logreel.log.brief import Brief
from logreel.ops.json_values import to_json_values
from logreel.ops.query.align import Alignment
from logreel.outputs.files import MANIFEST, MANIFEST_KEY, new_file, new_folder, new_table, sync_all, synced
from logreel.outputs.job import Job
from logreel.outputs.media.items import write_items
from logreel.outputs.names import file_names
from logreel.outputs.parallel_files import DecodeLock, side_by_side
from logreel.outputs.registry import Output, Shape
from logreel.outputs.tables.combined import aligned_table, long_table, write_lines

if TYPE_CHECKING:
    from logreel.log.log import Channel

#: JSON holds tables of several channels too, besides messages.
LINES = ".ndjson"


@dataclass(frozen=True, slots=True)
class Written:
    """One channel: how many rows went to which file or folder (None: a channel without any has none)."""

    topic: str
    file: str | None
    rows: int


@dataclass(frozen=True, slots=True, repr=False)
class Converted(Brief):
    """What a conversion wrote.

    skipped  one sentence for each thing that could not be written
    notes    one sentence for each thing worth knowing that is no loss
    shared   rows of the one table that the channels share, or None where each has its own
    """

    path: str
    channels: tuple[Written, ...]
    skipped: tuple[str, ...]
    notes: tuple[str, ...] = ()
    shared: int | None = None

    @property
    def rows(self) -> int:
        """Rows of all channels, or of the table that they share."""
        return sum(one.rows for one in self.channels) if self.shared is None else self.shared

    def as_dict(self) -> dict[str, Any]:
        """The plain data of ``convert --json``."""
        return {
            "output": self.path,
            "channels": [asdict(one) for one in self.channels],
            "shared": self.shared,
            "skipped": list(self.skipped),
            "notes": list(self.notes),
        }


def one_table(job: Job, output: Output, name: str, force: bool, how: Alignment | None) -> Converted:
    schema, batches = long_table(job) if how is None else aligned_table(job, how)
    write = write_lines if output.suffix == LINES else output.writer()
    try:
        rows = new_table(name, force, write, schema, batches)
    except _unfit() as error:
        raise LogError(f"the table cannot be written: {_reason(error)}", path=name) from error
    file = os.path.basename(name)
    counts = [(ch.topic, job.rows.get(ch.topic, 0)) for ch in job.channels]
    channels = tuple(Written(topic, file if count else None, count) for topic, count in counts)
    return Converted(name, channels, tuple(job.skipped), tuple(job.notes), rows)


def one_for_all(job: Job, output: Output, name: str, force: bool) -> Converted:
    with new_file(name, force) as out:
        write_job(out, job, output)
    file = os.path.basename(name)
    rows = [(ch.topic, job.rows.get(ch.topic, 0)) for ch in job.channels]
    channels = tuple(Written(topic, file if count else None, count) for topic, count in rows)
    return Converted(name, channels, tuple(job.skipped), tuple(job.notes))


def one_channel(job: Job, output: Output, name: str, force: bool) -> Converted:
    (ch,) = job.channels
    with new_file(name, force) as out:
        write_job(out, job, output)
    return Converted(name, (Written(ch.topic, os.path.basename(name), job.rows.get(ch.topic, 0)),), ())


def one_film(job: Job, output: Output, name: str, force: bool) -> Converted:
    (ch,) = job.channels
    with new_file(name, force) as out:
        output.writer()(out, job, ch)
        if job.skipped and not job.rows:
            raise LogError(f"nothing could be written: {job.skipped[0]}", path=job.log.name)
    written = Written(ch.topic, os.path.basename(name), job.rows.get(ch.topic, 0))
    return Converted(name, (written,), tuple(job.skipped), tuple(job.notes))


def write_job(out: IO[bytes], job: Job, output: Output) -> None:
    """Write what is one file, of all channels of *job* or of its only one, to *out*, from its beginning to its end.

    Raises LogError where a channel cannot be written.
    """
    if output.shape is Shape.WHOLE:
        output.writer()(out, job)
        return
    (ch,) = job.channels
    schema, batches, _ = job.table(ch)
    try:
        output.writer()(out, schema, batches)
    except _unfit() as error:
        raise LogError(
            f"channel {ch.topic!r} cannot be written: {_reason(error)}", path=job.log.name
        ) from error


def _unfit() -> tuple[type[Exception], ...]:
    """What is raised for a channel that cannot be decoded, or has a type that an output cannot hold."""
    import pyarrow as pa

    return (DefinitionError, pa.ArrowInvalid, pa.ArrowNotImplementedError)


def _reason(error: Exception) -> str:
    return error.text if isinstance(error, LogError) else str(error).partition("\n")[0]


def one_folder(job: Job, output: Output, name: str, force: bool) -> Converted:
    items = output.shape is Shape.ITEMS
    files = file_names((ch.topic for ch in job.channels), "" if items else output.suffix)
    with new_folder(name, force, Path(job.log.name)) as folder:
        paths = {topic: folder / file for topic, file in files.items()}
        make = {Shape.ITEMS: _folders_of, Shape.FILMS: _films_of}.get(output.shape, _files_of)
        made = make(job, output, paths)
        written = [
            Written(ch.topic, files[ch.topic] if ch.topic in made else None, job.rows.get(ch.topic, 0))
            for ch in job.channels
        ]
        if job.skipped and not any(one.file for one in written):
            raise LogError(f"nothing could be written: {job.skipped[0]}", path=job.log.name)
        if items:
            sync_all()
        with synced(folder / MANIFEST) as out:
            _manifest(out, job, written)
    return Converted(name, tuple(written), tuple(job.skipped), tuple(job.notes))


def _folders_of(job: Job, output: Output, paths: dict[str, Path]) -> set[str]:
    """Write the folder of each channel; gives the topics of those that had anything to write."""
    for ch in job.channels:
        write_items(paths[ch.topic], job, ch, output)
    return {*job.rows}


def _files_of(job: Job, output: Output, paths: dict[str, Path]) -> set[str]:
    """Write the file of each channel; gives the topics of those that had anything to write and can be decoded."""
    decode_lock = DecodeLock()
    # The longest first, so that none is left alone at the end.
    longest = sorted(job.channels, key=lambda ch: ch.bytes, reverse=True)
    tasks = [partial(_file_of, job, ch, output, paths[ch.topic], decode_lock) for ch in longest]
    told = dict(zip((ch.topic for ch in longest), side_by_side(tasks, decode_lock), strict=True))
    job.skipped += [why for ch in job.channels if (why := told[ch.topic][1])]
    return {topic for topic, (made, _) in told.items() if made}


def _file_of(job: Job, ch: Channel, output: Output, path: Path, decode_lock: DecodeLock) -> tuple[bool, str]:
    """Write one file of a folder; gives whether there is one, and why the channel was left out."""
    try:
        schema, batches, some = decode_lock.take(lambda: job.table(ch))
        if not some:
            return False, ""
        with synced(path) as out:
            output.writer()(out, schema, decode_lock.each(batches))
    except _unfit() as error:
        path.unlink(missing_ok=True)
        job.rows.pop(ch.topic, None)
        return False, f"channel {ch.topic!r} was left out: {_reason(error)}"
    return True, ""


def _films_of(job: Job, output: Output, paths: dict[str, Path]) -> set[str]:
    """Write the video of each channel; gives the topics of those that had anything to show."""
    for ch in job.channels:
        path = paths[ch.topic]
        with synced(path) as out:
            output.writer()(out, job, ch)
        if ch.topic not in job.rows:
            path.unlink()
    return {*job.rows}


def _chosen(job: Job, ch: Channel) -> dict[str, Any]:
    """Return the entry of the manifest for the fields chosen of *ch*; empty where that is all of them."""
    fields = job.fields.get(ch.topic)
    return {} if fields is None else {"fields": fields}


def _manifest(out: IO[bytes], job: Job, written: list[Written]) -> None:
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
            {**asdict(one), "type": ch.schema.name, "encoding": ch.schema.encoding, **_chosen(job, ch)}
            for one, ch in zip(written, job.channels, strict=True)
        ],
        "skipped": job.skipped,
        "metadata": to_json_values(log.metadata),
        "problems": [problem.as_dict() for problem in log.problems],
    }
    out.write(json.dumps(manifest, indent=1, allow_nan=False).encode() + b"\n")
