"""Standard messages compared with genuine ROS and with another library: checksums, texts, decoding."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

from logreel.layout import nodes
from logreel.layout.arrow import decode_variable
from logreel.schemas.ros1msg import define, layout, parse, standard
from support.oracles.ros1 import random_payload

PACKAGES = {
    "std_msgs": 44,
    "geometry_msgs": 29,
    "sensor_msgs": 27,
    "nav_msgs": 12,
    "tf": 1,
    "tf2_msgs": 9,
    "diagnostic_msgs": 3,
    "rosgraph_msgs": 3,
    "actionlib_msgs": 3,
    "trajectory_msgs": 4,
    "visualization_msgs": 10,
    "stereo_msgs": 1,
    "shape_msgs": 4,
    "roslib": 4,
    "velodyne_msgs": 2,
    "gps_common": 2,
    "turtlesim": 2,
    "dynamic_reconfigure": 10,
    "bond": 2,
    "map_msgs": 4,
    "move_base_msgs": 8,
    "roscpp": 1,
}

#: Hashes that programs in public repositories have for types that the oracles of these tests do not know.
KNOWN = {
    "roslib/Header": "2176decaecbce78abc3b96ef049fabed",
    "roslib/Log": "acffd30cd6b6de30f120938c17c593fb",
    "roslib/Clock": "a9c97c1d230cfc112e270351a944ee47",
    "velodyne_msgs/VelodyneScan": "50804fc9533a0e579e6322c04ae70566",
    "velodyne_msgs/VelodynePacket": "ae4f90a23256f44e82baa08dd45c3456",
    "gps_common/GPSFix": "3db3d0a7bc53054c67c528af84710b70",
    "gps_common/GPSStatus": "313baa8951fdd056c78bf61b1b07d249",
    "turtlesim/Pose": "863b248d5016ca62ea2e895ae5265cf9",
    "turtlesim/Color": "353891e354491c51aabe32df673fb446",
    "tf/tfMessage": "94810edda583a504dfda3829e70d7eec",
}
EARLIER = {
    "diagnostic_msgs/DiagnosticStatus": "67d15a62edb26e9d52b0f0efa3ef9da7",
    "diagnostic_msgs/DiagnosticArray": "3cfbeff055e708a24c3d946a5c8139cd",
    "visualization_msgs/Marker": "18326976df9d29249efc939e00342cde",
    "visualization_msgs/MarkerArray": "90da67007c26525f655c1c269094e39f",
    "visualization_msgs/InteractiveMarker": "311bd5f6cd6a20820ac0ba84315f4e22",
    "sensor_msgs/BatteryState": "476f837fa6771f6e16e3bf4ef96f8770",
}
#: Of 2008: hashes of today's kind never existed for them.
UNHASHED = {"roslib/Time"}

GENUINE = """
import importlib, json, pkgutil, sys
from pathlib import Path
found = {}
for name in json.loads(sys.argv[1]):
    try:
        module = importlib.import_module(name + ".msg")
    except ImportError:
        continue
    for cls in vars(module).values():
        if hasattr(cls, "_md5sum"):
            found[cls._type] = [cls._md5sum, cls._full_text]
print(json.dumps(found))
"""
HASHER = """
import json, sys
import genmsg.gentools, genmsg.msg_loader, genmsg.msgs
found = []
for name, sections in json.loads(sys.stdin.read()):
    context = genmsg.msg_loader.MsgContext.create_default()
    for section, text in sections[::-1]:
        spec = genmsg.msg_loader.load_msg_from_string(context, text, section)
    paths = {}
    for section, _ in sections:
        s = context.get_registered(section)
        deps = []
        for t in s.types:
            bare = genmsg.msgs.bare_msg_type(t)
            if not genmsg.msgs.is_builtin(bare):
                deps.append(bare)
        context.set_depends(section, deps)
    found.append([genmsg.gentools.compute_md5(context, spec), spec.types])
print(json.dumps(found))
"""


def genuine(code: str, *args: str, stdin: str = "") -> object:
    """Return checksums and texts of genuine ROS in the system's Python; skip the test without it."""
    python = shutil.which("python3", path="/usr/bin")
    if python is None:
        pytest.skip("no Python of the system")
    run = subprocess.run(
        [python, "-c", code, *args], input=stdin, capture_output=True, text=True, timeout=120
    )
    if "ModuleNotFoundError" in run.stderr:
        pytest.skip(f"no genuine ROS: {run.stderr.strip().splitlines()[-1]}")
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


typesys = pytest.importorskip("rosbags.typesys")
STORE = typesys.get_typestore(typesys.Stores.ROS1_NOETIC)
#: Their name for each type that both know.
COMMON = {name: name.replace("/", "/msg/") for name in standard().names()}
COMMON = {name: long for name, long in COMMON.items() if long in STORE.fielddefs}


def test_all_packages_are_there():
    count: dict[str, int] = {}
    for name in standard().names():
        count[name.split("/")[0]] = count.get(name.split("/")[0], 0) + 1
    # At least: earlier versions had types that were given up.
    assert {p: n for p, n in PACKAGES.items() if count.get(p, 0) < n} == {}


@pytest.mark.parametrize("name", standard().names())
def test_every_message_has_a_layout_and_a_text(name):
    for found in standard().versions(name):
        layout(found)
        again = parse(found.text, name)
        assert again.text == found.text
        assert again.md5 == found.md5
        assert "#" not in found.text


@pytest.mark.parametrize(("name", "md5"), [*KNOWN.items(), *EARLIER.items()])
def test_checksums_equal_published_ones(name, md5):
    assert standard().find(name, md5).md5 == md5


def test_every_hash_of_another_library():
    assert len(COMMON) > 130
    for name, long in COMMON.items():
        assert define(name).md5 == STORE.generate_msgdef(long, ros_version=1)[1], name


def test_every_hash_and_text_of_genuine_ros():
    found = genuine(GENUINE, json.dumps(list(PACKAGES)))
    if "std_msgs/Header" not in found:
        pytest.skip("no genuine ROS messages")
    for name, (md5, text) in found.items():
        theirs = parse(text, name)
        assert theirs.md5 == md5, name
        assert theirs.text == text, name
        assert define(name).md5 == md5, name
        assert list(theirs.messages) == list(define(name).messages), name
    assert not {*found} & {*UNHASHED}


EDGES = [
    [("p/T", "string A=  # not a comment \nint8   B =  3 # one\nint32[] x\nfloat64[3] y\n")],
    [("p/T", "bool A=True\nbyte B=-3\nchar C=255\n")],
    [
        ("p/T", "time t\nduration[2] d\nA[] a\nq/A[5] b\n"),
        ("p/A", "int8 X=1\nB b\n"),
        ("p/B", "\n# x\n"),
        ("q/A", ""),
    ],
    [
        ("p/T", "Header header\nHeader other\n"),
        ("std_msgs/Header", "uint32 seq\ntime stamp\nstring frame_id\n"),
    ],
    [("p/T", "string A=x=y#z\nstring s\r\n")],
    [("p/T", "string A=\n")],
]


def test_hashes_of_edge_cases_equal_genuine_ones():
    found = genuine(HASHER, stdin=json.dumps([["p/T", sections] for sections in EDGES]))
    for sections, (md5, types) in zip(EDGES, found, strict=True):
        rule = "=" * 80
        text = sections[0][1] + "".join(f"\n{rule}\nMSG: {name}\n{text}" for name, text in sections[1:])
        ours = parse(text, "p/T")
        assert ours.md5 == md5, sections
        assert len(ours.root.fields) == len(types)


# Bytes.

SEEDS = range(5)


@pytest.mark.parametrize("name", COMMON)
def test_messages_decode_like_another_library_does(name):
    found = layout(define(name))
    payloads = [random_payload(found.root, random.Random(seed)) for seed in SEEDS]
    decode = found.decoder()
    for payload in payloads:
        theirs = plain(STORE.deserialize_ros1(payload, COMMON[name]))
        assert equal(decode(memoryview(payload)), theirs), name
    source = np.frombuffer(b"".join(payloads), np.uint8)
    stop = np.cumsum([len(p) for p in payloads], dtype=np.int64)
    got = decode_variable(found, source, stop - [len(p) for p in payloads], stop)
    assert not got.bad
    assert not len(got.leftover)
    assert len(got.arrays) == len(list(found.record.visible()))


def plain(value):
    if is_dataclass(value):
        # Constants are members there.
        hidden = {"__msgtype__", *(name for name, _, _ in STORE.fielddefs[value.__msgtype__][0])}
        if {f.name for f in fields(value)} - {"__msgtype__"} == {"sec", "nanosec"}:
            return value.sec * 10**9 + value.nanosec
        return {f.name: plain(getattr(value, f.name)) for f in fields(value) if f.name not in hidden}
    if isinstance(value, list | np.ndarray):
        return [plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def equal(ours, theirs) -> bool:
    if isinstance(ours, dict):
        # The other library gives an empty message one byte of its own making.
        theirs = {k: v for k, v in theirs.items() if k != "structure_needs_at_least_one_member"}
        return list(ours) == list(theirs) and all(equal(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, bytes | list):
        return len(ours) == len(theirs) and all(map(equal, ours, theirs))
    return ours == theirs


def test_a_message_without_fields_takes_no_bytes():
    found = layout(define("std_msgs/Empty"))
    assert found.size == 0
    assert found.decoder()(memoryview(b"")) == {}
    assert found.root == nodes.Struct(())
