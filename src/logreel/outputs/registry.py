"""The outputs of ``convert``, by suffix."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from logreel.errors import UsageError
from logreel.lenses import lenses
from logreel.registry.registry import Registry, formats

if TYPE_CHECKING:
    from logreel.log.log import Channel


class Shape(Enum):
    """The files of an output, and the signature of the function ``write`` in its module.

    TABLES  one file per channel, ``write(out, schema, batches)``; several channels need a folder
    VIDEOS  one file per channel, ``write(out, job, ch)``; several channels need a folder
    WHOLE   one file for all channels, ``write(out, job)``
    ITEMS   a folder per channel with a file per item that its lens reads; ``write(item)`` returns an Item
    LOG     a log of some format, written by the FormatWriter
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
    module  module with the function ``write``, imported at first use
    shape   files and signature
    item    name of the things that are counted
    reads   method of lenses that reads the content; empty: every channel can be written
    needs   content that a channel must have for that, for error messages
    media   media type; empty: can only be written to a seekable file with a name
    nested  True: use ``write_nested`` of the module, which keeps structs
    safe    True: use ``write_safe`` of the module, whose text no spreadsheet runs
    """

    suffix: str
    title: str
    module: str
    shape: Shape
    item: str = "row"
    reads: str = ""
    needs: str = ""
    media: str = "application/octet-stream"
    nested: bool = False
    safe: bool = False

    def writer(self) -> Callable[..., Any]:
        """Return the function that writes."""
        module = importlib.import_module(self.module)
        function: Callable[..., Any] = getattr(module, f"write{self._kind}")
        return function

    def table(self) -> Callable[..., Any]:
        """Return the class that writes a table batch by batch, ``Table(out, schema)``; only for TABLES."""
        module = importlib.import_module(self.module)
        table_class: Callable[..., Any] = getattr(module, f"{self._kind.title()[1:]}Table")
        return table_class

    @property
    def _kind(self) -> str:
        return "_nested" if self.nested else "_safe" if self.safe else ""

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
    Output(".parquet", "Apache Parquet", "logreel.outputs.tables.parquet", Shape.TABLES, media=_PARQUET),
    Output(".csv", "Comma-separated values", "logreel.outputs.tables.csv", Shape.TABLES, media="text/csv"),
    Output(".arrow", "Apache Arrow IPC", "logreel.outputs.tables.arrow", Shape.TABLES, media=_ARROW),
    Output(".ndjson", "JSON, a line per message", "logreel.outputs.tables.ndjson", Shape.WHOLE, media=_LINES),
    Output(".jpg", "Pictures", "logreel.outputs.media.jpg", Shape.ITEMS, "picture", "pictures", "pictures"),
    Output(
        ".ply",
        "Point clouds",
        "logreel.outputs.media.ply",
        Shape.ITEMS,
        "cloud",
        "clouds",
        "points or scans",
    ),
    Output(
        ".mp4",
        "Videos",
        "logreel.outputs.media.mp4",
        Shape.VIDEOS,
        "picture",
        "pictures",
        "pictures",
        media="",
    ),
    Output(".rrd", "Recordings of Rerun", "logreel.outputs.rerun.rrd", Shape.WHOLE, media=""),
    Output(".kml", "Tracks in KML", "logreel.outputs.tracks.kml", Shape.WHOLE, *_TRACKS, media=_KML),
    Output(
        ".gpx",
        "Tracks in GPX",
        "logreel.outputs.tracks.gpx",
        Shape.WHOLE,
        *_TRACKS,
        media="application/gpx+xml",
    ),
    Output(
        ".geojson",
        "Tracks in GeoJSON",
        "logreel.outputs.tracks.geojson",
        Shape.WHOLE,
        *_TRACKS,
        media=_GEOJSON,
    ),
    Output(
        ".pcap",
        "Captures of Velodyne packets",
        "logreel.outputs.media.pcap",
        Shape.VIDEOS,
        "packet",
        "packets",
        "packets of a Velodyne scanner",
        media="application/vnd.tcpdump.pcap",
    ),
)  #: A new output is a module and a line above, or an Output that an entry point of another package names.
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
        suffix: Output(suffix, fmt.title, "", Shape.LOG, "message")
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
