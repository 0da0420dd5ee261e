"""Migration of bags by rule files of ROS: the same messages as from genuine ``rosbag fix``."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import logreel
from logreel.ops.migrate import write_template
from logreel.schemas.ros1msg import DefinitionRegistry, define, layout
from support.builders.rule_files import (
    EVERY_KIND,
    EVERY_KIND_AFTER,
    HEADER,
    every_kind_rules,
    joined,
    rule,
    write_bag,
)
from support.oracles import genuine_rosbag
from support.oracles.ros1 import random_payload

POINT = "float64 x\nfloat64 y\nfloat64 z\n"


@pytest.fixture(autouse=True)
def _genuine() -> None:
    genuine_rosbag.genuine("std_msgs")


def as_fix(folder: Path, source: Path, rules: list[str], wanted: dict[str, str]) -> logreel.Log:
    """Migrate *source* with both programs; assert equal connections and messages; return the log."""
    files = []
    for n, text in enumerate(rules):
        files.append(folder / f"{n}.bmr")
        files[-1].write_text(text)
    messages = folder / "wanted"
    for name, text in wanted.items():
        package, _, short = name.partition("/")
        (messages / package / "msg").mkdir(parents=True, exist_ok=True)
        (messages / package / "msg" / f"{short}.msg").write_text(text)
    mine, theirs = folder / "mine.bag", folder / "theirs.bag"
    assert genuine_rosbag.fix(source, theirs, files, wanted) == []
    done = logreel.migrate(source, mine, rules=files, to=messages)
    assert done.skipped == ()
    found, due = genuine_rosbag.connections(mine), genuine_rosbag.connections(theirs)
    assert [(one.topic, one.times, one.payloads) for one in found] == [
        (one.topic, one.times, one.payloads) for one in due
    ]
    for one, other in zip(found, due, strict=True):
        assert (one.header["type"], one.header["md5sum"]) == (other.header["type"], other.header["md5sum"])
    return logreel.open(mine)


def test_renamed_fields(tmp_path: Path) -> None:
    old, new = "int32 a\nstring text\n", "string words\nint32 b\n"
    rows = [{"a": n, "text": f"n {n} é"} for n in range(5)]
    bag = write_bag(tmp_path / "in.bag", {"/x": ("pkg/T", old, rows), "/y": ("pkg/U", "bool ok\n", [{}] * 3)})
    update = rule(("pkg/T", old), ("pkg/T", new), "new_msg.b = old_msg.a\nnew_msg.words = old_msg.text")
    log = as_fix(tmp_path, bag, [update], {"pkg/T": new, "pkg/U": "bool ok\n"})
    assert [m.decode() for m in log["/x"]] == [{"words": f"n {n} é", "b": n} for n in range(5)]


def test_constants_of_both_types(tmp_path: Path) -> None:
    old, new = (
        "int32 FULL = 100\nint32 level\n",
        "int32 FULL = 255\nstring WORD = fine # yes\nint32 level\nstring w\n",
    )
    rows = [{"level": level} for level in (100, 7, 255)]
    bag = write_bag(tmp_path / "in.bag", {"/x": ("pkg/T", old, rows)})
    update = """
new_msg.level = old_msg.level
if old_msg.level == old_msg.FULL:
\tnew_msg.level = new_msg.FULL
\tnew_msg.w = "full"
"""
    log = as_fix(tmp_path, bag, [rule(("pkg/T", old), ("pkg/T", new), update)], {"pkg/T": new})
    assert log["/x"]["level"].tolist() == [255, 7, 255]


def test_a_part_of_the_same_definition_in_another_package_needs_no_rule(tmp_path: Path) -> None:
    old = joined("Point at\n", robot_msgs__Point=POINT)
    new = joined("geometry_msgs/Point at\nint32 more\n", geometry_msgs__Point=POINT)
    rows = [{"at": {"x": n, "y": 2.5, "z": -n}} for n in range(4)]
    bag = write_bag(tmp_path / "in.bag", {"/x": ("robot_msgs/P", old, rows)})
    moved = rule(
        ("robot_msgs/P", old),
        ("nav_msgs/P", new),
        "self.migrate(old_msg.at, new_msg.at)",
        [("Point", "geometry_msgs/Point")],
    )
    log = as_fix(tmp_path, bag, [moved], {"nav_msgs/P": new})
    assert log["/x"]["at.x"].tolist() == [0, 1, 2, 3]


def header(n: int) -> dict[str, object]:
    return {"seq": n, "stamp": 10**18 + n, "frame_id": f"frame{n}"}


def test_types_moved_to_another_package_with_their_parts(tmp_path: Path) -> None:
    old = joined("Header header\nPoint at\n", roslib__Header=HEADER, robot_msgs__Point=POINT)
    new = joined("Header header\nPoint at\n", std_msgs__Header=HEADER, geometry_msgs__Point=POINT)
    rows = [{"header": header(n), "at": {"x": n, "y": 2.5, "z": -n}} for n in range(4)]
    bag = write_bag(tmp_path / "in.bag", {"/x": ("robot_msgs/PointStamped", old, rows)})
    copies = "\n".join(f"new_msg.{name} = old_msg.{name}" for name in "xyz")
    rules = [
        rule(("robot_msgs/Point", POINT), ("geometry_msgs/Point", POINT), copies)
        + rule(
            ("robot_msgs/PointStamped", old),
            ("geometry_msgs/PointStamped", new),
            "self.migrate(old_msg.header, new_msg.header)\nself.migrate(old_msg.at, new_msg.at)",
            [("Header", "Header"), ("Point", "Point")],
        )
    ]
    log = as_fix(tmp_path, bag, rules, {"geometry_msgs/PointStamped": new, "geometry_msgs/Point": POINT})
    assert log["/x"].schema.name == "geometry_msgs/PointStamped"


def test_new_fields_get_values_and_lists_come_from_parts(tmp_path: Path) -> None:
    state = "string name\nfloat64 position\nbyte ok\n"
    old = joined("Header header\nState[] joints\n", std_msgs__Header=HEADER, pkg__State=state)
    new = joined(
        "Header header\nstring[] name\nfloat64[] position\nPart part\nfloat64[3] scale\ntime made\n"
        "duration span\nuint8[] raw\nint16 count\n",
        std_msgs__Header=HEADER,
        pkg__Part="int32 a\nstring b\n",
    )
    rows = [
        {"header": header(n), "joints": [{"name": f"j{k}", "position": k / 3, "ok": 1} for k in range(n)]}
        for n in range(5)
    ]
    bag = write_bag(tmp_path / "in.bag", {"/x": ("pkg/States", old, rows)})
    update = """
import rospy
self.migrate(old_msg.header, new_msg.header)
new_msg.name = [j.name for j in old_msg.joints]
new_msg.position = [math.degrees(j.position) + self.offset for j in old_msg.joints if j.position >= 0]
new_msg.part = self.get_new_class('Part')(len(old_msg.joints), "é")
new_msg.scale = 3*[0.5]
new_msg.scale[1] = self.half(old_msg.header.seq)
new_msg.made = rospy.Time(old_msg.header.seq, 5)
new_msg.span = rospy.Duration(0, 7)
new_msg.raw = bytes([k % 256 for k in range(old_msg.header.seq)])
for k, one in enumerate(old_msg.joints):
\tif k == 1:
\t\tcontinue
\tnew_msg.count += k * 2 if one.ok else -1
"""
    more = "\toffset = -1.5\n\tdef half(self, number):\n\t\tnumber /= 2.0\n\t\treturn number\n"
    text = "import math\n" + rule(
        ("pkg/States", old), ("pkg/States", new), update, [("Header", "Header")], more=more
    )
    log = as_fix(tmp_path, bag, [text], {"pkg/States": new})
    assert log["/x"][4].decode()["part"] == {"a": 4, "b": "é"}


def test_arrays_of_nested_types_are_migrated_by_rules_of_these(tmp_path: Path) -> None:
    def texts(field: str, package: str) -> tuple[str, str]:
        channel = f"string name\nfloat32[] {field}\n"
        return channel, joined("Channel[] all\nChannel one\n", **{f"{package}__Channel": channel})

    (old_part, old), (new_part, new) = texts("vals", "pkg"), texts("values", "other")
    rows = [
        {"all": [{"name": f"c{k}", "vals": [k, n]} for k in range(n)], "one": {"name": "x", "vals": [1]}}
        for n in range(4)
    ]
    bag = write_bag(tmp_path / "in.bag", {"/x": ("pkg/Cloud", old, rows)})
    rules = [
        rule(
            ("pkg/Cloud", old),
            ("other/Cloud", new),
            "self.migrate_array(old_msg.all, new_msg.all, 'Channel')\nself.migrate(old_msg.one, new_msg.one)",
            [("Channel", "Channel")],
        ),
        rule(
            ("pkg/Channel", old_part),
            ("other/Channel", new_part),
            "new_msg.name = old_msg.name\nnew_msg.values = old_msg.vals",
        ),
    ]
    as_fix(tmp_path, bag, rules, {"other/Cloud": new, "other/Channel": new_part})


def test_a_type_without_rules_changes_with_its_nested_types(tmp_path: Path) -> None:
    old_part, new_part = "int32 a\nint32 b\n", "int32 b\nint32 c\n"
    old = joined("Part[] parts\nPart one\nstring name\n", pkg__Part=old_part)
    new = joined("string name\nPart one\nPart[] parts\n", pkg__Part=new_part)
    rows = [{"parts": [{"a": k, "b": 1} for k in range(n)], "one": {"a": 9}, "name": "n"} for n in range(3)]
    bag = write_bag(tmp_path / "in.bag", {"/x": ("pkg/Whole", old, rows)})
    update = rule(
        ("pkg/Part", old_part), ("pkg/Part", new_part), "new_msg.b = old_msg.b\nnew_msg.c = old_msg.a + 1"
    )
    log = as_fix(tmp_path, bag, [update], {"pkg/Whole": new, "pkg/Part": new_part})
    assert log["/x"][2].decode() == {
        "name": "n",
        "one": {"b": 0, "c": 10},
        "parts": [{"b": 1, "c": 1}, {"b": 1, "c": 2}],
    }


def test_chains_of_rules_are_joined_by_updates_without_rules(tmp_path: Path) -> None:
    first, second, between = "int32 a\n", "int32 b\nint32 z\n", "int32 z\nint32 b\n"
    third, last = "int32 z\nint32 c\n", "int32 c\nint32 z\n"
    topics = {
        f"/x{n}": ("pkg/T", text, [{next(iter(text.split()[1:2])): n + 5}] * 2)
        for n, text in enumerate((first, second, between, third, last))
    }
    bag = write_bag(tmp_path / "in.bag", topics)
    rules = [
        rule(
            ("pkg/T", between), ("pkg/T", third), "new_msg.z = old_msg.z\nnew_msg.c = old_msg.b * 10", order=1
        ),
        rule(("pkg/T", first), ("pkg/T", second), "new_msg.b = old_msg.a\nnew_msg.z = 1", order=0),
        rule(("pkg/T", third), ("new/T", third), "new_msg.z = old_msg.z\nnew_msg.c = old_msg.c", order=2),
    ]
    log = as_fix(tmp_path, bag, rules, {"new/T": last})
    assert [log[topic][0].decode()["c"] for topic in ("/x0", "/x1", "/x2")] == [50, 60, 0]


def test_missing_rules_are_those_that_rosbag_fix_names(tmp_path: Path) -> None:
    old, new = "int32 a\nint32 gone\n", "float64 a\nstring added\n"
    bag = write_bag(tmp_path / "in.bag", {"/x": ("pkg/T", old, [{}])})
    (missing,) = genuine_rosbag.fix(bag, tmp_path / "out.bag", [], {"pkg/T": new})
    folder = tmp_path / "pkg" / "msg"
    folder.mkdir(parents=True)
    (folder / "T.msg").write_text(new)
    with pytest.raises(logreel.LogError, match="there is no rule from pkg/T"):
        logreel.migrate(bag, tmp_path / "mine.bag", to=tmp_path / "pkg")
    assert not (tmp_path / "mine.bag").exists()
    assert write_template(bag, tmp_path / "mine.bmr", to=tmp_path / "pkg") == 1
    mine = (tmp_path / "mine.bmr").read_text()
    for text in (missing.split("(")[0].strip(), "new_msg.a = 0", "new_msg.added = ''", "valid = False"):
        assert text in missing
        assert text in mine
    # The completed template works in both programs.
    rules = mine.replace("valid = False", "valid = True").replace(
        "new_msg.a = 0.0", "new_msg.a = old_msg.a / 2"
    )
    as_fix(tmp_path, bag, [rules], {"pkg/T": new})


@pytest.mark.parametrize("seed", range(2))
def test_fields_of_every_kind(tmp_path: Path, seed: int) -> None:
    rng, definition = random.Random(seed), define("pkg/T", EVERY_KIND, "*", DefinitionRegistry(known=False))
    with logreel.create(tmp_path / "in.bag") as writer:
        number = writer.add_channel("/x", logreel.Schema("pkg/T", "ros1msg", definition.text))
        for n in range(40):
            writer.write(number, 10**18 + n, random_payload(layout(definition).root, rng))
    more = "new_msg.i8 = -old_msg.i8 // 2 if old_msg.flag else len(old_msg.names)\n" * seed
    as_fix(tmp_path, tmp_path / "in.bag", [every_kind_rules(more)], EVERY_KIND_AFTER)
