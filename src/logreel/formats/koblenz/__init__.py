"""Sensor logs of the robots of the University of Koblenz-Landau (``.log``), 0xA4 ``VEL``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logreel.formats.koblenz.types import register_type, registered_types, type_id
from logreel.model.registry import Format
from logreel.model.scan import Saved, Scan

if TYPE_CHECKING:
    from logreel.model.source import Source

__all__ = ["FORMAT", "register_type", "registered_types", "type_id"]

_MAGIC = b"\xa4VEL"


def _sniff(source: Source) -> bool:
    return source.head.startswith(_MAGIC)


def _scan(source: Source, saved: Saved | None) -> Scan | None:
    if saved is not None:
        return None
    from logreel.formats.koblenz.content import scan

    return scan(source)


def _sample() -> bytes:
    from logreel.formats.koblenz.sample_drive import drive

    return drive()


FORMAT = Format(
    name="koblenz",
    title="Koblenz sensor log",
    suffixes=(".log",),
    versions="1.1",
    sniff=_sniff,
    scan=_scan,
    sample=_sample,
)
