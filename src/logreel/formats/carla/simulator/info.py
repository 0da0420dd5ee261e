"""The query ``show_recorder_file_info``: all events of a recording, as text and as rows; ``texts`` prints packets."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import DefinitionError
from logreel.formats.carla.columns import RecordingColumns, recording, type_name
from logreel.formats.carla.records import END, HEAD
from logreel.formats.carla.simulator.printing import (
    Wording,
    closing,
    filled,
    number,
    opening,
    recording_summary,
    wording,
)
from logreel.index.gather import payload_ranges
from logreel.io.source import FILE
from logreel.layout.nodes import Sequence as Counted
from logreel.registry.commands import Answer

if TYPE_CHECKING:
    from logreel.layout.numpy_columns import Column
    from logreel.log.joined_log import Openable
    from logreel.log.log import Channel, Log, Message

# Physics of the UE5 line. Source: the query and the serialiser on the branch ue5-dev, not verified with a recording. A
# packet holds the memory of C++ objects on 64-bit machines; the graph of lateral slip is elsewhere in that memory, so
# its points are missing.
_HEAD = struct.Struct("<I6fBf?7f3f4f3f2f?")
_POINT, _RATIO = struct.Struct("<2f"), struct.Struct("<f")
_WHEEL = struct.Struct("<B3x3f9f6?2xfB7x24x3f3f6fif2B2x2fi9f4x")
_COUNT = struct.Struct("<I")
#: Values of the head by name in the order of the text, and their places; text between them is special.
_VALUES = (
    *(("max_torque", 1), ("max_rpm", 2), ("MOI", 5), ("rev_down_rate", 6), ("differential_type", 7)),
    *(("front_rear_split", 8), ("use_gear_auto_box", 9), ("gear_change_time", 10), ("final_ratio", 11)),
    *(("change_up_rpm", 12), ("change_down_rpm", 13), ("transmission_efficiency", 14), ("mass", 15)),
    ("drag_coefficient", 16),
)
#: Members of a wheel: name, and number of values; the graph has none.
_MEMBERS = (
    *(("axle_type", 1), ("offset", 3), ("wheel_radius", 1), ("wheel_width", 1), ("wheel_mass", 1)),
    *(("cornering_stiffness", 1), ("friction_force_multiplier", 1), ("side_slip_modifier", 1)),
    *(("slip_threshold", 1), ("skid_threshold", 1), ("max_steer_angle", 1), ("affected_by_steering", 1)),
    *(("affected_by_brake", 1), ("affected_by_handbrake", 1), ("affected_by_engine", 1), ("abs_enabled", 1)),
    *(("traction_control_enabled", 1), ("max_wheelspin_rotation", 1), ("external_torque_combine_method", 1)),
    *(("lateral_slip_graph", 0), ("suspension_axis", 3), ("suspension_force_offset", 3)),
    *(("suspension_max_raise", 1), ("suspension_max_drop", 1), ("suspension_damping_ratio", 1)),
    *(("wheel_load_ratio", 1), ("spring_rate", 1), ("spring_preload", 1), ("suspension_smoothing", 1)),
    *(("rollbar_scaling", 1), ("sweep_shape", 1), ("sweep_type", 1), ("max_brake_torque", 1)),
    *(
        ("max_hand_brake_torque", 1),
        ("wheel_index", 1),
        ("location", 3),
        ("old_location", 3),
        ("velocity", 3),
    ),
)
#: Bytes, which the simulator prints as characters.
_CHARACTERS = {
    "differential_type",
    "axle_type",
    "external_torque_combine_method",
    "sweep_shape",
    "sweep_type",
}


def ue5_text(data: memoryview) -> str:
    """Return the text of a packet; empty if its content does not fill it."""
    try:
        records, end = _records(data)
    except struct.error:
        return ""
    return f" Physics Control events: {len(records)}\n{''.join(records)}" if end == len(data) else ""


def _records(data: memoryview) -> tuple[list[str], int]:
    """Return the text of each record, and where the last one ends; raises struct.error where bytes are missing."""
    (count,), at, texts = struct.unpack_from("<H", data), 2, list[str]()
    for _ in range(count):
        head = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        lists = []
        for item in (_POINT, _RATIO, _RATIO, _POINT, _WHEEL):
            (count_of_items,) = _COUNT.unpack_from(data, at)
            at += _COUNT.size
            if count_of_items * item.size > len(data) - at:
                raise struct.error("a list longer than the packet")
            lists.append([item.unpack_from(data, at + i * item.size) for i in range(count_of_items)])
            at += count_of_items * item.size
        texts.append("".join(f"{line}\n" for line in _lines(head, lists)))
    return texts, at


def _lines(head: tuple[Any, ...], lists: list[list[Any]]) -> Iterator[str]:
    torque, forward, reverse, steering, wheels = lists
    yield f"  Id: {head[0]}"
    for name, place in _VALUES:
        yield f"   {name} = {_shown(name, head[place])}"
    yield f"   center_of_mass = ({', '.join(map(number, head[17:20]))})"
    for name, points in (("torque_curve", torque), ("steering_curve", steering)):
        yield f"   {name} ={''.join(f' ({number(x)}, {number(y)})' for x, y in points)}"
    for name, ratios in (("forward_gear_ratios", forward), ("reverse_gear_ratios", reverse)):
        yield f"   {name}:"
        yield from (f"    gear {k}: ratio {number(ratio)}" for k, (ratio,) in enumerate(ratios))
    yield "   wheels:"
    for k, wheel in enumerate(wheels):
        yield f"wheel #{k}:"
        yield _wheel(wheel)


def _shown(name: str, value: Any) -> str:
    if name in _CHARACTERS:
        return chr(value)
    if name == "use_gear_auto_box":
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, int) else number(value)


def _wheel(values: tuple[Any, ...]) -> str:
    text, at = "", 0
    for name, count in _MEMBERS:
        members = values[at : at + count]
        at += count
        if count == 3:
            shown = f"({', '.join(f'{value:f}' for value in members)})"
        else:
            shown = _shown(name, members[0]) if members else "[]"
        text += f" {name}: {shown}"
    return text


#: Messages decoded in one batch.
BATCH = 256
#: Lights of vehicles in the order in which they are printed: bit and name.
LIGHTS = (
    *enumerate(("Position", "LowBeam", "HighBeam", "Brake", "RightBlinker", "LeftBlinker", "Reverse")),
    *((8, "Interior"), (7, "Fog"), (9, "Special1"), (10, "Special2")),
)
WHEEL = (
    *("tire_friction", "damping_rate", "max_steer_angle"),
    *("radius", "max_brake_torque", "max_handbrake_torque"),
)
DOORS = ("Front Left", "Front Right", "Rear Left", "Rear Right", "Hood", "Trunk", "All")
WEATHER = (
    *("Cloudiness", "Precipitation", "PrecipitationDeposits", "WindIntensity"),
    *("SunAzimuthAngle", "SunAltitudeAngle", "FogDensity", "FogDistance", "FogFalloff", "Wetness"),
    *("ScatteringIntensity", "MieScatteringScale", "RayleighScatteringScale", "DustStorm"),
)

#: Returns a text per record; the argument: one list of values per field.
Printer = Callable[[list[list[Any]]], list[str]]


def texts(ch: Channel, words: Wording) -> Iterator[str]:
    """Yield the text of each packet of a channel in file order; empty for packets that cannot be decoded."""
    if ch.topic == "physics" and "id" not in ch.fields:
        # Physics of the UE5 line is kept as bytes; that of other releases only if it cannot be decoded.
        is_ue5 = ch.log.metadata["engine"] == "UE5"
        yield from (ue5_text(message.data) if is_ue5 else "" for message in ch)
        return
    title, printer = _printer(ch.topic, words)
    for columns, records in _decoded(ch):
        lines = printer(columns)
        at = 0
        for count in records:
            if count < 0:
                yield ""
                continue
            yield title.replace("#", str(count)) + "".join(lines[at : at + count]) + _after(ch.topic, words)
            at += count


def _after(topic: str, words: Wording) -> str:
    return "\n" if topic == "bones" and words.bones_line else ""


def _decoded(ch: Channel) -> Iterator[tuple[list[list[Any]], list[int]]]:
    """Yield values by field (structs split) of a batch of packets, and records per packet (-1: undecodable)."""
    index = ch.log.index
    for lo in range(0, len(ch), BATCH):
        numbers = np.arange(lo, min(lo + BATCH, len(ch)), dtype=np.int64)
        for payloads in payload_ranges(index, ch.number, slice(lo, lo + len(numbers))):
            batch, numbers = numbers[: len(payloads.offset)], numbers[len(payloads.offset) :]
            if ch.decoder is not None:
                got = ch.decoder.decode_batch(index, ch.layout, payloads, batch)
            else:
                from logreel.layout.arrow import decode_variable
                from logreel.layout.numpy_columns import NumpyFields

                ends = payloads.offset + payloads.size
                got = decode_variable(NumpyFields(ch.layout), payloads.data, payloads.offset, ends)
            kept = np.arange(len(batch)) if got.kept is None else got.kept
            counts = np.full(len(batch), -1, np.int64)
            counts[kept] = 1 if got.records is None else got.records
            yield [values for column in got.arrays for values in _split(column)], counts.tolist()


def _split(column: Column) -> list[list[Any]]:
    """Return the values of a column; of a struct one list per member."""
    if column.type == "struct":
        return [values for name in column.names for values in _split(column.member(name))]
    return [column.to_pylist()]


def _rows(template: str) -> Printer:
    """Return a printer of numbers; the first field, the frame number, is skipped."""
    return lambda columns: filled(template, zip(*columns[1:], strict=True))


def _each(show: Callable[..., str]) -> Printer:
    """Return a printer that calls *show* with the fields of each record."""
    return lambda columns: [show(*row[1:]) for row in zip(*columns, strict=True)]


def _printer(topic: str, words: Wording) -> tuple[str, Printer]:
    """Return the title of the records, with # for their number, and their printer."""
    two = f"Location{words.place} (%g, %g, %g) Rotation{words.turn} (%g, %g, %g)\n"
    box = "  Id: %d origin: (%g, %g, %g) extension: (%g, %g, %g)\n"
    kinematics = "  Id: %d linear_velocity: (%g, %g, %g) angular_velocity: (%g, %g, %g)\n"
    times = "  Id: %d green_time: %g yellow_time: %g red_time: %g\n"
    state = "  Id: %d state: %d frozen: %d elapsedTime: %g\n"
    if words.named:
        control = f"  Id: %d Steering: %g Throttle: %g Brake{words.brake} %g Handbrake: %d Gear: %d\n"
        walker = "  Id: %d speed: %g\n"
    else:
        control = "  Vehicle id %d: Steering %g Throttle %g Brake %g Handbrake %d Gear %d\n"
        walker = "  Walker id %d: speed %g\n"
    weather = "  " + " ".join(f"{name}: %g" for name in WEATHER) + "\n"
    printers: dict[str, tuple[str, Printer]] = {
        "actors": ("", _each(_created)),
        "actor_removals": ("", _rows(" Destroy %d\n")),
        "actor_parents": ("", _each(_attached_twice if words.child_twice else _attached)),
        "collisions": ("", _each(_collided)),
        "position": (" Positions: #\n", _rows("  Id: %d " + two)),
        "traffic_lights": (
            " State traffic lights: #\n",
            lambda c: filled(state, zip(c[1], c[4], c[2], c[3], strict=True)),
        ),
        "vehicle_control": (" Vehicle animations: #\n", _rows(control)),
        "walker": (" Walker animations: #\n", _rows(walker)),
        "vehicle_lights": (" Vehicle light animations: #\n", _each(_vehicle_light)),
        "scene_lights": (" Scene light changes: #\n", _each(_scene_light)),
        "velocity": (" Dynamic actors: #\n", _rows(kinematics)),
        "bounding_boxes": (" Actor bounding boxes: #\n", _rows(box)),
        "trigger_volumes": (" Actor trigger volumes: #\n", _rows(box)),
        "traffic_light_times": (" Traffic Light time events: #\n", _rows(times)),
        "platform_time": ("", _rows(" Current platform time: %g\n")),
        "physics": (" Physics Control events: #\n", _each(_physics)),
        "bones": (" Walkers Bones: #\n", _each(_bones)),
        "doors": (" Vehicle door animations: #\n", _each(_door)),
        "weather": (" Weathers: #\n", _rows(weather)),
    }
    return printers[topic]


def _created(actor: int, actor_type: int, *rest: Any) -> str:
    place, (_, description, attributes) = rest[:3], rest[-3:]
    head = f" Create {actor}: {description} ({actor_type}) at ({', '.join(map(number, place))})\n"
    return head + "".join(f"  {a['name']} = {a['value']}\n" for a in attributes)


def _attached(child: int, parent: int) -> str:
    return f" Parenting {child} with {parent} (parent)\n"


def _attached_twice(child: int, _parent: int) -> str:
    return _attached(child, child)


def _collided(number: int, first: int, two: int, first_is_hero: bool, second_is_hero: bool) -> str:
    heroes = [" (hero) " if hero else "" for hero in (first_is_hero, second_is_hero)]
    return f" Collision id {number} between {first}{heroes[0]} with {two}{heroes[1]}\n"


def _vehicle_light(actor: int, flags: int) -> str:
    names = " ".join(name for bit, name in LIGHTS if flags >> bit & 1)
    return f"  Id: {actor} {names or 'None'}\n"


def _scene_light(
    light: int, intensity: float, red: float, green: float, blue: float, _a: float, on: bool, _group: int
) -> str:
    color = ", ".join(map(number, (red, green, blue)))
    return f"  Id: {light} enabled: {on} intensity: {number(intensity)} RGB_color: ({color})\n"


def _door(actor: int, door: int, _open: bool) -> str:
    name = f" {DOORS[door]} " if door < len(DOORS) else ""
    return f"  Id: {actor}\n  Doors opened: {name}\n"


def _xyz(vector: dict[str, float]) -> str:
    return "(" + ", ".join(map(number, vector.values())) + ")"


def _bones(actor: int, bones: list[dict[str, Any]]) -> str:
    lines = [f"  Id: {actor}\n"]
    for bone in bones:
        place, turn = _xyz(bone["location"]), _xyz(bone["rotation"])
        lines.append(f'     Bone: "{bone["name"]}" relative: Loc{place} Rot{turn}\n')
    return "".join(lines)


def _physics(actor: int, *rest: Any) -> str:
    numbers, (torque, gears, steering, wheels) = rest[:-4], rest[-4:]
    rpm, moi, full, engaged, disengaged, auto, clutch, ratio, mass, drag, *center = numbers
    values: dict[str, Any] = {
        "max_rpm": number(rpm),
        "MOI": number(moi),
        "damping_rate_full_throttle": number(full),
        "damping_rate_zero_throttle_clutch_engaged": number(engaged),
        "damping_rate_zero_throttle_clutch_disengaged": number(disengaged),
        "use_gear_auto_box": "true" if auto else "false",
        # Not in the file: the simulator prints its own default.
        "gear_switch_time": "0.5",
        "clutch_strength": number(clutch),
        "final_ratio": number(ratio),
        "mass": number(mass),
        "drag_coefficient": number(drag),
        "center_of_mass": "(" + ", ".join(map(number, center)) + ")",
        "torque_curve": " ".join(map(_xyz, torque)),
        "steering_curve": " ".join(map(_xyz, steering)),
    }
    lines = [f"  Id: {actor}", *(f"   {name} = {value}" for name, value in values.items())]
    lines += ["   forward_gears:", *(f"    gear {k}: {_named(gear, gear)}" for k, gear in enumerate(gears))]
    lines.append("   wheels:")
    for k, wheel in enumerate(wheels):
        lines.append(f"    wheel {k}: {_named(wheel, WHEEL)} position {_xyz(wheel['position'])}")
    return "".join(f"{line}\n" for line in lines)


def _named(values: dict[str, Any], names: Iterable[str]) -> str:
    return " ".join(f"{name} {number(values[name])}" for name in names)


EVENTS = ("actors", "actor_removals", "actor_parents", "collisions")


def info(log: Log | Openable, show_all: bool = False, release: str | None = None) -> Answer:
    """List the events of a recording: actors that are created, destroyed and attached, and collisions.

    log       an open Log, or anything that ``logreel.open`` accepts
    show_all  True: the text also has every record of positions, lights, controls and so on; the rows are the same
    release   print as the simulator does from this release on: 0.9.4, 0.9.6, 0.9.10, 0.9.14, 0.9.15, 0.9.16, 0.9.17 or
              0.10; None: as the release that wrote the recording

    Raises UsageError for another release.
    """
    log = recording(log)
    columns = RecordingColumns(log)
    about = recording_summary(columns)
    words = wording(release, log.metadata, log.channels)

    def lines() -> Iterator[str]:
        yield from opening(about)
        for text in _packet_texts(log, words, show_all):
            yield from text.split("\n")[:-1]
        if words.ends:
            yield ""
        yield from closing(about)

    return Answer("events", _events(columns), lines, about)


def _packet_texts(log: Log, words: Wording, show_all: bool) -> Iterator[str]:
    """Yield the text of each packet in file order."""
    frames, data = log.channels.get("frames"), log.index.chunks.view(FILE)
    iterators = {ch.number: texts(ch, words) for ch in _printable(log, words, show_all)}
    if frames is not None:
        iterators[frames.number] = _frame_lines(frames)
    title = ""
    for batch in log.index.select_batches(iterators, order="file"):
        for channel, offset in zip(batch.channel.tolist(), batch.offset.tolist(), strict=True):
            text = next(iterators[channel])
            if frames is not None and channel == frames.number:
                # A FrameEnd is not a message: it directly precedes the next FrameStart.
                if words.ends and data[max(offset - 2 * HEAD, 0) : offset - HEAD] == END:
                    yield "\n"
                title = text
                text = ""
            if title and (text or show_all):
                yield title
                title = ""
            yield text
    if words.ends and frames is not None and data[-HEAD:] == END:
        yield "\n"


def _printable(log: Log, words: Wording, show_all: bool) -> list[Channel]:
    """Return the channels that are printed; weather always is."""
    wanted = words.topics if show_all else [topic for topic in words.topics if topic == "weather"]
    return [log[topic] for topic in (*EVENTS, *wanted) if topic in log.channels]


def _frame_lines(frames: Channel) -> Iterator[str]:
    for frame, elapsed in zip(frames["frame"].tolist(), frames["elapsed"].tolist(), strict=True):
        yield f"Frame {frame} at {number(elapsed)} seconds\n"


def _events(columns: RecordingColumns) -> dict[str, Any]:
    """Return the rows: one per event, in the order in which the recorder writes them."""
    parts = [_created_rows(columns), _removed_rows(columns), _attached_rows(columns), _collided_rows(columns)]
    frame_row = np.concatenate([columns.frame_rows(topic) for topic in EVENTS])
    order = np.argsort(frame_row, kind="stable").tolist()
    names = list(dict.fromkeys(name for part in parts for name in part))
    events: dict[str, Any] = {
        "time_ns": columns.times(frame_row[order]),
        "frame": columns.frame_ids[frame_row[order]],
    }
    for name in names:
        values = [
            value
            for part, topic in zip(parts, EVENTS, strict=True)
            for value in part.get(name, [None] * len(columns(topic, "frame")))
        ]
        events[name] = [values[i] for i in order]
    return events


def _created_rows(columns: RecordingColumns) -> dict[str, list[Any]]:
    ids = columns("actors", "id").tolist()
    return {
        "event": ["create"] * len(ids),
        "id": ids,
        "type": [type_name(t) for t in columns("actors", "type").tolist()],
        "description": columns("actors", "description").tolist(),
        "location": columns.vector("actors", "location").tolist(),
        "attributes": [list(map(dict, a)) for a in columns("actors", "attributes")],
    }


def _removed_rows(columns: RecordingColumns) -> dict[str, list[Any]]:
    ids = columns("actor_removals", "id").tolist()
    return {"event": ["destroy"] * len(ids), "id": ids}


def _attached_rows(columns: RecordingColumns) -> dict[str, list[Any]]:
    ids = columns("actor_parents", "child").tolist()
    return {"event": ["parent"] * len(ids), "id": ids, "other": columns("actor_parents", "parent").tolist()}


def _collided_rows(columns: RecordingColumns) -> dict[str, list[Any]]:
    ids = columns("collisions", "actor1").tolist()
    return {
        "event": ["collision"] * len(ids),
        "id": ids,
        "other": columns("collisions", "actor2").tolist(),
        "collision_id": columns("collisions", "collision_id").tolist(),
    }


def frames(log: Log) -> Callable[[Sequence[Message]], list[str]]:
    """Return a function that describes the packets of a frame: records per kind, then each event."""
    words = wording(None, log.metadata, log.channels)

    @cache
    def event_texts(topic: str) -> dict[int, str]:
        """Return the text of each packet of a channel of events, by payload offset."""
        return dict(zip(log.index.offsets(log[topic].number).tolist(), texts(log[topic], words), strict=True))

    def describe(packets: Sequence[Message]) -> list[str]:
        title, counts, events = "", list[str](), list[str]()
        for packet in packets:
            topic = packet.channel.topic
            if topic == "frames":
                frame = packet.decode()
                title = f"Frame {frame['frame']} at {number(frame['elapsed'])} seconds"
            elif topic in EVENTS:
                events += event_texts(topic).get(packet.offset or 0, "").split("\n")[:-1]
            else:
                counts.append(f"{topic} {_record_count(packet)}".rstrip())
        return [": ".join(filter(None, [title, ", ".join(counts)])), *events]

    return describe


def _record_count(packet: Message) -> str:
    """Return the number of records that a packet states; empty if its kind has no count."""
    counted = _has_count(packet.channel) and len(packet.data) >= 2
    return str(int.from_bytes(packet.data[:2], "little")) if counted else ""


def _has_count(ch: Channel) -> bool:
    try:
        return isinstance(ch.layout.root, Counted)
    except DefinitionError:
        return False
