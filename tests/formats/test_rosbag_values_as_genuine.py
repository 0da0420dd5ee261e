"""Values of all messages of the samples of versions 1.2 and 2.0, compared bit by bit with genuine rosbag."""

from __future__ import annotations

import functools
import pickle
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

import logreel
from conftest import SHARED
from support.builders import arrows

FOLDER = SHARED / "data" / "rosbag"
_SYSTEM = "/usr/bin/python3"
#: Genuine rosbag makes a class of each definition; what its instances hold is written as tuples.
_SCRIPT = """
import pickle, struct, sys
import genpy, rosbag

def plain(value):
    if isinstance(value, genpy.rostime.TVal):
        return value.secs * 10**9 + value.nsecs
    if isinstance(value, genpy.Message):
        return tuple(plain(getattr(value, name)) for name in value.__slots__)
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, (list, tuple)):
        return tuple(map(plain, value))
    return value

rows = []
bag = rosbag.Bag(sys.argv[1], allow_unindexed=True)
for topic, (_, data, _, _, kind), time in bag.read_messages(raw=True):
    rows.append((topic, time.to_nsec(), bytes(data), plain(kind().deserialize(data))))
sys.stdout.buffer.write(pickle.dumps(rows, 4))
"""
#: Genuine rosbag wants an index, and certain flags of LZ4 frames.
REFUSED = {
    "v20_dmg_cut_mid_chunk",
    "v20_dmg_tail_cut",
    "v20_dmg_unterminated_chunk",
    "v20_invalid_truncated_header",
    "v20_ternaris_lz4",
}
COUNTS = {
    "syn_v12_unidx_pertopic": 20,
    "syn_v12_unidx_pertype": 20,
    "v12_real_laser_scan_2010": 123,
    "v20_empty_msgdef_zero_data": 14,
    "v20_multi_connections": 6,
    "v20_no_messages": 0,
    "v20_real_cturtle_2010": 54,
    "v20_real_gap_before_index": 2725,
    "v20_real_turtlesim": 8647,
    "v20_real_two_chunks_2011": 1706,
    "v20_roscomm_test": 11,
    "v20_turtlesim_bz2": 8647,
    "v20_turtlesim_lz4": 8647,
    "v20_unsorted_chunks": 3,
}


@functools.cache
def _genuine() -> bool:
    try:
        return not subprocess.run([_SYSTEM, "-c", "import genpy, rosbag"], capture_output=True).returncode
    except OSError:
        return False


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(map(_plain, value.values()))
    if isinstance(value, float):
        return struct.pack("<d", value)
    return tuple(map(_plain, value)) if isinstance(value, list) else value


def _unindexed(path: Path, folder: Path) -> Path:
    """Return a bag without file header and index of version 1.2, with which genuine rosbag fails since 2018."""
    data = path.read_bytes()
    at = data.find(b"index_pos=", 0, 60)
    if not data.startswith(b"#ROSRECORD") or at < 0:
        return path
    (end,) = struct.unpack_from("<Q", data, at + 10)
    made = folder / path.name
    made.write_bytes(data[:16] + data[4120:end])
    return made


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_every_value_equals_genuine_rosbag(name: str, shared: Path, tmp_path: Path) -> None:
    if not _genuine():
        pytest.skip("rosbag of ROS is not installed (Debian: python3-rosbag)")
    path = shared / "data" / "rosbag" / f"{name}.bag"
    done = subprocess.run(
        [_SYSTEM, "-c", _SCRIPT, str(_unindexed(path, tmp_path))], capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr.decode()[-500:]
    log = logreel.open(path)
    ours = {(m.channel.topic, m.time, bytes(m.data)): m for m in log.messages()}
    theirs = pickle.loads(done.stdout)  # noqa: S301
    assert len(theirs) == log.message_count == COUNTS[name]
    for topic, time, data, values in theirs:
        found = ours[topic, time, data]
        # Genuine rosbag takes an empty definition for that of a message without fields.
        want = values if found.channel.schema.text else (data,)
        assert _plain(found.decode()) == want, (topic, time)
    for ch in log.channels.values():
        table = ch.to_arrow(explode=False).remove_column(0)
        decoded = [_plain(m.decode()) for m in log.messages([ch.topic], order="file")]
        columns = [arrows.plain(column) for column in table.columns]
        assert [_plain(list(row)) for row in zip(*columns, strict=True)] == (decoded if columns else [])


def test_every_sample_is_compared(shared: Path) -> None:
    samples = {p.stem for p in FOLDER.glob("*v12_*.bag")} | {p.stem for p in FOLDER.glob("v20_*.bag")}
    assert samples == set(COUNTS) | REFUSED
