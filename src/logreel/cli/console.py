"""Status line on stderr and keyboard control of a replay."""

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

#: Seconds between two updates, and over which rates are measured.
EVERY, SPAN = 0.1, 1.0
BAR = 20
CLEAR = "\r\x1b[K"


class Status:
    """Formats the state of a Player as one line of text."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._seen = [(time.monotonic(), player.tally.counts.copy())]
        self._ascii = not _writes_utf8()

    def line(self, width: int) -> str:
        """Return state, position, bar, rate, and messages per second of the busiest topics, in *width* columns."""
        player = self._player
        start, end, now = player.start_time, player.end_time, player.position
        part = (now - start) / (end - start) if end > start else 0.0
        full = round(part * BAR)
        on, off, pause, go, times = ("#", "-", "||", ">", "x") if self._ascii else ("━", "─", "⏸", "▶", "×")
        rate = f"{times}{player.rate:g}" if player.rate else "full speed"
        text = (
            f"{pause if player.paused else go} {seconds_text(now - start, 1)} / {seconds_text(end - start, 1)} s "
            f"{on * full}{off * (BAR - full)} {rate}"
        )
        for name, count in self._rates():
            text += f"  {name} {draw.rate_text(count)}"
        return draw.safe(text)[: max(width - 1, 1)]

    def _rates(self) -> list[tuple[str, float]]:
        """Return messages per second over the last SPAN seconds: in all, then by topic, highest first."""
        now, counts = time.monotonic(), self._player.tally.counts.copy()
        self._seen.append((now, counts))
        while len(self._seen) > 2 and now - self._seen[1][0] >= SPAN:
            del self._seen[0]
        since, before = self._seen[0]
        rates = (counts - before) / max(now - since, EVERY)
        busy = sorted(zip(rates.tolist(), self._player.channels, strict=True), key=lambda one: -one[0])
        return [("all", float(rates.sum())), *((ch.topic, rate) for rate, ch in busy if rate)]


def _writes_utf8() -> bool:
    """Return whether stderr can show symbols."""
    return (sys.stderr.encoding or "").lower().replace("-", "") == "utf8"


@contextlib.contextmanager
def console(player: Player, quiet: bool = False) -> Iterator[None]:
    """Control *player* by keys and show its status inside the block, if there is a terminal.

    quiet  True: show no status
    """
    shown = not quiet and sys.stderr.isatty() and not (player.sink.prints and sys.stdout.isatty())

    def go_on() -> None:
        # Restart the clock of the replay, so that the messages of the pause are not played all at once.
        player.rate = player.rate

    with keyboard(go_on) as handle:
        if handle is None and not shown:
            yield
            return
        over = Event()
        thread = Thread(target=_handle_terminal, args=(player, handle, shown, over), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            if shown:
                sys.stderr.write(CLEAR)
                sys.stderr.flush()


def _handle_terminal(player: Player, handle: int | None, shown: bool, over: Event) -> None:
    """Draw the status and handle keys until *over* is set or the terminal is closed."""
    status = Status(player)
    with contextlib.suppress(OSError):
        while not over.is_set():
            keys = None
            if handle is None:
                over.wait(EVERY)
            elif select.select([handle], [], [], EVERY)[0]:
                keys = _read(handle)
                # A closed terminal returns nothing, immediately and forever: stop reading it.
                handle = handle if keys else None
            if keys and press(player, keys):
                sys.stderr.write(f"{CLEAR * shown}{HELP}\n")
            if shown and not over.is_set():
                sys.stderr.write(CLEAR + status.line(shutil.get_terminal_size((100, 24)).columns))
                sys.stderr.flush()


def _read(handle: int) -> str:
    """Return the text that is ready to be read; empty if the terminal is closed."""
    try:
        return os.read(handle, 64).decode("utf-8", "replace")
    except OSError:
        return ""
