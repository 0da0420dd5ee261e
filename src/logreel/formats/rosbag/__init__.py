"""ROS 1 bags of every version."""

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
    # Every version begins with a line of text. This is asked of files of all formats: nothing is loaded for others.
    line, newline, _ = source.head[:257].partition(b"\n")
    if not newline or not line.isascii() or not line.decode("latin-1").rstrip("\r").isprintable():
        return False
    from logreel.formats.rosbag.version import version_of

    return version_of(source) is not None


def _scan(source: Source, saved: Saved | None) -> Scan | None:
    if saved is not None:
        return None
    from logreel.formats.rosbag.content import scan

    return scan(source)


def _sample() -> bytes:
    from logreel.formats.rosbag.sample import drive

    return drive()


def _create(out: Appender, **options: Any) -> Sink:
    from logreel.formats.rosbag.write import create

    return create(out, **options)


def _like(metadata: Mapping[str, Any]) -> dict[str, Any]:
    packed = [name for name in metadata.get("compression", ()) if name in ("bz2", "lz4")]
    return {"compression": packed[0] if packed else "none", "chunk_bytes": None}


FORMAT = Format(
    name="rosbag",
    title="ROS 1 bag",
    suffixes=(".bag",),
    versions="0, 1.0, 1.1, 1.2, 2.0",
    sniff=_sniff,
    scan=_scan,
    create=_create,
    like=_like,
    sample=_sample,
)
