"""Channels with a steady rate that stop, pause or slow down, and messages lost by their sequence numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.errors import LogError
from logreel.io.arrays import I64
from logreel.layout.nodes import Struct
from logreel.lenses.base import Nodes, columns, is_integer, members, nodes_of
from logreel.lenses.facts import Detection, Detector, NotAssessed, runs, since_start
from logreel.log.log import Channel, Log
from logreel.log.times import SECOND, duration_text
from logreel.meaning.charts import bands
from logreel.ops.health.sensors import regular, severity_of

#: A gap is longer than this number of periods, and than this time.
GAP_PERIODS, GAP_NS = 10, SECOND // 5
#: The rate drops if over this number of messages it is below this share of the usual one, for this time.
WINDOW, SHARE, DROP_NS = 10, 0.6, 2 * SECOND


def gaps(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each channel with gaps, from the first to the last one."""
    looked = False
    for ch, times, period in regular(log):
        looked = True
        steps = np.diff(times)
        rows = np.flatnonzero(steps > max(GAP_PERIODS * period, GAP_NS))
        if len(rows):
            worst = int(rows[np.argmax(steps[rows])])
            longest = int(steps[worst])
            count = "a gap" if len(rows) == 1 else f"{len(rows)} gaps, the longest"
            yield Detection(
                f"{ch.topic} has {count} of {duration_text(longest)} at {since_start(int(times[worst]), log)}",
                severity_of(ch, "warn"),
                int(times[rows[0]]),
                int(times[rows[-1] + 1]),
                (ch.topic,),
                {"gaps": len(rows), "longest_ns": longest, "period_ns": period},
                f"{GAP_PERIODS} periods and {duration_text(GAP_NS)}",
                "logreel",
            )
    if not looked:
        yield NotAssessed("no channel has a steady rate")


def drops(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each channel that at times comes much more slowly than usual, without gaps."""
    looked = False
    for ch, times, period in regular(log):
        looked = True
        if len(times) < 3 * WINDOW:
            continue
        steps = np.diff(times)
        span = times[WINDOW:] - times[:-WINDOW]
        slow = span > WINDOW * period / SHARE
        # A single gap makes a window long, too; it is told as a gap.
        broken = np.convolve(steps > GAP_PERIODS * period, np.ones(WINDOW, int))[WINDOW - 1 : len(steps)] > 0
        spans = [
            (int(times[max(int(np.searchsorted(times, start)) - WINDOW, 0)]), end)
            for start, end in runs(times[WINDOW:], slow & ~broken)
        ]
        spans = [(begin, end) for begin, end in spans if end - begin >= DROP_NS]
        if spans:
            yield _dropped(ch, times, period, spans)
    if not looked:
        yield NotAssessed("no channel has a steady rate")


def _dropped(ch: Channel, times: I64, period: int, spans: list[tuple[int, int]]) -> Detection:
    """Return one detection for all intervals in which a channel is slow, from the first to the last one."""

    def rate(span: tuple[int, int]) -> float:
        inside = int(np.searchsorted(times, span[1]) - np.searchsorted(times, span[0]))
        return inside * SECOND / (span[1] - span[0])

    worst = min(spans, key=rate)
    times_text = "" if len(spans) == 1 else f" ({len(spans)} times, here most of all)"
    return Detection(
        f"{ch.topic} comes at {rate(worst):.3g} Hz in place of {SECOND / period:.3g} Hz"
        f" from {since_start(worst[0], ch.log)} to {since_start(worst[1], ch.log)}{times_text}",
        severity_of(ch, "warn"),
        min(begin for begin, _ in spans),
        max(end for _, end in spans),
        (ch.topic,),
        {"rate": rate(worst), "usual_rate": SECOND / period, "intervals_ns": [list(span) for span in spans]},
        f"{SHARE:.0%} of the usual rate for {duration_text(DROP_NS)}",
        "logreel",
    )


GAPS = Detector(
    "gaps",
    f"pauses of {GAP_PERIODS} periods and {duration_text(GAP_NS)} in channels with a steady rate",
    gaps,
)
RATE_DROP = Detector(
    "rate-drop",
    f"rates below {SHARE:.0%} of the usual one for {duration_text(DROP_NS)}",
    drops,
)


#: A sensor is silent if its last message comes this long before the end, and this number of periods.
SILENT_NS, SILENT_PERIODS = 2 * SECOND, 20
#: Kinds of bands of a log that are a flight or drive, with which topics may end.
FLIGHT = ("armed", "air")


def silent_sensors(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each steady channel that ends long before the log."""
    looked = False
    end = log.end or 0
    # Estimates and wanted values come while the robot is armed or in the air, and end with that.
    ended = [band.end for band in bands(log) if band.kind in FLIGHT and band.end < end]
    for ch, times, period in regular(log):
        looked = True
        last = int(times[-1])
        bound = max(SILENT_NS, SILENT_PERIODS * period)
        if end - last > bound:
            severity = severity_of(ch, "error")
            stops_with_flight = any(abs(last - time) <= max(SECOND, 2 * period) for time in ended)
            if stops_with_flight and severity == "note":
                continue
            yield Detection(
                f"{ch.topic} ends with the flight at {since_start(last, log)}"
                if stops_with_flight
                else f"{ch.topic} is silent from {since_start(last, log)} to the end, {duration_text(end - last)}",
                "note" if stops_with_flight else severity,
                last,
                end,
                (ch.topic,),
                {"silent_ns": end - last, "period_ns": period},
                f"{SILENT_PERIODS} periods and {duration_text(SILENT_NS)}",
                "logreel",
            )
    if not looked:
        yield NotAssessed("no channel has a steady rate")


SILENT = Detector(
    "silent-sensor",
    f"channels with a steady rate that end {SILENT_PERIODS} periods and {duration_text(SILENT_NS)} before the log,"
    " and not with the flight",
    silent_sensors,
)


#: Paths of sequence numbers, most specific first.
SEQUENCE_PATHS = ("header.seq", "sequence", "seq", "sequence_number")
#: Least number of messages, and the share of steps by one that makes the field a sequence number.
SEQUENCE_MESSAGES, STEPS_BY_ONE = 20, 0.5
#: Most numbers that can be missing in one step; more is a restart.
MOST_LOST = 10_000


def lost_messages(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each channel whose sequence numbers skip some."""
    looked = False
    for ch in log.channels.values():
        if len(ch) < SEQUENCE_MESSAGES or ch.reserved or (path := _sequence_path(members(ch))) is None:
            continue
        try:
            numbered = columns(ch, [path])
        except LogError:
            continue
        numbers = numbered.values[path].astype(np.int64)
        steps = np.diff(numbers)
        # Numbers that are the same in all messages, or belong to several publishers, count nothing.
        if not len(steps) or float(np.mean(steps == 1)) < STEPS_BY_ONE:
            continue
        looked = True
        yield from _lost(ch, path, numbered.time, steps)
    if not looked:
        yield NotAssessed("no channel has sequence numbers")


def _sequence_path(nodes: Nodes) -> str | None:
    for path in SEQUENCE_PATHS:
        *groups, last = path.split(".")
        inner = nodes
        for group in groups:
            inner = nodes_of(inner.get(group)) if isinstance(inner.get(group), Struct) else {}
        if is_integer(inner.get(last)):
            return path
    return None


def _lost(ch: Channel, path: str, times: I64, steps: I64) -> Iterator[Detection]:
    rows = np.flatnonzero((steps > 1) & (steps <= MOST_LOST))
    if len(rows):
        lost = int((steps[rows] - 1).sum())
        first, last = int(times[rows[0]]), int(times[rows[-1] + 1])
        share = lost / (lost + len(steps) + 1)
        yield Detection(
            f"{lost} messages of {ch.topic} are missing by {path}, {share:.1%}, the first at"
            f" {since_start(first, ch.log)}",
            "warn",
            min(first, last),
            max(first, last),
            (ch.topic,),
            {"lost": lost, "places": len(rows), "share": share},
            "one missing number",
            "sequence numbers of the messages",
        )


LOSS = Detector("message-loss", f"sequence numbers in messages: {', '.join(SEQUENCE_PATHS)}", lost_messages)
