"""The log formats of logreel, a folder for each with a ``FORMAT``; none imports another one.

A folder's ``__init__`` has the ``Format``, whose functions import the other modules when they are called; no other code
imports a folder. The registry does: for a file that begins as ``BEGINS`` says, for any other file if no such format
fits, and by its name.
Rooms have the same names in all formats: ``reader``, ``framing``, ``index_builder`` and ``scan_builder`` find messages,
``definitions`` gives their Layouts, ``verify`` checks a file; ``writer`` writes, with ``schema_maker``, and ``copier``
and ``append`` where these are long; ``meaning``, ``charts`` and ``health`` say what a log tells of a flight, a drive or
a walk.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logreel.limits import FixedLimit

#: Position and bytes by which files of a format are most likely meant, by name, which is also that of the folder. Which
#: format a file has is decided by ``Format.sniff``.
BEGINS = {
    "bddf": (0, b"BDDF"),
    "carla": (2, b"\x0e\x00CARLA_RECORDER"),
    "koblenz": (0, b"\xa4VEL"),
    "mcap": (0, b"\x89MCAP0\r\n"),
    "rosbag": (0, b"#ROS"),
    "rosbag2": (0, b"SQLite format 3\0"),
    "ulog": (0, b"ULog"),
}


def fixed_limits() -> Iterator[FixedLimit]:
    """Yield the bounds that no option raises, of all formats, also those of other packages."""
    from logreel.registry.registry import formats

    for fmt in formats().values():
        if fmt.limits is not None:
            yield from fmt.limits()
