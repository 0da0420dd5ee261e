"""MCAP files: what today's robot tools log and exchange."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from logreel.model.registry import Format
from logreel.model.scan import Saved, Scan

if TYPE_CHECKING:
    from logreel.model.appender import Appender
    from logreel.model.sink import Sink
    from logreel.model.source import Source


def _sniff(source: Source) -> bool:
    return source.head.startswith(b"\x89MCAP0\r\n")


def _scan(source: Source, saved: Saved | None) -> Scan | None:
    if saved is not None:
        return None
    from logreel.formats.mcap.content import scan

    return scan(source)


def _sample() -> bytes:
    from logreel.formats.mcap.sample import walk

    return walk()


def _create(out: Appender, **options: Any) -> Sink:
    from logreel.formats.mcap.write import McapSink

    return McapSink(out, **options)


def _like(metadata: Mapping[str, Any]) -> dict[str, Any]:
    told = metadata.get("mcap", {})
    packed = [name for name in told.get("compression", ()) if name in ("zstd", "lz4")]
    compression = packed[0] if packed else "none"
    return {
        "compression": compression,
        "profile": told.get("profile", ""),
        "chunk_bytes": told.get("chunk_bytes", 1 << 20),
    }


FORMAT = Format(
    name="mcap",
    title="MCAP",
    suffixes=(".mcap",),
    versions="0",
    sniff=_sniff,
    scan=_scan,
    create=_create,
    like=_like,
    sample=_sample,
    exchange=True,
)
