"""The terminal while a log is played or recorded: a status line on stderr, keys of a replay, and signals."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from logreel.cli import draw
from logreel.cli.signals import current
from logreel.io.platform import readable
from logreel.log.times import SECOND, seconds_text

if TYPE_CHECKING:
    from logreel.ops.record import Progress
    from logreel.ops.replay import Player

#: Seconds between two updates of the status, and over which rates of a replay and of a recording are measured.
EVERY, SPAN, RECORDING_SPAN = 0.1, 1.0, 2.0
BAR = 20
CLEAR = "\r\x1b[K"
#: Filling of the queue of a recording from which it is shown.
WORTH_SHOWING = 0.05
RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
HELP = "space pause   s . step   , back   ← → 5 s   [ ] 30 s   ↑ ↓ + - rate   home start   t pause at topics   q quit"


class PlayerStatus:
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
        busy = sorted(zip(rates.tolist(), self._player.channels, strict=True), key=lambda rated: -rated[0])
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
    status = PlayerStatus(player)
    with contextlib.suppress(OSError):
        while not over.is_set():
            keys = None
            if handle is None:
                over.wait(EVERY)
            elif readable(handle, EVERY):
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


def _change_rate(player: Player, step: int) -> None:
    """Set the next higher (*step* > 0) or lower rate of RATES; the direction stays."""
    now, sign = abs(player.rate), -1 if player.rate < 0 else 1
    rates = [r for r in RATES if (r > now * 1.001 if step > 0 else r < now * 0.999)]
    if rates:
        player.rate = sign * (rates[0] if step > 0 else rates[-1])


ACTIONS: dict[str, Callable[[Player], None]] = {
    " ": lambda player: player.toggle(),
    "s": lambda player: player.step(1),
    ".": lambda player: player.step(1),
    ",": lambda player: player.step(-1),
    "\x1b[C": lambda player: player.skip(5 * SECOND),
    "\x1b[D": lambda player: player.skip(-5 * SECOND),
    "\x1b[1;2C": lambda player: player.skip(30 * SECOND),
    "\x1b[1;2D": lambda player: player.skip(-30 * SECOND),
    "]": lambda player: player.skip(30 * SECOND),
    "[": lambda player: player.skip(-30 * SECOND),
    "\x1b[A": lambda player: _change_rate(player, 1),
    "\x1b[B": lambda player: _change_rate(player, -1),
    "+": lambda player: _change_rate(player, 1),
    "=": lambda player: _change_rate(player, 1),
    "-": lambda player: _change_rate(player, -1),
    "\x1b[H": lambda player: player.seek(player.start_time),
    "t": lambda player: setattr(player, "pausing", not player.pausing),
    "q": lambda player: player.stop(),
}


def split_keys(text: str) -> Iterator[str]:
    """Yield the keys in *text*: single characters and escape sequences."""
    at = 0
    while at < len(text):
        end = at + 1
        if text.startswith(("\x1b[", "\x1bO"), at):
            end = at + 3
            while end < len(text) and not text[end - 1].isalpha() and text[end - 1] != "~":
                end += 1
        # Some terminals write O where others write [.
        key = text[at:end]
        yield "\x1b[" + key[2:] if key.startswith("\x1bO") else key
        at = end


def press(player: Player, text: str) -> bool:
    """Apply the keys in *text* to *player*; return whether one of them was ``?``, for help."""
    asked = False
    for key in split_keys(text):
        action = ACTIONS.get(key)
        if action is not None:
            action(player)
        asked = asked or key == "?"
    return asked


@contextlib.contextmanager
def keyboard(continued: Callable[[], None]) -> Iterator[int | None]:
    """Yield a file descriptor of the controlling terminal, which gives keys at once and without echo.

    Yields None if there is no terminal, or another process group has it.

    continued  called when the process continues after it was stopped (Ctrl-Z)
    """
    try:
        import termios

        handle = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ImportError):
        yield None
        return
    try:
        if os.tcgetpgrp(handle) != os.getpgrp():
            yield None
            return
        before = termios.tcgetattr(handle)
        with _restore_mode_on_continue(handle, _raw_mode(before), continued):
            restore = functools.partial(termios.tcsetattr, handle, termios.TCSADRAIN, before)
            at_once = current().at_once
            at_once.append(restore)
            try:
                termios.tcsetattr(handle, termios.TCSADRAIN, _raw_mode(before))
                yield handle
            finally:
                at_once.remove(restore)
                restore()
    finally:
        os.close(handle)


def _raw_mode(mode: list[Any]) -> list[Any]:
    """Return terminal *mode* without echo and line buffering; Ctrl-C and Ctrl-Z keep their meaning."""
    import termios

    raw = list(mode)
    raw[3] &= ~(termios.ICANON | termios.ECHO)
    raw[6] = list(mode[6])
    raw[6][termios.VMIN], raw[6][termios.VTIME] = 1, 0
    return raw


@contextlib.contextmanager
def _restore_mode_on_continue(handle: int, mode: list[Any], continued: Callable[[], None]) -> Iterator[None]:
    """Set *mode* again when the process continues: the shell changed it while the process was stopped."""

    import termios

    def set_mode(number: int, frame: object) -> None:
        with contextlib.suppress(termios.error, OSError):
            if os.tcgetpgrp(handle) == os.getpgrp():
                termios.tcsetattr(handle, termios.TCSADRAIN, mode)
        continued()

    old = signal.signal(signal.SIGCONT, set_mode)
    try:
        yield
    finally:
        signal.signal(signal.SIGCONT, old)


@contextlib.contextmanager
def stop_requested() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether SIGINT (Ctrl-C), SIGTERM or SIGHUP (a closed terminal) was received.

    After the block, a signal that it has answered interrupts nothing any more. A second signal ends the process at
    once: the file keeps its temporary name, with all messages flushed so far.
    """
    signals = current()
    with signals.seen_by_loop(None):
        yield lambda: signals.received != 0
        signals.answered()


class StatusText:
    """Formats the state of a recording as one line of text."""

    def __init__(self) -> None:
        self._seen = [(0.0, 0)]

    def line(self, state: Progress, width: int) -> str:
        """Return elapsed time, messages, their rate, size and losses, in *width* columns."""
        self._seen.append((state.seconds, state.messages))
        while len(self._seen) > 2 and state.seconds - self._seen[1][0] >= RECORDING_SPAN:
            del self._seen[0]
        since, before = self._seen[0]
        rate = (state.messages - before) / max(state.seconds - since, 1e-3)
        messages = f"{state.messages} message{'s' * (state.messages != 1)}"
        text = (
            f"recording {seconds_text(round(state.seconds * 1e9), 1)} s  {messages}  {draw.rate_text(rate)}"
        )
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
