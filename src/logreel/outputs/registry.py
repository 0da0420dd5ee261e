"""The outputs of ``convert``, by suffix."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from logreel.errors import LogError, UsageError
from logreel.lenses import lenses
from logreel.registry.registry import Registry, formats, lazy

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log


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


def find_output(name: str) -> Output:
    """Return the output for the suffix of *name*; raises UsageError with the known suffixes."""
    plain = name.rstrip("/\\").lower()
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
