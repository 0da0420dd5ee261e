"""Which outputs there are, by the suffix of the name to write."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from logreel.errors import UsageError
from logreel.lenses import lenses
from logreel.registry.registry import formats

if TYPE_CHECKING:
    from logreel.log.log import Channel


class Shape(Enum):
    """What an output consists of.

    TABLES  one file per channel, ``write(out, schema, batches)``, so several channels need a folder
    FILMS   the same of what the lens of a channel reads, ``write(out, job, ch)``
    WHOLE   one file for all, ``write(out, job)``
    ITEMS   a folder per channel with a file per thing that its lens reads, ``write(thing)`` gives an Item
    LOG     a log of some format, written message by message as bytes
    """

    TABLES = "tables"
    FILMS = "films"
    WHOLE = "whole"
    ITEMS = "items"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class Output:
    """One kind of output.

    suffix  ends the name to write, and chooses this output
    title   what people call it
    module  has ``write``; loaded when first used
    shape   what it consists of
    item    what is counted
    reads   method of the lenses that give what is written; empty: every channel can be written
    needs   what a channel must hold for that
    media   its media type; empty: it needs a file that has a name, or where it can go back
    nested  structs stay structs, where its module has ``write_nested`` for that
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

    def writer(self) -> Callable[..., Any]:
        """The function that writes."""
        module = importlib.import_module(self.module)
        found: Callable[..., Any] = module.write_nested if self.nested else module.write
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """Its suffix as people write it, with a slash where that makes a folder; the usual one first."""
        folder = () if self.shape in (Shape.WHOLE, Shape.LOG) else (f"{self.suffix}/",)
        return folder if self.shape is Shape.ITEMS else (*folder, self.suffix)


_ARROW, _PARQUET = "application/vnd.apache.arrow.file", "application/vnd.apache.parquet"
_LINES, _GEOJSON = "application/x-ndjson", "application/geo+json"
_KML = "application/vnd.google-earth.kml+xml"
_TRACKS = ("position", "fixes", "latitude and longitude")

#: A new output is a module and a line here.
OUTPUTS: dict[str, Output] = {
    output.suffix: output
    for output in (
        Output(".parquet", "Apache Parquet", "logreel.outputs.tables.parquet", Shape.TABLES, media=_PARQUET),
        Output(
            ".csv", "Comma-separated values", "logreel.outputs.tables.csv", Shape.TABLES, media="text/csv"
        ),
        Output(".arrow", "Apache Arrow IPC", "logreel.outputs.tables.arrow", Shape.TABLES, media=_ARROW),
        Output(
            ".ndjson", "JSON, a line per message", "logreel.outputs.tables.ndjson", Shape.WHOLE, media=_LINES
        ),
        Output(
            ".jpg", "Pictures", "logreel.outputs.media.jpg", Shape.ITEMS, "picture", "pictures", "pictures"
        ),
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
            Shape.FILMS,
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
    )
}


def logs() -> dict[str, Output]:
    """The outputs that are logs: those of every format that can be written."""
    return {
        suffix: Output(suffix, fmt.title, "", Shape.LOG, "message")
        for fmt in formats().values()
        if fmt.create is not None
        for suffix in fmt.suffixes[:1]
    }


def readers(ch: Channel, reads: str) -> list[Callable[..., Any]]:
    """The methods named *reads* of the lenses of *ch*, to be called with it, start and end; often none."""
    return [getattr(lens, reads) for lens in lenses(ch) if hasattr(lens, reads)]


def find_output(name: str) -> Output:
    """The output that the suffix of *name* chooses; raises UsageError that names the known ones."""
    plain = name.rstrip("/\\").lower()
    for suffix, output in (*OUTPUTS.items(), *logs().items()):
        if plain.endswith(suffix):
            return output
    known = ", ".join(output.names[0] for output in (*OUTPUTS.values(), *logs().values()))
    raise UsageError(f"the suffix of {name!r} names no output; known: {known}")
