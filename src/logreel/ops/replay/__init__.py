"""Replay of logs: what is played when, by which clock, and to whom.

``Player`` plays logs, also one that is still written, to a function, to an iterating caller or to a ``Sink``;
``Playing`` has its options. ``timeline`` is the merged sequence of messages, ``transport`` the state between two of
them (pause, step, seek, rate, loop), ``sink`` what receivers implement and may ask. Used by the command line, by sinks
in ``outputs/sinks`` and by programs; it knows nothing of where messages go.
"""

from __future__ import annotations

from logreel.ops.replay.player import Player, play
from logreel.ops.replay.sink import PlayerControls, Sink, Tally
from logreel.ops.replay.timeline import Playing, Run

__all__ = ["Player", "PlayerControls", "Playing", "Run", "Sink", "Tally", "play"]
