"""Live source of lines of JSON from a file or pipe."""

from __future__ import annotations

import os
import sys

from logreel.errors import UsageError
from logreel.ops.record.pipe_lines import read_lines
from logreel.ops.record.source import PATIENCE, Feed


class LinesSource:
    """Lines of JSON, one message each, in the form of ``cat --format ndjson``: ``lines:FILE``, ``lines:-`` for stdin.

    address  path of a file or pipe; ``-``: standard input

    A full queue makes the source wait, so nothing is lost.
    """

    def __init__(self, address: str) -> None:
        if not address:
            raise UsageError("lines: write lines:FILE, or lines:- for standard input")
        self.name = f"lines:{address}"
        #: None: standard input.
        self.path = None if address == "-" else address

    def run(self, feed: Feed) -> None:
        """Pass on lines until there are no more, or the recording stops."""
        if self.path is None:
            self._read(feed, sys.stdin.fileno())
            return
        # Opening a named pipe waits for its writer, unless it is not to wait.
        handle = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            os.set_blocking(handle, True)
            self._read(feed, handle)
        finally:
            os.close(handle)

    def _read(self, feed: Feed, handle: int) -> None:
        number = 0
        for line in read_lines(_Handle(handle), PATIENCE):
            if feed.stopping:
                break
            if line is not None:
                number += 1
                feed.line(f"{self.name}: line {number}", line)


class _Handle:
    """A file descriptor as a pipe."""

    def __init__(self, number: int) -> None:
        self._number = number

    def fileno(self) -> int:
        return self._number
