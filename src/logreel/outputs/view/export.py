"""What is visible as a file: rows of fields as CSV or Parquet, or the interval as a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.types import ASGIApp

from logreel.errors import UsageError
from logreel.outputs.http.answer import StreamAnswer
from logreel.outputs.http.routes import BYTES, Parameters, RequestParameter, Route
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


def _export(session: Session, log: ViewLog, given: Parameters) -> ASGIApp:
    # Not needed for the first picture.
    from logreel.outputs.slice_stream import SliceRequest, SliceStream
    from logreel.outputs.view.table_stream import TableStream

    kind = given.get("kind")
    start, end = (log.clock(t) for t in given.interval())
    names, topics = given.all("s"), tuple(given.all("topic"))
    if len(names) > SERIES:
        raise UsageError(f"a table has at most {SERIES} series")
    with log.open(given) as opened:
        if kind == LOG:
            stream: SliceStream | TableStream = SliceStream(
                opened, SliceRequest(topics or None, (), start, end)
            )
        elif kind in TABLES:
            stream = TableStream(opened, [*names, *topics], start, end, f".{kind}")
        else:
            raise UsageError(f"no kind {kind!r:.80}; there are: {', '.join((*TABLES, LOG))}")
        lost = sum(problem.lost for problem in opened.problems)
    return StreamAnswer(log, stream, session.flows, session.tell, lost)
