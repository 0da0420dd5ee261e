"""Who receives a replay."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from logreel.log.log import Message

if TYPE_CHECKING:
    from logreel.ops.replay.controls import PlayerControls
    from logreel.ops.replay.run import Run


class Sink:
    """What a Player plays to; every method but ``message`` may be left as it is.

    The Player calls all of them from the thread that plays, one after another. A sink may call the methods of the
    Player (``pause``, ``seek`` …) at any time and from any thread. Whatever a method raises ends the replay.

    batches  True: ``batch`` is called with many messages at once, where many are due
    waits    True: the Player waits at the end for somebody to go back or to stop it
    prints   True: it writes to standard output, which is then not for others
    """

    batches = False
    waits = False
    prints = False
    #: Called with a sentence for whoever started the replay.
    say: Callable[[str], object] = staticmethod(lambda text: None)

    @cached_property
    def skipped(self) -> list[str]:
        """A sentence for each thing that could not be played."""
        return []

    def open(self, player: PlayerControls) -> None:
        """Get ready; ``player.channels`` are those of which messages may come. Called once, before anything else."""

    def message(self, message: Message) -> None:
        """Take one message."""

    def batch(self, run: Run) -> None:
        """Take messages that follow each other. Single ones still come by ``message``: those of ``/clock``."""
        for message in run.messages():
            self.message(message)

    def in_force(self, run: Run) -> None:
        """Take messages that hold at the place where the replay goes on, with their old times."""
        if self.batches:
            self.batch(run)
        else:
            for message in run.messages():
                self.message(message)

    def flush(self) -> None:
        """Hand out what was taken so far: nothing will come for a while."""

    def moved(self, time: int) -> None:
        """The replay goes on at another place, *time* ns; what holds there comes first, with its old times."""

    def changed(self) -> None:
        """The Player was paused, goes on, reached its end, or got another rate: ask it."""

    def close(self) -> None:
        """The replay is over, or failed. Called once if ``open`` was."""


class Calls(Sink):
    """Calls a function with each message."""

    def __init__(self, function: Callable[[Message], object]) -> None:
        self._function = function

    def message(self, message: Message) -> None:
        """Call it."""
        self._function(message)
