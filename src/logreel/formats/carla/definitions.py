"""Layouts of the packets, by topic.

Source: the recorder's source code at the tags 0.9.4 to 0.9.16 and on the branch ue5-dev; docs/formats/carla.md says
what was also verified with real recordings.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Node, Rest, Scalar, Sequence, String, Struct, measure

Fields = tuple[Field, ...]

U8, U32, F32, BOOL = (Scalar(t) for t in ("uint8", "uint32", "float32", "bool"))
ID = Field("id", U32)
#: Packets of users and forks, and records that are memory dumps: kept as bytes.
RAW = Layout(Struct((Field("data", Rest()),)), "raw")


def _numbers(names: str, unit: str = "", packet_kind: Scalar = F32) -> Fields:
    return tuple(Field(name, packet_kind, unit) for name in names.split())


def _vector(unit: str, wide: bool = False, names: str = "x y z") -> Struct:
    return Struct(_numbers(names, unit, Scalar("float64") if wide else F32))


def _pose(wide: bool) -> Fields:
    return (
        Field("location", _vector("cm", wide)),
        Field("rotation", _vector("deg", wide, "roll pitch yaw")),
    )


def _box(wide: bool) -> Fields:
    return ID, Field("origin", _vector("cm", wide)), Field("extent", _vector("cm", wide))


def _velocity(wide: bool) -> Fields:
    return ID, Field("linear", _vector("m/s", wide)), Field("angular", _vector("deg/s", wide))


def _actor(wide: bool) -> Fields:
    attribute = Struct((Field("type", U8), Field("name", String(2)), Field("value", String(2))))
    identity = Field("uid", U32), Field("description", String(2)), Field("attributes", Sequence(attribute, 2))
    return ID, Field("type", U8), *_pose(wide), *identity


def _bones(wide: bool) -> Fields:
    return ID, Field("bones", Sequence(Struct((Field("name", String(2)), *_pose(wide))), 2))


def _wheels() -> Struct:
    return Struct((Field("location", U8), *_numbers("steering rotation", "deg")))


def _curve() -> Sequence:
    return Sequence(_vector("", names="x y"))


def physics(stiffness: bool) -> Layout:
    """Return the Layout of PhysicsControl (UE4); *stiffness*: wheels of 48 bytes, as from 0.9.12 on, else 36."""
    wheel = (
        *_numbers("tire_friction damping_rate"),
        Field("max_steer_angle", F32, "deg"),
        Field("radius", F32, "cm"),
        *_numbers("max_brake_torque max_handbrake_torque"),
        *(_numbers("lat_stiff_max_load lat_stiff_value long_stiff_value") if stiffness else ()),
        Field("position", _vector("cm")),
    )
    rates = "full_throttle zero_throttle_clutch_engaged zero_throttle_clutch_disengaged"
    return _many(
        "physics",
        (
            ID,
            *_numbers("max_rpm moi"),
            *(Field(f"damping_rate_{name}", F32) for name in rates.split()),
            Field("use_gear_autobox", BOOL),
            *_numbers("clutch_strength final_ratio"),
            Field("mass", F32, "kg"),
            Field("drag_coefficient", F32),
            Field("center_of_mass", _vector("m")),
            Field("torque_curve", _curve()),
            Field("gears", Sequence(Struct(_numbers("ratio down_ratio up_ratio")))),
            Field("steering_curve", _curve()),
            Field("wheels", Sequence(Struct(wheel))),
        ),
    )


_WEATHER = (
    *_numbers("cloudiness precipitation precipitation_deposits wind_intensity"),
    *_numbers("sun_azimuth sun_altitude", "deg"),
    *_numbers("fog_density fog_distance fog_falloff wetness scattering_intensity"),
    *_numbers("mie_scattering_scale rayleigh_scattering_scale dust_storm"),
)

_CONTROL = (ID, *_numbers("steer throttle brake"), Field("handbrake", BOOL), Field("gear", Scalar("int32")))
_SCENE_LIGHT = (
    Field("id", Scalar("int32")),
    Field("intensity", F32),
    Field("color", _vector("", names="r g b a")),
    Field("on", BOOL),
    Field("group", U8),
)
_HITS = (
    *_numbers("collision_id actor1 actor2", packet_kind=U32),
    *_numbers("actor1_is_hero actor2_is_hero", packet_kind=BOOL),
)

#: Fields of the records of packets that begin with the number of records; the argument: vectors of float64 (UE5).
_RECORDS: dict[str, Callable[[bool], Fields]] = {
    "actors": _actor,
    "actor_removals": lambda wide: (ID,),
    "actor_parents": lambda wide: _numbers("child parent", packet_kind=U32),
    "collisions": lambda wide: _HITS,
    "position": lambda wide: (ID, *_pose(wide)),
    "traffic_lights": lambda wide: (
        ID,
        Field("frozen", BOOL),
        Field("elapsed", F32, "s"),
        Field("state", U8),
    ),
    "vehicle_control": lambda wide: _CONTROL,
    "walker": lambda wide: (ID, Field("speed", F32, "cm/s")),
    "vehicle_lights": lambda wide: (ID, Field("flags", U32)),
    "scene_lights": lambda wide: _SCENE_LIGHT,
    "velocity": _velocity,
    "bounding_boxes": _box,
    "traffic_light_times": lambda wide: (ID, *_numbers("green yellow red", "s")),
    "trigger_volumes": _box,
    "bones": _bones,
    "wheels": lambda wide: (ID, Field("wheels", Sequence(_wheels()))),
    "bikers": lambda wide: (ID, Field("speed", F32, "cm/s"), Field("engine_rotation", F32)),
    "doors": lambda wide: (ID, Field("door", U8), Field("open", BOOL)),
    "weather": lambda wide: _WEATHER,
}

_F64, _U64 = Scalar("float64"), Scalar("uint64")
#: Fields of packets with one record and no count.
_SINGLE: dict[str, Fields] = {
    "frames": (Field("frame", _U64), Field("duration", _F64, "s"), Field("elapsed", _F64, "s")),
    "platform_time": (Field("seconds", _F64, "s"),),
    "frame_counter": (Field("counter", _U64),),
    "visual_time": (Field("seconds", _F64, "s"),),
}


def _many(topic: str, fields: Fields) -> Layout:
    return Layout(Sequence(Struct(fields), 2), topic)


@cache
def layout(topic: str, wide: bool) -> Layout:
    """Return the Layout of the packets of a topic; *wide*: vectors of float64. Unknown topics are RAW."""
    if topic in _SINGLE:
        return Layout(Struct(_SINGLE[topic]), topic)
    return _many(topic, _RECORDS[topic](wide)) if topic in _RECORDS else RAW


@cache
def width(topic: str, wide: bool) -> int:
    """Return the bytes of a record if a packet is a count and records of fixed size, else 0."""
    if topic not in _RECORDS:
        return 0
    node: Node = layout(topic, wide).record
    return measure(node).size or 0
