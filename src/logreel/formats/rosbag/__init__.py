"""ROS 1 bags of every version.

The registry imports this package, and what ``FORMAT`` names when it is used; nobody else imports the modules.
``reader_v2.py`` and, before 2.0, ``reader_v1.py`` read the versions, ``reader.py`` is what they have in common;
``summary.py`` reads the index of version 2.0. ``index_builder.py`` collects the positions of messages,
``scan_builder.py`` makes the Scan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from logreel.registry.format import Format
from logreel.registry.registry import lazy, lazy_scan, lazy_value

if TYPE_CHECKING:
    from logreel.io.source import Source
    from logreel.limits import FixedLimit


_VERSION = re.compile(rb"#ROS\w* V(\d+)\.(\d+)\n")
#: First line of some bags of version 1.0.
_MULTILOG = b"##MULTILOG##\n"


def version_of(source: Source) -> str | None:
    """Return ``0``, ``1.0``, ``1.1``, ``1.2``, ``2.0`` …, or None if the content is no bag.

    Version 0 has no magic line: a file is of version 0 if the lengths of its first records lead from one to the next.
    """
    m = _VERSION.match(source.head)
    if m:
        return f"{int(m[1])}.{int(m[2])}"
    if source.head.startswith(_MULTILOG):
        return "1.0"
    if source.head.startswith(b"#"):
        return None
    from logreel.formats.rosbag.reader_v1 import header_of_version_0

    return "0" if header_of_version_0(source) is not None else None


def _sniff(source: Source) -> bool:
    # Every version begins with a line of text. Files of all formats come here: other files must not cost an import.
    line, newline, _ = source.head[:257].partition(b"\n")
    if not newline or not line.isascii() or not line.decode("latin-1").rstrip("\r").isprintable():
        return False
    return version_of(source) is not None


def _like(metadata: Mapping[str, Any]) -> dict[str, Any]:
    known = [name for name in metadata.get("compression", ()) if name in ("bz2", "lz4")]
    return {"compression": known[0] if known else "none", "chunk_bytes": None}


def _limits() -> Iterator[FixedLimit]:
    from logreel.formats.rosbag import reader, records
    from logreel.limits import GROWING, FixedLimit

    yield FixedLimit(
        "bytes of the header of a bag's record",
        records.MAX_HEADER,
        "the C++ reader has the same",
        "the bytes are a problem",
    )
    yield FixedLimit(
        "bytes of an unfinished record of a growing bag",
        reader.PENDING,
        "a damaged size must not stop `follow`",
        GROWING,
    )


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
    copier=lazy("logreel.formats.rosbag.writer:BagCopier"),
    like=_like,
    splits=True,
    file_facts=("chunks", "compression", "indexed", "encryptor", "gpg_user"),
    storage=lazy_value("logreel.formats.rosbag.records:STORAGE"),
    limits=_limits,
)
