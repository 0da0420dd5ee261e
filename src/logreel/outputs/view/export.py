"""What is visible as a file: rows of fields as CSV or Parquet, or the interval as a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.types import ASGIApp

from logreel.errors import UsageError
from logreel.io.append_file import Appender
from logreel.log.decrypted import decrypted_notes
from logreel.log.log import Log
from logreel.log.times import interval
from logreel.log.topic_fields import fields_by_topic
from logreel.outputs.http.answer import StreamAnswer
from logreel.outputs.http.routes import BYTES, Parameters, RequestParameter, Route
from logreel.outputs.job import Job
from logreel.outputs.registry import OUTPUTS
from logreel.outputs.slice_stream import AppenderFile, file_stem
from logreel.outputs.tables.combined import long_table
from logreel.outputs.view.limits import SERIES
from logreel.outputs.view.parameters import FROM, TO

if TYPE_CHECKING:
    from logreel.outputs.view.session import Session
    from logreel.outputs.view.view_log import ViewLog


#: Kinds of files: tables of fields, or a log in the format of the log that is shown.
TABLES, LOG = ("csv", "parquet"), "log"
_PARAMETERS = (
    RequestParameter("kind", text="csv, parquet or log", default=LOG),
    RequestParameter("s", text="Series of a table, topic.field", repeated=True),
    RequestParameter("topic", text="Topic of a channel", repeated=True),
    FROM,
    TO,
)


def routes() -> list[Route]:
    """Return the request for a file."""
    return [Route("/api/logs/{log}/export", _export, _PARAMETERS, BYTES)]


def _export(session: Session, log: ViewLog, request: Parameters) -> ASGIApp:
    # Not needed for the first picture.
    from logreel.outputs.slice_stream import SliceRequest, SliceStream

    file_type = request.get("kind")
    start, end = (log.clock(t) for t in request.interval())
    names, topics = request.all("s"), tuple(request.all("topic"))
    if len(names) > SERIES:
        raise UsageError(f"a table has at most {SERIES} series")
    with log.open(request) as opened:
        if file_type == LOG:
            stream: SliceStream | TableStream = SliceStream(
                opened, SliceRequest(topics or None, (), start, end)
            )
        elif file_type in TABLES:
            stream = TableStream(opened, [*names, *topics], start, end, f".{file_type}")
        else:
            raise UsageError(f"no kind {file_type!r:.80}; there are: {', '.join((*TABLES, LOG))}")
        lost = sum(problem.lost for problem in opened.problems)
    return StreamAnswer(log, stream, session.flows, session.tell, lost)


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
