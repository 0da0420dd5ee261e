"""Single keys from the terminal, without echo, and what they do to a Player."""

from __future__ import annotations

import contextlib
import os
import signal
import termios
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logreel.ops.replay import Player

SECOND = 10**9
RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
HELP = "space pause   s . step   , back   ← → 5 s   [ ] 30 s   ↑ ↓ + - rate   home start   q quit"


def _rate(player: Player, step: int) -> None:
    """The next rate of RATES; backwards stays backwards."""
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
    "\x1b[A": lambda player: _rate(player, 1),
    "\x1b[B": lambda player: _rate(player, -1),
    "+": lambda player: _rate(player, 1),
    "=": lambda player: _rate(player, 1),
    "-": lambda player: _rate(player, -1),
    "\x1b[H": lambda player: player.seek(player.start_time),
    "q": lambda player: player.stop(),
}


def split(text: str) -> Iterator[str]:
    """The keys that *text* consists of: characters, and what a terminal sends for those that are none."""
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
    """Do what the keys in *text* stand for; tells whether one of them asked for help."""
    asked = False
    for key in split(text):
        action = ACTIONS.get(key)
        if action is not None:
            action(player)
        asked = asked or key == "?"
    return asked


@contextlib.contextmanager
def keyboard(continued: Callable[[], None]) -> Iterator[int | None]:
    """The controlling terminal, giving keys at once and without echo; None where there is none, or it is not ours.

    continued  called when the process goes on after it was stopped
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
        with _again_when_continued(handle, _quiet(before), continued):
            try:
                termios.tcsetattr(handle, termios.TCSADRAIN, _quiet(before))
                yield handle
            finally:
                termios.tcsetattr(handle, termios.TCSADRAIN, before)
    finally:
        os.close(handle)


def _quiet(mode: list[Any]) -> list[Any]:
    """*mode* without echo and lines; Ctrl-C and Ctrl-Z stay what they are."""
    quiet = list(mode)
    quiet[3] &= ~(termios.ICANON | termios.ECHO)
    quiet[6] = list(mode[6])
    quiet[6][termios.VMIN], quiet[6][termios.VTIME] = 1, 0
    return quiet


@contextlib.contextmanager
def _again_when_continued(handle: int, mode: list[Any], continued: Callable[[], None]) -> Iterator[None]:
    """A shell has the terminal for itself while we are stopped."""

    def again(number: int, frame: object) -> None:
        with contextlib.suppress(termios.error, OSError):
            if os.tcgetpgrp(handle) == os.getpgrp():
                termios.tcsetattr(handle, termios.TCSADRAIN, mode)
        continued()

    old = signal.signal(signal.SIGCONT, again)
    try:
        yield
    finally:
        signal.signal(signal.SIGCONT, old)
