"""Logs written from logs, by one engine.

``engine`` reads messages of parts of logs (``parts``, ``streams``), passes them through a list of transforms, writes a
new log and reads it back. The transforms, each beside what it plans with: ``Edits`` of a recipe, with shifted and other
stamps (``ops.edit.edit``), ``Migration`` (``ops.migrate.migrate``), ``Transcode`` to definitions of another format and
back (``transcode``, ``fit``), ``Exchange`` for other tools (``outputs.foxglove.exchange``), topics and interval of a
merge (``merge``). What they make of a log without writing it is a log, too (``transformed``).

``slice``, ``split``, ``merge`` and ``recover`` are presets. Outputs, verbs and other operations call these and
``engine.rewrite``; nobody inherits from the engine.
"""
