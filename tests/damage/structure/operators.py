"""Structure-aware damage: ``mutate(data, structure, seed)`` changes fields and records that a walker found.

Each operator takes the bytes, their structure and a random generator, and returns other bytes. The structure is that of
the bytes that an operator gets, so several are applied by walking again where the result can still be walked.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from damage.structure.definitions import recursive_definition
from damage.structure.model import Stated, Structure

Operator = Callable[[bytes, Structure, random.Random], bytes]
#: Values of lengths, counts and places at which arithmetic goes wrong.
EXTREMES = (
    0,
    1,
    2**7,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**31,
    2**32 - 2,
    2**32 - 1,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
)
#: Most records that one operator adds, so that a mutant stays small; test_structured_mutants.py has logs with 65 000.
MANY = 100

#: Records that declare a channel, each with the field of its number.
DECLARATIONS = {"connection": "conn", "channel": "id", "A": "msg id", "definition": "", "descriptor": ""}


def _numbers(structure: Structure) -> list[Stated]:
    return [one for one in structure.fields if one.how in ("int", "varint", "digits")]


def _part(structure: Structure, rng: random.Random) -> tuple[int, int, str]:
    return rng.choice(structure.records)


def extreme_value(data: bytes, structure: Structure, rng: random.Random) -> bytes:
    """Write an extreme value into a field, or one near the value or the number of bytes that are left."""
    field = rng.choice(_numbers(structure))
    value, left = field.value(data), len(data) - field.end
    near = (value + 1, value - 1, 2 * value, left, left + 1, left - 1, len(data), -1)
    return field.with_value(data, rng.choice((*EXTREMES, *near)) & field.greatest if field.greatest else 0)


def swapped_fields(data: bytes, structure: Structure, rng: random.Random) -> bytes:
    """Exchange the values of two fields of one name, or of any name."""
    one = rng.choice(_numbers(structure))
    alike = structure.named(one.name) if rng.random() < 0.7 else _numbers(structure)
    other = rng.choice(alike)
    first, second = one.value(data), other.value(data)
    return other.with_value(one.with_value(data, second), first)


def self_reference(data: bytes, structure: Structure, rng: random.Random) -> bytes:
    """Let a field name its own place, that of its record, or that of another record: places and lengths overlap."""
    field = rng.choice(_numbers(structure))
    begin, end, _ = _part(structure, rng)
    inside = [part for part in structure.records if part[0] <= field.at < part[1]]
    places = [field.at, begin, end, end - begin, *(part[0] for part in inside[-1:]), 0]
    return field.with_value(data, rng.choice(places))


def swapped_records(data: bytes, structure: Structure, rng: random.Random) -> bytes:
    """Exchange two records."""
    (a, b, _), (c, d, _) = sorted((_part(structure, rng), _part(structure, rng)))
    return data if b > c else data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def duplicated_record(data: bytes, structure: Structure, rng: random.Random) -> bytes:
    """Repeat a record, often many times, behind itself or elsewhere."""
    begin, end, _ = _part(structure, rng)
    at = rng.choice((end, end, _part(structure, rng)[1]))
    return (
        data[:at]
        + data[begin:end] * rng.choice((1, 1, 2, 17, min(MANY, 1 + 60_000 // (end - begin + 1))))
        + data[at:]
    )


def dropped_record(data: bytes, structure: Structure, rng: random.Random) -> bytes:
    """Leave out a record."""
    begin, end, _ = _part(structure, rng)
    return data[:begin] + data[end:]


def overlapping_record(data: bytes, structure: Structure, rng: random.Random) -> bytes:
    """Begin a copy of a record in the middle of another one, whose end stays."""
    begin, end, _ = _part(structure, rng)
    first, last, _ = _part(structure, rng)
    at = rng.randrange(first, last)
    return data[:at] + data[begin:end] + data[at + end - begin :]


def spliced(data: bytes, structure: Structure, rng: random.Random) -> bytes:
    """Join the beginning of the file up to one record with its end from another one."""
    return data[: _part(structure, rng)[rng.randrange(2)]] + data[_part(structure, rng)[rng.randrange(2)] :]


def nested(data: bytes, structure: Structure, rng: random.Random) -> bytes:
    """Put a record, or the whole file, into another record."""
    begin, end, _ = _part(structure, rng)
    first, last, _ = _part(structure, rng)
    at = rng.randrange(first, last)
    inner = data if rng.random() < 0.2 else data[begin:end]
    return data[:at] + inner + data[at:]


def many_channels(data: bytes, structure: Structure, rng: random.Random) -> bytes:
    """Declare many channels: a declaration is repeated with other numbers and topics."""
    return declared(data, structure, rng.choice((17, 40, MANY)), rng.random() < 0.5)


def declared(data: bytes, structure: Structure, count: int, rename: bool) -> bytes:
    """Return *data* with *count* declarations behind the last one of a channel, or as many as there are numbers.

    rename  give each a topic of its own, where declarations name topics
    """
    of = [part for part in structure.records if part[2].removeprefix("inner ") in DECLARATIONS]
    if not of:
        return data
    begin, end, kind = of[-1]
    own = Structure(end - begin)
    for one in structure.inside(begin, end):
        own.add(one.name, one.at - begin, one.width, one.how)
    record = data[begin:end]
    number = next(iter(own.named(f"{kind} {DECLARATIONS[kind.removeprefix('inner ')]}")), None)
    topic = next(iter(own.named(f"{kind} topic")), None)
    if rename and topic is not None:
        record = own.replaced(record, topic.at, topic.end, b"/%08d" % 0)
    out, first = [data[begin:end]], number.value(record) + 1 if number else 0
    for n in range(first, min(first + count, number.greatest + 1 if number else first + count)):
        one = number.with_value(record, n) if number else record
        if rename and topic is not None:
            one = one[: topic.at] + b"/%08d" % n + one[topic.at + 9 :]
        out.append(one)
    return structure.replaced(data, begin, end, b"".join(out))


def overwritten_text(data: bytes, structure: Structure, rng: random.Random) -> bytes:
    """Write one text over another, at the same width: names of types become names of their members, and so on."""
    texts = [one for one in structure.fields if one.how == "raw" and one.width > 2]
    if not texts:
        return data
    one, other = rng.choice(texts), rng.choice(texts)
    text = data[other.at : other.end]
    fit = (text * (one.width // len(text) + 1))[: one.width]
    at = one.at + (rng.randrange(one.width) if rng.random() < 0.3 else 0)
    return data[:at] + fit[: one.end - at] + data[one.end :]


OPERATORS: tuple[Operator, ...] = (
    extreme_value,
    extreme_value,
    swapped_fields,
    self_reference,
    swapped_records,
    duplicated_record,
    dropped_record,
    overlapping_record,
    spliced,
    nested,
    overwritten_text,
    recursive_definition,
    many_channels,
)


def mutate(data: bytes, walk: Callable[[bytes], Structure], seed: int) -> bytes:
    """Return *data* with one to three kinds of damage, the same for the same *seed*."""
    rng = random.Random(seed)
    for _ in range(rng.choice((1, 1, 2, 3))):
        try:
            structure = walk(data)
            if structure.records and _numbers(structure):
                data = rng.choice(OPERATORS)(data, structure, rng)
        except (ArithmeticError, LookupError, ValueError, struct.error):
            # What was damaged before cannot be walked any more.
            break
    return data
