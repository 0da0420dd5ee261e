"""Definitions of the message types in the samples, with concatenated texts and checksums.

Only what counts for the md5 is written down; comments of the original files are left out.
"""

from __future__ import annotations

import functools
import hashlib
import re

_HEADER = "Header header\n"
_COVARIANCE = "float64[36] covariance\n"

TYPES: dict[str, str] = {
    "std_msgs/Header": "uint32 seq\ntime stamp\nstring frame_id\n",
    "std_msgs/String": "string data\n",
    "std_msgs/Int32": "int32 data\n",
    "geometry_msgs/Vector3": "float64 x\nfloat64 y\nfloat64 z\n",
    "geometry_msgs/Point": "float64 x\nfloat64 y\nfloat64 z\n",
    "geometry_msgs/PointStamped": _HEADER + "Point point\n",
    "geometry_msgs/Quaternion": "float64 x\nfloat64 y\nfloat64 z\nfloat64 w\n",
    "geometry_msgs/Pose": "Point position\nQuaternion orientation\n",
    "geometry_msgs/PoseWithCovariance": "Pose pose\n" + _COVARIANCE,
    "geometry_msgs/Twist": "Vector3 linear\nVector3 angular\n",
    "geometry_msgs/TwistStamped": _HEADER + "Twist twist\n",
    "geometry_msgs/TwistWithCovariance": "Twist twist\n" + _COVARIANCE,
    "geometry_msgs/Transform": "Vector3 translation\nQuaternion rotation\n",
    "geometry_msgs/TransformStamped": _HEADER + "string child_frame_id\nTransform transform\n",
    "nav_msgs/Odometry": _HEADER
    + "string child_frame_id\ngeometry_msgs/PoseWithCovariance pose\ngeometry_msgs/TwistWithCovariance twist\n",
    "nav_msgs/MapMetaData": "time map_load_time\nfloat32 resolution\nuint32 width\nuint32 height\n"
    "geometry_msgs/Pose origin\n",
    "nav_msgs/OccupancyGrid": _HEADER + "MapMetaData info\nint8[] data\n",
    "rosgraph_msgs/Log": "byte DEBUG=1\nbyte INFO=2\nbyte WARN=4\nbyte ERROR=8\nbyte FATAL=16\n"
    + _HEADER
    + "byte level\nstring name\nstring msg\nstring file\nstring function\nuint32 line\nstring[] topics\n",
    "sensor_msgs/CompressedImage": _HEADER + "string format\nuint8[] data\n",
    "sensor_msgs/Imu": _HEADER
    + "geometry_msgs/Quaternion orientation\nfloat64[9] orientation_covariance\n"
    + "geometry_msgs/Vector3 angular_velocity\nfloat64[9] angular_velocity_covariance\n"
    + "geometry_msgs/Vector3 linear_acceleration\nfloat64[9] linear_acceleration_covariance\n",
    "sensor_msgs/JointState": _HEADER
    + "string[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort\n",
    "sensor_msgs/LaserScan": _HEADER
    + "float32 angle_min\nfloat32 angle_max\nfloat32 angle_increment\nfloat32 time_increment\n"
    + "float32 scan_time\nfloat32 range_min\nfloat32 range_max\nfloat32[] ranges\nfloat32[] intensities\n",
    "sensor_msgs/NavSatStatus": "int8 STATUS_NO_FIX = -1\nint8 STATUS_FIX = 0\nint8 STATUS_SBAS_FIX = 1\n"
    "int8 STATUS_GBAS_FIX = 2\nint8 status\nuint16 SERVICE_GPS = 1\nuint16 SERVICE_GLONASS = 2\n"
    "uint16 SERVICE_COMPASS = 4\nuint16 SERVICE_GALILEO = 8\nuint16 service\n",
    "sensor_msgs/NavSatFix": _HEADER
    + "NavSatStatus status\nfloat64 latitude\nfloat64 longitude\nfloat64 altitude\n"
    + "float64[9] position_covariance\nuint8 COVARIANCE_TYPE_UNKNOWN = 0\n"
    + "uint8 COVARIANCE_TYPE_APPROXIMATED = 1\nuint8 COVARIANCE_TYPE_DIAGONAL_KNOWN = 2\n"
    + "uint8 COVARIANCE_TYPE_KNOWN = 3\nuint8 position_covariance_type\n",
    "sensor_msgs/PointField": "uint8 INT8 = 1\nuint8 UINT8 = 2\nuint8 INT16 = 3\nuint8 UINT16 = 4\n"
    "uint8 INT32 = 5\nuint8 UINT32 = 6\nuint8 FLOAT32 = 7\nuint8 FLOAT64 = 8\n"
    "string name\nuint32 offset\nuint8 datatype\nuint32 count\n",
    "sensor_msgs/PointCloud2": _HEADER
    + "uint32 height\nuint32 width\nPointField[] fields\nbool is_bigendian\nuint32 point_step\n"
    + "uint32 row_step\nuint8[] data\nbool is_dense\n",
    "tf2_msgs/TFMessage": "geometry_msgs/TransformStamped[] transforms\n",
}
_BUILTIN = re.compile(r"(bool|byte|char|u?int(8|16|32|64)|float(32|64)|string|time|duration)\Z")
_LINE = re.compile(r"(?P<base>[\w/]+)(?P<array>\[\d*\])?\s+(?P<name>\w+)\s*(=\s*(?P<value>.*))?\Z")


def _dependencies(kind: str) -> list[str]:
    """Return the message types that *kind* uses, directly and indirectly, each once, in depth-first order."""
    found: dict[str, None] = {}
    for line in TYPES[kind].splitlines():
        base = _full_name(line.split()[0].partition("[")[0], kind)
        if base:
            found.setdefault(base)
            found.update(dict.fromkeys(_dependencies(base)))
    return list(found)


def _full_name(base: str, inside: str) -> str:
    """Return the full name of a field's type; empty for a built-in one."""
    if _BUILTIN.match(base):
        return ""
    if base == "Header":
        return "std_msgs/Header"
    return base if "/" in base else f"{inside.partition('/')[0]}/{base}"


@functools.cache
def definition(kind: str) -> str:
    """Return the concatenated text of a type, as publishers send it."""
    parts = [TYPES[kind]] + [f"MSG: {name}\n{TYPES[name]}" for name in _dependencies(kind)]
    return ("\n" + "=" * 80 + "\n").join(parts)


@functools.cache
def md5(kind: str) -> str:
    """Return the checksum of a type: constants first, fields of message types by their checksum."""
    constants, members = [], []
    for line in TYPES[kind].splitlines():
        m = _LINE.match(line)
        if m is None:
            raise ValueError(f"{kind}: {line!r}")
        base = _full_name(m["base"], kind)
        if m["value"] is not None:
            constants.append(f"{m['base']} {m['name']}={m['value']}")
        elif base:
            members.append(f"{md5(base)} {m['name']}")
        else:
            members.append(f"{m['base']}{m['array'] or ''} {m['name']}")
    return hashlib.md5("\n".join(constants + members).encode()).hexdigest()
