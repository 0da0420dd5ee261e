"""CARLA recordings (``.log``, ``.rec``): what the driving simulator's recorder writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logreel.model.registry import Format
from logreel.model.scan import Saved, Scan

if TYPE_CHECKING:
    from logreel.model.appender import Appender
    from logreel.model.sink import Sink
    from logreel.model.source import Source


def _sniff(source: Source) -> bool:
    return source.head[2:18] == b"\x0e\x00CARLA_RECORDER"


def _scan(source: Source, saved: Saved | None) -> Scan | None:
    if saved is not None:
        return None
    from logreel.formats.carla.content import scan

    return scan(source)


def _sample() -> bytes:
    from logreel.formats.carla.sample_drive import drive

    return drive().bytes()


def _create(out: Appender, **options: Any) -> Sink:
    from logreel.formats.carla.write import CarlaSink

    return CarlaSink(out, **options)


FORMAT = Format(
    name="carla",
    title="CARLA recording",
    suffixes=(".rec", ".log"),
    versions="0.9.4 to 0.9.16, 0.10",
    sniff=_sniff,
    scan=_scan,
    create=_create,
    sample=_sample,
    api="logreel.formats.carla.api",
    commands="logreel.formats.carla.commands:COMMANDS",
    frames="logreel.formats.carla.frames:frames",
)
