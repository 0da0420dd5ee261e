"""Receivers of a replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from logreel.log.log import Message

if TYPE_CHECKING:
    from logreel.log.log import Channel
    from logreel.ops.replay.controls import PlayerControls
    from logreel.ops.replay.run import Run


class Sink:
    """Base of receivers of a replay; a subclass overrides at least ``message``.

    The Player calls all methods from the thread that plays. A sink may call methods of the Player (``pause``,
    ``seek`` …) at any time from any thread. An exception in a method ends the replay.

    batches  True: ``batch`` is called with all messages that are due at once
    waits    True: the Player waits at the end for ``seek`` or ``stop``
    prints   True: the sink writes to standard output
    sends    False: what it gets stays in this process or is printed as text; other sinks get messages of encrypted logs
             only if these were opened with ``decrypt=True``
    delay    seconds that the Player waits between ``open`` and the first message, unless told otherwise
    follows  True: the sink can play a log that is still written: it gets each message by ``message``, and channels that
             get their first message later by ``add_channels``; ``player.grows`` is True
    """

    batches = False
    waits = False
    prints = False
    sends = True
    delay = 0.0
    follows = False
    #: Function that shows a sentence to the user.
    say: Callable[[str], object] = staticmethod(lambda text: None)

    @cached_property
    def skipped(self) -> list[str]:
        """Sentences about what could not be played."""
        return []

    def open(self, player: PlayerControls) -> None:
        """Prepare for messages of ``player.channels``; called once, before all other methods."""

    def add_channels(self, channels: Sequence[Channel]) -> None:
        """Prepare for messages of further channels; called only for logs that are still written."""

    def message(self, message: Message) -> None:
        """Receive one message."""

    def batch(self, run: Run) -> None:
        """Receive consecutive messages; those of ``/clock`` are still passed to ``message``."""
        for message in run.messages():
            self.message(message)

    def in_force(self, run: Run) -> None:
        """Receive messages in force at the new position, with their original times."""
        if self.batches:
            self.batch(run)
        else:
            for message in run.messages():
                self.message(message)

    def flush(self) -> None:
        """Write out buffered messages: none follow for a while."""

    def moved(self, time: int) -> None:
        """The replay continues at *time* ns; messages in force there follow first, with their original times."""

    def changed(self) -> None:
        """The Player was paused or resumed, reached its end, or got another rate."""

    def close(self) -> None:
        """The replay ended or failed; called once if ``open`` was called."""


class Calls(Sink):
    """Sink that calls a function with each message."""

    sends = False

    def __init__(self, function: Callable[[Message], object]) -> None:
        self._function = function

    def message(self, message: Message) -> None:
        """Call the function."""
        self._function(message)
