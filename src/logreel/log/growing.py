"""What a format offers for logs that grow while they are read: ``Growing``.

A reader of a format that does is incremental: ``feed`` reads what a file has more, ``finish`` takes what is left as the
end of the file. Opening a file is both; following it is ``feed`` alone.
"""

from __future__ import annotations

from typing import Protocol

from logreel.io.source import Source
from logreel.log.scan import Scan

#: Bytes behind damage with which it can be judged as in a complete file: many of the longest records.
ENOUGH = 1 << 20


class UndecidedError(Exception):
    """What the bytes at the end mean depends on bytes that are not there yet; only raised inside of readers."""


class Growing(Protocol):
    """The reader of one growing file; it keeps its state at the last complete record."""

    def extend(self, source: Source) -> Scan | None:
        """Return a Scan of *source*, which has the bytes of the source before and usually more.

        Reads only the new bytes; the first call reads the whole file. Bytes at the end that are no complete record yet
        stay unread until they are one; the Scan reports them as a Problem, as opening the file does. Every message of
        the Scan is complete. Earlier Scans stay valid.

        Returns None if what the new bytes mean can only be decided by the rest of the file, as for damage near its
        end: the caller then scans the file from its start, and calls ``extend`` again when there is more. The state
        stays as it was.

        Raises LogError if the bytes so far cannot be scanned at all, for example inside of the file header.
        """
