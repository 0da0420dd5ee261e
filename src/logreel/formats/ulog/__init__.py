"""PX4 ULog (``.ulg``).

The registry imports this package, and what ``FORMAT`` names when it is used; nobody else imports the modules.
``reader.py`` follows the records, ``non_data_records.py`` parses those that are no messages, and
``scan_builder.py`` makes the Scan of both; ``writer.py`` and ``copier.py`` write. What only PX4 topics mean is in
``meaning/``, ``health.py`` and ``charts.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from logreel.errors import UnsupportedError
from logreel.log.scan import Saved, Scan
from logreel.registry.format import Format
from logreel.registry.registry import lazy, lazy_value

if TYPE_CHECKING:
    from logreel.io.source import Source
    from logreel.layout.layout import Layout
    from logreel.limits import FixedLimit
    from logreel.log.scan import Schema


_MAGIC, _ENCRYPTED = b"ULog\x01\x12\x35", b"ULogEnc"


def _sniff(source: Source) -> bool:
    return source.head.startswith((_MAGIC, _ENCRYPTED))


def _scan(source: Source, saved: Saved | None) -> Scan | None:
    from logreel.formats.ulog.reader import read
    from logreel.formats.ulog.records import FILE_HEADER
    from logreel.formats.ulog.scan_builder import restore, scan

    if source.head.startswith(_ENCRYPTED):
        raise UnsupportedError(
            "an encrypted ULog: decrypt it with the key of its vehicle first", path=source.name
        )
    if source.size < FILE_HEADER:
        raise UnsupportedError(
            f"the file ends inside its header: {source.size} of 16 bytes", path=source.name
        )
    if saved is None:
        return scan(source, read(source))
    restored = restore(source, saved)
    return None if restored is None else scan(source, restored)


def _layout(schema: Schema, topic: str) -> Layout | None:
    from logreel.formats.ulog.definitions import layout_of
    from logreel.formats.ulog.non_data_records import synthetic_layout

    return synthetic_layout(topic) or layout_of(schema)


def _limits() -> Iterator[FixedLimit]:
    from logreel.formats.ulog import definitions, events, reader
    from logreel.limits import REFUSED, FixedLimit

    yield FixedLimit("bytes of a format of a ULog", definitions.MAX_BYTES, "a record has no more", REFUSED)
    yield FixedLimit(
        "memory of XZ in a ULog",
        events.MAX_LZMA,
        "PX4 writes a dictionary of 64 MiB; a header can claim 4 GiB",
        "events have no texts",
    )
    yield FixedLimit(
        "characters of a text of an event",
        events.MAX_TEXT,
        "real ones have fewer than 400",
        "events have no texts; a text that its arguments make longer is shortened",
    )
    yield FixedLimit(
        "segments of a ULog",
        reader.MAX_SEGMENTS,
        "each one gets channels of its own",
        "further ones are kept together in the last one",
    )


FORMAT = Format(
    name="ulog",
    title="PX4 ULog",
    suffixes=(".ulg", ".ulog"),
    versions="0, 1",
    sniff=_sniff,
    scan=_scan,
    create=lazy("logreel.formats.ulog.writer:UlogWriter"),
    append=lazy("logreel.formats.ulog.writer:append"),
    continues_after=("truncated",),
    copier=lazy("logreel.formats.ulog.copier:UlogCopier"),
    layout=_layout,
    identity=("sys_name", "sys_uuid", "ver_hw", "ver_hw_subtype", "ver_sw"),
    share=lazy("logreel.formats.ulog.scan_builder:share"),
    free_name=lazy("logreel.formats.ulog.schema_maker:free_name"),
    follow=lazy("logreel.formats.ulog.scan_builder:UlogGrowing"),
    states=lazy("logreel.formats.ulog.charts:states"),
    meaning=lazy("logreel.formats.ulog.meaning:meaning"),
    sentence=lazy("logreel.formats.ulog.meaning:sentence"),
    detectors=lazy_value("logreel.formats.ulog.health:DETECTORS"),
    charts=lazy("logreel.formats.ulog.charts:charts"),
    bands=lazy("logreel.formats.ulog.meaning.flight:bands"),
    commands=lazy_value("logreel.formats.ulog.commands:COMMANDS"),
    names_in={"ros1msg": lazy("logreel.formats.ulog.schema_maker:ros_names")},
    storage=lazy_value("logreel.formats.ulog.verify:STORAGE"),
    limits=_limits,
)
