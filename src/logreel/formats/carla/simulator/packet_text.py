"""Text that ``show_recorder_file_info`` prints for packets."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.formats.carla.simulator.printing import Wording, filled, number
from logreel.index.gather import payload_ranges
from logreel.layout.arrow_arrays import as_struct

if TYPE_CHECKING:
    from logreel.log.log import Channel


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

                got = decode_variable(
                    ch.layout, payloads.data, payloads.offset, payloads.offset + payloads.size
                )
            kept = np.arange(len(batch)) if got.kept is None else got.kept
            counts = np.full(len(batch), -1, np.int64)
            counts[kept] = 1 if got.records is None else got.records
            yield [column for array in got.arrays for column in _split(array)], counts.tolist()


def _split(array: Any) -> list[list[Any]]:
    """Return the values of an Arrow array; of a struct one list per member."""
    import pyarrow as pa

    if pa.types.is_struct(array.type):
        combined = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        return [column for member in as_struct(combined).flatten() for column in _split(member)]
    return [array.to_pylist()]


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
