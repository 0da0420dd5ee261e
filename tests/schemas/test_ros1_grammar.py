"""Lines of one definition text: accepted and refused ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logreel.errors import DefinitionError
from logreel.schemas.ros1msg import Constant, FieldLine, parse_message
from support.harness.limits import processor


def fields(text: str) -> list[FieldLine]:
    return list(parse_message(text, "p/T").fields)


def constant(text: str) -> Constant:
    (one,) = parse_message(text, "p/T").constants
    return one


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("int32 x", FieldLine("int32", "x")),
        ("  int32\t \tx  ", FieldLine("int32", "x")),
        ("int32 x\r", FieldLine("int32", "x")),
        ("int32 x# = 3", FieldLine("int32", "x")),
        ("float64[] a", FieldLine("float64", "a", True)),
        ("float64[36] a", FieldLine("float64", "a", True, 36)),
        ("float64[0] a", FieldLine("float64", "a", True, 0)),
        ("geometry_msgs/Point[3] p", FieldLine("geometry_msgs/Point", "p", True, 3)),
        ("Header header", FieldLine("Header", "header")),
        ("string string", FieldLine("string", "string")),
        ("Own_2 _x9", FieldLine("Own_2", "_x9")),
    ],
)
def test_field_lines_are_parsed(line, field):
    assert fields(line) == [field]
    assert fields(f"# int8 no\n\n \t\n{line}\n#") == [field]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("int8 A=1", ("int8", "A", "1", 1)),
        ("int8  A = -128 # least", ("int8", "A", "-128", -128)),
        ("byte\tA\t=\t-1", ("byte", "A", "-1", -1)),
        ("char A=200", ("char", "A", "200", 200)),
        ("uint64 A=18446744073709551615", ("uint64", "A", "18446744073709551615", 2**64 - 1)),
        ("float32 A=1e-3", ("float32", "A", "1e-3", 1e-3)),
        ("bool A=True", ("bool", "A", "True", True)),
        ("bool A=0", ("bool", "A", "0", False)),
        ("string A=  a = b # c  ", ("string", "A", "a = b # c", "a = b # c")),
        ("string A=", ("string", "A", "", "")),
        ("string A=x\r", ("string", "A", "x", "x")),
        # No value of its type: known as text, and no reason to refuse the messages.
        ("int8 A=128", ("int8", "A", "128", None)),
        ("uint8 A=-1", ("uint8", "A", "-1", None)),
        ("int32 A=one", ("int32", "A", "one", None)),
        ("int32 A=1_0", ("int32", "A", "1_0", None)),
        ("int64 A=" + "9" * 5000, ("int64", "A", "9" * 5000, None)),
        ("bool A=maybe", ("bool", "A", "maybe", None)),
        ("int32 A=", ("int32", "A", "", None)),
    ],
)
def test_constant_lines_are_parsed(line, expected):
    assert constant(line) == Constant(*expected)
    assert fields(line) == []


@pytest.mark.parametrize(
    "line",
    [
        "int32",
        "int32 x y",
        "int32 3x",
        "int32 x-y",
        "int32[ x",
        "int32] x",
        "int32[3 x",
        "int32[-1] x",
        "int32[x] x",
        "int32[3][4] x",
        "int32[][] x",
        "int32[²] x",
        "int32[99999999999] x",
        "a/b/c/d x",
        "/a x",
        "a/ x",
        "int32 ä",
        "=",
        "int32=3",
        "time T=3",
        "p/T A=3",
        "int32[] A=3",
        "int32 A B=3",
        "int32 x 5",
        "int32<=5 x",
        "\0\0\0\0",
        "x" * 300 + " y",
        "int32 " + "y" * 300,
    ],
)
def test_invalid_lines_are_refused(line):
    with pytest.raises(DefinitionError, match=r"p/T, line 2: expected .*, found"):
        parse_message(f"int8 fine\n{line}\n", "p/T")


def test_repeated_names_are_refused():
    with pytest.raises(DefinitionError, match="two fields named x"):
        parse_message("int8 x\nint16 x\n", "p/T")
    assert fields("int8 x=3\nint16 x\n") == [FieldLine("int16", "x")]


@pytest.mark.parametrize(
    "line", ["#" * 10**6, "a" * 10**6, "=" * 10**6, " " * 10**6, "[" * 10**6, "a/" * 10**6]
)
@pytest.mark.parametrize("head", ["", "int8 ", "string A="])
def test_a_line_of_a_megabyte_takes_no_time(line, head):
    text = ""
    with processor(4):
        try:
            parse_message(head + line, "p/T")
        except DefinitionError as error:
            text = str(error)
    assert len(text) < 300


@given(st.text() | st.text("int8 []=#/\n\tx3"))
def test_any_text_is_parsed_or_refused(text):
    try:
        message = parse_message(text, "p/T")
    except DefinitionError:
        return
    assert message.text == text
    again = parse_message("".join(f"{f.spelled} {f.name}\n" for f in message.fields), "p/T")
    assert again.fields == message.fields
