"""PX4 events: argument types, templates, damaged definitions, and strings that events replace."""

from __future__ import annotations

import copy
import json
import lzma
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logreel.errors import DefinitionError
from logreel.formats.ulog import events
from logreel.formats.ulog.events import Line, Row, load
from support.harness.examples import half

EVENT = 1 << 24 | 7
MISFIT = "event 0x01000007 px4::test does not fit its definition"
ENUMS: dict[str, Any] = {
    "mode_t": {
        "type": "uint8_t",
        "entries": {
            "0": {"name": "none", "description": ""},
            "1": {"name": "hold", "description": "Hold {1}"},
        },
    },
    "sides_t": {
        "type": "uint16_t",
        "is_bitfield": True,
        "entries": {"1": {"name": "up", "description": "Up"}, "2": {"name": "down", "description": "Down"}},
    },
    "sign_t": {"type": "int8_t", "entries": {"-1": {"name": "minus", "description": "Minus"}}},
    "top_t": {
        "type": "int8_t",
        "is_bitfield": True,
        "entries": {"-128": {"name": "t", "description": "Top"}},
    },
}


def document(message: str, types: list[str], description: str = "", **extra: Any) -> dict[str, Any]:
    """Return minimal definitions with one event, px4::test, with arguments of these types."""
    event = {
        "name": "test",
        "message": message,
        "description": description,
        "arguments": [{"name": f"a{n}", "type": kind} for n, kind in enumerate(types)],
        **extra,
    }
    other = {"level_t": {"type": "uint8_t", "entries": {"3": {"name": "high", "description": "High"}}}}
    return {
        "version": 2,
        "components": {
            "0": {"namespace": "common", "enums": other},
            "1": {"namespace": "px4", "enums": ENUMS, "event_groups": {"default": {"events": {"7": event}}}},
        },
    }


def pack(content: object) -> bytes:
    return lzma.compress(json.dumps(content).encode())


def message(template: str, types: list[str], arguments: bytes) -> str:
    return load(pack(document(template, types))).sentence(EVENT, arguments).message


@pytest.mark.parametrize(
    ("kind", "arguments", "expected"),
    [
        ("int8_t", b"\xfb", "-5"),
        ("uint8_t", b"\xfb", "251"),
        ("int16_t", struct.pack("<h", -300), "-300"),
        ("uint16_t", struct.pack("<H", 65000), "65000"),
        ("int32_t", struct.pack("<i", -70000), "-70000"),
        ("uint32_t", struct.pack("<I", 4_000_000_000), "4000000000"),
        ("int64_t", struct.pack("<q", -(2**62)), "-4611686018427387904"),
        ("uint64_t", struct.pack("<Q", 2**63), "9223372036854775808"),
        ("float", struct.pack("<f", 0.1), "0.1"),
        ("float", struct.pack("<f", 2), "2.0"),
        ("float", struct.pack("<f", 3.4028234663852886e38), "3.4028235e+38"),
        ("float", struct.pack("<f", float("nan")), "nan"),
        ("float", struct.pack("<f", float("-inf")), "-inf"),
        ("bool", b"\x01", "true"),
        ("bool", b"\x00", "false"),
        ("mode_t", b"\x00", ""),
        ("mode_t", b"\x01", "Hold {1}"),
        ("px4::mode_t", b"\x02", "(unknown: 2)"),
        ("common::level_t", b"\x03", "High"),
        ("sides_t", b"\x00\x00", ""),
        ("sides_t", b"\x03\x00", "Up|Down"),
        ("sides_t", b"\x32\x00", "Down|(unknown: 48)"),
        ("sign_t", b"\xff", "Minus"),
        ("top_t", b"\x80", "Top"),
        ("top_t", b"\x81", "Top|(unknown: 1)"),
    ],
)
def test_event_arguments_of_every_type(kind: str, arguments: bytes, expected: str) -> None:
    # The topic has a fixed array: bytes follow the last argument. The first puts the second off alignment.
    assert message("[{2}]", ["uint8_t", kind], b"\x09" + arguments + bytes(20)) == f"[{expected}]"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{1} {2}", "-5 2.55"),
        ("{2:.0} {2:.1} {2:.3}", "3 2.5 2.550"),
        ("{1:.1} {1:}", "-5.0 -5"),
        ("{1m} {1m_v} {2:.1m}", "-5 m -5 m 2.5 m"),
        ("{2:.1m_v} {2:.1m/s} {2:.1m^2} {2:.1C}", "2.5 m 2.5 m/s 2.5 m^2 2.5 C"),
        ("{0} {3} {} {x} {1:p} {1km} {1:.999} {1", "{0} {3} {} {x} {1:p} {1km} {1:.999} {1"),
        (r"\{1} \\{1} \<a> a \> b", r"{1} \-5 <a> a > b"),
        ('<param>COM_X</param> <a>https://x</a> <a href="https://y">here</a>', "COM_X https://x here"),
        ('a<profile name="dev">b</profile><profile name="!dev">c {1}</profile>d', "abd"),
        ('<profile name="user">b</profile><profile name="!user">c</profile>', "c"),
        ("5 < 6 > 4, <new>kept</new>", "5 < 6 > 4, kept"),
        ("  ends trimmed \n", "ends trimmed"),
    ],
)
def test_event_template_is_rendered(template: str, expected: str) -> None:
    assert message(template, ["int8_t", "float"], struct.pack("<bf", -5, 2.55)) == expected


def test_event_has_name_group_level_and_description() -> None:
    definitions = load(pack(document("Text {1}", ["uint8_t"], "More\n\n{1}", type="summary")))
    event = definitions.sentence(EVENT, b"\x05", 0x64)
    assert (event.id, event.name, event.group, event.kind) == (EVENT, "px4::test", "default", "summary")
    assert (event.message, event.description, event.level) == ("Text 5", "More\n\n5", 4)
    assert definitions.sentence(EVENT, b"\x05").level is None
    assert len(definitions) == 1
    assert EVENT in definitions


def test_only_low_levels_are_shown() -> None:
    content = document("Text", [])
    groups = content["components"]["1"]["event_groups"]
    groups["health"] = {"events": {"8": groups["default"]["events"]["7"]}}
    definitions = load(pack(content))
    assert definitions.sentence(EVENT, b"", 0x7F).shown
    assert definitions.sentence(EVENT, b"").shown
    assert not definitions.sentence(EVENT, b"", 0x80).shown
    assert definitions.sentence(EVENT + 1, b"", 0x66).shown


@pytest.mark.parametrize(
    ("event_id", "kind", "arguments", "expected"),
    [
        (9 << 24 | 7, "uint8_t", b"\x01\xff", "[unknown event 0x09000007, arguments 01ff]"),
        (EVENT + 1, "uint8_t", b"", "[unknown event 0x01000008, no arguments]"),
        (
            EVENT,
            "uint32_t",
            b"\x01\xff",
            f"[{MISFIT}, arguments 01ff]",
        ),
        (EVENT, "uint32_t", b"", f"[{MISFIT}, no arguments]"),
        (EVENT, "string", b"\x01", f"[{MISFIT}, arguments 01]"),
        (
            EVENT,
            "a::mode_t",
            b"\x01",
            f"[{MISFIT}, arguments 01]",
        ),
    ],
)
def test_undecodable_event_shows_its_bytes(event_id: int, kind: str, arguments: bytes, expected: str) -> None:
    event = load(pack(document("{1}", [kind]))).sentence(event_id, arguments, 0x44)
    assert (event.message, event.level, event.shown) == (expected, 4, True)


def test_sentence_length_is_limited() -> None:
    content = document("{1}" * 5000, ["mode_t"])
    content["components"]["1"]["enums"] = copy.deepcopy(ENUMS)
    content["components"]["1"]["enums"]["mode_t"]["entries"]["1"]["description"] = "x" * events.MAX_TEXT
    text = load(pack(content)).sentence(EVENT, b"\x01").message
    assert len(text) == events.MAX_TEXT
    assert text.endswith("x…")


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("", [], "the top is of type list; expected dict"),
        ("version", "1", "version is of type str; expected int"),
        ("version", True, "version is of type bool; expected int"),
        ("version", 0, "version 0; expected 1 or more"),
        ("version", None, "version is of type NoneType"),
        ("components", [], "components is of type list"),
        ("components/256", {}, "key '256' in components"),
        ("components/x", {}, "key 'x' in components"),
        ("components/1", 5, "components.1 is of type int"),
        ("components/1/namespace", 5, "components.1.namespace is of type int"),
        ("components/1", {}, "components.1.namespace is missing"),
        ("components/1/enums", 5, "components.1.enums is of type int"),
        ("components/1/enums/mode_t", 5, "enums.mode_t is of type int"),
        ("components/1/enums/mode_t/type", "float", "enums.mode_t.type is 'float'; expected an integer type"),
        ("components/1/enums/mode_t/entries", [], "enums.mode_t.entries is of type list"),
        ("components/1/enums/mode_t/entries/0x1", {}, "key '0x1' in components.1.enums.mode_t.entries"),
        ("components/1/enums/mode_t/entries/1/description", 1, "entries.1.description is of type int"),
        (
            "components/1/enums/mode_t/is_bitfield",
            1,
            "enums.mode_t.is_bitfield is of type int; expected bool",
        ),
        ("components/1/event_groups", [], "event_groups is of type list"),
        ("components/1/event_groups/default", 1, "event_groups.default is of type int"),
        ("components/1/event_groups/default/events", 1, "default.events is of type int"),
        ("components/1/event_groups/default/events/16777216", {}, "key '16777216' in"),
        ("components/1/event_groups/default/events/7/message", 1, "events.7.message is of type int"),
        ("components/1/event_groups/default/events/7/message", "x" * 20000, "events.7.message is too long"),
        (
            "components/1/event_groups/default/events/7/message",
            "\ud800",
            "events.7.message is too long or not",
        ),
        ("components/1/event_groups/default/events/7/arguments", {}, "events.7.arguments is of type dict"),
        ("components/1/event_groups/default/events/7/arguments", [5], r"arguments\[0\] is of type int"),
        ("components/1/event_groups/default/events/7/arguments", [{}], r"arguments\[0\].type is missing"),
        ("components/1/event_groups/default/events/7/type", 5, "events.7.type is of type int"),
    ],
)
def test_invalid_json_error_names_its_path(path: str, value: object, expected: str) -> None:
    content: Any = copy.deepcopy(document("{1}", ["mode_t"]))
    *parents, last = path.split("/")
    owner = content
    for key in parents:
        owner = owner[key]
    if last:
        owner[last] = value
    else:
        content = value
    with pytest.raises(DefinitionError, match=expected):
        load(pack(content))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "cut off"),
        (b"not xz at all", "not a sound XZ stream"),
        (pack({})[:-1], "cut off"),
        (pack({})[:20], "cut off"),
        (lzma.compress(b"\xff{}"), "not JSON"),
        (lzma.compress(b"{'a': 1}"), "not JSON"),
        (lzma.compress(b"[" * 200_000), "not JSON"),
        (lzma.compress(b"1" * 10_000), "not JSON"),
        (lzma.compress(bytes(64 << 20), preset=0), "the limit event_json_bytes"),
    ],
    ids=["empty", "no-xz", "one-short", "cut", "no-utf8", "no-json", "deep", "big-number", "bomb"],
)
def test_damaged_xz_streams_are_refused(data: bytes, expected: str) -> None:
    with pytest.raises(DefinitionError, match=expected):
        load(data)


def test_huge_xz_dictionary_is_refused() -> None:
    stream = bytearray(lzma.compress(b"{}", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 4096}]))
    # Writing with a dictionary of 4 GiB would itself take gigabytes, so claim it afterwards: in the block
    # header, after the stream header of 12 bytes, filter id 0x21 with one property byte; CRC32 at the end.
    end = 12 + (stream[12] + 1) * 4
    stream[stream.index(b"\x21\x01", 12) + 2] = 40
    stream[end - 4 : end] = struct.pack("<I", zlib.crc32(stream[12 : end - 4]))
    with pytest.raises(DefinitionError, match="Memory usage limit"):
        load(bytes(stream))


GOOD = pack(document("Text {1} {2:.1m} <a>x</a>", ["sides_t", "float"], "More {3}"))


@given(st.data())
@settings(max_examples=half(300), deadline=None)
def test_damaged_definitions_raise_only_definition_errors(data: st.DataObject) -> None:
    damaged = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(GOOD) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(GOOD)))
    for content in (bytes(damaged), GOOD[:cut]):
        try:
            definitions = load(content)
        except DefinitionError:
            continue
        assert definitions.sentence(EVENT, bytes(25)).message


@given(
    st.text(alphabet='\\<>/{}:.=" aprm_vofile1239n\n', max_size=60),
    st.binary(max_size=25),
    st.integers(0, 255),
)
@settings(max_examples=half(300), deadline=None)
def test_any_template_and_arguments_give_text(template: str, arguments: bytes, log_levels: int) -> None:
    definitions = load(pack(document(template, ["sides_t", "float", "top_t"], template)))
    event = definitions.sentence(EVENT, arguments, log_levels)
    assert isinstance(event.message, str)
    assert isinstance(event.description, str)


def test_events_replace_strings_that_end_in_tab() -> None:
    definitions = load(pack(document("Takeoff {1}", ["uint8_t"])))
    strings = [Line(5, 6, "boot"), Line(8, 6, "[cmd] Takeoff\t"), Line(8, 4, "after"), Line(1, 3, "late")]
    rows = [Row(8, EVENT, b"\x01", 0x66), Row(9, EVENT, b"\x01", 0x86), Row(2, 3, b"", 0x26)]
    assert events.lines(strings, rows, definitions) == [
        Line(1, 3, "late"),
        Line(2, 2, "[unknown event 0x00000003, no arguments]"),
        Line(5, 6, "boot"),
        Line(8, 6, "Takeoff 1"),
        Line(8, 4, "after"),
    ]
    assert events.lines(strings, rows, None) == [
        Line(1, 3, "late"),
        Line(5, 6, "boot"),
        Line(8, 6, "[cmd] Takeoff"),
        Line(8, 4, "after"),
    ]
