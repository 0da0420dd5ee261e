"""A log into another kind of file; the suffix says which."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from logreel._version import __version__
from logreel.errors import DefinitionError, LogError, UsageError
from logreel.model.log import Log
from logreel.ops.parts import Part, choose
from logreel.ops.plain import opened, plain
from logreel.ops.rewrite import Rewritten, Target, format_to_write, rewrite
from logreel.ops.times import interval, shift_of
from logreel.ops.translate import translate
from logreel.outputs.files import MANIFEST, MANIFEST_KEY, new_file, new_folder, sync_all, synced
from logreel.outputs.items import write_items
from logreel.outputs.job import Job, Progress
from logreel.outputs.names import file_names
from logreel.outputs.registry import Output, Shape, find_output, readers

if TYPE_CHECKING:
    from logreel.model.channel import Channel
    from logreel.model.source import Readable


@dataclass(frozen=True, slots=True)
class Written:
    """One channel: how many rows went to which file or folder (None: a channel without any has none)."""

    topic: str
    file: str | None
    rows: int


@dataclass(frozen=True, slots=True)
class Converted:
    """What a conversion wrote.

    skipped  one sentence for each thing that could not be written
    notes    one sentence for each thing worth knowing that is no loss
    """

    path: str
    channels: tuple[Written, ...]
    skipped: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Rows of all channels."""
        return sum(one.rows for one in self.channels)

    def as_dict(self) -> dict[str, Any]:
        """The plain data of ``convert --json``."""
        return {
            "output": self.path,
            "channels": [asdict(one) for one in self.channels],
            "skipped": list(self.skipped),
            "notes": list(self.notes),
        }


def convert(
    src: Readable | Log,
    dst: str | os.PathLike[str],
    *,
    topics: str | Iterable[str] | None = None,
    start: str | int | None = None,
    end: str | int | None = None,
    utc: bool = False,
    interpolate: bool = False,
    raw: bool = False,
    strict: bool = False,
    compression: str | None = None,
    chunk_bytes: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Converted:
    """Write a log to *dst*, whose suffix says as what; tells what was written.

    src       an open Log, or anything that ``logreel.open`` takes
    dst       ``x.parquet/``, ``x.csv/``, ``x.arrow/``: a folder with a file per channel and a manifest.json;
              without the slash: one file with the one channel that *topics* names. ``x.ndjson``: one file
              with all messages. ``x.jpg/``, ``x.ply/``: a folder with a folder per channel that has pictures or
              clouds, and a file for each of them. ``x.kml``, ``x.gpx``, ``x.geojson``: one file with the tracks.
              ``x.mcap``, ``x.bag`` …: a log, message by message as bytes
    topics    names or shell patterns; None: all that fit, the reserved ones with messages included
    start, end  ns, or times as people write them; half-open
    utc       wall-clock times
    interpolate  where a message holds many records of one time, spread their times evenly to the next message;
              only for tables: ``x.ndjson`` has a line per message
    raw       only into logs: payloads and schemas byte for byte, and nothing else. Otherwise a log that many tools
              read, an MCAP, gets channels in schemas that they know for all that lenses recognise, and messages that
              they cannot decode become protobuf
    strict    only into logs: write nothing where something would have to be left out
    compression  only into logs: as their format calls it; None: as the source has it, or as is usual there
    chunk_bytes  only into logs: size of their chunks before they are packed; None: as is usual there
    force     replace *dst*: a file, or a folder that logreel wrote
    progress  called with the messages done and the messages in all

    Nothing but the whole result ever has the name *dst*. Channels that cannot be decoded are left out and
    told of. Raises UsageError for an unknown suffix, several channels for one file, or unreadable times;
    LogError where *dst* exists, or none of the channels can be decoded or holds what *dst* is made of.
    """
    name = os.fspath(dst)
    output = find_output(name)
    if interpolate and output.shape is not Shape.TABLES:
        raise UsageError(f"{output.suffix} has no rows whose times could be spread: leave out --interpolate")
    if output.shape is Shape.LOG:
        if utc:
            raise UsageError(f"{output.suffix} has times of its own: leave out --utc")
        how = Target(
            name,
            compression,
            force,
            progress=progress,
            chunk_bytes=chunk_bytes,
            foreign=True,
            strict=strict,
        )
        return _log(src, how, topics, start, end, raw)
    if raw or strict or compression is not None or chunk_bytes is not None:
        text = "leave out --raw, --strict, --compression and --chunk-size"
        raise UsageError(f"{output.suffix} is no log: {text}")
    with opened(src) as log:
        first, last = interval(log, start, end)
        shift_of(log, utc)
        source = Path(log.name)
        if source.exists() and os.path.realpath(source) == os.path.realpath(name):
            raise UsageError("input and output are the same file", path=name)
        folder = _is_folder(output, name)
        job = Job(log, _channels(log, topics, output), first, last, utc, progress, interpolate=interpolate)
        if output.shape is Shape.WHOLE:
            return _one_for_all(job, output, name, force)
        if folder:
            return _folder(job, output, name, force)
        if len(job.channels) != 1:
            raise UsageError(
                f"{len(job.channels)} channels do not fit into one file: write the folder {name}/, "
                "or choose one channel (-t)"
            )
        return _one_channel(job, output, name, force)


def _log(
    src: Readable | Log,
    target: Target,
    topics: str | Iterable[str] | None,
    start: str | int | None,
    end: str | int | None,
    raw: bool,
) -> Converted:
    with opened(src) as log:
        first, last = interval(log, start, end)
        part = choose(log, topics, (), first, last)
        done = rewrite([part], target) if raw else _with_meaning(part, target)
        file = os.path.basename(target.path)
        channels = tuple(Written(one.topic, file, one.messages) for one in done.channels)
        return Converted(target.path, channels, done.skipped, done.notes)


def _with_meaning(part: Part, target: Target) -> Rewritten:
    """Write a log so that tools understand it that do not know its format, where the format is one for exchange."""
    if not format_to_write(target.path, part.log).exchange:
        return rewrite([part], target)
    from logreel.outputs.foxglove.meaning import mixture

    mixed = mixture(part.log, part.channels)
    return (
        translate(part, target, mixed)
        if mixed.instead or mixed.added or mixed.told
        else rewrite([part], target)
    )


def _is_folder(output: Output, name: str) -> bool:
    """Whether *name* means a folder; raises UsageError where *output* is none, or nothing else."""
    slash = name.endswith(("/", os.sep))
    if output.shape is Shape.WHOLE and slash:
        raise UsageError(f"{output.suffix} is one file: leave out the slash at the end of {name!r}")
    if output.shape is Shape.ITEMS and not slash:
        raise UsageError(f"{output.suffix} is a folder with a file per {output.item}: write {name}/")
    return slash or (output.shape is Shape.TABLES and os.path.isdir(name))


def _channels(log: Log, topics: str | Iterable[str] | None, output: Output) -> list[Channel]:
    every = list(log.channels.values())
    chosen = [ch for ch in every if not ch.reserved or len(ch)] if topics is None else log.match(topics)
    if not output.reads:
        return chosen
    found = [ch for ch in chosen if readers(ch, output.reads)]
    if not found:
        fit = [repr(ch.topic) for ch in every if readers(ch, output.reads)]
        hint = f"; these do: {', '.join(fit[:5])}{' …' * (len(fit) > 5)}" if fit else ""
        which = "the log has no channel that holds" if topics is None else "none of the channels chosen holds"
        raise LogError(f"{which} {output.needs}{hint}", path=log.name)
    return found


def _one_for_all(job: Job, output: Output, name: str, force: bool) -> Converted:
    write = output.writer()
    with new_file(name, force) as out:
        write(out, job)
    file = os.path.basename(name)
    rows = [(ch.topic, job.rows.get(ch.topic, 0)) for ch in job.channels]
    channels = tuple(Written(topic, file if count else None, count) for topic, count in rows)
    return Converted(name, channels, tuple(job.skipped), tuple(job.notes))


def _one_channel(job: Job, output: Output, name: str, force: bool) -> Converted:
    (ch,) = job.channels
    schema, batches, _ = job.table(ch)
    write = output.writer()
    with new_file(name, force) as out:
        try:
            write(out, schema, batches)
        except _unfit() as error:
            raise LogError(f"channel {ch.topic!r} cannot be written: {_reason(error)}", path=name) from error
    return Converted(name, (Written(ch.topic, os.path.basename(name), job.rows.get(ch.topic, 0)),), ())


def _unfit() -> tuple[type[Exception], ...]:
    """What is raised for a channel that cannot be decoded, or has a type that an output cannot hold."""
    import pyarrow as pa

    return (DefinitionError, pa.ArrowInvalid, pa.ArrowNotImplementedError)


def _reason(error: Exception) -> str:
    return error.text if isinstance(error, LogError) else str(error).partition("\n")[0]


def _folder(job: Job, output: Output, name: str, force: bool) -> Converted:
    items = output.shape is Shape.ITEMS
    files = file_names((ch.topic for ch in job.channels), "" if items else output.suffix)
    written = []
    with new_folder(name, force, Path(job.log.name)) as folder:
        for ch in job.channels:
            make = _items_of if items else _file_of
            made = make(job, ch, output, folder / files[ch.topic])
            written.append(Written(ch.topic, files[ch.topic] if made else None, job.rows.get(ch.topic, 0)))
        if job.skipped and not any(one.file for one in written):
            raise LogError(f"nothing could be written: {job.skipped[0]}", path=job.log.name)
        if items:
            sync_all()
        with synced(folder / MANIFEST) as out:
            _manifest(out, job, written)
    return Converted(name, tuple(written), tuple(job.skipped), tuple(job.notes))


def _items_of(job: Job, ch: Channel, output: Output, path: Path) -> bool:
    """Write the folder of one channel; False where there is nothing to write."""
    write_items(path, job, ch, output)
    return ch.topic in job.rows


def _file_of(job: Job, ch: Channel, output: Output, path: Path) -> bool:
    """Write one file of a folder; False where there is nothing to write or the channel cannot be decoded."""
    try:
        schema, batches, some = job.table(ch)
        if not some:
            return False
        with synced(path) as out:
            output.writer()(out, schema, batches)
    except _unfit() as error:
        path.unlink(missing_ok=True)
        job.rows.pop(ch.topic, None)
        job.skipped.append(f"channel {ch.topic!r} was left out: {_reason(error)}")
        return False
    return True


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
            {**asdict(one), "type": ch.schema.name, "encoding": ch.schema.encoding}
            for one, ch in zip(written, job.channels, strict=True)
        ],
        "skipped": job.skipped,
        "metadata": plain(log.metadata),
        "problems": [problem.as_dict() for problem in log.problems],
    }
    out.write(json.dumps(manifest, indent=1, allow_nan=False).encode() + b"\n")
