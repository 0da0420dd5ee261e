"""Trajectories of a car: a table of poses, and a trace of OSI."""

from __future__ import annotations

import io

import logreel
from logreel.schemas import osi

#: Two poses of a car, a second apart.
POSES = b"time,id,type,x,y,z,roll,pitch,yaw\n0,7,car,0,0,0,0,0,0\n1,7,car,2,0,0,0,0,0.5\n"


def osi_trace() -> bytes:
    """Return a trace with one frame, which has one car."""
    base = {
        "position": {"x": 1.0, "y": 2.0, "z": 0.5},
        "orientation": {"roll": 0.0, "pitch": 0.0, "yaw": 0.5},
    }
    truth = {
        "timestamp": {"seconds": 0, "nanos": 0},
        "moving_object": [{"id": {"value": 7}, "base": base, "type": "VEHICLE"}],
        "map_reference": "Town03",
    }
    out = io.BytesIO()
    with logreel.create(out, format="mcap") as writer:
        channel = writer.add_channel(
            "gt", logreel.Schema(osi.GROUND_TRUTH, "protobuf", "", osi.descriptor_set())
        )
        writer.write(channel, 0, osi.template("GroundTruth", truth).data)
    return out.getvalue()
