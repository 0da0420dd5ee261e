"""What a flight was: the sections of its summary, and its modes, arming, time in the air and failsafes as bands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from logreel.plugin import Band, Fact, Log, Section, TextLine
from logreel_ardupilot.signals import F64, FIX_3D, Measured, Signals, Span, signals

#: Syslog levels of facts that deserve attention.
ERROR, WARNING = 3, 4
#: Vibration in m/s/s above which estimates may suffer, and do. Source: ArduPilot, "Measuring vibration".
VIBRATION, STRONG_VIBRATION = 30.0, 60.0
#: Test ratio of innovations above which ArduPilot acts (FS_EKF_THRESH), and at which measurements are refused.
RATIO, REFUSED = 0.8, 1.0
#: Satellites and HDOP that ArduPilot asks for before it arms (GPS_HDOP_GOOD, AHRS_GPS_MINSATS).
SATELLITES, HDOP = 6, 1.4
#: Volts below which nothing is connected; names that a fact lists.
UNCONNECTED, MOST = 1.0, 8
#: Metres of a degree of latitude; steps that are no movement between two fixes, m/s.
_DEGREE, _JUMP = 111_195.0, 340.0


def seconds_text(ns: int) -> str:
    """Return a duration for people, such as ``3 min 5 s``."""
    seconds = ns / 1e9
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def since_start(time: int, log: Log) -> str:
    """Return a time as ``+12.3 s`` after the start of the log."""
    return f"{(time - (log.start or 0)) / 1e9:+.1f} s"


def meaning(log: Log) -> Iterator[Section]:
    """Yield the sections of the summary."""
    made = signals(log)
    yield Section("vehicle", "Vehicle", tuple(_vehicle(made)))
    yield Section("flight", "Flight", tuple(_flight(made, log)))
    yield Section("failsafes", "Failsafes and errors", tuple(_events(made, log)))
    yield Section("estimator", "Estimator", tuple(_estimator(made, log)))
    yield Section("vibration", "Vibration", tuple(_vibration(made)))
    yield Section("battery", "Battery", tuple(_batteries(made)))
    yield Section("gps", "GPS", tuple(_receivers(made)))
    yield Section("parameters", "Parameters", tuple(_parameters(log)))


def in_use(made: Signals, part: Measured) -> Measured:
    """Return the measurements with armed motors; all where these are none."""
    armed = part.inside(made.armed)
    return armed if len(armed.time) else part


def _vehicle(made: Signals) -> Iterator[Fact]:
    if made.vehicle:
        yield Fact("vehicle", "vehicle", made.vehicle, made.vehicle)
    if made.firmware:
        yield Fact("firmware", "firmware", made.firmware, made.firmware)


def _total(spans: Iterable[Span]) -> int:
    return sum(end - start for start, end in spans)


def _flight(made: Signals, log: Log) -> Iterator[Fact]:
    if made.armed is not None:
        total, count = _total(made.armed), len(made.armed)
        text = f"{seconds_text(total)}, {count} time{'s' * (count != 1)}" if count else "never"
        yield Fact("armed", "armed", total, text, "ns", times=tuple(start for start, _ in made.armed))
    if made.flying_by:
        total = _total(made.flying)
        text = seconds_text(total) if made.flying else "never"
        times = tuple(start for start, _ in made.flying)
        yield Fact("air", "in the air", total, text, "ns", note=f"by {made.flying_by}", times=times)
    if made.modes:
        spans = Counter[str]()
        ends = [time for time, _ in made.modes[1:]] + [max(log.end or 0, made.modes[-1][0])]
        for (start, name), end in zip(made.modes, ends, strict=True):
            spans[name] += end - start
        text = ", ".join(f"{name} {seconds_text(ns)}" for name, ns in spans.most_common(MOST))
        text += f" and {len(spans) - MOST} more" * (len(spans) > MOST)
        yield Fact("modes", "modes", dict(spans), text, "ns", times=tuple(time for time, _ in made.modes))
    receiver = next((part for part in made.receivers if (part["fix"] >= FIX_3D).any()), None)
    if receiver is not None:
        length = distance(receiver)
        yield Fact(
            "distance", "distance", round(length, 1), metres_text(length), "m", note=f"by {receiver.name}"
        )
        if "speed" in receiver:
            speed = float(receiver["speed"][receiver["fix"] >= FIX_3D].max())
            yield Fact(
                "speed",
                "ground speed",
                round(speed, 2),
                f"up to {speed:.1f} m/s",
                "m/s",
                note=f"by {receiver.name}",
            )
    for part in made.heights[:1]:
        low, high = float(part["height"].min()), float(part["height"].max())
        text = f"{low:.1f} to {high:.1f} m above home"
        yield Fact("height", "height", [round(low, 2), round(high, 2)], text, "m", note=f"by {part.name}")
    for part in made.load[:1]:
        worst = float(part["load"].max())
        if worst > 0:
            level = WARNING if worst > 90 else None
            yield Fact("load", "processor", round(worst, 1), f"load up to {worst:.0f} %", "%", level)


def distance(receiver: Measured) -> float:
    """Return the metres between the fixes of a receiver, without jumps."""
    fixed = receiver["fix"] >= FIX_3D
    lat, lng, time = receiver["lat"][fixed], receiver["lng"][fixed], receiver.time[fixed]
    north = np.diff(lat) * _DEGREE
    east = (np.diff(lng) + 180) % 360 - 180
    steps = np.hypot(north, east * _DEGREE * np.cos(np.radians(lat[1:])))
    return float(steps[steps <= _JUMP * np.maximum(np.diff(time) / 1e9, 1.0)].sum())


def metres_text(length: float) -> str:
    """Return metres for people."""
    return f"{length / 1000:.2f} km" if length >= 1000 else f"{length:.1f} m"


def _events(made: Signals, log: Log) -> Iterator[Fact]:
    by_text: dict[str, list[int]] = {}
    for event in made.events:
        if event.code:
            by_text.setdefault(event.text, []).append(event.time)
    failsafes = {event.text for event in made.events if event.is_failsafe}
    for text, times in by_text.items():
        places = ", ".join(since_start(time, log) for time in times[:MOST]) + " …" * (len(times) > MOST)
        level = ERROR if text in failsafes else WARNING
        yield Fact(
            text,
            text.partition(":")[0],
            len(times),
            f"{text.partition(': ')[2]} at {places}",
            "",
            level,
            times=tuple(times),
        )
    lines = spoken(log.text)
    if lines and not by_text:
        shown = [f"{line.text} at {since_start(line.time, log)}" for line in lines[:MOST]]
        text = "; ".join(shown) + f"; {len(lines) - MOST} more" * (len(lines) > MOST)
        yield Fact(
            "messages", "messages", len(lines), text, "", WARNING, times=tuple(line.time for line in lines)
        )
    if made.armed is not None and not by_text and not lines:
        yield Fact("none", "failsafes", 0, "none logged")


def spoken(lines: Iterable[TextLine]) -> list[TextLine]:
    """Return the lines of text that tell of failsafes, crashes and failures."""
    words = ("failsafe", "crash", "glitch", "variance", "lane switch", "thrust loss", "internal error")
    return [
        line for line in lines if line.kind != "event" and any(word in line.text.lower() for word in words)
    ]


def _estimator(made: Signals, log: Log) -> Iterator[Fact]:
    for part in made.filters:
        used = in_use(made, part)
        worst = {
            name: float(np.nanmax(column))
            for name, column in used.values.items()
            if np.isfinite(column).any()
        }
        if not worst:
            continue
        top = max(worst.values())
        level = ERROR if top >= REFUSED else WARNING if top > RATIO else None
        text = ", ".join(f"{name} {value:.2f}" for name, value in worst.items())
        values = {name: round(value, 3) for name, value in worst.items()}
        yield Fact(part.name, part.name, values, f"highest test ratios: {text}", "", level)
    if made.lanes:
        shown = ", ".join(f"{lane} at {since_start(time, log)}" for time, lane in made.lanes[:MOST])
        text = f"to {shown}" + " …" * (len(made.lanes) > MOST)
        times = tuple(time for time, _ in made.lanes)
        yield Fact("lanes", "lane switches", len(made.lanes), text, "", WARNING, times=times)


def strongest(part: Measured) -> F64:
    """Return float64[n]: the largest vibration of the three axes."""
    largest: F64 = np.maximum(np.maximum(part["x"], part["y"]), part["z"])
    return largest


def clipped(part: Measured) -> int:
    """Return the number of clips that were counted in these measurements."""
    if "clips" not in part or not len(part.time):
        return 0
    return int(np.maximum(np.diff(part["clips"]), 0).sum())


def _vibration(made: Signals) -> Iterator[Fact]:
    for part in made.vibration:
        used = in_use(made, part)
        worst = {axis: float(used[axis].max()) for axis in "xyz"}
        share = float(np.mean(strongest(used) > VIBRATION))
        clips = clipped(used)
        level = ERROR if max(worst.values()) > STRONG_VIBRATION else WARNING if share > 0 or clips else None
        text = " ".join(f"{axis} {value:.1f}" for axis, value in worst.items()) + " m/s/s at most"
        text += f", {share:.0%} of the time above {VIBRATION:.0f}" * (share > 0)
        text += f", {clips} clips" if clips else ", no clips" * ("clips" in used)
        values = {**{axis: round(value, 3) for axis, value in worst.items()}, "clips": clips}
        yield Fact(part.name, part.name, values, text, "m/s/s", level)


def _batteries(made: Signals) -> Iterator[Fact]:
    for part in made.batteries:
        connected = part["volts"] > UNCONNECTED
        if not connected.any():
            continue
        volts = part["volts"][connected]
        value = {"first": round(float(volts[0]), 3), "least": round(float(volts.min()), 3)}
        value["last"] = round(float(volts[-1]), 3)
        text = f"{volts[0]:.2f} V at first, {volts.min():.2f} V at least, {volts[-1]:.2f} V at last"
        if "amps" in part and (amps := float(np.nanmax(part["amps"]))) > 0:
            value["amps"] = round(amps, 2)
            text += f", up to {amps:.1f} A"
        if "used" in part and (used := float(np.nanmax(part["used"]))) >= 1:
            value["used"] = round(used, 1)
            text += f", {used:.0f} mAh used"
        if "left" in part and (part["left"][connected] > 0).any():
            left = float(part["left"][connected][-1])
            value["left"] = left
            text += f", {left:.0f} % left"
        yield Fact(part.name, part.name, value, text, "V")


def _receivers(made: Signals) -> Iterator[Fact]:
    for part in made.receivers:
        used = in_use(made, part)
        fixed = used["fix"] >= FIX_3D
        share = float(fixed.mean())
        if not fixed.any():
            yield Fact(part.name, part.name, {"fixed": 0.0}, "no fix", "", WARNING)
            continue
        satellites = used["satellites"][fixed]
        value: dict[str, float] = {"fixed": round(share, 4), "satellites": float(satellites.min())}
        text = f"3D fix {share:.0%} of the time, {satellites.min():.0f} to {satellites.max():.0f} satellites"
        is_bad = share < 1 or bool(satellites.min() < SATELLITES)
        if "hdop" in used:
            worst = float(used["hdop"][fixed].max())
            value["hdop"] = round(worst, 2)
            text += f", HDOP up to {worst:.2f}"
            is_bad = is_bad or worst > HDOP
        yield Fact(part.name, part.name, value, text, "", WARNING if is_bad else None)


def _parameters(log: Log) -> Iterator[Fact]:
    every = log.parameters
    if not every:
        return
    yield Fact("count", "known", len(every), str(len(every)))
    others = [
        name
        for name, p in every.items()
        if p.default is not None and p.default == p.default and p.value != p.default
    ]
    if any(p.default is not None for p in every.values()):
        yield Fact("set", "not as by default", len(others), _listed(others))
    changed = [name for name, p in every.items() if any(change.value != p.value for change in p.changes)]
    if changed:
        times = tuple(
            sorted(
                change.time for name in changed for change in every[name].changes if change.time is not None
            )
        )
        yield Fact("changed", "changed", len(changed), _listed(changed), times=times)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MOST])
    return f"{len(names)}: {shown}" + " …" * (len(names) > MOST) if names else "none"


def bands(log: Log) -> Iterator[Band]:
    """Yield the flight modes, and intervals with armed motors, in the air and of failsafes."""
    made, end = signals(log), log.end
    if end is None:
        return
    ends = [time for time, _ in made.modes[1:]] + [end]
    for (start, name), stop in zip(made.modes, ends, strict=False):
        if stop > start:
            yield Band(start, stop, name, "mode", "MODE" if log.format != "tlog" else "HEARTBEAT")
    for start, stop in made.armed or ():
        yield Band(start, stop, "Armed", "armed")
    for start, stop in made.flying:
        yield Band(start, stop, "In the air", "air", made.flying_by)
    yield from _failsafes(made, end)


def _failsafes(made: Signals, end: int) -> Iterator[Band]:
    """Yield one band after another: those that overlap are one."""
    since: dict[int, int] = {}
    names: dict[str, None] = {}
    begin = 0
    for event in sorted((event for event in made.events if event.is_failsafe), key=lambda event: event.time):
        if event.code:
            begin = begin if since else event.time
            since.setdefault(event.subsystem, event.time)
            names[event.text.partition(":")[0]] = None
        elif since.pop(event.subsystem, None) is not None and not since:
            if event.time > begin:
                yield Band(begin, event.time, ", ".join(names), "failsafe", "ERR")
            names = {}
    if since and end > begin:
        yield Band(begin, end, ", ".join(names), "failsafe", "ERR")
