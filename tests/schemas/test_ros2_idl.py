"""IDL of ROS 2: messages are decoded as rosbags, which reads the same text, wrote them."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import DefinitionError
from logreel.schemas import ros2idl, ros2msg
from logreel.schemas.languages import constants
from support.samples.rosbag2.builder import START, Topic, write

#: As rosidl_adapter writes it for a .msg, with the files that it includes.
ARM = """================================================================================
IDL: robot/msg/Arm
// generated from rosidl_adapter/resource/msg.idl.em
#include "builtin_interfaces/msg/Time.idl"
#include "robot/msg/Joint.idl"

module robot {
  module msg {
    typedef double double__9[9];
    typedef robot::msg::Joint robot__msg__Joint__2[2];
    module Arm_Constants {
      const octet LEFT = 1;
      @verbatim (language="comment", text="a \\"quoted; text\\"")
      const string NAME = "arm; }";
      const unsigned long COUNT = 3;
    };
    enum Mode { OFF, ON };
    @verbatim (language="comment", text=
      "An arm;" "\\n"
      "it moves }")
    struct Arm {
      @verbatim (language="comment", text="when { it was")
      builtin_interfaces::msg::Time stamp;

      boolean moves;
      octet side, other_side;
      short small;
      @default (value=-5)
      long long far;
      unsigned long long count;
      float ratio;
      double__9 covariance;
      uint8 bytes[5];
      string name;
      string<22> bounded;
      sequence<double> efforts;
      sequence<uint8, 10> skin;
      sequence<string> labels;
      robot__msg__Joint__2 pair;
      sequence<robot::msg::Joint, 4> joints;
      unsigned long triple[Arm_Constants::COUNT];
      /* a comment */ Mode mode;
      robot::msg::Nothing nothing;
      char last;
    };
  };
};

================================================================================
IDL: builtin_interfaces/msg/Time
module builtin_interfaces { module msg { struct Time { long sec; unsigned long nanosec; }; }; };

================================================================================
IDL: robot/msg/Joint
module robot { module msg {
    struct Joint { string name; double angle; boolean free; };
}; };

================================================================================
IDL: robot/msg/Nothing
module robot { module msg { struct Nothing { uint8 structure_needs_at_least_one_member; }; }; };
"""
#: The same, as .msg.
SAME = """builtin_interfaces/Time stamp
bool moves
uint8 side
uint8 other_side
int16 small
int64 far
uint64 count
float32 ratio
float64[9] covariance
uint8[5] bytes
string name
string bounded
float64[] efforts
uint8[] skin
string[] labels
robot/Joint[2] pair
robot/Joint[] joints
uint32[3] triple
uint32 mode
robot/Nothing nothing
uint8 last
================================================================================
MSG: robot/Joint
string name
float64 angle
bool free
================================================================================
MSG: robot/Nothing
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
"""


def test_a_text_of_idl_means_the_same_as_that_of_msg() -> None:
    assert ros2idl.layout("robot/msg/Arm", ARM) == ros2msg.layout("robot/msg/Arm", SAME)
    assert constants(logreel.Schema("robot/msg/Arm", "ros2idl", ARM)) == ["LEFT", "NAME", "COUNT"]


def arm(types: dict[str, Any], time: int) -> Any:
    """Return an arm in the classes of rosbags."""

    def joint(n: int) -> Any:
        return types["robot/msg/Joint"](name=f"joint {n}" * n, angle=n / 8, free=n % 2 == 0)

    return types["robot/msg/Arm"](
        stamp=types["builtin_interfaces/msg/Time"](sec=time // 10**9, nanosec=time % 10**9),
        moves=True,
        side=1,
        other_side=2,
        small=-3,
        far=-(1 << 40),
        count=1 << 63,
        ratio=0.5,
        covariance=np.arange(9.0),
        bytes=np.arange(5, dtype=np.uint8),
        name="left",
        bounded="b",
        efforts=np.arange(4) / 4,
        skin=np.arange(3, dtype=np.uint8),
        labels=["", "one", "two"],
        pair=[joint(0), joint(1)],
        joints=[joint(n) for n in range(3)],
        triple=np.array([7, 8, 9], np.uint32),
        mode=1,
        nothing=types["robot/msg/Nothing"](structure_needs_at_least_one_member=0),
        last=255,
    )


def test_messages_of_rosbags_are_decoded(tmp_path: Path) -> None:
    typesys = pytest.importorskip("rosbags.typesys")
    store = typesys.get_typestore(typesys.Stores.EMPTY)
    # It reads neither inclusions nor enumerations, and one member at a time.
    text = ARM.replace("enum Mode { OFF, ON };", "").replace("Mode mode;", "unsigned long mode;")
    text = text.replace("octet side, other_side;", "octet side;\n octet other_side;").replace(
        "[Arm_Constants::COUNT]", "[3]"
    )
    text = re.sub("#include.*", "", text).replace('\\"quoted; text\\"', "")
    for section in text.split("=" * 80)[1:]:
        store.register(typesys.get_types_from_idl(section.partition("\n")[2].partition("\n")[2]))
    data = bytes(store.serialize_cdr(arm(store.types, START), "robot/msg/Arm"))
    database = write(tmp_path / "a.db3", [(1, START, data)], [Topic("/arm", "robot/msg/Arm")])
    database.execute("INSERT INTO message_definitions VALUES(NULL,'robot/msg/Arm','ros2idl',?,'')", (ARM,))
    database.close()
    for path in (tmp_path / "a.db3", tmp_path / "b.db3", tmp_path / "c.mcap"):
        if not path.exists():
            logreel.convert(tmp_path / "a.db3", path)
        log = logreel.open(path)
        assert log.problems == ()
        assert log["/arm"].schema == logreel.Schema("robot/msg/Arm", "ros2idl", ARM)
        value = log["/arm"][0].decode()
        assert (value["stamp"], value["far"], value["count"]) == (START, -(1 << 40), 1 << 63)
        assert list(value["covariance"]) == [*range(9)]
        assert (value["labels"], value["skin"], value["mode"]) == (["", "one", "two"], b"\0\1\2", 1)
        assert value["joints"][2] == {"name": "joint 2joint 2", "angle": 0.25, "free": True}
        assert (list(value["triple"]), value["nothing"], value["last"]) == ([7, 8, 9], {}, 255)
    database = sqlite3.connect(tmp_path / "b.db3")
    assert database.execute("SELECT encoding FROM message_definitions").fetchall() == [("ros2idl",)]
    database.close()
    with logreel.create(tmp_path / "d.db3") as w:
        w.write(w.add_channel("/arm", logreel.Schema("robot/msg/Arm", "ros2idl", ARM)), START, value)
    assert bytes(next(iter(logreel.open(tmp_path / "d.db3").messages())).data) == data


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("union U switch (long) { case 1: long a; };", "union is not read"),
        ("struct A { long a[2][3]; };", "arrays of arrays"),
        ("typedef long two[2]; struct A { sequence<two> a; };", "sequences of arrays"),
        ("struct A : B { long a; };", "inherit"),
        ("struct A { long a[N]; };", "'N' is no known number"),
        ("struct A { @optional long a; };", "a is optional"),
        ("struct A { long a; long a; };", "two members of one name"),
        ("struct A { wchar a; };", "wide text"),
        ("@mutable struct B { long a; }; struct A { B a; };", "mutable or appendable"),
        ("struct A { @id(-1) long a; };", "no id of a member"),
        ("@bit_bound(33) enum C { X }; struct A { C a; };", "1 to 32 bits"),
        ("struct A { long a }", "expected ',' or ';'"),
        ("struct A { $ };", "line 2: unexpected"),
        ("struct A { wstring a; };", "wide text"),
        ("struct A { x::msg::B a; };", "the definition of x/B is missing"),
        ("struct A { x::msg::A a; };", "contains itself"),
        ("};", "expected|unexpected"),
    ],
)
def test_what_is_not_read_is_said(body: str, said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        ros2idl.layout("x/msg/A", f"module x {{ module msg {{\n{body}\n}}; }};")


def test_every_cut_of_a_text_is_read_or_refused() -> None:
    for size in range(0, len(ARM), 7):
        try:
            ros2idl.layout("robot/msg/Arm", ARM[:size])
        except DefinitionError:
            continue


def test_a_text_of_idl_that_is_too_long_is_refused() -> None:
    with pytest.raises(DefinitionError, match=f"at most {ros2msg.MAX_TEXT} are read"):
        ros2idl.parse("/" * (ros2msg.MAX_TEXT + 1), "a/B")


def test_modules_in_one_another_are_bounded() -> None:
    with pytest.raises(DefinitionError, match=f"more than {ros2idl.MAX_MODULES} modules"):
        ros2idl.parse("module a { " * 2 * ros2idl.MAX_MODULES, "a/B")
