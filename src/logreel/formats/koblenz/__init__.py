"""Sensor logs of robots of the University of Koblenz-Landau (``.vel``, ``.log``); magic 0xA4 ``VEL``.

The registry imports this package, and what ``FORMAT`` names when it is used; programs that register types of their own
import it, too. ``framing.py`` finds how a file is to be read, ``reader.py`` follows the messages
by the tables of ``framing.py``, ``scan_builder.py`` makes the Scan; ``definitions.py`` has the types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from logreel.registry.format import Format
from logreel.registry.registry import lazy, lazy_scan, lazy_value

if TYPE_CHECKING:
    from logreel.formats.koblenz.definitions import register_type, registered_types, type_id
    from logreel.io.source import Source
    from logreel.layout.layout import Layout
    from logreel.limits import FixedLimit
    from logreel.log.scan import Schema


__all__ = ["FORMAT", "register_type", "registered_types", "type_id"]

#: The module of the public functions, which is not loaded when only another format is read.
_FUNCTIONS = "logreel.formats.koblenz.definitions"
_MAGIC = b"\xa4VEL"


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(_FUNCTIONS), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _sniff(source: Source) -> bool:
    return source.head.startswith(_MAGIC)


def _like(metadata: Mapping[str, Any]) -> dict[str, Any]:
    like = {"size_reading": metadata.get("size_reading", "A")}
    if "valid_mark" in metadata:
        like["valid_mark"] = int(metadata["valid_mark"], 16)
    return like


def _layout(schema: Schema, topic: str) -> Layout | None:
    from logreel.formats.koblenz.definitions import layout_of

    return layout_of(schema.text) if schema.text else None


def _limits() -> Iterator[FixedLimit]:
    from logreel.formats.koblenz import framing, reader, records, scan_builder
    from logreel.limits import GROWING, FixedLimit

    yield FixedLimit(
        "bytes of a Koblenz message", records.MAX_SIZE, "pictures have some MB", "the bytes are a problem"
    )
    yield FixedLimit(
        "bytes of an unfinished message of a growing Koblenz log",
        reader.LONGEST,
        "a damaged size must not stop `follow`",
        GROWING,
    )
    yield FixedLimit(
        "sensors of a Koblenz type",
        scan_builder.MAX_SENSORS,
        "each one gets a channel",
        "messages of further ones are in one channel, `others`",
    )
    yield FixedLimit(
        "unknown types and versions of a Koblenz log",
        framing.MAX_UNKNOWN,
        "damage looks like new types",
        "the bytes are a problem",
    )


FORMAT = Format(
    name="koblenz",
    title="Koblenz sensor log",
    suffixes=(".vel", ".log"),
    versions="1.1",
    sniff=_sniff,
    scan=lazy_scan("logreel.formats.koblenz.scan_builder:scan"),
    create=lazy("logreel.formats.koblenz.writer:KoblenzWriter"),
    append=lazy("logreel.formats.koblenz.writer:append"),
    copier=lazy("logreel.formats.koblenz.writer:KoblenzCopier"),
    like=_like,
    layout=_layout,
    follow=lazy("logreel.formats.koblenz.scan_builder:KoblenzGrowing"),
    catalogue=lazy_value("logreel.formats.koblenz.catalogue:CATALOGUE"),
    file_facts=("index_entries", "size_reading", "end_mark", "valid_mark"),
    meaning=lazy("logreel.formats.koblenz.meaning:meaning"),
    storage=lazy_value("logreel.formats.koblenz.records:STORAGE"),
    limits=_limits,
)
