"""Boston Dynamics Data Format (``.bddf``), written by Spot and its clients.

The registry imports this package, and what ``FORMAT`` names when it is used; nobody else imports the modules.
``index_reader.py`` reads a file by its own index, ``reader.py`` from the front if there is none or something is wrong;
``scan_builder.py`` makes the Scan of both. ``value_series.py`` and ``payload_decoders.py`` know the payloads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from logreel.registry.format import Format
from logreel.registry.registry import lazy, lazy_scan, lazy_value

if TYPE_CHECKING:
    from logreel.io.source import Source
    from logreel.limits import FixedLimit


def _sniff(source: Source) -> bool:
    return source.head.startswith(b"BDDF")


def _like(metadata: Mapping[str, Any]) -> dict[str, Any]:
    # Annotations of the source are kept, also those with reserved keys.
    like: dict[str, Any] = {"reserved": True}
    if metadata.get("checksum") == "none":
        like["checksum"] = "none"
    return like


def _limits() -> Iterator[FixedLimit]:
    from logreel.formats.bddf import reader, records, value_series
    from logreel.limits import GROWING, FixedLimit

    yield FixedLimit(
        "series of a BDDF",
        reader.MAX_SERIES,
        "the table of series has one entry for each number",
        "the declaration is a problem `garbage`",
    )
    yield FixedLimit(
        "bytes of a BDDF descriptor",
        records.MAX_DESCRIPTOR,
        "real ones have some kB",
        "the block is a problem, or `UsageError` when it is written",
    )
    yield FixedLimit(
        "dimensions of a BDDF array",
        records.MAX_DIMENSIONS,
        "each is a level of a list",
        "the channel has no fields",
    )
    yield FixedLimit(
        "depth of a BDDF struct",
        value_series.MAX_DEPTH,
        "structs may contain each other",
        "a problem; the member is left out",
    )
    yield FixedLimit(
        "bytes of an unfinished block of a growing BDDF",
        reader.PENDING,
        "a damaged size must not stop `follow`",
        GROWING,
    )


FORMAT = Format(
    name="bddf",
    title="Boston Dynamics Data Format",
    suffixes=(".bddf",),
    versions="1.0",
    sniff=_sniff,
    scan=lazy_scan("logreel.formats.bddf.scan_builder:scan"),
    create=lazy("logreel.formats.bddf.writer:BddfWriter"),
    append=lazy("logreel.formats.bddf.writer:append"),
    follow=lazy("logreel.formats.bddf.scan_builder:BddfGrowing"),
    copier=lazy("logreel.formats.bddf.copier:BddfCopier"),
    like=_like,
    share=lazy("logreel.formats.bddf.scan_builder:share"),
    channel_key=lazy("logreel.formats.bddf.schema_maker:series_key"),
    identity=("bosdyn:robot-serial-number",),
    splits=True,
    file_facts=("indexed", "checksum", "sha1"),
    meaning=lazy("logreel.formats.bddf.meaning:meaning"),
    bands=lazy("logreel.formats.bddf.meaning:bands"),
    storage=lazy_value("logreel.formats.bddf.records:STORAGE"),
    limits=_limits,
)
