"""Concatenated texts: sections, resolution of type names, and hostile texts."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logreel.errors import DefinitionError
from logreel.layout import nodes
from logreel.layout.layout import Layout
from logreel.schemas.ros1msg import Definition, DefinitionRegistry, define, full_text, layout, parse, standard
from support.harness.limits import processor

RULE = "=" * 80
EMPTY = DefinitionRegistry(known=False)


def text_of(main: str, **sections: str) -> str:
    """Return *main* and the sections ``package__Type``, concatenated as publishers do."""
    parts = [f"{RULE}\nMSG: {name.replace('__', '/')}\n{text}\n" for name, text in sections.items()]
    return (main + "\n" + "".join(parts))[:-1]


def md5(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


def test_sections_are_found_and_printed_again():
    text = text_of("A a\nq/B b\n", p__A="B b\n", p__B="", q__B="int8 x # c\n\n")
    found = parse(text, "p/T", EMPTY)
    assert list(found.messages) == ["p/T", "p/A", "p/B", "q/B"]
    assert found.messages["q/B"].text == "int8 x # c\n\n"
    assert found.text == text
    assert found.users == ("p/B", "p/A", "q/B", "p/T")
    assert layout(found) == Layout(
        nodes.Struct(
            (
                nodes.Field("a", nodes.Struct((nodes.Field("b", nodes.Struct(())),))),
                nodes.Field("b", nodes.Struct((nodes.Field("x", nodes.Scalar("int8")),))),
            )
        )
    )


@pytest.mark.parametrize(
    "text",
    [
        f"q/B b\r\n\r\n{RULE}\r\nMSG: q/B\r\nint8 x\r\n",
        f"q/B b\n{RULE}\nMSG: q/B\nint8 x",
        f"q/B b\n{RULE}  \nMSG:q/B \nint8 x\n",
        f"q/B b\n{'=' * 40}\nMSG: q/msg/B\nint8 x\n",
        f"q/B b\n{RULE}\nMSG: q/B\nint8 x\n{RULE}\nMSG: q/B\nint64 repeated\n",
        f"q/B b\n{RULE}\nMSG: q/B\nint8 x\n{RULE}\nMSG: r/Unused\n?broken\n",
        f"q/msg/B b\n{RULE}\nMSG: q/B\nint8 x\n",
    ],
)
def test_irregular_texts_are_parsed(text):
    assert layout(parse(text, "p/msg/T", EMPTY)).paths() == ["b.x"]


def test_an_empty_main_text():
    assert parse("", "p/T").md5 == "d41d8cd98f00b204e9800998ecf8427e"
    assert layout(parse("# nothing\n", "p/T")).size == 0
    assert parse(f"{RULE}\nMSG: q/B\nint8 x\n", "p/T").root.fields == ()


def test_a_bare_name_is_looked_up_in_the_package_around_it():
    text = text_of("q/A a\nB b\n", q__A="B b\n", q__B="int8 x\n", p__B="int16 y\n")
    assert layout(parse(text, "p/T", EMPTY)).paths() == ["a.b.x", "b.y"]


def test_a_header_is_found_under_all_its_names():
    for section in ("std_msgs/Header", "roslib/Header", "rostools/Header"):
        for written in ("Header", section, "std_msgs/Header", "roslib/Header"):
            text = f"{written} header\n\n{RULE}\nMSG: {section}\nuint32 seq\ntime stamp\nstring frame_id\n"
            found = parse(text, "p/T", EMPTY)
            assert list(found.messages) == ["p/T", section]
            assert found.md5 == md5("2176decaecbce78abc3b96ef049fabed header")
            assert found.text == text
    # Wherever it stands, it is that of std_msgs.
    found = parse(text_of("q/A a\n", q__A="Header h\n", q__Header="int8 x\n"), "p/T")
    assert layout(found).paths() == ["a.h.seq", "a.h.stamp", "a.h.frame_id"]


def test_missing_sections_come_from_the_registry():
    found = parse("Header header\ngeometry_msgs/Pose pose\n", "p/T")
    assert list(found.messages) == [
        "p/T",
        "std_msgs/Header",
        "geometry_msgs/Pose",
        "geometry_msgs/Point",
        "geometry_msgs/Quaternion",
    ]
    with pytest.raises(DefinitionError, match="p/T needs p/Pose, whose definition is missing"):
        parse("Pose pose\n", "p/T")
    with pytest.raises(DefinitionError, match="needs std_msgs/Header"):
        parse("Header header\n", "p/T", EMPTY)


def test_the_package_of_a_nameless_type_is_guessed():
    text = text_of("A a\n", q__A="B b\n", q__B="int8 x\n")
    assert layout(parse(text, "*", EMPTY)).paths() == ["a.b.x"]
    with pytest.raises(DefinitionError, match="needs A"):
        parse(text_of("A a\n", q__A="int8 x\n", r__A="int8 x\n"), "*", EMPTY)


def test_both_checksums_match_the_definition():
    text = text_of("B[3] b # c\nint8[3]  n\nstring S = a # b\n", p__B="time t\n")
    inner = md5("time t")
    found = parse(text, "p/T", EMPTY)
    assert found.md5 == md5(f"string S=a # b\n{inner} b\nint8[3] n")
    assert found.md5_v1 == md5("B[3] b # c\nint8[3]  n\nstring S = a # b\ntime t\n")
    assert found.matches(found.md5)
    assert found.matches(found.md5_v1)
    assert found.matches("*")
    assert not found.matches(inner)


def test_define_asks_the_registry_only_without_a_text():
    assert define("std_msgs/String").md5 == "992ce8a1687cec8c8bd883ec73ca41d1"
    assert define("std_msgs/String", "int8 other\n", "bogus").root.fields[0].name == "other"
    assert define("p/T", "", "d41d8cd98f00b204e9800998ecf8427e").root.fields == ()
    with pytest.raises(DefinitionError, match=r"no definition of p/T, and none is known$"):
        define("p/T")
    with pytest.raises(DefinitionError, match="only others than that of md5 00"):
        define("std_msgs/String", "\n", "00")
    assert full_text("std_msgs/Header") == "uint32 seq\ntime stamp\nstring frame_id\n"


def node(type: str) -> nodes.Node:
    (field,) = layout(parse(f"{type} x\n", "p/T")).record.fields
    return field.node


def test_types_become_layout_nodes():
    assert node("char") == nodes.Scalar("uint8")
    assert node("byte") == nodes.Scalar("int8")
    assert node("bool") == nodes.Scalar("bool")
    assert node("time") == nodes.Time()
    assert node("duration") == nodes.Time(signed=True)
    assert node("string") == nodes.String(4)
    assert node("uint8[]") == node("char[]") == nodes.Bytes(4)
    assert node("byte[]") == nodes.Sequence(nodes.Scalar("int8"))
    assert node("bool[]") == nodes.Sequence(nodes.Scalar("bool"))
    assert node("uint8[6]") == node("char[6]") == nodes.FixedArray(nodes.Scalar("uint8"), 6)
    assert node("string[2]") == nodes.FixedArray(nodes.String(), 2)
    assert node("time[]") == nodes.Sequence(nodes.Time())
    # Items without bytes are items, too.
    assert node("std_msgs/Empty[]") == nodes.Sequence(nodes.Struct(()))
    assert node("std_msgs/Empty[7]") == nodes.FixedArray(nodes.Struct(()), 7)
    assert layout(parse("std_msgs/Empty[7] x\nint8 y\n", "p/T")).size == 1


# Hostile texts: each ends with a DefinitionError, and soon.


def sections(count: int, line) -> str:
    parts = {f"p__T{i}": line(i) for i in range(1, count)}
    return text_of(line(0), **parts)


HOSTILE = {
    "itself": "T x\n",
    "itself in a list": "T[] x\n",
    "a cycle": text_of("A a\n", p__A="B b\n", p__B="A a\n"),
    "a long cycle": sections(50, lambda i: f"T{(i + 1) % 50} x\n"),
    "3000 deep": sections(3000, lambda i: f"T{i + 1} x\n" if i < 2999 else "int8 x\n"),
    "deeper than its first visits": sections(
        100,
        lambda i: (
            "".join(f"T{j} x{j}\n" for j in range(i + 2, i + 1, -1) if j < 100) + f"T{i + 1} x\n"
            if i < 98
            else "int8 x\n"
        ),
    ),
    "a bomb of structs": sections(40, lambda i: f"T{i + 1} a\nT{i + 1} b\n" if i < 39 else "int8 x\n"),
    "a bomb of lists": sections(40, lambda i: f"T{i + 1}[] a\nT{i + 1}[] b\n" if i < 39 else "int8 x\n"),
    "a bomb of arrays": sections(30, lambda i: f"T{i + 1}[1000] a\n" if i < 29 else "int8 x\n"),
    "a huge array": "float64[9999999999] x\n",
    "too many fields": "".join(f"int8 x{i}\n" for i in range(100_001)),
    "too many fields in all": text_of("".join(f"A{i} a{i}\n" for i in range(30)))
    + "".join(f"\n{RULE}\nMSG: p/A{i}\n" + "".join(f"int8 x{k}\n" for k in range(5000)) for i in range(30)),
    "garbage": bytes(range(256)).decode("latin-1") * 4000,
    "a megabyte of letters": "a" * 10**6,
    "a megabyte of brackets": "int8[" + "9" * 10**6 + "] x",
    "a megabyte of rules": f"{RULE}\n" * 13_000,
    "5 megabytes": "#" * 5_000_000,
    "a megabyte of constants": "int8 A=1\n" * 120_000,
    "a section with a long name": f"q/A a\n{RULE}\nMSG: {'q' * 10**6}\nB b\n",
    "half a character": "int8 \ud800\n",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_texts_are_refused_soon(what):
    with processor(8), pytest.raises(DefinitionError) as error:
        layout(parse(HOSTILE[what], "p/T" if "p/T1" not in HOSTILE[what] else "p/T0"))
    assert len(str(error.value)) < 300


def test_text_with_many_types_is_parsed():
    """Many sections that use each other, with few leaves."""
    text = sections(2000, lambda i: "".join(f"T{j} x{j}\n" for j in range(1, 2000)) if i == 0 else "int8 x\n")
    with processor(8):
        found = parse(text, "p/T0", EMPTY)
        assert layout(found).size == 1999
        assert len(found.md5) == 32
    assert found.text == text


@given(st.text(max_size=200) | st.text("ABp/T int8[]=#\nx", max_size=80))
def test_any_text_ends_in_a_layout_or_an_error(text):
    try:
        found = parse(text_of(text, p__A="B b\nint8 A=3\n", p__B="A[] a\nint8 x\n", q__C=text), "p/T")
        assert isinstance(found, Definition)
        layout(found)
        assert len(found.md5) == len(found.md5_v1) == 32
    except DefinitionError:
        pass


# The registry.


def test_versions_are_distinguished_by_their_checksum():
    old, new = "67d15a62edb26e9d52b0f0efa3ef9da7", "d0ce08bc6e5ba34c7754f563a9cabaf1"
    known = standard()
    found = [d.md5 for d in known.versions("diagnostic_msgs/DiagnosticStatus")]
    assert found[0] == new
    assert old in found
    assert len(known.find("diagnostic_msgs/DiagnosticStatus", old).root.constants) == 3
    assert known.find("diagnostic_msgs/DiagnosticStatus", "00") is None
    assert known.find("diagnostic_msgs/DiagnosticStatus").md5 == new
    # A type of an earlier version uses those of its own time.
    assert known.find("diagnostic_msgs/DiagnosticArray", "3cfbeff055e708a24c3d946a5c8139cd") is not None


@pytest.mark.parametrize(
    ("name", "found", "md5"),
    [
        ("rostools/Header", "roslib/Header", "2176decaecbce78abc3b96ef049fabed"),
        ("rostools/Log", "roslib/Log", "acffd30cd6b6de30f120938c17c593fb"),
        ("rostools/Time", "roslib/Time", "d54e262614c1839f08a190809da7ecda"),
        ("roslib/Log", "roslib/Log", "acffd30cd6b6de30f120938c17c593fb"),
        ("roslib/Clock", "roslib/Clock", "a9c97c1d230cfc112e270351a944ee47"),
        ("tf/tfMessage", "tf/tfMessage", "94810edda583a504dfda3829e70d7eec"),
        ("tf2_msgs/msg/TFMessage", "tf2_msgs/TFMessage", "94810edda583a504dfda3829e70d7eec"),
    ],
)
def test_a_type_is_known_under_all_its_names(name, found, md5):
    one = standard().find(name, md5)
    assert (one.name, one.md5) == (found, md5)
    assert name in standard()


def test_a_renamed_type_of_the_user_is_found_under_the_other_name():
    own = DefinitionRegistry(known=False)
    own.add("int8 level\n", "rosgraph_msgs/Log")
    assert own.find("roslib/Log").name == "rosgraph_msgs/Log"


def test_msg_files_of_the_user_are_added(tmp_path):
    for name, text in {
        "robot/msg/State.msg": "Header header\nWheel[] wheels\nother/Thing thing\n",
        "robot/msg/Wheel.msg": "float64 speed\n",
        "robot/srv/Not.srv": "int8 x\n---\n",
        "deep/er/other/msg/Thing.msg": "string name\n",
        "robot/msg/Broken.msg": "int32 x 5\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    own = DefinitionRegistry()
    names = own.add_path(tmp_path)
    assert names == ["other/Thing", "robot/Broken", "robot/State", "robot/Wheel"]
    assert layout(own.find("robot/State")).paths()[3:] == ["wheels.speed", "thing.name"]
    assert full_text("robot/State", own) == own.find("robot/State").text
    assert parse("robot/Wheel w\n", "p/T", own).md5 == md5(f"{own.find('robot/Wheel').md5} w")
    with pytest.raises(DefinitionError, match="robot/Broken, line 1"):
        own.find("robot/Broken")
    assert "robot/State" not in standard()

    one = DefinitionRegistry(known=False)
    assert one.add_path(tmp_path / "robot" / "msg" / "Wheel.msg") == ["robot/Wheel"]
    assert len(one) == 1
    with pytest.raises(DefinitionError, match=r"no \.msg file"):
        one.add_path(tmp_path / "robot" / "srv")
    with pytest.raises(OSError, match="nothing"):
        one.add_path(tmp_path / "nothing.msg")


def test_definitions_of_the_user_come_first():
    own = DefinitionRegistry()
    before = own.find("geometry_msgs/PointStamped")
    own.add("float32 x\n", "geometry_msgs/Point")
    assert own.find("geometry_msgs/Point").root.fields[0].type == "float32"
    # Types of one bundle use one another.
    assert own.find("geometry_msgs/PointStamped").md5 == before.md5
    assert standard().find("geometry_msgs/Point").md5 == "4a842b65f413084dc2b10fb484ea7f17"
    own.add("float32 y\n", "geometry_msgs/Point")
    assert len(list(own.versions("geometry_msgs/Point"))) == 3
