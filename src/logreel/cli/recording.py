"""Signals and status line of a recording."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from logreel.cli import draw
from logreel.cli.signals import current
from logreel.log.times import seconds_text

if TYPE_CHECKING:
    from logreel.ops.record import Progress

#: Seconds over which the rate is measured.
SPAN = 2.0
CLEAR = "\r\x1b[K"
#: Filling of the queue from which it is shown.
WORTH_SHOWING = 0.05


@contextlib.contextmanager
def stop_requested() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether SIGINT (Ctrl-C), SIGTERM or SIGHUP (a closed terminal) was received.

    A second signal ends the process at once: the file keeps its temporary name, with all messages flushed so far.
    """
    signals = current()
    with signals.seen_by_loop(None):
        yield lambda: signals.received != 0


class StatusText:
    """Formats the state of a recording as one line of text."""

    def __init__(self) -> None:
        self._seen = [(0.0, 0)]

    def line(self, state: Progress, width: int) -> str:
        """Return elapsed time, messages, their rate, size and losses, in *width* columns."""
        self._seen.append((state.seconds, state.messages))
        while len(self._seen) > 2 and state.seconds - self._seen[1][0] >= SPAN:
            del self._seen[0]
        since, before = self._seen[0]
        rate = (state.messages - before) / max(state.seconds - since, 1e-3)
        many = f"{state.messages} message{'s' * (state.messages != 1)}"
        text = f"recording {seconds_text(round(state.seconds * 1e9), 1)} s  {many}  {draw.rate_text(rate)}"
        text += f"  {draw.size_text(state.size)}  {os.path.basename(state.path)}"
        if state.filling >= WORTH_SHOWING:
            text += f"  buffer {state.filling:.0%}"
        if state.lost:
            text += f"  LOST {state.lost}"
        return draw.safe(text)[: max(width - 1, 1)]


@contextlib.contextmanager
def status_line() -> Iterator[Callable[[Progress], None] | None]:
    """Yield a function that shows the state of a recording in one line on stderr; None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    text = StatusText()

    def show(state: Progress) -> None:
        with contextlib.suppress(OSError):
            sys.stderr.write(CLEAR + text.line(state, shutil.get_terminal_size((100, 24)).columns))
            sys.stderr.flush()

    try:
        yield show
    finally:
        with contextlib.suppress(OSError):
            sys.stderr.write(CLEAR)
            sys.stderr.flush()


def say_above_status(text: str) -> None:
    """Print a sentence on stderr, in place of the status line, which is drawn again below it."""
    if sys.stderr.isatty():
        sys.stderr.write(CLEAR)
    draw.say(text)
