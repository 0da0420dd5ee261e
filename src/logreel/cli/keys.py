"""Keyboard control of a Player: single keys from the terminal, without echo."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import termios
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from logreel.cli.signals import current

if TYPE_CHECKING:
    from logreel.ops.replay import Player

SECOND = 10**9
RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
HELP = "space pause   s . step   , back   ← → 5 s   [ ] 30 s   ↑ ↓ + - rate   home start   t pause at topics   q quit"


def _change_rate(player: Player, step: int) -> None:
    """Set the next higher (*step* > 0) or lower rate of RATES; the direction stays."""
    now, sign = abs(player.rate), -1 if player.rate < 0 else 1
    some = [r for r in RATES if (r > now * 1.001 if step > 0 else r < now * 0.999)]
    if some:
        player.rate = sign * (some[0] if step > 0 else some[-1])


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


def split(text: str) -> Iterator[str]:
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
    for key in split(text):
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
        handle = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
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
    raw = list(mode)
    raw[3] &= ~(termios.ICANON | termios.ECHO)
    raw[6] = list(mode[6])
    raw[6][termios.VMIN], raw[6][termios.VTIME] = 1, 0
    return raw


@contextlib.contextmanager
def _restore_mode_on_continue(handle: int, mode: list[Any], continued: Callable[[], None]) -> Iterator[None]:
    """Set *mode* again when the process continues: the shell changed it while the process was stopped."""

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
