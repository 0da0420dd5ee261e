"""Decoded messages of bags, compared with rosbags; the oldest bag; definitions given by the user."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.rosbag1 import Reader
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

import logreel
from logreel.cli import main


def same(theirs: Any, ours: Any) -> bool:
    """Return whether values are equal bit by bit, whatever their Python types."""
    if type(theirs).__name__.endswith(("builtin_interfaces__msg__Time", "builtin_interfaces__msg__Duration")):
        return bool(theirs.sec * 10**9 + theirs.nanosec == ours)
    if dataclasses.is_dataclass(theirs):
        return all(same(getattr(theirs, name), value) for name, value in ours.items())
    if isinstance(theirs, np.ndarray):
        raw = ours if isinstance(ours, bytes) else np.array(ours, theirs.dtype).tobytes()
        return theirs.tobytes() == raw
    if isinstance(theirs, list):
        return len(theirs) == len(ours) and all(map(same, theirs, ours))
    if isinstance(theirs, float):
        return struct.pack("<d", theirs) == struct.pack("<d", ours)
    return bool(theirs == ours)


def compared(path: Path) -> int:
    """Return the number of messages of a bag that rosbags decodes; each must equal ours."""
    store, count = get_typestore(Stores.ROS1_NOETIC), 0
    # rosbags sorts by time; of messages of one moment the order is its own.
    ours = {(m.channel.topic.split("[")[0], m.time, bytes(m.data)): m for m in logreel.open(path).messages()}
    with Reader(path) as peer:
        for c in peer.connections:
            found = get_types_from_msg(c.msgdef.data, c.msgtype) if c.msgdef.data else {}
            store.register({name: one for name, one in found.items() if name not in store.types})
        for c, time, raw in peer.messages():
            if c.msgtype in store.types:
                message = ours[c.topic, time, bytes(raw)]
                assert same(store.deserialize_ros1(raw, c.msgtype), message.decode()), c.topic
                count += 1
    return count


#: rosbags stops at the index of C Turtle and at bags that were cut, and knows no type without definition.
PEER_REFUSES = {
    "v20_real_cturtle_2010.bag",
    "v20_dmg_cut_mid_chunk.bag",
    "v20_dmg_tail_cut.bag",
    "v20_dmg_unterminated_chunk.bag",
    "v20_invalid_truncated_header.bag",
}


def test_every_message_equals_rosbags(shared: Path) -> None:
    paths = sorted((shared / "data" / "rosbag").glob("v20_*.bag"))
    assert sum(compared(path) for path in paths if path.name not in PEER_REFUSES) > 30_000


def test_all_messages_of_the_oldest_bag_are_decoded(shared: Path) -> None:
    log = logreel.open(shared / "data" / "rosbag" / "v11_real_ekf_test_2008.bag")
    imu = log["imu_data"].to_arrow()
    assert imu.num_rows == 4583
    assert log.problems == ()
    rotation = next(f for f in log["imu_data"].fields if f.endswith(".w")).rsplit(".", 1)[0]
    norm = sum(log["imu_data"][f"{rotation}.{axis}"] ** 2 for axis in "xyzw")
    assert np.allclose(norm, 1, atol=1e-6)


def test_definitions_of_the_user_decode_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A bag of version 1.1 has no definitions; those in the folder of a package are used."""
    path, package = tmp_path / "old.bag", tmp_path / "my_msgs" / "msg"
    payload = struct.pack("<Ii", 5, -3)
    record = b"/dial\n*\nmy_msgs/Dial\n" + struct.pack("<III", 1_230_000_000, 0, len(payload)) + payload
    path.write_bytes(b"#ROSRECORD V1.1\n" + record * 3)
    assert main(["cat", str(path), "--format", "ndjson"]) == 0
    assert "BQAAAP3///8=" in capsys.readouterr().out
    package.mkdir(parents=True)
    (package / "Dial.msg").write_text("uint32 ticks\nint32 turn\n")
    assert main(["cat", str(path), "--format", "ndjson", "--msgdef", str(tmp_path)]) == 0
    assert '"data":{"ticks":5,"turn":-3}' in capsys.readouterr().out.replace(" ", "")
    log = logreel.open(path, definitions=[tmp_path])
    assert log["/dial"]["turn"].tolist() == [-3] * 3
