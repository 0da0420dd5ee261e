"""Logs written from logs, by one engine.

``engine`` reads messages of parts of logs (``parts``, ``streams``), passes them through a list of transforms, writes a
new log and reads it back. A transform gives channels for channels and batches for batches, and compares the new log
with what is due: ``transcode`` here, edits in ``ops.edit``, migrations in ``ops.migrate``, the translation for exchange
in ``outputs.foxglove``. ``slice``, ``split``, ``merge`` and ``recover`` are presets; ``changes`` and ``transformed``
give what transforms make of a log as a log, without writing it.

Outputs, verbs and other operations call the presets and ``engine.rewrite``; nobody inherits from the engine.
"""
