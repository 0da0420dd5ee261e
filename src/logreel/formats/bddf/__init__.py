"""Boston Dynamics Data Format (``.bddf``): what Spot and its clients log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logreel.model.registry import Format
from logreel.model.scan import Saved, Scan

if TYPE_CHECKING:
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


FORMAT = Format(
    name="bddf",
    title="Boston Dynamics Data Format",
    suffixes=(".bddf",),
    versions="1.0",
    sniff=_sniff,
    scan=_scan,
    sample=_sample,
)
