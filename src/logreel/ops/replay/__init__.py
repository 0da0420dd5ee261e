"""Replay of logs: players, sinks and their results."""

from __future__ import annotations

from logreel.ops.replay.controls import PlayerControls
from logreel.ops.replay.player import Player, play
from logreel.ops.replay.run import Run
from logreel.ops.replay.sink import Sink
from logreel.ops.replay.tally import Tally

__all__ = ["Player", "PlayerControls", "Run", "Sink", "Tally", "play"]
