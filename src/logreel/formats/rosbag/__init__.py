"""ROS 1 bags of every version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from logreel.registry.format import Format
from logreel.registry.registry import lazy, lazy_scan

if TYPE_CHECKING:
    from logreel.io.source import Source


def _sniff(source: Source) -> bool:
    # Every version begins with a line of text. Files of all formats come here: other files must not cost an import.
    line, newline, _ = source.head[:257].partition(b"\n")
    if not newline or not line.isascii() or not line.decode("latin-1").rstrip("\r").isprintable():
        return False
    from logreel.formats.rosbag.version import version_of

    return version_of(source) is not None


def _like(metadata: Mapping[str, Any]) -> dict[str, Any]:
    known = [name for name in metadata.get("compression", ()) if name in ("bz2", "lz4")]
    return {"compression": known[0] if known else "none", "chunk_bytes": None}


FORMAT = Format(
    name="rosbag",
    title="ROS 1 bag",
    suffixes=(".bag",),
    versions="0, 1.0, 1.1, 1.2, 2.0",
    sniff=_sniff,
    scan=lazy_scan("logreel.formats.rosbag.scan_builder:scan"),
    create=lazy("logreel.formats.rosbag.writer:create"),
    append=lazy("logreel.formats.rosbag.append:append"),
    follow=lazy("logreel.formats.rosbag.scan_builder:BagGrowing"),
    copier=lazy("logreel.formats.rosbag.copier:BagCopier"),
    like=_like,
    splits=True,
    file_facts=("chunks", "compression", "indexed", "encryptor", "gpg_user"),
    storage="logreel.formats.rosbag.storage:STORAGE",
)
