"""A part of a log that a function is asked about: channels, an interval, and conditions on messages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from logreel.log.times import Time


@dataclass(frozen=True, slots=True)
class Selection:
    """What a function is asked about; by default all of a log.

    topics, exclude  names, patterns or conditions, as for ``Log.match``; None: all, with text and parameters
    start, end       half-open interval, as for ``Log.messages``
    where            conditions in SQL on fields, as for ``slice``
    segment          number of one log of a file with several; None: the log
    """

    topics: str | Iterable[str] | None = None
    exclude: str | Iterable[str] = ()
    start: Time | None = None
    end: Time | None = None
    where: str | Iterable[str] = ()
    segment: int | None = None

    @property
    def is_part(self) -> bool:
        """Whether some messages may be left out."""
        return self.topics is not None or self.has_interval or bool(self.exclude) or bool(self.where)

    @property
    def has_interval(self) -> bool:
        """Whether there is a bound."""
        return self.start is not None or self.end is not None
