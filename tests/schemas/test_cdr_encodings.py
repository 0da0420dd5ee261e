"""Messages in all encodings of CDR: those of Eclipse Cyclone DDS, and any type beside a plain writer and reader."""

from __future__ import annotations

import json
import random
import struct
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import DamagedError, DefinitionError
from logreel.index.gather import PayloadRange
from logreel.layout.arrow import select_decoded
from logreel.layout.projection import Projection
from logreel.schemas import ros2idl, ros2msg
from logreel.schemas.cdr import CdrDecoder
from support.harness.examples import half
from support.harness.guard import guarded
from support.oracles import plain_cdr
from support.oracles.plain_cdr import Bad, Member, Type
from support.samples.rosbag2.builder import START

IDL = {
    "?": "boolean",
    "B": "octet",
    "b": "int8",
    "h": "short",
    "H": "unsigned short",
    "i": "long",
    "I": "unsigned long",
    "q": "long long",
    "Q": "unsigned long long",
    "f": "float",
    "d": "double",
    "text": "string",
    "wide": "wstring",
    "enum": "Color",
}
EXTENSIBILITIES = ("final", "appendable", "mutable")


def decoder(text: str, name: str = "x/msg/All") -> CdrDecoder:
    return CdrDecoder(name, ros2idl.parse(text, name))


def columns(reader: CdrDecoder, payloads: list[bytes]) -> tuple[list[dict[str, Any]], Any]:
    """Return messages as the rows of a table, and what was decoded."""
    ends = np.cumsum([len(data) for data in payloads])
    sizes = np.array([len(data) for data in payloads], np.int64)
    # A byte read behind the last one ends the process.
    data = guarded(b"".join(payloads))
    piece = PayloadRange(data, ends - sizes, sizes)
    projection, names = shape_of(reader)
    got = reader.decode_batch(None, projection.part, piece, np.arange(len(payloads)))  # type: ignore[arg-type]
    arrays = select_decoded(projection, got, True).arrays
    values = zip(*(array.to_pylist() for array in arrays), strict=True)
    return [dict(zip(names, row, strict=True)) for row in values], got


@lru_cache(maxsize=4)
def shape_of(reader: CdrDecoder) -> tuple[Projection, list[str]]:
    """Return the Projection of all fields, and their names."""
    projection = Projection(reader.layout)
    return projection, [f.name for f in projection.arrow_fields()]


class Maker:
    """Random types, their IDL, and values of them."""

    def __init__(self, seed: str, optional: bool = True) -> None:
        self.rng, self.optional, self.structs = random.Random(seed), optional, list[str]()

    def type(self, extensibility: str = "", depth: int = 0) -> tuple[Type, str]:
        """Return a type and its name."""
        rng = self.rng
        extensibility = extensibility or rng.choice(EXTENSIBILITIES)
        members, lines, ids = list[Member](), list[str](), set[int]()
        for n in range(rng.randrange(1, 8)):
            what, base, size = self.what(depth)
            optional = self.optional and rng.random() < 0.2
            number = rng.choice((n + 1000, n, 0x3F10 + n, (1 << 27) + n))
            if number in ids:
                continue
            ids.add(number)
            members.append(Member(f"m{n}", number, what, optional))
            lines.append(f"@id({number}) {'@optional ' if optional else ''}{base} m{n}{size};")
        name = f"T{len(self.structs)}" if depth else "All"
        self.structs.append(f"@{extensibility} struct {name} {{ {' '.join(lines)} }};")
        return Type(extensibility, tuple(members)), name

    def what(self, depth: int) -> tuple[Any, str, str]:
        rng = self.rng
        if depth < 3 and rng.random() < 0.3:
            item, base = self.type(depth=depth + 1)
        else:
            item = rng.choice([name for name in IDL if name != "wide"])
            base = IDL[item]
        shape = rng.randrange(4)
        if shape == 1:
            return [item], f"sequence<{base}>", ""
        if shape == 2 and item != "B":
            return [item, 3], base, "[3]"
        return item, base, ""

    def idl(self) -> str:
        return f"module x {{ module msg {{ enum Color {{ A, B }}; {' '.join(self.structs)} }}; }};"

    def values(self, what: Any) -> Any:
        rng = self.rng
        if isinstance(what, Type):
            return {
                m.name: None if m.optional and rng.random() < 0.5 else self.values(m.what)
                for m in what.members
            }
        if isinstance(what, list):
            found = [self.values(what[0]) for _ in range(what[1] if len(what) > 1 else rng.randrange(4))]
            return bytes(found) if what == ["B"] else found
        if what == "text":
            return rng.choice(("", "x", "seven__", "ärger"))
        if what == "?":
            return rng.random() < 0.5
        if what in "fd":
            return rng.randrange(1000) / 8
        return rng.randrange(2) if what == "enum" else rng.randrange(100)


@pytest.mark.parametrize(
    "case", json.loads(Path(__file__).with_name("cdr_of_cyclonedds.json").read_text("utf-8"))
)
def test_messages_of_cyclonedds_have_its_values(case: dict[str, Any]) -> None:
    """Version 11.0.1 wrote them: each extensibility of a type and of a part, both versions, both orders of bytes."""
    reader, payloads, due = decoder(case["idl"]), list[bytes](), list[dict[str, Any]]()
    for message in case["messages"]:
        payloads.append(bytes.fromhex(message["hex"]))
        due.append(message["values"] | {"raw": bytes(message["values"]["raw"])})
    assert len({data[:2] for data in payloads}) == 4
    assert [reader.decode_message(None, memoryview(data), None) for data in payloads] == due  # type: ignore[arg-type]
    rows, got = columns(reader, payloads)
    assert (rows, got.bad, len(got.leftover)) == (due, [], 0)


@pytest.mark.parametrize("extensibility", EXTENSIBILITIES)
@pytest.mark.parametrize("seed", range(half(25)))
def test_any_type_is_read_as_it_was_written(extensibility: str, seed: int) -> None:
    maker = Maker(f"{extensibility} {seed}", optional=seed % 2 == 0)
    kind, _ = maker.type(extensibility)
    reader = decoder(maker.idl())
    due, payloads = list[dict[str, Any]](), list[bytes]()
    for version in (1, 2):
        for big in (False, True):
            for _ in range(3):
                due.append(maker.values(kind))
                payloads.append(plain_cdr.write(kind, due[-1], version, big))
                assert plain_cdr.read(kind, payloads[-1]) == (due[-1], 0)
    assert [reader.decode_message(None, memoryview(data), None) for data in payloads] == due  # type: ignore[arg-type]
    rows, got = columns(reader, payloads)
    assert (rows, got.bad, len(got.leftover)) == (due, [], 0)


@pytest.mark.parametrize("extensibility", EXTENSIBILITIES)
@pytest.mark.parametrize("seed", range(12))
def test_damaged_messages_are_read_as_by_the_plain_reader(extensibility: str, seed: int) -> None:
    maker = Maker(f"damaged {extensibility} {seed}", optional=seed % 2 == 0)
    kind, _ = maker.type(extensibility)
    reader, rng, agreed = decoder(maker.idl()), maker.rng, 0
    for n in range(half(60)):
        data = bytearray(plain_cdr.write(kind, maker.values(kind), 1 + n % 2, n % 4 > 1))
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 255, rng.randrange(256)))
        if n % 3 == 0:
            del data[rng.randrange(len(data)) :]
        try:
            due: Any = plain_cdr.read(kind, bytes(data))
        except Bad:
            due = None
        try:
            found: Any = reader.decode_message(None, memoryview(data), None)  # type: ignore[arg-type]
        except DamagedError:
            found = None
        assert repr(found) == repr(None if due is None else due[0]), bytes(data).hex()
        rows, got = columns(reader, [bytes(data)])
        if due is None:
            assert (rows, len(got.bad)) == ([], 1)
        else:
            assert repr(rows) == repr([due[0]])
            assert len(got.leftover) == (due[1] > 3)
            agreed += 1
    assert agreed


PLAIN = Type(
    "final",
    (
        Member("flag", 0, "?"),
        Member("d", 1, "d"),
        Member("name", 2, "text"),
        Member("words", 3, ["text"]),
        Member("nums", 4, ["H", 3]),
        Member("last", 5, "d"),
    ),
)
PLAIN_TEXT = "bool flag\nfloat64 d\nstring name\nstring[] words\nuint16[3] nums\nfloat64 last\n"
VALUES = [
    {"flag": n % 2 == 0, "d": n / 4, "name": "x" * n, "words": ["ab"] * n, "nums": [n, 2, 3], "last": 7.5}
    for n in range(20)
]


def written(path: Path, schema: logreel.Schema, payloads: list[bytes]) -> logreel.Log:
    with logreel.create(path) as w:
        channel = w.add_channel("/a", schema, {"message_encoding": "cdr"} if path.suffix == ".mcap" else {})
        for n, data in enumerate(payloads):
            w.write(channel, START + n, data)
    return logreel.open(path)


@pytest.mark.parametrize("suffix", [".db3", ".mcap"])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("extensibility", EXTENSIBILITIES)
@pytest.mark.parametrize("big", [False, True])
def test_bags_and_mcap_have_messages_in_any_encoding(
    tmp_path: Path, suffix: str, version: int, extensibility: str, big: bool
) -> None:
    """The first bytes of messages say what definitions in ``.msg`` do not: the extensibility of their type."""
    kind = Type(extensibility, PLAIN.members)
    payloads = [plain_cdr.write(kind, values, version, big) for values in VALUES]
    log = written(tmp_path / f"a{suffix}", logreel.Schema("x/msg/All", "ros2msg", PLAIN_TEXT), payloads)
    assert [m.decode() for m in log.messages()] == VALUES
    assert [bytes(m.data) for m in log.messages()] == payloads
    rows = log.table("/a").to_pylist()
    assert [{name: row[name] for name in VALUES[0]} for row in rows] == VALUES
    assert log["/a"]["d"].tolist() == [values["d"] for values in VALUES]
    assert log["/a"].to_arrow(fields=["last", "name"])["name"].to_pylist() == [v["name"] for v in VALUES]
    assert log.problems == ()
    # They are copied as they are, into both.
    for copy in ("b.db3", "b.mcap"):
        logreel.convert(tmp_path / f"a{suffix}", tmp_path / copy)
        assert [m.decode() for m in logreel.open(tmp_path / copy).messages()] == VALUES


@pytest.mark.parametrize("suffix", [".db3", ".mcap"])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize(("unit", "octets"), [(4, False), (2, True), (2, False)])
def test_wide_text_is_read_in_all_ways_of_writing_it(
    tmp_path: Path, suffix: str, version: int, big: bool, unit: int, octets: bool
) -> None:
    kind = Type(
        "final", (Member("n", 0, "B"), Member("a", 1, "wide"), Member("b", 2, ["wide"]), Member("d", 3, "d"))
    )
    words = ("", "a", "Ärger", "\u20ac \U0001f600", "seven__")
    due = [
        {"n": n, "a": words[n % 5], "b": [words[(n + k) % 5] for k in range(n % 4)], "d": n / 2}
        for n in range(30)
    ]
    payloads = [plain_cdr.write(kind, values, version, big, unit, octets) for values in due]
    text = "uint8 n\nwstring<=9 a\nwstring[] b\nfloat64 d\n"
    log = written(tmp_path / f"a{suffix}", logreel.Schema("x/msg/All", "ros2msg", text), payloads)
    assert [m.decode() for m in log.messages()] == due
    assert log["/a"].to_arrow()["a"].to_pylist() == [values["a"] for values in due]
    assert log.problems == ()


def test_messages_with_wide_text_are_written_as_bytes_alone(tmp_path: Path) -> None:
    """Nobody could say for which middleware."""
    with logreel.create(tmp_path / "a.db3") as w:
        channel = w.add_channel("/a", logreel.Schema("x/msg/A", "ros2msg", "wstring a\n"))
        with pytest.raises(DefinitionError, match="its messages are bytes"):
            w.write(channel, START, {"a": "x"})


def test_halves_of_surrogate_pairs_are_replaced() -> None:
    reader = CdrDecoder("x/A", ros2msg.parse("wstring a\n", "x/A"))
    for units, due in ((b"\x3d\xd8", "\ufffd"), (b"\x41\0\0\xdc", "A\ufffd"), (b"\x41\0\0\0", "A")):
        data = b"\0\x07\0\0" + len(units).to_bytes(4, "little") + units
        assert reader.decode_message(None, memoryview(data), None) == {"a": due}  # type: ignore[arg-type]


@pytest.mark.parametrize("part", ["final", "appendable"])
@pytest.mark.parametrize("top", EXTENSIBILITIES)
def test_samples_tell_what_parts_are_that_state_no_extensibility(tmp_path: Path, top: str, part: str) -> None:
    """Compilers of IDL differ in that. The message with a 4 alone could be either."""
    pose = Type(part, (Member("a", 0, "I"), Member("b", 1, "I")))
    kind = Type(top, (Member("pose", 0, pose),))
    text = f"module x {{ struct P {{ unsigned long a, b; }}; @{top} struct All {{ P pose; }}; }};"
    due = [{"pose": {"a": a, "b": 8}} for a in (1000, 4, 4, 2000, 4)]
    payloads = [plain_cdr.write(kind, values, 2, False) for values in due]
    for suffix in (".db3", ".mcap"):
        log = written(tmp_path / f"a{suffix}", logreel.Schema("x/All", "ros2idl", text), payloads)
        assert [m.decode() for m in log.messages()] == due
        assert log.table("/a")["pose"].to_pylist() == [values["pose"] for values in due]
        assert log.problems == ()


def test_parts_are_as_the_type_where_no_type_states_what_it_is() -> None:
    pose = (Member("x", 0, "d"), Member("id", 1, "B"))
    text = "module x { struct P { double x; octet id; }; struct All { P a; sequence<P> b; }; };"
    reader, due = decoder(text, "x/All"), {"a": {"x": 1.5, "id": 3}, "b": [{"x": 2.5, "id": 4}] * 3}
    for part in EXTENSIBILITIES:
        kind = Type(part, (Member("a", 0, Type(part, pose)), Member("b", 1, [Type(part, pose)])))
        for version in (1, 2):
            data = plain_cdr.write(kind, due, version, True)
            assert reader.decode_message(None, memoryview(data), None) == due  # type: ignore[arg-type]


def test_members_that_later_versions_add_are_passed_and_missing_ones_are_zero() -> None:
    new = (Member("a", 5, "d"), Member("b", 6, "text"), Member("c", 8, ["I"]))
    for extensibility in ("appendable", "mutable"):
        annotated = f"@{extensibility} struct All"
        longer = decoder(
            f"module x {{ {annotated} {{ @id(5) double a; string b; @id(8) sequence<unsigned long> c; }}; }};",
            "x/All",
        )
        shorter = decoder(f"module x {{ {annotated} {{ @id(5) double a; }}; }};", "x/All")
        for version in (1, 2) if extensibility == "mutable" else (2,):
            values = {"a": 2.5, "b": "more", "c": [1, 2]}
            data = plain_cdr.write(Type(extensibility, new[:1]), values, version, False)
            due = {"a": 2.5, "b": "", "c": []}
            assert longer.decode_message(None, memoryview(data), None) == due  # type: ignore[arg-type]
            data = plain_cdr.write(Type(extensibility, new[:2]), values, version, False)
            assert shorter.decode_message(None, memoryview(data), None) == {"a": 2.5}  # type: ignore[arg-type]


def test_a_member_that_must_be_understood_is_not_passed() -> None:
    reader = decoder("module x { @mutable struct A { @id(4) octet a; }; };", "x/A")
    for must, head in ((False, 1), (True, 0x80000001)):
        body = struct.pack("<IBxxxIB", 4, 7, head, 9)
        data = b"\0\x0b\0\0" + struct.pack("<I", len(body)) + body
        if must:
            with pytest.raises(DamagedError, match="PL_CDR2"):
                reader.decode_message(None, memoryview(data), None)  # type: ignore[arg-type]
        else:
            assert reader.decode_message(None, memoryview(data), None) == {"a": 7}  # type: ignore[arg-type]


def test_messages_of_several_encodings_are_read_by_their_own_first_bytes() -> None:
    payloads = [
        plain_cdr.write(Type(extensibility, PLAIN.members), values, version, big)
        for values in VALUES[:4]
        for extensibility in EXTENSIBILITIES
        for version in (1, 2)
        for big in (False, True)
    ]
    reader = CdrDecoder("x/All", ros2msg.parse(PLAIN_TEXT, "x/All"))
    rows, got = columns(reader, [b"", *payloads, b"\xff\xff" + bytes(40), b"\0"])
    assert rows == [values for values in VALUES[:4] for _ in range(12)]
    assert [row for row, _ in got.bad] == [0, 49, 50]
    assert "ff ff" in got.bad[1][1]


def test_absent_members_cannot_fill_the_memory() -> None:
    """A message may lack a large array once, but not so often that some bytes become megabytes."""
    reader = decoder(
        "module x { @mutable struct P { double a[500]; }; @mutable struct A { sequence<P> p; }; };", "x/A"
    )
    for n, sound in ((1, True), (100, False)):
        parts = struct.pack("<I", n) + struct.pack("<I", 0) * n
        body = struct.pack("<III", 4 << 28, len(parts) + 4, len(parts)) + parts
        data = b"\0\x0b\0\0" + struct.pack("<I", len(body)) + body
        if sound:
            assert reader.decode_message(None, memoryview(data), None) == {"p": [{"a": [0.0] * 500}]}  # type: ignore[arg-type]
            continue
        with pytest.raises(DamagedError):
            reader.decode_message(None, memoryview(data), None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("struct A { @id(3) long a; @id(3) long b; };", "two members of one id"),
        ("struct A { x::B a; };", "B is missing"),
        ("struct A { A a; };", "contains itself"),
        ("struct B { long a[0]; }; struct A { sequence<B> a; };", "without bytes"),
    ],
)
def test_types_that_cannot_be_read_are_refused(text: str, why: str) -> None:
    with pytest.raises(DefinitionError, match=why):
        decoder(f"module x {{ {text} }};", "x/A")


def test_ids_of_members_that_are_made_of_their_names_are_those_of_the_specification() -> None:
    """Its example (7.3.1.2.1.1); the messages of Cyclone DDS have such ids, too."""
    assert ros2idl.hashed_id("color") == 0x0FA5DD70
