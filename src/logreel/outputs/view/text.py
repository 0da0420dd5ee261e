"""Lines of text and events, filtered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp

from logreel.errors import UsageError
from logreel.ops.inspect.text import level_number
from logreel.outputs.http.routes import Parameters, RequestParameter, Route, number
from logreel.outputs.view.limits import LINES, SEARCH_CHARACTERS, TEXT_CHARACTERS
from logreel.outputs.view.parameters import FROM, TO

if TYPE_CHECKING:
    from logreel.outputs.view.session import Session
    from logreel.outputs.view.view_log import ViewLog

#: Lines between two looks at whether the client still waits, and names of sources in an answer.
LOOK, SOURCES = 4096, 500
_PARAMETERS = (
    FROM,
    TO,
    RequestParameter("level", text="Least severe level, by name or 0 to 7"),
    RequestParameter("source", text="Sender", repeated=True),
    RequestParameter("q", text="Text that is searched for", default=""),
    RequestParameter("limit", number(1, LINES), "Lines in the answer", 500),
    RequestParameter(
        "after", number(0, (1 << 53) - 1), "Lines before it, as `next` of the answer before says", 0
    ),
)


def routes() -> list[Route]:
    """Return the request for lines of text."""
    return [Route("/api/logs/{log}/text", _text, _PARAMETERS)]


def _text(session: Session, log: ViewLog, given: Parameters) -> ASGIApp:
    lo, hi = given.interval()
    level = given.get("level")
    highest = None if level is None else level_number(level)
    sources = set(given.all("source"))
    wanted = given.get("q").casefold()
    if len(wanted) > SEARCH_CHARACTERS:
        raise UsageError(f"q is longer than {SEARCH_CHARACTERS} characters")
    limit, after = given.get("limit"), given.get("after")
    lines = log.once("text", lambda opened: [one for one in opened.text if not one.repeated], given)
    names = log.once(
        "text sources", lambda opened: sorted({one.source for one in opened.text})[:SOURCES], given
    )
    found: list[dict[str, Any]] = []
    following = None
    for i in range(after, len(lines)):
        if i % LOOK == 0:
            given.check()
        line = lines[i]
        t = line.time - log.start
        if (lo is not None and t < lo) or (hi is not None and t >= hi):
            continue
        if highest is not None and line.level is not None and line.level > highest:
            continue
        if sources and line.source not in sources:
            continue
        if wanted and wanted not in line.text.casefold():
            continue
        if len(found) == limit:
            following = i
            break
        text = line.text[:TEXT_CHARACTERS]
        found.append({"t": t, "level": line.level, "source": line.source, "text": text, "kind": line.kind})
    return JSONResponse({"lines": found, "next": following, "sources": names})
