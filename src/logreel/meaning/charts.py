"""Which plots a log deserves: those that its format proposes, else by lenses, else fields that vary."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import suppress

import numpy as np

from logreel.dataclass import replace
from logreel.errors import LogError
from logreel.io.arrays import F64, I64
from logreel.layout.nodes import Bytes, FixedArray, Node, Rest, Sequence, String, Struct
from logreel.lenses import (
    ActorPose,
    Image,
    Imu,
    Joints,
    Pose,
    Position,
    Scaled,
    Text,
    Transform,
    lenses,
)
from logreel.lenses.base import is_vector, members, nodes_of
from logreel.lenses.facts import MAP, PICTURE, SCENE, SPECTROGRAM, Band, Chart, Series
from logreel.log.columns import ColumnReader, own_paths
from logreel.log.log import Channel, Log
from logreel.log.topic_fields import check_fields
from logreel.meaning.curves import FUNCTIONS, MAX_ITEMS, STAMPS, TIMES, paths_of, sample_numbers
from logreel.registry.registry import bands_of, charts_of

#: Most charts, and most curves of a chart, that are proposed.
MAX_CHARTS, MAX_SERIES = 80, 8
#: Charts of the first screen, if none is marked.
FIRST = 3
#: Messages of a channel that are read to see whether a field varies.
LOOK = 200
#: Last names of fields that are times of messages, samples or the sky.
STAMP_NAMES = {
    "time", "stamp", "timestamp", "timestamp_sample", "timestamp_utc", "time_utc_usec", "start_time", "end_time",
}  # fmt: skip
#: Last names of fields that count or name messages and samples, or repeat their time.
COUNTERS = STAMP_NAMES | {
    "seq", "sequence", "sequence_id", "sample", "frame", "id", "schema_id", "device_id",
    "hour", "minute", "second", "day", "month", "year", "sec", "secs", "nsec", "nsecs", "nanos", "nanosec",
}  # fmt: skip
#: Times are UNIX times from this number of ns on; a field that is one is this close to the time of its message (ns).
UNIX, NEAR = 10**17, 3600 * 10**9
#: The only field of a channel that is one quantity.
VALUE = "value"
#: Most charts by fields for one channel.
PER_CHANNEL = 4


def charts(log: Log) -> list[Chart]:
    """Return the charts that *log* deserves, most important first; those of missing or empty channels are left out.

    A format proposes charts for its logs; where it proposes none, lenses and fields that vary decide. Damage never
    raises an error here.
    """
    shown = list(_present(log, _proposed(log)))
    if not shown:
        # Of hundreds of channels, those behind the last chart are not read.
        guessed = itertools.chain(_by_lenses(log), _by_fields(log), _rates(log))
        shown = list(itertools.islice(_present(log, guessed), MAX_CHARTS))
    return sorted(shown[:MAX_CHARTS], key=lambda chart: not chart.first)


def bands(log: Log) -> list[Band]:
    """Return the bands of *log*, such as flight modes, inside its interval and sorted by start.

    Empty if its format knows none.
    """
    inner: list[Band] = []
    if log.start is None or log.end is None:
        return inner
    with suppress(LogError):
        for band in bands_of(log):
            inside = replace(band, start=max(band.start, log.start), end=min(band.end, log.end))
            if inside.start < inside.end:
                inner.append(inside)
    return sorted(inner, key=lambda band: (band.start, band.kind))


def first_charts(proposed: list[Chart]) -> int:
    """Return how many of the charts belong on the first screen."""
    marked = sum(chart.first for chart in proposed)
    return marked or min(FIRST, len(proposed))


def field_units(log: Log) -> dict[tuple[str, str], str]:
    """Return units of fields by topic and path, as the charts of the format state them; of functions there are none."""
    series = (series for chart in _proposed(log) for series in chart.series)
    return {(s.topic, s.field): s.unit for s in series if s.unit and s.function in ("", "negative")}


def is_stamp(field: str, times: I64, values: F64) -> bool:
    """Return whether a field holds times: by its name, or because its values are the UNIX times of the messages.

    times   int64[n] ns of the messages
    values  float64[n] in s, ms, µs or ns
    """
    if field in STAMPS or field.rpartition(".")[2].lower() in STAMP_NAMES:
        return True
    sound = np.isfinite(values)
    if not sound.any() or int(times.min()) < UNIX:
        return False
    return any(
        bool(np.all(np.abs(values[sound] * factor - times[sound]) < NEAR)) for factor in (1, 1e3, 1e6, 1e9)
    )


def side_panels(log: Log) -> list[str]:
    """Return which panels *log* has content for, most important first: ``map``, ``picture``, ``scene``."""
    contents: set[str] = set()
    local = False
    for ch in log.channels.values():
        if not len(ch) or ch.reserved:
            continue
        for lens in lenses(ch):
            if isinstance(lens, Position):
                contents.add(MAP)
            elif isinstance(lens, Image):
                contents.add(PICTURE)
            elif not isinstance(lens, (Text, Imu, Joints)):
                contents.add(SCENE)
                local |= isinstance(lens, ActorPose | Transform) or bool(getattr(lens, "position", ()))
    # Without a position on Earth the map has local tracks, which the scene shows, too.
    panels = [panel for panel in (MAP, PICTURE, SCENE) if panel in contents]
    return [*panels, MAP] if local and MAP not in contents else panels


def _proposed(log: Log) -> Iterator[Chart]:
    with suppress(LogError):
        yield from charts_of(log)


def _present(log: Log, charts: Iterable[Chart]) -> Iterator[Chart]:
    """Yield the charts with those series that the log has messages for."""
    for chart in charts:
        series_with_messages = tuple(series for series in chart.series if _exists(log, series))
        if series_with_messages and (chart.kind != "xy" or len(series_with_messages) == len(chart.series)):
            yield replace(chart, series=series_with_messages)


def _exists(log: Log, series: Series) -> bool:
    ch = log.channels.get(series.topic)
    if ch is None or not len(ch):
        return False
    if series.function and FUNCTIONS[series.function].inputs == TIMES:
        return True
    with suppress(LogError):
        check_fields(ch, paths_of(ch, series.field))
        return True
    return False


def _by_lenses(log: Log) -> Iterator[Chart]:
    channels = [ch for ch in log.channels.values() if len(ch) and not ch.reserved]
    for ch in channels:
        with suppress(LogError):
            for lens in lenses(ch):
                yield from _of_lens(ch, lens)


def _rates(log: Log) -> Iterator[Chart]:
    """Yield charts of the time between messages: rates, jitter and silence of topics at one glance."""
    named = [ch for ch in log.channels.values() if len(ch) > 2 and not ch.reserved]
    for at in range(0, min(len(named), 3 * MAX_SERIES), MAX_SERIES):
        channels = named[at : at + MAX_SERIES]
        series = tuple(Series(ch.topic, "", "interval", ch.topic) for ch in channels)
        yield Chart("Time between messages", series, group="Rates and jitter")


def _of_lens(ch: Channel, lens: object) -> Iterator[Chart]:
    topic = ch.topic
    match lens:
        case Position(altitude=altitude) if altitude is not None:
            function = "thousandth" if altitude.factor != 1 else ""
            series_of_altitude = Series(topic, altitude.path, function, "altitude", "m")
            yield Chart(f"{topic}: altitude", (series_of_altitude,), group="Position", first=True)
        case Imu(rate=rate, acceleration=acceleration):
            yield _vector(topic, acceleration, "acceleration", "m/s²", "Inertial", True)
            yield _vector(topic, rate, "angular velocity", "rad/s", "Inertial")
            yield Chart(
                f"{topic}: vibration",
                _components(topic, acceleration, "m/s²"),
                SPECTROGRAM,
                "Inertial",
            )
        case Joints(name=name, position=position, velocity=velocity, effort=effort):
            joints = list(lens.series(ch))[:MAX_SERIES]
            for field, unit in ((position, "rad"), (velocity, "rad/s"), (effort, "Nm")):
                series = tuple(Series(topic, field, "", joint, unit, f"{name}={joint}") for joint in joints)
                yield Chart(f"{topic}: {field}", series, group="Joints", first=field == position)
        case Pose(position=place, orientation=turn, repeated=False):
            if place is not None:
                yield _vector(topic, place, "position", "m", "Motion", True)
            # Roll and pitch are a few degrees, which a yaw of a whole turn would flatten.
            for what, turns in (("roll and pitch", ("roll", "pitch")), ("yaw", ("yaw",))):
                series = tuple(Series(topic, turn, f, f, "deg") for f in turns)
                yield Chart(f"{topic}: {what}", series, group="Motion")
        case Transform(translation=place, rotation=turn, child=child):
            for frame in _moving_frames(ch, lens):
                where = f"{child}={frame}" if child and frame else ""
                yield Chart(
                    f"{topic}: {frame or 'transform'}",
                    tuple(Series(topic, f"{place}.{axis}", "", axis, "m", where) for axis in "xyz"),
                    group="Transforms",
                )
    yield from _velocities(ch, lens)


def _velocities(ch: Channel, lens: object) -> Iterator[Chart]:
    """Yield charts of the linear and angular velocity of a message that also has a pose."""
    if not isinstance(lens, Pose) or lens.repeated:
        return
    path, nodes = "", members(ch)
    while "twist" in nodes:
        path, nodes = f"{path}twist.", nodes_of(nodes["twist"])
        if is_vector(nodes.get("linear")) and is_vector(nodes.get("angular")):
            yield _vector(ch.topic, path + "linear", "velocity", "m/s", "Motion", True)
            yield _vector(ch.topic, path + "angular", "turn rate", "rad/s", "Motion")


def _moving_frames(ch: Channel, lens: Transform) -> list[str]:
    """Return the child frames whose translation varies; one without a name is empty text."""
    places = lens.track(ch)
    if places.child is None:
        return [""] if len(places.position) and np.ptp(places.position, axis=0).max() > 0 else []
    frames = []
    for frame in dict.fromkeys(places.child.tolist()):
        place = places.position[places.child == frame]
        if len(place) > 1 and np.nan_to_num(np.ptp(place, axis=0)).max() > 0:
            frames.append(str(frame))
    return frames[:MAX_SERIES]


def _components(topic: str, field: str, unit: str) -> tuple[Series, ...]:
    return tuple(Series(topic, f"{field}.{axis}", "", axis, unit) for axis in "xyz")


def _vector(topic: str, field: str, what: str, unit: str, group: str, first: bool = False) -> Chart:
    return Chart(f"{topic}: {what}", _components(topic, field, unit), group=group, first=first)


def _by_fields(log: Log) -> Iterator[Chart]:
    """Yield charts of the numeric fields that vary, of channels that no lens describes; few for each channel."""
    for ch in log.channels.values():
        if not len(ch) or ch.reserved:
            continue
        with suppress(LogError):
            meant = lenses(ch)
            if any(not isinstance(lens, Position) for lens in meant):
                continue
            known = {scaled.path for lens in meant for scaled in _coordinates(lens)}
            groups: dict[str, list[Series]] = {}
            for field in _varying(ch):
                if field in known:
                    continue
                parent = field.rpartition(".")[0] or field.partition("[")[0] * ("[" in field)
                label = field.removeprefix(f"{parent}.").removeprefix(VALUE)
                groups.setdefault(parent or field, []).append(Series(ch.topic, field, "", label or field))
            # Few fields under one name are seen better than many charts with one curve each.
            for name, series in list(groups.items())[:PER_CHANNEL]:
                title = ch.topic if name == VALUE else f"{ch.topic}: {name}"
                place, _, last = ch.topic.rpartition("/")
                yield Chart(
                    title, tuple(series[:MAX_SERIES]), group=place if name == VALUE and last else ch.topic
                )


def _coordinates(lens: object) -> list[Scaled]:
    """Return the fields of a position, which have a chart or a track of their own."""
    if not isinstance(lens, Position):
        return []
    return [scaled for scaled in (lens.latitude, lens.longitude, lens.altitude) if scaled]


def _varying(ch: Channel) -> list[str]:
    """Return the numeric fields that vary among some messages at the start, the middle and the end."""
    times = ch.times
    fields = [field for field in ch.fields if _may_be_drawn(ch, field)]
    seen: dict[str, list[float]] = {}
    for at in {0, len(times) // 2, max(len(times) - LOOK, 0)} if fields else ():
        looked_at = times[at : at + LOOK]
        for name, at_times, numbers in _numbers(ch, fields, int(looked_at.min()), int(looked_at.max()) + 1):
            values = numbers[np.isfinite(numbers)]
            if len(values) and not is_stamp(name, at_times, numbers):
                seen.setdefault(name, []).extend((values.min(), values.max()))
    return [field for field, values in seen.items() if min(values) < max(values)]


def _may_be_drawn(ch: Channel, field: str) -> bool:
    """Return whether a field may be numbers, and no stamp or counter: text, lists and large arrays are not read."""
    if field in STAMPS or field.rpartition(".")[2].lower() in COUNTERS:
        return False
    node: Node | None = ch.layout.record
    for name in field.split("."):
        if isinstance(node, Struct):
            node = nodes_of(node).get(name)
    if isinstance(node, FixedArray):
        return isinstance(node.item, Struct) or node.count <= MAX_ITEMS
    return not isinstance(node, String | Bytes | Rest | Sequence)


def _numbers(ch: Channel, fields: list[str], lo: int, hi: int) -> Iterator[tuple[str, I64, F64]]:
    """Yield name, times and values of each curve of *fields* with lo <= time < hi (ns), read at once."""
    reader = ColumnReader(ch, own_paths(ch, fields))
    rows = reader.read(ch.log.index.rows_between(ch.number, lo, hi))
    for own_name, unit, column in zip(reader.names, reader.projection.units, rows.columns, strict=True):
        for name, _, numbers in sample_numbers(own_name, unit, column):
            yield name, rows.time, numbers
