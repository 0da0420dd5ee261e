"""Files of meshes: Collada and OBJ give the triangles that a naive reader gives, and none can do harm."""

from __future__ import annotations

import io
import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from logreel.errors import UnsupportedError
from logreel.meaning import meshes
from logreel.meaning.meshes import MeshFolder, read_collada, read_obj

#: A house: a square floor, four walls and a roof of two squares, as polygons of 3, 4 and 5 corners.
POINTS = [
    (0, 0, 0),
    (2, 0, 0),
    (2, 1, 0),
    (0, 1, 0),
    (0, 0, 1),
    (2, 0, 1),
    (2, 1, 1),
    (0, 1, 1),
    (0, 0.5, 1.5),
    (2, 0.5, 1.5),
]
FACES = [
    (0, 3, 2, 1),
    (0, 1, 5, 4),
    (2, 3, 7, 6),
    (0, 4, 8, 7, 3),
    (1, 2, 6, 9, 5),
    (4, 5, 9, 8),
    (6, 7, 8, 9),
]


def fans() -> np.ndarray:
    """Return the house as triangles, face by face."""
    return np.array([
        POINTS[corner]
        for face in FACES
        for second, third in pairwise(face[1:])
        for corner in (face[0], second, third)
    ], float)  # fmt: skip


def polygons(style: str) -> str:
    """Return the faces as elements of Collada; each corner has the number of a normal behind that of its point."""
    inputs = (
        '<input semantic="VERTEX" source="#v" offset="0"/><input semantic="NORMAL" source="#n" offset="1"/>'
    )
    if style == "triangles":
        corners = [c for face in FACES for b, d in pairwise(face[1:]) for c in (face[0], b, d)]
        numbers = " ".join(f"{corner} 0" for corner in corners)
        return f"<triangles count='{len(corners) // 3}'>{inputs}<p>{numbers}</p></triangles>"
    lists = [" ".join(f"{corner} 0" for corner in face) for face in FACES]
    if style == "polygons":
        return f"<polygons>{inputs}{''.join(f'<p>{part}</p>' for part in lists)}</polygons>"
    counts = " ".join(str(len(face)) for face in FACES)
    return f"<polylist>{inputs}<vcount>{counts}</vcount><p>{' '.join(lists)}</p></polylist>"


NODES = """<node><translate>1 2 3</translate><rotate>0 0 1 90</rotate><scale>2 2 2</scale>
  <node><matrix>1 0 0 10  0 1 0 0  0 0 1 0  0 0 0 1</matrix><instance_geometry url="#g"/></node></node>
  <node><instance_node url="#again"/></node>"""


#: What an accessor says of its numbers.
AXES = "".join(f'<param name="{name}" type="float"/>' for name in "XYZ")


def collada(
    style: str = "polylist", nodes: str = NODES, head: str = "", unit: str = "0.5", more: str = "9"
) -> bytes:
    # Numbers that others do not know stand behind the three of a point.
    values = " ".join(f"{x} {y} {z} {more}" for x, y, z in POINTS)
    scene = (
        f'<library_visual_scenes><visual_scene id="s">{nodes}</visual_scene></library_visual_scenes>'
        if nodes
        else ""
    )
    shown = '<scene><instance_visual_scene url="#s"/></scene>' if nodes else ""
    return f"""<?xml version="1.0"?>{head}<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit meter="{unit}"/><up_axis>Z_UP</up_axis></asset>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="a" count="{len(POINTS) * (3 + bool(more))}">{values}</float_array>
<technique_common><accessor source="#a" count="10" stride="{3 + bool(more)}">{AXES}</accessor></technique_common>
</source><source id="n"><float_array id="b" count="3">0 0 1</float_array>
<technique_common><accessor source="#b" count="1" stride="3">{AXES}</accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>{polygons(style)}
</mesh></geometry></library_geometries>
<library_nodes><node id="again"><instance_geometry url="#g"/></node></library_nodes>{scene}{shown}</COLLADA>""".encode()


@pytest.mark.parametrize("style", ["triangles", "polylist", "polygons"])
def test_collada_is_placed_by_its_scene(style: str) -> None:
    house = fans()
    # Each step in turn, innermost first: moved by 10, doubled, turned by a quarter, moved; all of it in half metres.
    moved = (house + np.array([10, 0, 0])) * 2
    moved = np.stack([-moved[:, 1], moved[:, 0], moved[:, 2]], axis=1) + np.array([1, 2, 3])
    found = read_collada(collada(style))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.concatenate([moved, house]) / 2, atol=1e-5)


def test_collada_without_a_scene_is_all_of_its_shapes() -> None:
    np.testing.assert_allclose(read_collada(collada(nodes="", unit="1")), fans(), atol=1e-6)


@pytest.mark.parametrize("index", ["{}", "{}/1", "{}//2", "{}/1/2", "-{}"])
def test_obj_counts_points_from_one_or_from_the_last(index: str) -> None:
    lines = [
        "# house",
        "mtllib no.mtl",
        *(f"v {x} {y} {z} 1 1 1" for x, y, z in POINTS),
        "vn 0 0 1",
        "usemtl red",
    ]
    for face in FACES:
        numbers = [len(POINTS) - corner if index[0] == "-" else corner + 1 for corner in face]
        lines.append("f " + " ".join(index.format(number) for number in numbers))
    np.testing.assert_allclose(read_obj("\n".join(lines).encode()), fans())


@pytest.mark.parametrize("style", ["triangles", "polylist"])
def test_meshes_are_those_of_a_reader_of_other_people(style: str) -> None:
    trimesh = pytest.importorskip("trimesh", reason="trimesh, which judges meshes, is not installed")
    pytest.importorskip("collada", reason="pycollada, which trimesh reads Collada with, is not installed")
    data = collada(style, unit="1", more="")
    scene = trimesh.load(io.BytesIO(data), file_type="dae", force="scene")
    due = np.concatenate([mesh.triangles for mesh in scene.dump()]).reshape(-1, 9).round(4)
    found = read_collada(data).reshape(-1, 9).round(4)
    np.testing.assert_allclose(sorted(found.tolist()), sorted(due.tolist()), atol=1e-3)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no XML"),
        (b"<a/>", "no Collada"),
        (collada(head="<!DOCTYPE c [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>"), "document type"),
        (collada(nodes="<node/>"), "no triangles"),
        (collada(nodes="<node><matrix>1 2</matrix></node>"), "2 numbers"),
        (collada().replace(b"9 5</p>", b"9 99</p>").replace(b"<p>0 0", b"<p>77 0"), "not there"),
        (collada().replace(b"<p>0 0", b"<p>-1 0"), "not there"),
        (collada().replace(b"<vcount>4", b"<vcount>400"), "more corners"),
        (collada().replace(b"<vcount>4", b"<vcount>four"), "damaged"),
        (collada(nodes="<node>" * 100 + "</node>" * 100), "too deep"),
        (collada(nodes='<node id="x"><instance_node url="#again"/></node>' * 10001), "too many nodes"),
        (
            collada().replace(b'<node id="again">', b'<node id="again"><instance_node url="#again"/>'),
            "too many nodes",
        ),
    ],
)
def test_collada_that_is_wrong_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(UnsupportedError, match=why):
        read_collada(data, "house.dae")


def test_many_triangles_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meshes, "TRIANGLES", 20)
    for data, read in ((collada(), read_collada), (b"v 0 0 0\n" + b"f 1 1 1\n" * 30, read_obj)):
        with pytest.raises(UnsupportedError, match="more than 20 triangles"):
            read(data)
    monkeypatch.setattr(meshes, "NUMBERS", 30)
    with pytest.raises(UnsupportedError, match="more than 30 numbers"):
        read_collada(collada())


def test_mutants_are_read_or_refused() -> None:
    dice = random.Random(7)
    obj = "\n".join(
        [*(f"v {x} {y} {z}" for x, y, z in POINTS), *(f"f {a + 1} {b + 1} {c + 1}" for a, b, c, *_ in FACES)]
    )
    for data, read in ((collada(), read_collada), (obj.encode(), read_obj)):
        for n in range(1500):
            mutant = bytearray(data[: dice.randrange(len(data))] if n % 5 == 0 else data)
            for _ in range(dice.randrange(1, 6) if mutant else 0):
                mutant[dice.randrange(len(mutant))] = dice.choice(b"09-.e <>/#x\0\xff")
            try:
                found = read(bytes(mutant), "mutant")
            except UnsupportedError:
                continue
            assert found.ndim == 2
            assert np.isfinite(found).all()


def test_the_folder_reads_by_the_end_of_the_name(tmp_path: Path) -> None:
    (tmp_path / "a.DAE").write_bytes(collada(nodes="", unit="1"))
    (tmp_path / "b.ply").write_bytes(b"ply")
    folder = MeshFolder(tmp_path)
    assert len(folder.triangles("package://robot/a.DAE")) == len(fans())
    assert (folder.has("a.DAE"), folder.has("b.ply"), folder.has("c.stl")) == (True, False, False)
    with pytest.raises(UnsupportedError, match="no STL, Collada or OBJ"):
        folder.triangles("b.ply")
