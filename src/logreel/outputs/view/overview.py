"""What happened in a log: density of messages, gaps, bands, problems, lines of text, parameters of the robot, notes."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from logreel.errors import LogError, Problem, UsageError
from logreel.io.arrays import I64
from logreel.log.log import Log
from logreel.log.scan import Parameter as RobotParameter
from logreel.meaning.charts import bands
from logreel.meaning.gaps import LEAST_STEPS, gaps_between, gaps_of, median_of, sampled_times, steps_of
from logreel.meaning.notes import Note, Notes, notes
from logreel.ops.inspect.text import level_number
from logreel.ops.json_values import to_json_values
from logreel.outputs.http.routes import Parameters, RequestParameter, Route, number
from logreel.outputs.view.limits import (
    BESIDE,
    BINS,
    BODY,
    FINDINGS_MESSAGES,
    GAPS,
    LINES,
    MARKS,
    PARAMETERS,
    PROBLEMS,
    SEARCH_CHARACTERS,
    SPANS,
    TEXT_CHARACTERS,
)
from logreel.outputs.view.parameters import FROM, TO

if TYPE_CHECKING:
    from logreel.ops.inspect.incidents import Incident
    from logreel.ops.inspect.stats import FieldStats
    from logreel.ops.rewrite.recover import Loss
    from logreel.outputs.view.session import Session
    from logreel.outputs.view.view_log import ViewLog


#: Problems that get times.
TIMED = 200


def problem_routes() -> list[Route]:
    """Return the request for the problems."""
    return [Route("/api/logs/{log}/problems", _problems)]


def _problems(session: Session, log: ViewLog, request: Parameters) -> ASGIApp:
    # Not cached: reading messages can find more.
    with log.open(request) as opened:
        return JSONResponse(problems_of(opened, log.start)[:PROBLEMS])


def problems_of(log: Log, start: int) -> list[dict[str, Any]]:
    """Return all problems in the order of the file, with the ns since *start* of the messages around them if known."""
    every = log.problems
    places: dict[Problem, Loss] = {}
    # A log of several files has no places of its own.
    timed: list[Problem] = []
    if len(log.parts) == 1 and log.parts[0] is log:
        timed = [p for p in every if p.size or p.lost][:TIMED]
    if timed:
        # Sound logs, which are most, do not wait for these modules.
        from logreel.ops.rewrite.recover import losses

        places = dict(zip(timed, losses(log, timed), strict=True))
    described = []
    for p in every[:PROBLEMS]:
        loss = places.get(p)
        before, after = (loss.start_ns, loss.end_ns) if loss else (None, None)
        described.append(
            {
                "code": p.code,
                "text": p.text,
                "lost": p.lost,
                "offset": p.offset,
                "size": p.size,
                "file": p.file,
                "from": None if before is None else before - start,
                "to": None if after is None else after - start,
            }
        )
    return described


#: Level of lines of text that are marks without any doubt; less severe ones are marks as long as there is room.
NO_LEVEL = 8


def routes() -> list[Route]:
    """Return the requests for the overview, problems, text, parameters of the robot, and notes."""
    return [
        Route(
            "/api/logs/{log}/overview",
            _overview,
            (RequestParameter("bins", number(1, BINS), "Columns", 512),),
        ),
        *problem_routes(),
        Route("/api/logs/{log}/findings", _findings),
        Route("/api/fields", _fields),
        *text_routes(),
        *parameter_routes(),
        Route("/api/logs/{log}/notes", _notes),
        Route("/api/logs/{log}/notes", _change_notes, body_bytes=BODY),
    ]


def _overview(session: Session, log: ViewLog, request: Parameters) -> ASGIApp:
    bins = request.get("bins")
    if not log.ready.is_set():
        nothing = ("channels", "bands", "marks", "gaps", "dropouts", "damage")
        return JSONResponse({"density": [], **{name: [] for name in nothing}, "complete": False})
    return JSONResponse(log.once(f"overview {bins}", lambda opened: _all(opened, bins, request), request))


def _all(log: Log, bins: int, request: Parameters) -> dict[str, Any]:
    start = log.start or 0
    span = max(1, (log.duration or 0) + 1)
    total = np.zeros(bins)
    channels, gaps = [], list[dict[str, Any]]()
    for ch in log.channels.values():
        if ch.reserved or not len(ch):
            continue
        request.check()
        times = sampled_times(ch)
        density = _density(times, len(ch), start, span, bins)
        total += density
        channels.append({"topic": ch.topic, "density": _scaled(density)})
        gaps += [{"from": a - start, "to": b - start, "topic": ch.topic} for a, b in gaps_between(times)]
    return {
        "density": np.round(total, 2).tolist(),
        "channels": channels,
        "bands": [
            {"from": band.start - start, "to": band.end - start, "label": band.label, "kind": band.kind}
            for band in bands(log)
        ],
        "marks": _marks(log, start),
        "gaps": sorted(
            sorted(gaps, key=lambda gap: gap["from"] - gap["to"])[:GAPS], key=lambda gap: gap["from"]
        ),
        "dropouts": _dropouts(log, start),
        "damage": [
            problem for problem in problems_of(log, start) if None not in (problem["from"], problem["to"])
        ],
        "complete": True,
    }


def _findings(session: Session, log: ViewLog, request: Parameters) -> ASGIApp:
    return JSONResponse(log.once_aside("findings", lambda opened: _what_happened(opened, log.start), request))


def _what_happened(log: Log, start: int) -> dict[str, Any]:
    """Return faults and events of a log with intervals in ns since *start*, its summary, and what was looked at."""
    # Loads detectors and summaries, for which the first plots do not wait.
    from logreel.ops.inspect.incidents import incidents, looked_at

    result = incidents(log, max_messages=FINDINGS_MESSAGES)

    def described(incident: Incident) -> dict[str, Any]:
        about = incident.as_dict()
        spans = [[begin - start, end - start] for begin, end in about.pop("spans_ns")[:SPANS]]
        return {
            **about,
            "text": incident.text[:TEXT_CHARACTERS],
            "spans": spans,
            "times": len(incident.spans),
        }

    return {
        "faults": [described(incident) for incident in result.faults],
        "events": [described(incident) for incident in result.events],
        "summary": [
            {"title": section.title, "facts": [[fact.label, fact.text[:TEXT_CHARACTERS]] for fact in section]}
            for section in result.summary
            if section.key not in ("text", "checks", "left_out")
        ],
        "sentence": "" if result.faults else looked_at(result),
        "looked": result.health.clean,
        "not_assessed": [
            *result.health.not_assessed,
            *((name, f"ended with an error: {why}") for name, why in result.health.failed),
            *(
                (fact.label, f"{fact.text}, {fact.note}")
                for section in result.summary
                if section.key == "left_out"
                for fact in section
            ),
        ],
    }


def _fields(session: Session, request: Parameters) -> ASGIApp:
    """Answer with the statistics of the fields of all logs side by side, the most different first."""
    # Loads the comparison of logs, which most views do not need.
    from logreel.ops.inspect.diff import side_by_side

    beside = side_by_side(
        [
            log.once_aside("fields", lambda opened: _field_statistics(opened, request), request)
            for log in session.logs
        ]
    )
    return JSONResponse(
        {
            "fields": [
                {
                    "topic": field.path.partition("\n")[0],
                    "field": field.path.partition("\n")[2],
                    "distance": field.distance,
                    "logs": [
                        None
                        if stats is None
                        else to_json_values([getattr(stats, name) for name in STATISTICS])
                        for stats in field.stats
                    ],
                }
                for field in beside[:BESIDE]
            ],
            "statistics": STATISTICS,
            "more": max(0, len(beside) - BESIDE),
        }
    )


#: Statistics that are shown of each field.
STATISTICS = ("min", "mean", "max", "rms", "count")


def _field_statistics(log: Log, request: Parameters) -> dict[str, FieldStats]:
    """Return statistics of the fields of a log by topic, a line break, and path; channels that are too large lack."""
    from logreel.ops.inspect.stats import field_stats

    every: dict[str, FieldStats] = {}
    for ch in log.channels.values():
        request.check()
        if not ch.reserved and 0 < len(ch) <= FINDINGS_MESSAGES:
            # A damaged definition costs one channel.
            with suppress(LogError):
                every |= {f"{ch.topic}\n{field.path}": field for field in field_stats(ch) or ()}
    return every


def _density(times: I64, count: int, start: int, span: int, bins: int) -> Any:
    """Return float64[bins]: messages in each bin; estimated where *times* are those of some of *count* messages.

    A message counts in equal parts up to the next one, or for a median period where a gap follows: counted at its own
    time alone, messages of an even rate would fall once or twice into bins of about their period, and some bins would
    look empty.
    """
    scale = count / max(1, len(times))
    if len(times) <= LEAST_STEPS:
        where = (times - start) * (bins / span)
        inside = where[(where >= 0) & (where < bins)].astype(np.int64)
        return np.bincount(inside, minlength=bins) * scale
    ordered = times if np.all(times[1:] >= times[:-1]) else np.sort(times)
    steps = steps_of(ordered)
    period, gaps = median_of(steps), gaps_of(steps)
    since = (ordered - start).astype(np.float64)
    passed = np.arange(len(since), dtype=np.float64)
    # What was there at the end of the last period before a gap, and of the log, if that leaves room for it.
    before, ends = gaps, since[gaps] + period
    if since[-1] + period / 2 < span:
        before, ends = np.append(before, len(since) - 1), np.append(ends, min(since[-1] + period, span))
    else:
        scale *= len(since) / (len(since) - 1)
    since = np.insert(since, before + 1, ends)
    passed = np.insert(passed, before + 1, passed[before] + 1)
    edges = np.linspace(0, span, bins + 1)
    return np.diff(np.interp(edges, since, passed)) * scale


def _scaled(density: Any) -> list[int]:
    """Return densities as 0 … 255, where any message at all gives at least 1."""
    most = density.max() if len(density) else 0
    if not most:
        return [0] * len(density)
    scaled: list[int] = np.minimum(np.ceil(density * (255 / most)), 255).astype(np.int64).tolist()
    return scaled


def _marks(log: Log, start: int) -> list[dict[str, Any]]:
    """Return lines of text, the most severe ones if there are more than MARKS, by time.

    Those before the first message of data, and behind the last, stand at the ends of the log.
    """
    last = log.duration or 0
    every = (line for line in log.text if not line.repeated)
    lines = sorted(every, key=lambda line: NO_LEVEL if line.level is None else line.level)[:MARKS]
    return [
        {
            "t": min(max(line.time - start, 0), last),
            "level": line.level,
            "text": line.text[:500],
            "source": line.source,
        }
        for line in sorted(lines, key=lambda line: line.time)
    ]


def _dropouts(log: Log, start: int) -> list[dict[str, int]]:
    """Return the intervals for which the logger says that it lost messages."""
    if "~dropout" not in log:
        return []
    ch = log["~dropout"]
    names = [name for name in ch.fields if "duration" in name]
    lengths = ch[names[0]].astype(np.int64) if names else np.zeros(len(ch), np.int64)
    scale = 1_000_000 if names and names[0].endswith("_ms") else 1
    return [
        {"from": int(t) - start, "to": int(t) - start + int(length) * scale}
        for t, length in zip(ch.times, lengths, strict=True)
    ]


#: Lines between two looks at whether the client still waits, and names of sources in an answer.
LOOK, SOURCES = 4096, 500
_TEXT_PARAMETERS = (
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


def text_routes() -> list[Route]:
    """Return the request for lines of text."""
    return [Route("/api/logs/{log}/text", _text, _TEXT_PARAMETERS)]


def _text(session: Session, log: ViewLog, request: Parameters) -> ASGIApp:
    lo, hi = request.interval()
    level = request.get("level")
    highest = None if level is None else level_number(level)
    sources = set(request.all("source"))
    wanted = request.get("q").casefold()
    if len(wanted) > SEARCH_CHARACTERS:
        raise UsageError(f"q is longer than {SEARCH_CHARACTERS} characters")
    limit, after = request.get("limit"), request.get("after")
    lines = log.once(
        "text",
        lambda opened: [line_of_text for line_of_text in opened.text if not line_of_text.repeated],
        request,
    )
    names = log.once(
        "text sources",
        lambda opened: sorted({line_of_text.source for line_of_text in opened.text})[:SOURCES],
        request,
    )
    shown: list[dict[str, Any]] = []
    following = None
    for i in range(after, len(lines)):
        if i % LOOK == 0:
            request.check()
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
        if len(shown) == limit:
            following = i
            break
        text = line.text[:TEXT_CHARACTERS]
        shown.append({"t": t, "level": line.level, "source": line.source, "text": text, "kind": line.kind})
    return JSONResponse({"lines": shown, "next": following, "sources": names})


#: Changes of one parameter that are listed; ``change_count`` has the number of all.
CHANGES = 1000


def parameter_routes() -> list[Route]:
    """Return the request for the parameters."""
    return [Route("/api/logs/{log}/parameters", _parameters)]


def _parameters(session: Session, log: ViewLog, request: Parameters) -> ASGIApp:
    with log.open(request) as opened:
        every = list(opened.parameters.values())[:PARAMETERS]
    return JSONResponse([_parameter(parameter, log.start) for parameter in every])


def _parameter(parameter: RobotParameter, start: int) -> dict[str, Any]:
    """Return a parameter; *default* is that of the system, or else of the set-up, where it differs from the value."""
    default = next(
        (parameter.defaults[origin] for origin in ("system", "setup") if origin in parameter.defaults), None
    )
    return {
        "name": parameter.name,
        "type": parameter.type,
        "value": _value(parameter.value),
        "default": _value(default),
        "changes": [{"t": c.time - start, "value": _value(c.value)} for c in parameter.changes[:CHANGES]],
        "change_count": len(parameter.changes),
    }


def _value(value: Any) -> Any:
    return value[:TEXT_CHARACTERS] if isinstance(value, str) else to_json_values(value)


def _notes(session: Session, log: ViewLog, request: Parameters) -> ASGIApp:
    """Answer with the notes on a log, and why the viewer would not write them."""
    with log.open(request) as opened:
        try:
            listed = notes(opened)
        except LogError as error:
            # What is there stays as it is.
            return JSONResponse({"notes": [], "file": None, "why": str(error), "problem": str(error)})
        return JSONResponse(_listed(session, log, listed))


def _change_notes(session: Session, log: ViewLog, request: Parameters) -> ASGIApp:
    """Add, replace or remove a note and write the file beside the log; or answer with the text of such a file.

    The content is one of ``{"put": note}``, ``{"remove": id}`` and ``{"file": [note, …]}``.
    """
    content = json_object(request.body)
    with log.open(request) as opened:
        listed = notes(opened) if "file" not in content else Notes(opened, is_empty=True)
        match content:
            case {"put": note}:
                listed.put(read_note(note, log.start))
            case {"remove": str(id)}:
                listed.remove(id)
            case {"file": list(every)}:
                for note in every:
                    listed.put(read_note(note, log.start))
                return Response(listed.to_json(), media_type="application/json")
            case _:
                raise UsageError("notes are changed by put, remove or file")
        if why := _why_unwritten(session, listed):
            raise UsageError(why)
        listed.save()
        return JSONResponse(_listed(session, log, listed))


def json_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in the body of a request; raises UsageError for anything else."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise UsageError("the content is no JSON object")
    return content


def _listed(session: Session, log: ViewLog, listed: Notes) -> dict[str, Any]:
    described = []
    for note in listed:
        about = note.as_dict()
        begin, end = about.pop("begin_ns"), about.pop("end_ns")
        described.append({**about, "from": begin - log.start, "to": None if end is None else end - log.start})
    file = None if listed.path is None else listed.path.name
    why = _why_unwritten(session, listed)
    return {"notes": described, "file": file, "why": why, "problem": listed.problem}


def read_note(content: Any, start: int) -> Note:
    """Return the note that the page sent, with times in ns since the start of the log."""
    if not isinstance(content, dict):
        raise UsageError("a note is an object")
    times = {name: content.get(name) for name in ("from", "to")}
    for name, time in times.items():
        if isinstance(time, float) and time.is_integer() and abs(time) < 1 << 62:
            times[name] = int(time)
    begin, end = times["from"], times["to"]
    begin_ns = begin + start if isinstance(begin, int) else begin
    return Note.read(
        {**content, "begin_ns": begin_ns, "end_ns": end + start if isinstance(end, int) else end}
    )


def _why_unwritten(session: Session, listed: Notes) -> str:
    """Return why the viewer does not write notes; empty if it does."""
    if session.leaves:
        return "other machines can see this viewer: it writes nothing"
    if listed.path is None:
        return listed.why
    if not os.access(listed.path.parent, os.W_OK):
        return f"the folder {listed.path.parent} cannot be written to"
    return ""
