"""``logreel tf``: the tree of frames, lookups, and the tree as URDF, JSON and graph."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import logreel
from support.builders.frames import SECOND, START, TREE, bag, robot
from support.harness.cli_runner import Run
from support.oracles.frames import Oracle, Sent, matrix


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bag(tmp_path_factory.mktemp("tf") / "robot.bag", robot())


def test_tree_with_coverage(run: Run, path: Path) -> None:
    lines = run("tf", path).out.splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["frame", "map"]
    assert lines[2].startswith("└─ odom ")
    assert lines[-2].startswith("      │     └─ camera  static ") or "camera" in lines[-2]
    assert "always" in lines[-1]
    assert "/tf_static" in lines[-1]
    assert len(lines) == 2 + len(TREE)


def test_tree_from_a_chosen_frame(run: Run, path: Path) -> None:
    out = run("tf", path, "--fixed", "base_link").out
    assert "moving (parent)" in out
    assert out.splitlines()[1].split() == ["base_link"]


def test_lookup_at_several_times_as_the_plain_oracle(run: Run, path: Path) -> None:
    done = run("tf", path, "--from", "camera", "--to", "map", "--at", "+1s", "--at", "+2s", "--json")
    found = json.loads(done.out)
    assert found["chain"] == ["camera", "hand", "arm", "base_link", "odom", "map"]
    oracle, log = Oracle(robot()), logreel.open(path)
    for n, one in enumerate(found["transforms"]):
        assert one["time_ns"] == log.start + (n + 1) * SECOND
        wanted = oracle.lookup("map", "camera", one["time_ns"])
        np.testing.assert_allclose(matrix(one["translation"], one["rotation_xyzw"]), wanted, atol=1e-9)
    text = run("tf", path, "--from", "camera", "--to", "map", "--at", "+1s").out
    assert "camera → hand → arm → base_link → odom → map" in text
    assert f"{found['transforms'][0]['translation'][0]:.4f}" in text


def test_lookup_without_time_is_the_latest(run: Run, path: Path) -> None:
    found = json.loads(run("tf", path, "--from", "arm", "--to", "odom", "--json").out)
    assert found["transforms"][0]["time_ns"] == logreel.transforms(path).latest_common_time("odom", "arm")


def test_regular_times_and_missing_transforms(run: Run, path: Path) -> None:
    done = run("tf", path, "--from", "arm", "--to", "map", "--every", "1s")
    assert done.code == 1
    assert "--missing nan" in done.err
    found = json.loads(
        run("tf", path, "--from", "arm", "--to", "map", "--every", "1s", "--missing", "nan", "--json").out
    )
    assert len(found["transforms"]) == 5
    assert found["transforms"][0]["translation"] is None
    assert found["transforms"][1]["translation"] is not None
    assert (
        "+1.000s" in run("tf", path, "--from", "arm", "--to", "map", "--every", "1s", "--missing", "hold").out
    )


def test_urdf_has_fixed_and_floating_joints(run: Run, path: Path, tmp_path: Path) -> None:
    out = tmp_path / "robot.urdf"
    assert run("tf", path, "-o", out, "--at", "+2s").code == 0
    root = ET.parse(out).getroot()
    assert {one.get("name") for one in root.iter("link")} == {"map", *(child for child, *_ in TREE)}
    kinds = {joint.find("child").get("link"): joint.get("type") for joint in root.iter("joint")}
    assert kinds == {child: "fixed" if static else "floating" for child, _, static, _ in TREE}
    oracle = Oracle(robot())
    start = logreel.open(path).start
    for joint in root.iter("joint"):
        xyz, rpy = (list(map(float, joint.find("origin").get(name).split())) for name in ("xyz", "rpy"))
        parent, child = joint.find("parent").get("link"), joint.find("child").get("link")
        wanted = oracle.lookup(parent, child, start + 2 * SECOND)
        np.testing.assert_allclose(np.array(rotation(*rpy)), np.array(wanted)[:3, :3], atol=1e-6)
        np.testing.assert_allclose(xyz, np.array(wanted)[:3, 3], atol=1e-6)
    assert run("tf", path, "-o", out).code == 1
    assert run("tf", path, "-o", out, "--force", "--fixed", "camera").code == 0
    tops = {j.find("parent").get("link") for j in ET.parse(out).getroot().iter("joint")}
    below = {j.find("child").get("link") for j in ET.parse(out).getroot().iter("joint")}
    assert tops - below == {"camera"}


def rotation(roll: float, pitch: float, yaw: float) -> np.ndarray:
    """Return the rotation matrix of URDF: about fixed x, then y, then z."""
    (cr, cp, cy), (sr, sp, sy) = (map(f, (roll, pitch, yaw)) for f in (math.cos, math.sin))
    x = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    y = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    z = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    return z @ y @ x


def test_json_and_graph_by_suffix(run: Run, path: Path, tmp_path: Path) -> None:
    assert run("tf", path, "-o", tmp_path / "tree.json").code == 0
    found = json.loads((tmp_path / "tree.json").read_text())
    assert found["roots"] == ["map"]
    assert {one["child"]: one["parent"] for one in found["links"]} == {
        child: parent for child, parent, *_ in TREE
    }
    assert len(found["joints"]) == len(TREE)
    assert run("tf", path, "-o", tmp_path / "tree.dot").code == 0
    text = (tmp_path / "tree.dot").read_text()
    assert text.startswith("digraph")
    assert all(f'"{parent}" -> "{child}"' in text for child, parent, *_ in TREE)


def test_what_is_wrong_with_the_tree_is_marked(run: Run, tmp_path: Path) -> None:
    turn = (0.0, 0.0, 0.0, 1.0)
    sent = [
        Sent(p, c, START + n * SECOND, (0, 0, 0), turn)
        for n in range(3)
        for p, c in (("a", "b"), ("x", "y\x1b"))
    ]
    some = bag(tmp_path / "two.bag", sent)
    out = run("tf", some).out
    assert "! 2 trees without a link between them: below a, x" in out
    assert "\x1b" not in out
    done = run("tf", some, "--format", "urdf")
    assert done.code == 2
    assert "--fixed FRAME" in done.err
    assert ET.fromstring(run("tf", some, "--format", "urdf", "--fixed", "x").out) is not None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--from", "arm"), "--from and --to belong together"),
        (("--every", "1s"), "are for lookups"),
        (("--from", "arm", "--to", "map", "--fixed", "odom"), "for the tree"),
        (("--from", "arm", "--to", "mop"), "nearest: map"),
        (("--from", "arm", "--to", "map", "--at", "soon"), "'soon'"),
        (("--from", "arm", "--to", "map", "--every", "0s"), "0s"),
        (("--from", "arm", "--to", "map", "--every", "1ns"), "more than"),
        (("--at", "+1s", "--at", "+2s"), "one --at"),
        (("--json", "--format", "dot"), "leave out one"),
        (("--fixed", "nowhere"), "no frame 'nowhere'"),
    ],
)
def test_wrong_usage_is_explained(run: Run, path: Path, words: tuple[str, ...], said: str) -> None:
    done = run("tf", path, *words)
    assert done.code == 2
    assert said in done.err


def test_a_log_without_frames_says_so(run: Run, tmp_path: Path) -> None:
    assert run("tf", bag(tmp_path / "none.bag", [])).out.strip() == "no transforms between frames"
