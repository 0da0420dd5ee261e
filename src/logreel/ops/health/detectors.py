"""Detectors for logs of all formats.

Sensors and steady channels that stop, pause, slow down, lose messages, repeat or jump; clocks of sensors: offset,
drift, jitter and jumps between times in messages and times of logging; transforms between frames that stop, or that
do not form one tree.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.dataclass import dataclass
from logreel.errors import LogError, Severity
from logreel.io.arrays import F64, I64
from logreel.layout.nodes import Struct
from logreel.lenses import Image, Imu, Lens, LocalPose, Pose, Position, Text, Transform, lenses
from logreel.lenses.base import Nodes, columns, find_stamp, is_integer, members, nodes_of
from logreel.lenses.facts import Detection, Detector, NotAssessed, runs, since_start
from logreel.lenses.motion import body_of
from logreel.log.log import Channel, Log
from logreel.log.times import SECOND, duration_text
from logreel.meaning.charts import bands
from logreel.meaning.frames import Link, links_of, roots_of
from logreel.meaning.gaps import GAP_FACTOR, gap_limit
from logreel.meaning.tracks import JUMP_M, JUMP_SPEED, is_of_robot, length_text, track_of

#: A channel is regular from this number of messages on, if its 10th and 80th percentile of the periods are within NEAR
#: and FAR medians: faults of a fifth of the time do not hide the rate.
MESSAGES, NEAR, FAR = 20, 0.5, 1.5
#: How the frames of poses end that a controller wants, which come and go with the mode.
WANTED = "_setpoint"
#: Messages come in bursts if their median period is this much shorter than their mean one.
BURSTS = 5


def sensors(log: Log) -> Iterator[tuple[Channel, list[Lens]]]:
    """Yield the channels with messages whose meaning a lens knows, except text and transforms."""
    for ch in log.channels.values():
        if len(ch) and not ch.reserved:
            meanings = _measured(ch)
            if meanings:
                yield ch, meanings


def _measured(ch: Channel) -> list[Lens]:
    """Return the lenses of what a channel measures; none of text, transforms, and poses that are only wanted."""
    return [
        lens
        for lens in lenses(ch)
        if not isinstance(lens, (Text, Transform))
        and not (isinstance(lens, LocalPose) and body_of(ch.topic).endswith(WANTED))
    ]


def severity_of(ch: Channel, severity: Severity) -> Severity:
    """Return *severity* for a sensor, ``note`` for a channel that may stop and begin on purpose, such as commands."""
    return severity if _measured(ch) else "note"


def regular(log: Log) -> Iterator[tuple[Channel, I64, int]]:
    """Yield the channels that come at a steady rate, with their times in order and the median period, in ns.

    Times before the start and after the end of the log are left out: its limits ignore absurd ones.
    """
    for ch in log.channels.values():
        if len(ch) < MESSAGES or ch.reserved:
            continue
        times = np.sort(ch.times)
        times = times[(times >= (log.start or 0)) & (times <= (log.end or 0))]
        if len(times) < MESSAGES:
            continue
        low, median, high = np.percentile(np.diff(times), [10, 50, 80]).tolist()
        mean = (times[-1] - times[0]) / (len(times) - 1)
        # A silent sensor or a gap makes the mean period longer, but messages in bursts are not steady at all.
        is_steady = low >= NEAR * median and high <= FAR * median and mean < BURSTS * median
        if median > 0 and is_steady:
            yield ch, times, round(median)


#: Equal measurements for this time and number, in a sensor whose measurements differ in this share of the others.
STUCK_NS, STUCK_MESSAGES, DIFFERING = 2 * SECOND, 20, 0.9


def repeated_measurements(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each interval in which all numbers of a sensor stay the same."""
    looked = False
    for ch, meanings in sensors(log):
        for lens in meanings:
            try:
                values = _values(ch, lens)
            except LogError:
                continue
            if values is None or len(values) != len(ch) or len(values) < 2 * STUCK_MESSAGES:
                continue
            looked = True
            yield from _stuck(ch, values, isinstance(lens, Imu))
            break
    if not looked:
        yield NotAssessed("no inertial unit, position or pose has enough messages")


def _values(ch: Channel, lens: object) -> F64 | None:
    """Return float64[n, k]: the measurements of each message, or None for other sensors."""
    match lens:
        case Imu():
            _, rate, acceleration, _ = lens.motion(ch)
            return np.hstack([rate, acceleration])
        case Position():
            fixes = lens.fixes(ch)
            return np.stack([fixes.latitude, fixes.longitude, fixes.altitude], axis=1)
        case Pose(repeated=False):
            places = lens.track(ch)
            return np.hstack([places.position, places.rotation])
    return None


def _stuck(ch: Channel, values: F64, is_noisy: bool) -> Iterator[Detection]:
    """Yield the intervals in which *values* stay the same.

    is_noisy  whether measurements differ even if the robot stands still
    """
    same = np.all(values[1:] == values[:-1], axis=1)
    times = ch.times
    for start, end in runs(times[1:], same):
        first = int(np.searchsorted(times, start)) - 1
        last = int(np.searchsorted(times, end))
        begin = int(times[max(first, 0)])
        others = np.concatenate([same[: max(first, 0)], same[last:]])
        if end - begin < STUCK_NS or last - first < STUCK_MESSAGES or not len(others):
            continue
        if float(np.mean(~others)) >= DIFFERING and (is_noisy or _stops_at_once(values, max(first, 0))):
            yield Detection(
                f"{ch.topic} repeats one measurement for {duration_text(end - begin)}"
                f" from {since_start(begin, ch.log)} on",
                "error",
                begin,
                end,
                (ch.topic,),
                {"messages": last - first + 1, "duration_ns": end - begin},
                f"{STUCK_MESSAGES} equal measurements over {duration_text(STUCK_NS)},"
                f" where {DIFFERING:.0%} of the others differ",
                "logreel",
            )


def _stops_at_once(values: F64, row: int) -> bool:
    """Return whether what moved until *row* stands still from there on without having slowed down."""
    steps = np.sqrt((np.diff(values[max(row - STUCK_MESSAGES, 0) : row + 1], axis=0) ** 2).sum(axis=1))
    return len(steps) >= STUCK_MESSAGES // 2 and bool(steps[-1] >= steps.mean() / 2 > 0)


STUCK = Detector(
    "stuck-sensor",
    f"inertial units, positions and poses that repeat one measurement for {duration_text(STUCK_NS)}",
    repeated_measurements,
)


#: Jumps of one channel whose intervals are listed.
LISTED = 20


def position_jumps(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each channel of positions that jumps, with the interval of its farthest jump."""
    looked = False
    for ch, meanings in sensors(log):
        for lens in meanings:
            try:
                track = track_of(ch, lens) if is_of_robot(lens) else None
            except LogError:
                continue
            if track is None or len(track) < MESSAGES:
                continue
            looked = True
            way = track.way
            if way.jumps:
                far = way.jumps[0]
                more = f", the farthest of {len(way.jumps)} jumps" if len(way.jumps) > 1 else ""
                yield Detection(
                    f"{ch.topic} jumps by {length_text(far.metres)} at {since_start(far.end, log)}{more}",
                    "error",
                    far.start,
                    far.end,
                    (ch.topic,),
                    {
                        "metres": far.metres,
                        "jumps": len(way.jumps),
                        "intervals_ns": [[jump.start, jump.end] for jump in way.jumps[:LISTED]],
                    },
                    f"a step of {JUMP_M:.0f} m at {JUMP_SPEED:.0f} m/s",
                    "logreel",
                )
            break
    if not looked:
        yield NotAssessed("the log has no positions")


JUMPS = Detector(
    "position-jumps", f"steps of positions above {JUMP_M:.0f} m and {JUMP_SPEED:.0f} m/s", position_jumps
)


#: Equal pictures one after another, and for this time.
PICTURES, FROZEN_NS = 5, SECOND
#: Bytes at the end of a message that are compared, at most half of it; its beginning has the time.
TAIL = 4096


def frozen_cameras(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each interval in which the pictures of a camera are the same."""
    looked = False
    for ch, meanings in sensors(log):
        if any(isinstance(lens, Image) for lens in meanings) and len(ch) >= PICTURES:
            looked = True
            yield from _frozen(ch)
    if not looked:
        yield NotAssessed("no camera has enough pictures")


def _frozen(ch: Channel) -> Iterator[Detection]:
    stamps: list[int] = []
    equal: list[bool] = []
    last = b""
    for message in ch.log.messages(ch.topic):
        tail = bytes(message.data[-min(TAIL, len(message.data) // 2) :])
        equal.append(bool(stamps) and tail == last)
        stamps.append(message.time)
        last = tail
    times, same = np.array(stamps, np.int64), np.array(equal, bool)
    for start, end in runs(times, same):
        count = int(np.count_nonzero(same[(times >= start) & (times <= end)])) + 1
        first = int(np.searchsorted(times, start)) - 1
        begin = int(times[max(first, 0)])
        if count >= PICTURES and end - begin >= FROZEN_NS:
            yield Detection(
                f"{ch.topic} shows one picture for {duration_text(end - begin)}"
                f" from {since_start(begin, ch.log)} on",
                "error",
                begin,
                end,
                (ch.topic,),
                {"pictures": count, "duration_ns": end - begin},
                f"{PICTURES} equal pictures over {duration_text(FROZEN_NS)}",
                "logreel",
            )


FROZEN = Detector(
    "frozen-camera", f"{PICTURES} equal pictures over {duration_text(FROZEN_NS)} or more", frozen_cameras
)


#: Gaps, as ``stats`` counts them, are told if they are longer than this.
GAP_NS = SECOND // 5
GAP_BOUND = f"{GAP_FACTOR} median periods, twice the 90th percentile, and {duration_text(GAP_NS)}"
#: The rate drops if over this number of messages it is below this share of the usual one, for this time.
WINDOW, SHARE, DROP_NS = 10, 0.6, 2 * SECOND


def gaps(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each channel with gaps, from the first to the last one."""
    looked = False
    for ch, times, period in regular(log):
        looked = True
        steps = np.diff(times)
        rows = np.flatnonzero(steps > gap_limit(steps, GAP_NS))
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
                GAP_BOUND,
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
        broken = np.convolve(steps > gap_limit(steps), np.ones(WINDOW, int))[WINDOW - 1 : len(steps)] > 0
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
    f"pauses of {GAP_BOUND} in channels with a steady rate",
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
    " and not at the end of the flight",
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


#: Least number of messages, and least length of a channel.
CLOCK_MESSAGES, CLOCK_NS = 30, 5 * SECOND
#: Bounds: a step of the difference, parts per million of drift, standard deviation, offset between clocks.
JUMP_NS, DRIFT_PPM, JITTER_NS, OFFSET_NS = SECOND // 10, 200.0, SECOND // 20, SECOND
#: Messages on both sides of a step whose medians are compared, so that single late messages are no jumps.
SIDE = 10
#: Share of messages with the stamp of the one before from which on it is not their own.
REPEATED = 0.05
#: With more jumps than this, the time in the messages is another one, such as that of the latest event.
MOST_JUMPS = 8


@dataclass(frozen=True, slots=True)
class ClockDifference:
    """Times at which messages were logged minus those in the messages.

    offset  median in ns
    drift   parts per million by which it grows
    jitter  standard deviation of what remains, in ns
    jumps   times in ns and sizes in ns of lasting steps
    """

    offset: int
    drift: float
    jitter: float
    jumps: tuple[tuple[int, int], ...]


def difference(times: I64, stamps: I64) -> ClockDifference:
    """Return offset, drift, jitter and jumps of *times* - *stamps*, both int64[n] ns in the order of *times*."""
    late = times - stamps
    jumps = _jumps(times, late)
    level = late.astype(np.float64)
    for at, size in jumps:
        level[times >= at] -= size
    seconds = (times - times[0]) / 1e9
    # The middle slope between the thirds of the channel: single late messages do not move it.
    third = len(level) // 3
    ends = np.median(level[-third:]), np.median(level[:third])
    middles = np.median(seconds[-third:]), np.median(seconds[:third])
    slope = (ends[0] - ends[1]) / (middles[0] - middles[1]) if middles[0] > middles[1] else 0.0
    rest = level - slope * seconds
    jitter = float(np.std(rest - np.median(rest)))
    return ClockDifference(int(np.median(late)), float(slope) / 1e3, jitter, tuple(jumps))


def _jumps(times: I64, late: I64) -> list[tuple[int, int]]:
    steps = np.flatnonzero(np.abs(np.diff(late)) > JUMP_NS) + 1
    jumps: list[tuple[int, int]] = []
    last = -SIDE - 1
    for row in steps.tolist():
        before, after = late[max(row - SIDE, 0) : row], late[row : row + SIDE]
        size = int(np.median(after) - np.median(before))
        # Messages that are now and then logged late have no step that lasts.
        if max(_spread(before), _spread(after)) > abs(size) / 2:
            continue
        if abs(size) > JUMP_NS and len(after) >= SIDE // 2 and row >= SIDE // 2 and row - last > SIDE:
            jumps.append((int(times[row]), size))
            last = row
    return jumps


def _spread(late: I64) -> float:
    """Return the difference between high and low values, without a single odd one of each."""
    low, high = np.percentile(late, [15, 85]).tolist() if len(late) else (0.0, 0.0)
    return float(high - low)


def clock_faults(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for jumps, drift, jitter and offset of each channel whose messages have a time of their own."""
    looked = False
    for ch in log.channels.values():
        if len(ch) < CLOCK_MESSAGES or ch.reserved:
            continue
        stamp = find_stamp(members(ch))
        if stamp is None:
            continue
        try:
            stamped = columns(ch, stamp.paths, stamp=stamp)
        except LogError:
            continue
        order = np.argsort(stamped.time, kind="stable")
        times, stamps = stamped.time[order], stamped.stamp[order]
        known = stamps != 0
        times, stamps = times[known], stamps[known]
        if len(times) < CLOCK_MESSAGES or int(times[-1] - times[0]) < CLOCK_NS:
            continue
        if not _goes_on(times, stamps):
            continue
        result = difference(times, stamps)
        if len(result.jumps) <= MOST_JUMPS:
            looked = True
            yield from _of_channel(ch, times, result)
    if not looked:
        yield NotAssessed(f"no channel with times in its messages is {duration_text(CLOCK_NS)} long")


def _goes_on(times: I64, stamps: I64) -> bool:
    """Return whether stamps go on with the messages, unlike the time of the latest event."""
    steps, own = np.diff(times), np.diff(stamps)
    if np.median(np.abs(own - steps)) <= np.median(steps) / 2:
        return True
    # With much jitter, single steps say nothing, but all of them together do.
    is_as_long = abs(int(stamps[-1] - stamps[0]) - int(times[-1] - times[0])) < (times[-1] - times[0]) / 10
    return bool(is_as_long and np.mean(own == 0) < REPEATED)


def _of_channel(ch: Channel, times: I64, measured: ClockDifference) -> Iterator[Detection]:
    start, end = int(times[0]), int(times[-1])
    evidence = {
        "offset_ns": measured.offset,
        "drift_ppm": measured.drift,
        "jitter_ns": measured.jitter,
        "jumps": [list(jump) for jump in measured.jumps],
    }
    for at, size in measured.jumps:
        text = f"the clock of {ch.topic} jumps by {duration_text(size)} at {since_start(at, ch.log)}"
        yield Detection(text, "error", at, at, (ch.topic,), evidence, duration_text(JUMP_NS), "logreel")
    if abs(measured.drift) > DRIFT_PPM and abs(measured.drift) * (end - start) / 1e6 > JITTER_NS:
        text = f"the clock of {ch.topic} drifts by {measured.drift:.0f} parts per million against the log"
        bound = f"{DRIFT_PPM:.0f} parts per million, {duration_text(JITTER_NS)} in all: quartz clocks are within 100"
        yield Detection(text, "warn", start, end, (ch.topic,), evidence, bound, "logreel")
    if measured.jitter > JITTER_NS:
        text = f"messages of {ch.topic} are logged with a jitter of {duration_text(int(measured.jitter))}"
        bound = duration_text(JITTER_NS)
        yield Detection(text, "note", start, end, (ch.topic,), evidence, bound, "logreel")
    if abs(measured.offset) > OFFSET_NS:
        text = f"times in {ch.topic} differ from the times of logging by {duration_text(measured.offset)}"
        bound = duration_text(OFFSET_NS)
        yield Detection(text, "note", start, end, (ch.topic,), evidence, bound, "logreel")


CLOCK = Detector(
    "clock",
    f"times in messages against times of logging: jumps of {duration_text(JUMP_NS)}, drift of {DRIFT_PPM:.0f} ppm,"
    f" jitter of {duration_text(JITTER_NS)}, offset of {duration_text(OFFSET_NS)}",
    clock_faults,
)


#: A link is broken if it is missing for this number of periods, and this time.
LINK_PERIODS, LINK_NS, LINK_MESSAGES = 10, SECOND, 20


def broken_links(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each link with a break, and one if frames have no link to the others."""
    links, _ = links_of(log, poses=False, stamps=False)
    if not links:
        yield NotAssessed("the log has no transforms")
        return
    for link in sorted(links, key=lambda link: link.child):
        if not link.static:
            yield from _breaks(log, link)
    roots = roots_of(links)
    if len(roots) > 1:
        yield Detection(
            f"frames form {len(roots)} trees without a link between them: those of {', '.join(roots[:8])}",
            "warn",
            log.start or 0,
            log.end or 0,
            (),
            {"roots": roots},
            "one tree",
            "REP 105",
        )


def _breaks(log: Log, link: Link) -> Iterator[Detection]:
    if len(link) < LINK_MESSAGES:
        return
    steps = np.diff(link.time)
    bound = max(LINK_PERIODS * float(np.median(steps)), LINK_NS)
    for row in np.flatnonzero(steps > bound).tolist():
        start, end = int(link.time[row]), int(link.time[row + 1])
        parent = link.parents[int(link.parent[row])]
        yield Detection(
            f"the transform from {parent} to {link.child} is missing for {duration_text(end - start)}"
            f" from {since_start(start, log)} on",
            "warn",
            start,
            end,
            (),
            {"missing_ns": end - start, "period_ns": float(np.median(steps))},
            f"{LINK_PERIODS} periods and {duration_text(LINK_NS)}",
            "logreel",
        )


LINKS = Detector(
    "transforms",
    f"links between frames that are missing for {LINK_PERIODS} periods and {duration_text(LINK_NS)}, "
    "and separate trees",
    broken_links,
)
