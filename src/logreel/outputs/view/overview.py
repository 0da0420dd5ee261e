"""The strip of time below everything: how dense messages are, and what happened when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.responses import JSONResponse
from starlette.types import ASGIApp

from logreel.io.arrays import I64
from logreel.log.log import Channel, Log
from logreel.meaning.charts import bands
from logreel.meaning.gaps import regular_times
from logreel.outputs.http.routes import Parameters, RequestParameter, Route, number
from logreel.outputs.view.limits import BINS, GAPS, MARKS
from logreel.outputs.view.problems import problems_of

if TYPE_CHECKING:
    from logreel.outputs.view.session import Session
    from logreel.outputs.view.view_log import ViewLog

#: Messages of a channel of which the times are looked at, evenly spread over the file; more are estimated from these.
SAMPLES = 1 << 16
#: Level of lines of text that are marks without any doubt; less severe ones are marks as long as there is room.
NO_LEVEL = 8


def routes() -> list[Route]:
    """Return the request for the overview."""
    return [
        Route(
            "/api/logs/{log}/overview",
            _overview,
            (RequestParameter("bins", number(1, BINS), "Columns", 512),),
        )
    ]


def _overview(session: Session, log: ViewLog, given: Parameters) -> ASGIApp:
    bins = given.get("bins")
    if not log.ready.is_set():
        nothing = ("channels", "bands", "marks", "gaps", "dropouts", "damage")
        return JSONResponse({"density": [], **{name: [] for name in nothing}, "complete": False})
    return JSONResponse(log.once(f"overview {bins}", lambda opened: _all(opened, bins, given), given))


def _all(log: Log, bins: int, given: Parameters) -> dict[str, Any]:
    start = log.start or 0
    span = max(1, (log.duration or 0) + 1)
    total = np.zeros(bins)
    channels, gaps = [], list[dict[str, Any]]()
    for ch in log.channels.values():
        if ch.reserved or not len(ch):
            continue
        given.check()
        times = sampled_times(ch)
        density = _density(times, len(ch), start, span, bins)
        total += density
        channels.append({"topic": ch.topic, "density": _scaled(density)})
        gaps += [{"from": a - start, "to": b - start, "topic": ch.topic} for a, b in gaps_in(times)]
    return {
        "density": np.rint(total).astype(np.int64).tolist(),
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
        "damage": [one for one in problems_of(log, start) if None not in (one["from"], one["to"])],
        "complete": True,
    }


def sampled_times(ch: Channel) -> I64:
    """Return int64[n] ns: times of messages of a channel; at most SAMPLES of them, evenly spread over the file."""
    n = len(ch)
    index = ch.log.index
    if n <= SAMPLES or index.has_times(ch.number):
        return index.times(ch.number)
    return index.times_at(ch.number, np.linspace(0, n - 1, SAMPLES).astype(np.int64))


def _density(times: I64, count: int, start: int, span: int, bins: int) -> Any:
    """Return float64[bins]: messages in each bin; estimated where *times* are those of some of *count* messages."""
    where = (times - start) * (bins / span)
    inside = where[(where >= 0) & (where < bins)].astype(np.int64)
    return np.bincount(inside, minlength=bins) * (count / max(1, len(times)))


def gaps_in(times: I64) -> list[tuple[int, int]]:
    """Return the intervals (ns) without messages in a channel that is regular otherwise, as ``check`` finds them."""
    ordered = times if np.all(times[1:] >= times[:-1]) else np.sort(times)
    regular = regular_times(ordered)
    if regular is None:
        return []
    return [(int(ordered[row]), int(ordered[row + 1])) for row in regular.gaps[:GAPS]]


def _scaled(density: Any) -> list[int]:
    """Return densities as 0 … 255, where any message at all gives at least 1."""
    most = density.max() if len(density) else 0
    if not most:
        return [0] * len(density)
    scaled: list[int] = np.ceil(density * (255 / most)).astype(np.int64).tolist()
    return scaled


def _marks(log: Log, start: int) -> list[dict[str, Any]]:
    """Return lines of text, the most severe ones if there are more than MARKS, by time."""
    every = (line for line in log.text if not line.repeated)
    lines = sorted(every, key=lambda line: NO_LEVEL if line.level is None else line.level)[:MARKS]
    return [
        {"t": line.time - start, "level": line.level, "text": line.text[:500], "source": line.source}
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
