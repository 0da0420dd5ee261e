"""Sinks of a replay: what receives the messages that a Player plays.

``registry`` makes a sink by its name, bundled or of another package (entry points ``logreel.sinks``); ``stdout`` has
those that need no other program (lines, frames, nothing); ``foxglove``, ``rerun`` and ``ros`` send to these programs.
A sink is a subclass of ``logreel.ops.replay.Sink`` and imports the packages that it needs when it is made. The verb
``play``, ``logreel.sink`` and ``testing`` use these modules; other outputs do not.
"""
