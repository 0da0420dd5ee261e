"""Parts of ROS messages for tests, as dicts that ``ros1.encoded`` and ``ros1.channel`` take."""

from __future__ import annotations

import struct


def header(frame: str = "map", stamp: int = 0) -> dict:
    return {"seq": 1, "stamp": stamp, "frame_id": frame}


def xyz(x: float, y: float = 0, z: float = 0) -> dict:
    return {"x": x, "y": y, "z": z}


def xyzw(w: float) -> dict:
    return {"x": 0, "y": 0, "z": 0, "w": w}


def pose(x: float) -> dict:
    return {"position": xyz(x, 2, 3), "orientation": xyzw(x)}


def cloud(fields, data, *, width, height=1, step, row_step=None, big=0):
    names = ("name", "offset", "datatype", "count")
    return {
        "header": header("lidar"),
        "height": height,
        "width": width,
        "fields": [dict(zip(names, f, strict=True)) for f in fields],
        "is_bigendian": big,
        "point_step": step,
        "row_step": step * width if row_step is None else row_step,
        "data": data,
    }


XYZI = [("x", 0, 7, 1), ("y", 4, 7, 1), ("z", 8, 7, 1), ("i", 12, 4, 1)]


def points(*rows, order="<"):
    return b"".join(struct.pack(order + "fffHxx", *row) for row in rows)
