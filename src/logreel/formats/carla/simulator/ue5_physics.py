"""Text that ``show_recorder_file_info`` of the UE5 line prints for the physics of vehicles.

Source: the query and the serialiser on the branch ue5-dev, not verified with a recording. A packet holds the memory of
C++ objects on 64-bit machines; the graph of lateral slip is elsewhere in that memory, so its points are missing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from logreel.formats.carla.simulator.printing import number

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


def packet_text(data: memoryview) -> str:
    """Return the text of a packet; empty if its content does not fill it."""
    try:
        records, end = _records(data)
    except struct.error:
        return ""
    return f" Physics Control events: {len(records)}\n{''.join(records)}" if end == len(data) else ""


def _records(data: memoryview) -> tuple[list[str], int]:
    """Return the text of each record, and where the last one ends; raises struct.error where bytes are missing."""
    (count,), at, found = struct.unpack_from("<H", data), 2, list[str]()
    for _ in range(count):
        head = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        lists = []
        for kind in (_POINT, _RATIO, _RATIO, _POINT, _WHEEL):
            (many,) = _COUNT.unpack_from(data, at)
            at += _COUNT.size
            if many * kind.size > len(data) - at:
                raise struct.error("a list longer than the packet")
            lists.append([kind.unpack_from(data, at + i * kind.size) for i in range(many)])
            at += many * kind.size
        found.append("".join(f"{line}\n" for line in _lines(head, lists)))
    return found, at


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
        some = values[at : at + count]
        at += count
        if count == 3:
            shown = f"({', '.join(f'{value:f}' for value in some)})"
        else:
            shown = _shown(name, some[0]) if some else "[]"
        text += f" {name}: {shown}"
    return text
