"""Detection of the bag format's version from the first lines of a file."""

from __future__ import annotations

import re

from logreel.formats.rosbag.records import MULTILOG
from logreel.io.source import Source

_LINE = re.compile(rb"#ROS\w* V(\d+)\.(\d+)\n")


def version_of(source: Source) -> str | None:
    """Return ``0``, ``1.0``, ``1.1``, ``1.2``, ``2.0`` …, or None if the content is no bag.

    Version 0 has no magic line: a file is of version 0 if the lengths of its first records lead from one to the next.
    """
    m = _LINE.match(source.head)
    if m:
        return f"{int(m[1])}.{int(m[2])}"
    if source.head.startswith(MULTILOG):
        return "1.0"
    if source.head.startswith(b"#"):
        return None
    from logreel.formats.rosbag.reader_text import header_of_version_0

    return "0" if header_of_version_0(source) is not None else None
