"""Parameters that several requests of the viewer have."""

from __future__ import annotations

import re

from logreel.errors import UsageError
from logreel.outputs.http.routes import ParameterType, RequestParameter, number
from logreel.outputs.view.limits import PIXELS

_TIME = re.compile(r"(-?\d{1,19})(\.\d{0,9})?(e\+?\d{1,2})?", re.ASCII)
_INT64 = range(-(1 << 63), 1 << 63)


def _since_start(name: str, text: str) -> int:
    """Return a time in ns after the start of the log; raises UsageError for what is no such number."""
    parts = _TIME.fullmatch(text)
    # A float has no exact ns of days.
    ns = None if parts is None else int(float(text)) if parts[3] else int(parts[1])
    if ns is None or ns not in _INT64:
        raise UsageError(f"{name} {text!r:.80} is no time in ns after the start of the log")
    return ns


SINCE_START = ParameterType({"type": "integer", "format": "int64"}, _since_start)
FROM = RequestParameter("from", SINCE_START, "First moment, ns after the start of the log")
TO = RequestParameter("to", SINCE_START, "End, itself not included")
AT = RequestParameter("at", SINCE_START, "Moment, ns after the start of the log")
TOPIC = RequestParameter("topic", text="Topic of a channel")
FIELD = RequestParameter("field", text="Path of a field")
SERIES = RequestParameter("s", text="A series, as JSON object with topic and field", repeated=True)
#: Parameters of a request that name one series.
ONE_SERIES = (
    TOPIC,
    FIELD,
    RequestParameter("function", text="Function of the field"),
    RequestParameter("where", text="Which records, by the value of a field"),
    RequestParameter("sql", text="SQL expression over the fields of the topic"),
)


def pixels(default: int, name: str = "px") -> RequestParameter:
    """Return the parameter with the number of pixels of a drawing."""
    return RequestParameter(name, number(1, PIXELS), "Pixels of the drawing", default)
