"""The outputs of ``convert``, by suffix, and the Job that each of them writes."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError, UsageError
from logreel.lenses import lenses
from logreel.registry.registry import Registry, formats, lazy

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.io.arrays import I64
    from logreel.io.output_stream import OutputStream
    from logreel.log.log import Channel, Log
    from logreel.log.topic_fields import FieldsByTopic
    from logreel.ops.query.windows import OnsetWindow
    from logreel.ops.rewrite.target import Progress


@dataclass
class SkipCounter:
    """Counts skipped items, and keeps the reason of the first."""

    count: int = 0
    reason: str = ""

    def add(self, reason: str) -> None:
        """Count one more item."""
        self.reason = self.reason or reason
        self.count += 1

    def sentences(self, item: str, what: str) -> list[str]:
        """Return the sentence ``3 <item>s <what>: <reason>`` in a list, empty if nothing was skipped."""
        counted = f"{self.count} {item}{'s' * (self.count != 1)}"
        return [f"{counted} {what}: {self.reason[:200]}"] if self.count else []


@dataclass
class Job:
    """Channels of a log to write, with start <= time < end (ns).

    utc      True: UTC times
    interpolate  True: in tables, spread the times of the records in a message up to the next message
    fields   field paths by topic, for tables and JSON; a topic without an entry, or with None: all
    rows     number of rows, messages, pictures … written so far, by topic
    skipped  a sentence for each thing that could not be written
    notes    a sentence for each remark that is no loss
    done     number of messages processed so far, see ``advance``
    stream   stream for the output instead of a file; None: a file
    frames   of trajectories: both frames, ``map:base_link``; None: the best trajectory of the channels
    windows  the windows that the messages are in, if it was asked for these
    """

    log: Log
    channels: list[Channel]
    start: int | None = None
    end: int | None = None
    utc: bool = False
    progress: Progress | None = None
    rows: dict[str, int] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    interpolate: bool = False
    fields: FieldsByTopic = field(default_factory=dict)
    done: int = 0
    stream: OutputStream | None = None
    frames: str | None = None
    windows: tuple[OnsetWindow, ...] = ()
    _next: int = 0

    @cached_property
    def total(self) -> int:
        """Number of messages of all channels, outside of the interval included."""
        return sum(len(ch) for ch in self.channels)

    def in_interval(self, times: I64) -> NDArray[np.bool_]:
        """Return bool[n]: which of *times* (ns) are in the interval."""
        first = np.ones(len(times), np.bool_) if self.start is None else times >= self.start
        return first if self.end is None else first & (times < self.end)

    def count_rows(self, topic: str, rows: int) -> None:
        """Count *rows* of a topic as written; each is one message."""
        self.rows[topic] = self.rows.get(topic, 0) + rows
        self.advance(rows)

    def advance(self, messages: int) -> None:
        """Count *messages* as processed, and report to *progress* at every 0.5 % and at the end."""
        self.done += messages
        if self.progress is not None and self.done >= self._next:
            self._next = min(self.done + self.total // 200, self.total)
            self.progress(self.done, max(self.done, self.total))

    def table(self, ch: Channel) -> tuple[pa.Schema, Iterator[pa.RecordBatch], bool]:
        """Return the schema of *ch*, its rows in batches of bounded size, and whether there are any rows.

        Rows are counted when they are read. The metadata of the schema contains the definition of the messages, if it
        is text. Raises DefinitionError if the definition cannot be used.
        """
        from logreel.log.columns import RowOptions
        from logreel.log.tables import empty_table
        from logreel.ops.query.record_batches import bounded_batches

        batches = bounded_batches(
            ch, self.start, self.end, self.utc, self.interpolate, self.fields.get(ch.topic)
        )
        head = next(batches, None)
        if head is None:
            none = empty_table(ch, RowOptions(True, self.utc, self.interpolate), self.paths(ch))
            return with_definition(none.schema, ch), iter(()), False
        return (
            with_definition(head.schema, ch),
            self._counted(ch.topic, itertools.chain([head], batches)),
            True,
        )

    def paths(self, ch: Channel) -> list[str] | None:
        """Return the Layout paths of the fields chosen of *ch*, or None for all."""
        from logreel.log.columns import own_paths

        return own_paths(ch, self.fields.get(ch.topic))

    def _counted(self, topic: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            self.count_rows(topic, batch.num_rows)


def with_definition(schema: pa.Schema, ch: Channel) -> pa.Schema:
    """Return *schema* with the definition of *ch* in its metadata."""
    definition = {"format": ch.log.format, "encoding": ch.schema.encoding, "definition": ch.schema.text}
    meta = {
        key.encode(): value.encode("utf-8", "backslashreplace") for key, value in definition.items() if value
    }
    return schema.with_metadata({**schema.metadata, **meta})


class Shape(Enum):
    """The files of an output, and the signature of the function ``write``.

    TABLES  one file per channel, ``write(out, schema, batches)``; several channels need a folder
    VIDEOS  one file per channel, ``write(out, job, ch)``; several channels need a folder
    WHOLE   one file for all channels, ``write(out, job)``
    ITEMS   a folder per channel with a file per item that its lens reads; ``write(item)`` returns an Item
    LOG     a log of some format; ``write`` is ``Format.create``
    """

    TABLES = "tables"
    VIDEOS = "videos"
    WHOLE = "whole"
    ITEMS = "items"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class Output:
    """One kind of output.

    suffix  suffix of the path to write, which chooses this output
    title   name for people
    write   function that writes, best ``lazy("module:write")``, which imports the module at first use
    shape   files and signature of *write*
    item    name of the things that are counted
    reads   method of lenses that reads the content; empty: every channel can be written
    needs   content that a channel must have for that, for error messages
    media   media type; empty: can only be written to a seekable file with a name
    table   class that writes a table batch by batch, while a log comes: ``table(out, schema)`` with ``write(batch)``
            and ``close()``; only for TABLES. None: written when the log is complete
    """

    suffix: str
    title: str
    write: Callable[..., Any]
    shape: Shape
    item: str = "row"
    reads: str = ""
    needs: str = ""
    media: str = "application/octet-stream"
    table: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        for name in ("write", "table"):
            if isinstance(place := getattr(self, name), str):
                raise UsageError(f"Output.{name} is a function: lazy('module:name'), not the text {place!r}")

    @property
    def names(self) -> tuple[str, ...]:
        """The suffix in all accepted forms, with a slash for a folder; the usual form first."""
        folder = () if self.shape in (Shape.WHOLE, Shape.LOG) else (f"{self.suffix}/",)
        return folder if self.shape is Shape.ITEMS else (*folder, self.suffix)


_ARROW, _PARQUET = "application/vnd.apache.arrow.file", "application/vnd.apache.parquet"
_LINES, _GEOJSON = "application/x-ndjson", "application/geo+json"
_KML = "application/vnd.google-earth.kml+xml"
_TRACKS = ("position", "fixes", "latitude and longitude")
#: What trajectories count.
POSE = "pose"


_BUILT_IN = (
    Output(
        ".parquet",
        "Apache Parquet",
        lazy("logreel.outputs.tables.columnar:write_parquet"),
        Shape.TABLES,
        media=_PARQUET,
        table=lazy("logreel.outputs.tables.columnar:ParquetTable"),
    ),
    Output(
        ".csv",
        "Comma-separated values",
        lazy("logreel.outputs.tables.csv:write"),
        Shape.TABLES,
        media="text/csv",
        table=lazy("logreel.outputs.tables.csv:Table"),
    ),
    Output(
        ".arrow",
        "Apache Arrow IPC",
        lazy("logreel.outputs.tables.columnar:write_arrow"),
        Shape.TABLES,
        media=_ARROW,
        table=lazy("logreel.outputs.tables.columnar:ArrowTable"),
    ),
    Output(
        ".ndjson",
        "JSON, a line per message",
        lazy("logreel.outputs.tables.ndjson:write"),
        Shape.WHOLE,
        media=_LINES,
    ),
    Output(
        ".jpg",
        "Pictures",
        lazy("logreel.outputs.media.pictures:write_picture"),
        Shape.ITEMS,
        "picture",
        "pictures",
        "pictures",
    ),
    Output(
        ".ply",
        "Point clouds",
        lazy("logreel.outputs.media.clouds:write_ply"),
        Shape.ITEMS,
        "cloud",
        "clouds",
        "points or scans",
    ),
    Output(
        ".mp4",
        "Videos",
        lazy("logreel.outputs.media.mp4:write"),
        Shape.VIDEOS,
        "picture",
        "pictures",
        "pictures",
        media="",
    ),
    Output(".rrd", "Recordings of Rerun", lazy("logreel.outputs.rerun:write"), Shape.WHOLE, media=""),
    Output(
        ".kml", "Tracks in KML", lazy("logreel.outputs.tracks:write_kml"), Shape.WHOLE, *_TRACKS, media=_KML
    ),
    Output(
        ".gpx",
        "Tracks in GPX",
        lazy("logreel.outputs.tracks:write_gpx"),
        Shape.WHOLE,
        *_TRACKS,
        media="application/gpx+xml",
    ),
    Output(
        ".geojson",
        "Tracks in GeoJSON",
        lazy("logreel.outputs.tracks:write_geojson"),
        Shape.WHOLE,
        *_TRACKS,
        media=_GEOJSON,
    ),
    Output(
        ".tum",
        "Trajectories of TUM's benchmark",
        lazy("logreel.outputs.trajectories:write_tum"),
        Shape.WHOLE,
        POSE,
        media="text/plain",
    ),
    Output(
        ".kitti",
        "Trajectories of KITTI's benchmark",
        lazy("logreel.outputs.trajectories:write_kitti"),
        Shape.WHOLE,
        POSE,
        media="text/plain",
    ),
    Output(
        ".euroc",
        "Trajectories of EuRoC's data set",
        lazy("logreel.outputs.trajectories:write_euroc"),
        Shape.WHOLE,
        POSE,
        media="text/csv",
    ),
    Output(
        ".xosc",
        "Scenarios in OpenSCENARIO",
        lazy("logreel.outputs.openscenario:write"),
        Shape.WHOLE,
        "state",
        "states",
        "actors",
        media="application/xml",
    ),
    Output(
        ".osi.mcap",
        "Traces of OSI with ground truth",
        lazy("logreel.outputs.osi:write"),
        Shape.WHOLE,
        "frame",
        "states",
        "actors",
        media="",
    ),
    Output(
        ".pcap",
        "Captures of Velodyne packets",
        lazy("logreel.outputs.media.clouds:write_pcap"),
        Shape.VIDEOS,
        "packet",
        "packets",
        "packets of a Velodyne scanner",
        media="application/vnd.tcpdump.pcap",
    ),
)
#: Parquet whose columns keep structs, and CSV whose text no spreadsheet runs: chosen by options of ``convert``.
PARQUET_WITH_STRUCTS = Output(
    ".parquet",
    "Apache Parquet",
    lazy("logreel.outputs.tables.columnar:write_nested"),
    Shape.TABLES,
    media=_PARQUET,
    table=lazy("logreel.outputs.tables.columnar:NestedTable"),
)
CSV_WITHOUT_FORMULAS = Output(
    ".csv",
    "Comma-separated values",
    lazy("logreel.outputs.tables.csv:write_safe"),
    Shape.TABLES,
    media="text/csv",
    table=lazy("logreel.outputs.tables.csv:SafeTable"),
)
#: A new output is a module and a line above, or an Output that an entry point of another package names.
OUTPUTS: Registry[Output] = Registry(
    "output",
    "logreel.outputs",
    {output.suffix: output for output in _BUILT_IN},
    Output,
    lambda output: output.suffix,
)


def logs() -> dict[str, Output]:
    """Return the outputs for all log formats that can be written, by suffix."""
    return {
        suffix: Output(suffix, fmt.title, fmt.create, Shape.LOG, "message")
        for fmt in formats().values()
        if fmt.create is not None
        for suffix in fmt.suffixes[:1]
    }


def readers(ch: Channel, reads: str) -> list[Callable[..., Any]]:
    """Return the methods named *reads* of the lenses of *ch*, called with channel, start and end; often none."""
    return [getattr(lens, reads) for lens in lenses(ch) if hasattr(lens, reads)]


#: End of a name that is meant as the suffix of an output.
_SUFFIX = re.compile(r"\.[A-Za-z]\w*\Z", re.ASCII)


def _folder_suffix() -> str:
    """Return the suffix of the format in which a log can be a folder; empty if there is none."""
    able = (fmt for fmt in formats().values() if fmt.create is not None and fmt.new_folder is not None)
    return next((fmt.suffixes[0] for fmt in able), "")


def is_log_folder(name: str) -> bool:
    """Return whether *name* means a folder that is a log: it ends with a slash, and has no suffix."""
    plain = name.rstrip("/\\")
    return (
        bool(plain)
        and plain != name
        and not _SUFFIX.search(os.path.basename(plain))
        and bool(_folder_suffix())
    )


def find_output(name: str) -> Output:
    """Return the output for the suffix of *name*; raises UsageError with the known suffixes."""
    plain = name.rstrip("/\\").lower()
    if is_log_folder(name):
        return next(output for output in logs().values() if output.suffix == _folder_suffix())
    # Those of other packages are only looked at for other suffixes.
    for outputs in (OUTPUTS.own, logs, OUTPUTS.added):
        for suffix, output in outputs().items():
            if plain.endswith(suffix):
                return output
    known = ", ".join(output.names[0] for output in (*OUTPUTS.all().values(), *logs().values()))
    raise UsageError(f"the suffix of {name!r} names no output; known: {known}")


def channels_for(
    log: Log, topics: str | Iterable[str] | None, output: Output, exclude: str | Iterable[str] = ()
) -> list[Channel]:
    """Return the chosen channels with the content that *output* needs, without those of *exclude*.

    Raises TopicError, UsageError if no channel is left, and LogError if no channel has the content.
    """
    every = list(log.channels.values())
    chosen = [ch for ch in every if not ch.reserved or len(ch)] if topics is None else log.match(topics)
    without = {ch.number for ch in log.match(exclude)} if exclude else set()
    chosen = [ch for ch in chosen if ch.number not in without]
    if without and not chosen:
        raise UsageError("no channel is left", path=log.name)
    if not output.reads:
        return chosen
    readable = [ch for ch in chosen if readers(ch, output.reads)]
    if not readable:
        fit = [repr(ch.topic) for ch in every if readers(ch, output.reads)]
        hint = f"; these do: {', '.join(fit[:5])}{' …' * (len(fit) > 5)}" if fit else ""
        which = "the log has no channel that holds" if topics is None else "none of the channels chosen holds"
        raise LogError(f"{which} {output.needs}{hint}", path=log.name)
    return readable
