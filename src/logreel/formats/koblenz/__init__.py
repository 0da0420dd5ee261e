"""Sensor logs of the robots of the University of Koblenz-Landau (``.vel``, ``.log``), 0xA4 ``VEL``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from logreel.formats.koblenz.types import register_type, registered_types, type_id
from logreel.model.registry import Format
from logreel.model.scan import Saved, Scan

if TYPE_CHECKING:
    from logreel.model.appender import Appender
    from logreel.model.sink import Sink
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


def _create(out: Appender, **options: Any) -> Sink:
    from logreel.formats.koblenz.write import KoblenzSink

    return KoblenzSink(out, **options)


def _like(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {"size_reading": metadata.get("size_reading", "A")}


FORMAT = Format(
    name="koblenz",
    title="Koblenz sensor log",
    suffixes=(".vel", ".log"),
    versions="1.1",
    sniff=_sniff,
    scan=_scan,
    create=_create,
    like=_like,
    sample=_sample,
)
