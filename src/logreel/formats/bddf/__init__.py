"""Boston Dynamics Data Format (``.bddf``): what Spot and its clients log."""

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
    return source.head.startswith(b"BDDF")


def _scan(source: Source, saved: Saved | None) -> Scan | None:
    if saved is not None:
        return None
    from logreel.formats.bddf.content import scan

    return scan(source)


def _sample() -> bytes:
    from logreel.formats.bddf.sample import walk

    return walk()


def _create(out: Appender, **options: Any) -> Sink:
    from logreel.formats.bddf.write import BddfSink

    return BddfSink(out, **options)


def _like(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {"checksum": "none"} if metadata.get("checksum") == "none" else {}


FORMAT = Format(
    name="bddf",
    title="Boston Dynamics Data Format",
    suffixes=(".bddf",),
    versions="1.0",
    sniff=_sniff,
    scan=_scan,
    create=_create,
    like=_like,
    sample=_sample,
)
