"""Logs of ArduPilot for logreel.

``DATAFLASH`` is the format of DataFlash logs (``.bin``), ``TEXT`` that of the same logs as text (``.log``), ``TLOG``
that of telemetry logs (``.tlog``); entry points register them. ``definitions`` has what DataFlash logs say of their
messages, ``reader`` finds the messages, ``writer`` writes them, ``lines`` turns them into lines and back for
``text_reader`` and ``text_writer``; ``mavlink`` has the messages of MAVLink, ``tlog`` reads and writes them.
``meaning`` knows what messages mean, ``signals`` what a flight is judged by, for ``summary``, ``charts``, ``health``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logreel.plugin import Format, lazy, lazy_value

if TYPE_CHECKING:
    from logreel.plugin import Layout, Schema, Source

__all__ = ["DATAFLASH", "TEXT", "TLOG"]

#: The mark of every record, and the kind of a definition: every log begins with one.
_BEGIN = b"\xa3\x95\x80"


def _sniff(source: Source) -> bool:
    return bytes(source.head[:3]) == _BEGIN


def _layout(schema: Schema, topic: str) -> Layout | None:
    from logreel_ardupilot.definitions import Definition

    return Definition.of_schema(schema).layout if schema.encoding == "dataflash" else None


def _sniff_tlog(source: Source) -> bool:
    # Most files are no such logs: their first bytes are no time, or no frame follows it.
    if source.head[:1] != b"\0" or source.head[8:9] not in (b"\xfe", b"\xfd"):
        return False
    from logreel_ardupilot.tlog import sniff

    return sniff(source)


def _sniff_text(source: Source) -> bool:
    # The first line of most of them; others have a few lines before it.
    if b"FMT," not in bytes(source.head[: 1 << 14]):
        return False
    from logreel_ardupilot.text_reader import sniff

    return sniff(bytes(source.head[: 1 << 14]))


#: What all formats say of a flight.
_MEANING: dict[str, Any] = {
    "bands": lazy("logreel_ardupilot.summary:bands"),
    "meaning": lazy("logreel_ardupilot.summary:meaning"),
    "charts": lazy("logreel_ardupilot.charts:charts"),
    "detectors": lazy_value("logreel_ardupilot.health:DETECTORS"),
}
#: What logs say that define their messages, as records or as text.
_DEFINED: dict[str, Any] = {
    "versions": "self-describing, with and without units",
    "copier": lazy("logreel_ardupilot.writer:DataFlashCopier"),
    "layout": _layout,
    "states": lazy("logreel_ardupilot.meaning:states"),
    "file_facts": ("definitions",),
    **_MEANING,
}
TLOG = Format(
    name="tlog",
    title="MAVLink telemetry log",
    suffixes=(".tlog",),
    versions="1, 2",
    sniff=_sniff_tlog,
    scan=lazy("logreel_ardupilot.tlog:scan"),
    create=lazy("logreel_ardupilot.tlog:TlogWriter"),
    append=lazy("logreel_ardupilot.tlog:append"),
    **_MEANING,
    file_facts=("versions",),
)
DATAFLASH = Format(
    name="dataflash",
    title="ArduPilot DataFlash log",
    suffixes=(".bin",),
    sniff=_sniff,
    scan=lazy("logreel_ardupilot.reader:scan"),
    create=lazy("logreel_ardupilot.writer:create"),
    append=lazy("logreel_ardupilot.writer:append"),
    **_DEFINED,
)
TEXT = Format(
    name="dataflash-text",
    title="ArduPilot text log",
    suffixes=(".log",),
    sniff=_sniff_text,
    scan=lazy("logreel_ardupilot.text_reader:scan"),
    create=lazy("logreel_ardupilot.text_writer:create"),
    append=lazy("logreel_ardupilot.text_writer:append"),
    **_DEFINED,
)
