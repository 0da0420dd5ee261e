"""MCAP files.

The registry imports this package, and what ``FORMAT`` names when it is used; nobody else imports the modules.
``reader.py`` reads a file by its summary, or record by record; ``index_builder.py`` collects the positions of messages
and reads indexes of chunks when they are needed; ``scan_builder.py`` makes the Scan. ``writer.py`` writes chunks.
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
    return source.head.startswith(b"\x89MCAP0\r\n")


def _like(metadata: Mapping[str, Any]) -> dict[str, Any]:
    facts = metadata.get("mcap", {})
    known = [name for name in facts.get("compression", ()) if name in ("zstd", "lz4")]
    return {
        "compression": known[0] if known else "none",
        "profile": facts.get("profile", ""),
        "chunk_bytes": facts.get("chunk_bytes", 1 << 20),
    }


def _limits() -> Iterator[FixedLimit]:
    from logreel.formats.mcap import chunks, reader
    from logreel.limits import GROWING, FixedLimit

    yield FixedLimit(
        "bytes of an MCAP chunk in offsets",
        chunks.LARGEST,
        "offsets in a chunk have 32 bits",
        "the rest of the chunk is a problem `chunk`",
    )
    yield FixedLimit(
        "bytes of an unfinished record of a growing MCAP",
        reader.PENDING,
        "a damaged size must not stop `follow`",
        GROWING,
    )


FORMAT = Format(
    name="mcap",
    title="MCAP",
    suffixes=(".mcap",),
    versions="0",
    sniff=_sniff,
    scan=lazy_scan("logreel.formats.mcap.scan_builder:scan"),
    create=lazy("logreel.formats.mcap.writer:McapWriter"),
    append=lazy("logreel.formats.mcap.append:append"),
    follow=lazy("logreel.formats.mcap.scan_builder:McapGrowing"),
    copier=lazy("logreel.formats.mcap.writer:McapCopier"),
    like=_like,
    exchange=True,
    splits=True,
    storage=lazy_value("logreel.formats.mcap.records:STORAGE"),
    limits=_limits,
)
