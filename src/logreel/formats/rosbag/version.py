"""Which version of the bag format a file has, by its first lines."""

from __future__ import annotations

import re

from logreel.formats.rosbag.records import MULTILOG
from logreel.io.source import Source

_LINE = re.compile(rb"#ROS\w* V(\d+)\.(\d+)\n")
_NAME = re.compile(rb"[ -~]{1,256}\Z")


def version_of(source: Source) -> str | None:
    """``0``, ``1.0``, ``1.1``, ``1.2``, ``2.0`` …, or None where the content is no bag.

    Version 0 has no mark of its own: there the lengths of the first records must lead from one to the next.
    """
    m = _LINE.match(source.head)
    if m:
        return f"{int(m[1])}.{int(m[2])}"
    if source.head.startswith(MULTILOG):
        return "1.0"
    if source.head.startswith(b"#"):
        return None
    from logreel.formats.rosbag.old import header_of_version_0

    return "0" if header_of_version_0(source) is not None else None
