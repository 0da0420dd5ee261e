"""Work on logs that needs no output format.

An operation takes a Log, or what ``logreel.open`` takes, and returns plain data or writes logs. rewrite: logs from
logs. inspect: answers about one log, or two. health: faults of the robot. query: SQL and columns. record: messages
while they happen. replay: messages by a clock.

``logreel`` offers the functions to users; ``outputs``, ``fleet`` and ``cli`` call them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logreel.limits import FixedLimit


def fixed_limits() -> Iterator[FixedLimit]:
    """Yield the bounds of this room that no option raises."""
    from logreel.limits import FixedLimit
    from logreel.ops.record import lines
    from logreel.ops.record.sources import foxglove, streams

    yield FixedLimit(
        "bytes of a line of `record`", lines.LONGEST, "a line is held until it ends", "the line is cut there"
    )
    yield FixedLimit(
        "bytes of a frame of `record`",
        streams.LONGEST,
        "a frame is held until it ends",
        "it is left out, which a note says",
    )
    yield FixedLimit(
        "channels of a Foxglove server",
        foxglove.MOST_CHANNELS,
        "a server may announce any number",
        "further ones are left out, which a note says",
    )
    yield FixedLimit(
        "bytes of a message from Foxglove",
        foxglove.LARGEST,
        "a server may state any size",
        "`LogError`, unless a larger `largest` is given",
    )
