"""Replay of logs: players, sinks and their results."""

from __future__ import annotations

from logreel.ops.replay.player import Player, play
from logreel.ops.replay.sink import PlayerControls, Sink, Tally
from logreel.ops.replay.timeline import Run

__all__ = ["Player", "PlayerControls", "Run", "Sink", "Tally", "play"]
