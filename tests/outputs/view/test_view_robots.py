"""Robots of descriptions in logs: their links, joints and meshes, and what a hostile description cannot do."""

from __future__ import annotations

import gc
import math
import struct
from collections.abc import Iterator
from pathlib import Path
from weakref import ref

import numpy as np
import pytest

import logreel
from logreel.errors import UnsupportedError
from logreel.log.scan import Parameter
from logreel.meaning import meshes as mesh_files
from logreel.meaning.frames import NOWHERE, FramePlace, FramesAt
from logreel.meaning.meshes import MeshFolder, read_stl
from logreel.meaning.robots import (
    drawn,
    joint_positions,
    read_urdf,
    robot_of,
    robot_sources,
)
from logreel.meaning.scenes import SceneItem, scene_at, scene_sources
from logreel.outputs.view import Viewer
from outputs.view.test_view_scene import matrix
from support.oracles.ros1 import channel
from support.samples.rosbag.cart import MODEL, cart, head_stl

S = 10**9
CORNERS = np.array([[0, 0, 0], [0.5, 0, 0], [0, 0.5, 0], [0, 0, 0.5]])
FACES = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]


@pytest.fixture
def log() -> Iterator[logreel.Log]:
    with logreel.open(cart()) as opened:
        yield opened


@pytest.fixture
def meshes(tmp_path: Path) -> Path:
    folder = tmp_path / "share"
    (folder / "cart" / "meshes").mkdir(parents=True)
    (folder / "cart" / "meshes" / "head.stl").write_bytes(head_stl())
    return folder


def robot(log: logreel.Log, at: float, folder: Path | None = None) -> SceneItem:
    given = None if folder is None else MeshFolder(folder)
    (item,) = scene_at(log, log.start + round(at * S), "map", ["/robot_description"], meshes=given).items
    return item


def spin(axis: int, angle: float) -> np.ndarray:
    """Return the 4 × 4 matrix of a rotation about an axis."""
    out, (a, b) = np.eye(4), [(1, 2), (2, 0), (0, 1)][axis]
    out[[a, b], [a, b]] = math.cos(angle)
    out[b, a], out[a, b] = math.sin(angle), -math.sin(angle)
    return out


def shift(x: float, y: float, z: float) -> np.ndarray:
    out = np.eye(4)
    out[:3, 3] = x, y, z
    return out


@pytest.mark.parametrize("t", [0.0, 1.0, 3.0])
def test_links_are_where_transforms_and_joints_put_them(log: logreel.Log, t: float) -> None:
    item = robot(log, t)
    assert item.kind == "robot"
    base = shift(t, 0, 0)
    wheel = base @ shift(0.4, -0.5, 0.2) @ spin(0, -1.5707963) @ spin(2, math.pi * t / 4)
    mast = base @ shift(0, 0, 0.6) @ shift(0, 0, 0.1 * t)
    want = [base @ shift(0, 0, 0.4), wheel, mast]
    for numbers, expected in zip(item.arrays["solid"], want, strict=True):
        np.testing.assert_allclose(matrix(numbers[3:7], numbers[:3]), expected, atol=1e-5)
    assert item.arrays["shape"].tolist() == [1, 3, 2]
    np.testing.assert_allclose(
        item.arrays["solid"][:, 7:], [(1.2, 0.8, 0.4), (0.4, 0.4, 0.1), (0.3, 0.3, 0.3)]
    )
    assert item.arrays["solid_colour"][0].tolist() == [230, 26, 26, 255]
    assert item.note == "Meshes (head.stl) are not drawn: name their folder with --meshes."


def test_meshes_have_their_place_and_scale(log: logreel.Log, meshes: Path) -> None:
    item = robot(log, 2, meshes)
    assert item.note == ""
    np.testing.assert_allclose(item.arrays["mesh"], [[2, 0, 1.3, 0, 0, 0, 1, 2, 2, 2, 0]], atol=1e-6)


def test_links_without_transforms_hang_on_their_parents_and_robots_without_any_are_at_the_origin() -> None:
    # Only topics that are named so describe a robot.
    assert not scene_sources(channel("std_msgs/String", {"data": MODEL}).log)
    plain = read_urdf(MODEL)
    places, unknown = plain.places(FramesAt({}), "", {}, NOWHERE)
    assert places["mast"].position.tolist() == [0, 0, 0.6]
    assert unknown == {"wheel_joint", "mast_joint"}
    elsewhere = FramesAt({"mast": ("map", FramePlace(np.array([7.0, 8, 9]), NOWHERE.rotation))})
    places, _ = plain.places(elsewhere, "map", {"wheel_joint": 0.0}, None)
    assert places.keys() == {"mast"}


def test_joints_that_follow_others_move_with_them() -> None:
    text = """<robot name="r"><link name="a"/><link name="b">
      <collision><geometry><box size="1 1 1"/></geometry></collision>
      <visual><geometry><mesh filename="x.dae"/></geometry></visual></link>
      <joint name="j" type="prismatic"><parent link="a"/><child link="b"/><axis xyz="0 2 0"/>
      <mimic joint="k" multiplier="-2" offset="0.5"/></joint></robot>"""
    found = read_urdf(text)
    places, unknown = found.places(FramesAt({}), "", {"k": 1.0}, NOWHERE)
    np.testing.assert_allclose(places["b"].position, (0, -1.5, 0))
    assert not unknown
    shown = drawn(found, places, None)
    # The shape for collisions stands for the mesh.
    np.testing.assert_allclose(shown.arrays["solid"][0], (0, -1.5, 0, 0, 0, 0, 1, 1, 1, 1))
    assert shown.missing == ["x.dae"]


def test_links_in_a_circle_end() -> None:
    joint = '<joint name="{0}" type="fixed"><parent link="{0}"/><child link="{1}"/></joint>'
    text = f'<robot name="r"><link name="a"/><link name="b"/>{joint.format("a", "b")}{joint.format("b", "a")}</robot>'
    assert read_urdf(text).places(FramesAt({}), "", {}, NOWHERE)[0] == {}


def test_states_of_joints_are_the_last_of_each() -> None:
    states = [
        {"name": ["a", "b"], "position": [1.0, 2.0]},
        {"name": ["c"], "position": [3.0]},
        {"name": ["a", "b"], "position": [4.0]},
    ]
    ch = channel("sensor_msgs/JointState", *states)
    assert joint_positions(ch.log, S) == {"a": 1, "b": 2, "c": 3}
    assert joint_positions(ch.log, 2 * S) == {"a": 4, "b": 2, "c": 3}
    assert joint_positions(ch.log, 90 * S) == {}


BOMB = '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><robot name="&b;"/>'
FILE = '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="r">&x;</robot>'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (BOMB, "document type"),
        (FILE, "document type"),
        ('<!DOCTYPE r SYSTEM "http://example.com/r.dtd"><robot/>', "document type"),
        ("<robot name='r'>" + "<a>" * 100 + "</a>" * 100 + "</robot>", "too deep"),
        ("<robot>" + "<link/>" * 60_000 + "</robot>", "too large"),
        ("<robot", "no XML"),
        ("<other/>", "no URDF"),
        ("", "no XML"),
        (f"<robot>{' ' * (9 << 20)}</robot>", "characters"),
    ],
    ids=["bomb", "file", "address", "deep", "many", "cut", "other", "empty", "long"],
)
def test_descriptions_that_are_hostile_or_damaged_are_refused(text: str, why: str) -> None:
    with pytest.raises(UnsupportedError, match=why):
        read_urdf(text)


def test_numbers_that_are_none_are_as_if_they_were_missing() -> None:
    text = """<robot name="r"><link name="a"><visual><origin xyz="1 nan 2" rpy="x"/>
      <geometry><box size="1e9 1 1"/></geometry></visual></link><joint name="j" type="revolute"/></robot>"""
    found = read_urdf(text)
    (shape,) = found.shapes
    assert shape.place.numbers() == [0, 0, 0, 0, 0, 0, 1]
    assert shape.size.tolist() == [0, 0, 0]
    assert not found.joints


def test_a_description_that_cannot_be_read_is_a_note(tmp_path: Path) -> None:
    path = tmp_path / "a.bag"
    with logreel.create(path) as writer:
        text = logreel.Schema("std_msgs/String", "ros1msg", "string data\n")
        writer.write(writer.add_channel("/ns/robot_description", text), S, {"data": BOMB})
    with logreel.open(path) as log:
        (item,) = scene_at(log, S).items
        assert item.place is None
        assert "document type" in item.note
        (source,) = robot_sources(log)
        with pytest.raises(UnsupportedError):
            robot_of(log, source, S)
    gone = ref(log)
    del log, source
    gc.collect()
    # What is kept of the error does not keep the log alive.
    assert gone() is None


def test_a_parameter_can_describe_a_robot() -> None:
    ch = channel("std_msgs/String", {"data": "x"})
    parameter = Parameter("/ns/robot_description", "string", MODEL)
    ch.log.scan.parameters = lambda: [parameter, Parameter("other", "string", MODEL)]
    (item,) = scene_at(ch.log, 0).items
    assert (item.topic, item.kind) == ("parameter /ns/robot_description", "robot")
    assert item.note.startswith("The log has no transform of its links: it is drawn at the origin.")
    assert len(item.arrays["solid"]) == 3


@pytest.mark.parametrize(
    "file",
    [
        "package://cart/meshes/head.stl",
        "file:///opt/robots/cart/meshes/head.stl",
        "meshes/../head.stl",
        "head.stl",
    ],
)
def test_meshes_are_found_by_the_end_of_their_path(meshes: Path, file: str) -> None:
    found = MeshFolder(meshes).path(file)
    want = None if ".." in file or file == "head.stl" else meshes / "cart" / "meshes" / "head.stl"
    assert found == want


def test_no_name_in_a_log_leads_out_of_the_folder(meshes: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.stl"
    secret.write_bytes(head_stl())
    (meshes / "link.stl").symlink_to(secret)
    (meshes / "out").symlink_to(tmp_path)
    folder = MeshFolder(meshes)
    names = [
        "../secret.stl",
        "package://../secret.stl",
        str(secret),
        f"file://{secret}",
        "link.stl",
        "out/secret.stl",
    ]
    names += ["package://a/%2e%2e/secret.stl", "..\\secret.stl", "", "/", "package://", "a\0.stl", "cart"]
    for name in names:
        assert folder.path(name) is None, name
        with pytest.raises(UnsupportedError):
            folder.triangles(name)


def text_stl() -> bytes:
    lines = ["solid head"]
    for face in FACES:
        lines += ["facet normal 0 0 0", " outer loop"]
        lines += ["  vertex " + " ".join(map(str, CORNERS[i])) for i in face]
        lines += [" endloop", "endfacet"]
    return "\n".join([*lines, "endsolid head"]).encode()


def test_meshes_in_binary_and_text_are_the_same() -> None:
    want = CORNERS[np.array(FACES).ravel()]
    np.testing.assert_allclose(read_stl(head_stl()), want)
    np.testing.assert_allclose(read_stl(text_stl()), want)
    # Some programs begin binary files with the word of text ones.
    np.testing.assert_allclose(read_stl(b"solid" + head_stl()[5:]), want)


def test_meshes_that_are_damaged_or_large_are_refused(monkeypatch: pytest.MonkeyPatch, meshes: Path) -> None:
    for data in (b"", b"no mesh at all", head_stl()[:100], b"x" * 80 + struct.pack("<I", 1 << 31)):
        with pytest.raises(UnsupportedError, match="no STL"):
            read_stl(data)
    with pytest.raises(UnsupportedError, match="no STL"):
        read_stl(b"solid a\nvertex 1 2 three")
    broken = bytearray(head_stl())
    broken[84 + 12 : 84 + 16] = struct.pack("<f", math.nan)
    assert len(read_stl(bytes(broken))) == 9
    monkeypatch.setattr(mesh_files, "TRIANGLES", 3)
    for data in (head_stl(), text_stl()):
        with pytest.raises(UnsupportedError, match="more than 3 triangles"):
            read_stl(data)
    monkeypatch.setattr(mesh_files, "MESH_BYTES", 100)
    with pytest.raises(UnsupportedError, match="MB"):
        MeshFolder(meshes).triangles("package://cart/meshes/head.stl")


def test_a_folder_of_meshes_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(logreel.UsageError, match="no folder of meshes"):
        Viewer([cart()], meshes=str(tmp_path / "nothing"))
