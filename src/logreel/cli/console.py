"""What people see and press while a log is played: a line of status on stderr, and keys."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import sys
import time
from collections.abc import Iterator
from threading import Event, Thread
from typing import TYPE_CHECKING

from logreel.cli import draw
from logreel.cli.keys import HELP, keyboard, press
from logreel.log.times import seconds_text

if TYPE_CHECKING:
    from logreel.ops.replay import Player

#: Seconds between two looks at the clock, and over which rates are counted.
EVERY, SPAN = 0.1, 1.0
BAR = 20
CLEAR = "\r\x1b[K"


class Status:
    """Where a Player is, as a line of text."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._seen = [(time.monotonic(), player.tally.counts.copy())]
        self._plain = not _writes_utf8()

    def line(self, width: int) -> str:
        """State, position, bar, rate, messages a second in all and of the busiest topics, in *width* columns."""
        player = self._player
        start, end, now = player.start_time, player.end_time, player.position
        part = (now - start) / (end - start) if end > start else 0.0
        full = round(part * BAR)
        on, off, pause, go, times = ("#", "-", "||", ">", "x") if self._plain else ("━", "─", "⏸", "▶", "×")
        rate = f"{times}{player.rate:g}" if player.rate else "full speed"
        text = (
            f"{pause if player.paused else go} {seconds_text(now - start, 1)} / {seconds_text(end - start, 1)} s "
            f"{on * full}{off * (BAR - full)} {rate}"
        )
        for name, count in self._rates():
            text += f"  {name} {draw.rate_text(count)}"
        return draw.safe(text)[: max(width - 1, 1)]

    def _rates(self) -> list[tuple[str, float]]:
        """Messages a second of the last moments: all, then by topic, the most first."""
        now, counts = time.monotonic(), self._player.tally.counts.copy()
        self._seen.append((now, counts))
        while len(self._seen) > 2 and now - self._seen[1][0] >= SPAN:
            del self._seen[0]
        since, before = self._seen[0]
        rates = (counts - before) / max(now - since, EVERY)
        busy = sorted(zip(rates.tolist(), self._player.channels, strict=True), key=lambda one: -one[0])
        return [("all", float(rates.sum())), *((ch.topic, rate) for rate, ch in busy if rate)]


def _writes_utf8() -> bool:
    return (sys.stderr.encoding or "").lower().replace("-", "") == "utf8"


@contextlib.contextmanager
def console(player: Player) -> Iterator[None]:
    """Keys and a line of status while *player* plays, as far as there is a terminal for them."""
    shown = sys.stderr.isatty() and not (player.sink.prints and sys.stdout.isatty())

    def go_on() -> None:
        # As after any control, time is counted from now on: what came due meanwhile does not come in a rush.
        player.rate = player.rate

    with keyboard(go_on) as handle:
        if handle is None and not shown:
            yield
            return
        over = Event()
        thread = Thread(target=_attend, args=(player, handle, shown, over), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            if shown:
                sys.stderr.write(CLEAR)
                sys.stderr.flush()


def _attend(player: Player, handle: int | None, shown: bool, over: Event) -> None:
    """Draw the status and obey keys until it is *over*, or the terminal is gone."""
    status = Status(player)
    with contextlib.suppress(OSError):
        while not over.is_set():
            keys = None
            if handle is None:
                over.wait(EVERY)
            elif select.select([handle], [], [], EVERY)[0]:
                keys = _read(handle)
                # A terminal that is gone gives nothing, at once and for ever.
                handle = handle if keys else None
            if keys and press(player, keys):
                sys.stderr.write(f"{CLEAR * shown}{HELP}\n")
            if shown and not over.is_set():
                sys.stderr.write(CLEAR + status.line(shutil.get_terminal_size((100, 24)).columns))
                sys.stderr.flush()


def _read(handle: int) -> str:
    try:
        return os.read(handle, 64).decode("utf-8", "replace")
    except OSError:
        return ""
