"""Operator that writes definitions which contain themselves, are very deep, or grow without bound when expanded."""

from __future__ import annotations

import json
import random
import re
import struct
from collections.abc import Callable

from damage.structure.model import Stated, Structure

#: Levels of definitions that are deep, and of definitions whose expansion doubles with every level.
DEEP, DOUBLING = 400, 40


def ros(name: str, rng: random.Random) -> bytes:
    """Return a definition of messages *name* in the language of ROS 1 and ROS 2."""
    if rng.random() < 0.4:
        parts = [f"{name} one\n{name}[] more\n", f"MSG: {name}\n{name}[{1 << 31}] inside\n"]
    else:
        levels, fields = rng.choice(((DEEP, 1), (DOUBLING, 2), (DOUBLING, 9)))
        parts = ["".join(f"some/T0 f{i}\n" for i in range(fields))]
        for n in range(levels):
            of = f"some/T{n + 1}" if n + 1 < levels else rng.choice(("some/T0", "uint8", "some/Missing"))
            parts.append(f"MSG: some/T{n}\n" + "".join(f"{of} f{i}\n" for i in range(fields)))
    return f"{'=' * 80}\n".join(parts).encode()


def json_schema(name: str, rng: random.Random) -> bytes:
    """Return a JSON schema."""
    own = {"type": "object", "properties": {"word": {"$ref": "#"}, "words": {"items": {"$ref": "#"}}}}
    named = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    double = {
        f"d{n}": {
            "type": "object",
            "properties": {key: {"$ref": f"#/$defs/d{n + 1}"} for key in ("one", "two")},
        }
        for n in range(DOUBLING)
    }
    grown = {"$ref": "#/$defs/d0", "$defs": {**double, f"d{DOUBLING}": {"type": "string"}}}
    deep = b'{"type":"array","items":' * DEEP + b"{}" + b"}" * DEEP
    return rng.choice((*(json.dumps(one).encode() for one in (own, named, grown)), deep, b"[" * 100_000))


def recursive_definition(data: bytes, structure: Structure, rng: random.Random) -> bytes:
    """Write a definition that contains itself, is very deep, or doubles with every level; lengths are adapted."""
    fields = [one for one in structure.fields if one.name.endswith(tuple(LANGUAGES))]
    if not fields:
        return data
    one = rng.choice(fields)
    if one.name == "F text":
        return _ulog(data, structure, one, rng)
    kind = one.name.rpartition(" ")[0]
    names = [data[t.at : t.end] for t in structure.fields if t.name in (f"{kind} type", f"{kind} name")]
    name = rng.choice(names or [b"some/T0"]).decode("utf-8", "replace")
    text = next(make for end, make in LANGUAGES.items() if one.name.endswith(end))(name, rng)
    return structure.replaced(data, one.at, one.end, text)


def _ulog(data: bytes, structure: Structure, one: Stated, rng: random.Random) -> bytes:
    """Return a ULog in which a format is replaced by formats, of which each is a member of another one."""
    name = data[one.at : one.end].partition(b":")[0]
    levels, fields = rng.choice(((1, 1), (2, 1), (DEEP, 1), (DOUBLING, 2), (DOUBLING, 9), (1, 900)))
    size = rng.choice((b"", b"", b"[3]", b"[%d]" % (1 << 31), b"[0]"))
    last = rng.choice((name, b"float", b"missing"))
    out = []
    for n in range(levels):
        of = b"level%d" % (n + 1) if n + 1 < levels else last
        members = b"".join(b"%s%s f%d;" % (of, size, i) for i in range(fields))
        text = b"%s:uint64_t timestamp;%s" % (b"level%d" % n if n else name, members)
        out.append(struct.pack("<HB", len(text), ord("F")) + text)
    begin, end, _ = next(part for part in structure.records if part[0] <= one.at < part[1])
    return data[:begin] + b"".join(out) + data[end:]


#: Ends of the names of fields with definitions, and what writes one in their language.
LANGUAGES: dict[str, Callable[[str, random.Random], bytes]] = {
    "message_definition": ros,
    "definition def": ros,
    "schema data": json_schema,
    "F text": ros,
}


_TOKEN = re.compile(rb"\w+|\s+|[^\w\s]")
#: What is written into definitions: numbers at limits, and texts that languages treat in their own way.
WORDS = (
    *(str(number).encode() for number in (0, -1, 255, 65_536, 2**31, 2**32 - 1, 2**63, 2**64, 10**30)),
    b"[]", b"[", b"]", b"[3]", b"{}", b"}", b"<=", b":", b";", b"=", b"#", b"/", b"..", b"\n", b"\0", b'"', b"\xff",
    b"Header", b"string", b"wstring", b"bool", b"time", b"float64", b"char", b"null", b"true", b"1e999", b"NaN",
    b'{"$ref":"#"}', b"=" * 80 + b"\nMSG: a/B\n", b"\xe2\x80\xae", b" " * 300, b"a" * 5000, b"(" * 200,
)  # fmt: skip


def mutate_text(data: bytes, seed: int) -> bytes:
    """Return *data* with words exchanged, repeated, left out or replaced, the same for the same *seed*."""
    rng = random.Random(seed)
    tokens: list[bytes] = _TOKEN.findall(data) or [b""]
    for _ in range(rng.choice((1, 1, 2, 4, 12))):
        at, other = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        kind = rng.randrange(6)
        if kind == 0:
            tokens[at] = rng.choice(WORDS)
        elif kind == 1:
            tokens.insert(at, rng.choice(WORDS))
        elif kind == 2:
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif kind == 3:
            tokens[at] = tokens[other]
        elif kind == 4:
            lo, hi = sorted((at, other))
            tokens[lo:hi] = tokens[lo:hi] * rng.choice((0, 2, 2, 40))
        else:
            del tokens[at:]
        tokens = tokens[:5000] or [b""]
    return b"".join(tokens)
