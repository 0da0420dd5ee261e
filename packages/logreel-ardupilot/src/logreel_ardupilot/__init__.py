"""Logs of ArduPilot for logreel.

``DATAFLASH`` is the format of DataFlash logs (``.bin``); entry points register it. ``definitions`` has what these logs
say of their messages, ``reader`` finds the messages, ``writer`` writes them, ``meaning`` knows what they mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logreel.plugin import Format, lazy

if TYPE_CHECKING:
    from logreel.plugin import Layout, Schema, Source

__all__ = ["DATAFLASH"]

#: The mark of every record, and the kind of a definition: every log begins with one.
_BEGIN = b"\xa3\x95\x80"


def _sniff(source: Source) -> bool:
    return bytes(source.head[:3]) == _BEGIN


def _layout(schema: Schema, topic: str) -> Layout | None:
    from logreel_ardupilot.definitions import Definition

    return Definition.of_schema(schema).layout if schema.encoding == "dataflash" else None


DATAFLASH = Format(
    name="dataflash",
    title="ArduPilot DataFlash log",
    suffixes=(".bin",),
    versions="self-describing, with and without units",
    sniff=_sniff,
    scan=lazy("logreel_ardupilot.reader:scan"),
    create=lazy("logreel_ardupilot.writer:create"),
    append=lazy("logreel_ardupilot.writer:append"),
    copier=lazy("logreel_ardupilot.writer:DataFlashCopier"),
    layout=_layout,
    states=lazy("logreel_ardupilot.meaning:states"),
    bands=lazy("logreel_ardupilot.meaning:bands"),
    file_facts=("definitions",),
)
