"""Fields of a log as one table that can be streamed."""

from __future__ import annotations

from logreel.errors import UsageError
from logreel.io.append_file import Appender
from logreel.log.decrypted import decrypted_notes
from logreel.log.log import Log
from logreel.log.times import interval
from logreel.log.topic_fields import fields_by_topic
from logreel.outputs.job import Job
from logreel.outputs.registry import OUTPUTS
from logreel.outputs.slice_stream import AppenderFile, file_stem
from logreel.outputs.tables.combined import long_table


class TableStream:
    """Fields of a log as one table: a row per message for one topic, a row per value for several.

    wanted  names as for ``logreel.plot``
    suffix  of a table: ``.csv``, ``.parquet``

    Attributes are those of SliceStream. Raises UsageError, TopicError, NotFoundError.
    """

    forward = True

    def __init__(self, log: Log, wanted: list[str], start: int | None, end: int | None, suffix: str) -> None:
        if not wanted:
            raise UsageError("a table needs a topic, or series: s=topic.field")
        decrypted_notes(log)
        self._log, self._output = log, OUTPUTS.own()[suffix]
        self._fields = fields_by_topic(log, wanted)
        self._interval = interval(log, start, end)
        self.name, self.media = file_stem(log) + suffix, self._output.media
        self.skipped: list[str] = []

    def write(self, out: Appender) -> None:
        """Write all bytes to *out*."""
        self.skipped = []
        channels = [self._log[topic] for topic in self._fields]
        job = Job(self._log, channels, *self._interval, fields=self._fields, skipped=self.skipped)
        schema, batches = job.table(channels[0])[:2] if len(channels) == 1 else long_table(job)
        self._output.writer()(AppenderFile(out), schema, batches)
        out.finish()
