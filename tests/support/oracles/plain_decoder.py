"""The twin of ``kernels.layout_decode`` in plain Python: closures over ``struct.Struct``, with its errors."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NoReturn

import numpy as np

from logreel.errors import DamagedError, Problem
from logreel.layout.decode import CODES
from logreel.layout.nodes import (
    HIDDEN,
    MAX_LEAVES,
    SCALARS,
    Align,
    Bytes,
    Expect,
    Field,
    FixedArray,
    Grid,
    Measure,
    Node,
    Padding,
    Rest,
    Scalar,
    Sequence,
    Skip,
    String,
    Struct,
    Time,
    measure,
    size_of,
)

#: Read one value at a position, return it and where it ends.
Read = Callable[[memoryview, int], tuple[Any, int]]
#: Build one value from the scalars of its run.
Build = Callable[[Iterator[Any]], Any]
#: Read some members at a position into a dict, return where they end.
Part = Callable[[memoryview, int, dict[str, Any]], int]

_LENGTHS = {1: struct.Struct("<B"), 2: struct.Struct("<H"), 4: struct.Struct("<I")}


def decoder(root: Struct | Sequence) -> Callable[[memoryview], dict[str, Any]]:
    """Return a function from the bytes of one message to a dict of the visible members of *root*, in file order.

    Numbers are int, float and bool; Time is int ns; text is str, with replacement characters where it is not
    UTF-8; char arrays end at the first NUL; opaque bytes and counted arrays of uint8 or char are bytes; other
    arrays are lists. Where a message contains many records the dict is ``{"records": [...]}``. Bytes after the
    last member are ignored. The function raises DamagedError (code ``truncated``) when a message ends early.
    """
    read = _reader(root, {})
    has_records = isinstance(root, Sequence)
    check = _count_checker(root)

    def decode(data: memoryview) -> dict[str, Any]:
        if check is not None:
            check(data)
        value, _ = read(memoryview(data).cast("B"), 0)
        return {"records": value} if has_records else value

    return decode


def _count_checker(root: Struct | Sequence) -> Callable[[memoryview], None] | None:
    """Return a function that rejects messages with too many items without bytes; None if *root* has no such items."""
    if not _has_empty_items(root, {}):
        return None
    from logreel.kernels import layout as kernel
    from logreel.layout.program import compile_root

    program = compile_root(root)

    def check(data: memoryview) -> None:
        source = np.frombuffer(data, np.uint8) if len(data) else np.zeros(0, np.uint8)
        stop, status = np.array([len(source)], np.int64), np.zeros(1, np.uint8)
        counts = np.zeros(len(program.columns), np.int64)
        kernel.count(source, np.zeros(1, np.int64), stop, program.ops, counts, status)
        if status[0] == kernel.TOO_MANY:
            _raise_too_many_items(len(source))

    return check


def _raise_too_many_items(size: int) -> NoReturn:
    from logreel.kernels.layout import SPARE

    text = f"the message claims more items without bytes than its {size} bytes and {SPARE} more"
    raise DamagedError(Problem("payload", 0, size, True, text))


def _has_empty_items(node: Node, known: dict[int, bool]) -> bool:
    """Return whether any counted array in *node* has items without bytes; takes time by distinct nodes."""
    if id(node) not in known:
        match node:
            case Sequence(item=item):
                known[id(node)] = size_of(item) == 0 or _has_empty_items(item, known)
            case FixedArray(item=item) | Skip(node=item):
                known[id(node)] = _has_empty_items(item, known)
            case Struct(fields=fields):
                known[id(node)] = any(_has_empty_items(f.node, known) for f in fields)
            case _:
                known[id(node)] = False
    return known[id(node)]


def _raise_truncated(data: memoryview, pos: int, need: int) -> NoReturn:
    text = f"the message ends too early: {need} bytes expected at byte {pos} of {len(data)}"
    raise DamagedError(Problem("truncated", pos, max(0, len(data) - pos), True, text))


def _text(raw: bytes | memoryview) -> str:
    return bytes(raw).decode("utf-8", "replace")


def _padded_text(raw: bytes) -> str:
    return _text(raw.partition(b"\0")[0])


def _reader(node: Node, sizes: dict[int, Measure]) -> Read:
    extent = measure(node, sizes)
    # A huge array of structs would need a huge struct format; it is read item by item instead.
    if extent.size is not None and extent.runs <= MAX_LEAVES:
        return _read_run(*_run(node, sizes))
    match node:
        case Struct(fields=fields):
            return _read_struct(_parts(fields, sizes))
        case FixedArray(item=item, count=n):
            return _read_repeated(_reader(item, sizes), n, measure(item, sizes).least)
        case Sequence(item=Scalar(type=t), width=w, grid=None):
            return _read_scalars(t, w)
        case Sequence(item=Scalar(type="char" | "uint8"), width=w):
            return _read_prefixed(bytes, w)
        case Sequence(item=item, width=w, grid=None) if measure(item, sizes).size == 0:
            return _read_empty(_reader(item, sizes), w)
        case Sequence(item=item, width=w, grid=grid):
            return _read_counted(_reader(item, sizes), w, measure(item, sizes).least, grid)
        case String(width=w, grid=grid, tail=tail):
            return _on_grid(_read_prefixed(_text if not tail else lambda raw: _text(raw[:-tail]), w), grid)
        case Align(grid=grid):
            return _on_grid(lambda data, pos: (None, pos), grid)
        case Expect(data=expected):
            return _read_expected(expected)
        case Bytes(width=w):
            return _read_prefixed(bytes, w)
        case Rest(text=text):
            convert = _text if text else bytes
            return lambda data, pos: (convert(data[pos:]), len(data))
        case Skip(node=inner):
            return _reader(inner, sizes)
        case _:
            raise AssertionError(node)


def _run(node: Node, sizes: dict[int, Measure]) -> tuple[str, Build]:
    """Return the struct format of a node of fixed size, and the function from its numbers to its value."""
    match node:
        case Scalar(type=t):
            return CODES[t], next
        case Time(signed=signed):
            return ("ii" if signed else "II"), lambda numbers: next(numbers) * 1_000_000_000 + next(numbers)
        case FixedArray(item=Scalar(type="char"), count=n):
            return f"{n}s", lambda numbers: _padded_text(next(numbers))
        case FixedArray(item=Scalar(type=t), count=n):
            return f"{n}{CODES[t]}", lambda numbers: list(islice(numbers, n))
        case FixedArray(item=item, count=n):
            form, build = _run(item, sizes)
            return form * n, lambda numbers: [build(numbers) for _ in range(n)]
        case Struct(fields=fields):
            runs = [_run(f.node, sizes) for f in fields]
            shown = [
                (f.name, build)
                for f, (_, build) in zip(fields, runs, strict=True)
                if not isinstance(f.node, HIDDEN)
            ]
            form = "".join(form for form, _ in runs)
            return form, lambda numbers: {name: build(numbers) for name, build in shown}
        case _:
            # Hidden bytes have no value.
            return f"{measure(node, sizes).size}x", next


def _read_run(form: str, build: Build) -> Read:
    compiled = struct.Struct("<" + form)
    unpack, size = compiled.unpack_from, compiled.size

    def read(data: memoryview, pos: int) -> tuple[Any, int]:
        if size > len(data) - pos:
            _raise_truncated(data, pos, size)
        return build(iter(unpack(data, pos))), pos + size

    return read


def _parts(fields: tuple[Field, ...], sizes: dict[int, Measure]) -> list[Part]:
    """Return parts: adjacent members of fixed size together, every other member by itself."""
    parts: list[Part] = []
    run: list[Field] = []
    for f in fields:
        extent = measure(f.node, sizes)
        if extent.size is not None and extent.runs <= MAX_LEAVES:
            run.append(f)
            continue
        if run:
            parts.append(_run_part(run, sizes))
            run = []
        parts.append(_member_part(f, sizes))
    return [*parts, _run_part(run, sizes)] if run else parts


def _run_part(fields: list[Field], sizes: dict[int, Measure]) -> Part:
    if not all(isinstance(f.node, Scalar | Padding) for f in fields):
        read = _read_run(*_run(Struct(tuple(fields)), sizes))

        def build_part(data: memoryview, pos: int, out: dict[str, Any]) -> int:
            value, pos = read(data, pos)
            out.update(value)
            return pos

        return build_part
    names = [f.name for f in fields if isinstance(f.node, Scalar)]
    compiled = struct.Struct("<" + "".join(_run(f.node, sizes)[0] for f in fields))
    unpack, size = compiled.unpack_from, compiled.size

    def zip_part(data: memoryview, pos: int, out: dict[str, Any]) -> int:
        if size > len(data) - pos:
            _raise_truncated(data, pos, size)
        out.update(zip(names, unpack(data, pos), strict=True))
        return pos + size

    return zip_part


def _member_part(f: Field, sizes: dict[int, Measure]) -> Part:
    read = _reader(f.node, sizes)
    name, hidden = f.name, isinstance(f.node, HIDDEN)

    def part(data: memoryview, pos: int, out: dict[str, Any]) -> int:
        value, pos = read(data, pos)
        if not hidden:
            out[name] = value
        return pos

    return part


def _read_struct(parts: list[Part]) -> Read:
    def read(data: memoryview, pos: int) -> tuple[Any, int]:
        out: dict[str, Any] = {}
        for part in parts:
            pos = part(data, pos, out)
        return out, pos

    return read


def _read_repeated(item: Read, count: int, least: int) -> Read:
    def read(data: memoryview, pos: int) -> tuple[Any, int]:
        return _items(item, data, pos, count, least)

    return read


def _items(item: Read, data: memoryview, pos: int, count: int, least: int) -> tuple[list[Any], int]:
    # Checked before the first item, so that an absurd count costs nothing.
    if count * least > len(data) - pos:
        _raise_truncated(data, pos, count * least)
    values = []
    for _ in range(count):
        value, pos = item(data, pos)
        values.append(value)
    return values, pos


def _length(data: memoryview, pos: int, width: int) -> int:
    if width > len(data) - pos:
        _raise_truncated(data, pos, width)
    count: int = _LENGTHS[width].unpack_from(data, pos)[0]
    return count


def _read_counted(item: Read, width: int, least: int, grid: Grid | None) -> Read:
    def read(data: memoryview, pos: int) -> tuple[Any, int]:
        count = _length(data, pos, width)
        pos += width
        if grid is not None and count:
            pos += grid.gap(pos)
        return _items(item, data, pos, count, least)

    return read


def _read_empty(item: Read, width: int) -> Read:
    from logreel.kernels.layout import SPARE

    def read(data: memoryview, pos: int) -> tuple[Any, int]:
        count = _length(data, pos, width)
        if count > len(data) + SPARE:
            _raise_too_many_items(len(data))
        return [item(data, pos)[0] for _ in range(count)], pos + width

    return read


def _on_grid(inner: Read, grid: Grid | None) -> Read:
    if grid is None:
        return inner

    def read(data: memoryview, pos: int) -> tuple[Any, int]:
        gap = grid.gap(pos)
        if gap > len(data) - pos:
            _raise_truncated(data, pos, gap)
        return inner(data, pos + gap)

    return read


def _read_expected(expected: bytes) -> Read:
    def read(data: memoryview, pos: int) -> tuple[Any, int]:
        size = len(expected)
        if size > len(data) - pos:
            _raise_truncated(data, pos, size)
        if data[pos : pos + size] != expected:
            actual = bytes(data[pos : pos + size]).hex(" ")
            text = f"expected bytes {expected.hex(' ')}, found {actual}: an encoding that is not known"
            raise DamagedError(Problem("payload", pos, size, True, text))
        return None, pos + size

    return read


def _read_prefixed(convert: Callable[[memoryview], Any], width: int) -> Read:
    def read(data: memoryview, pos: int) -> tuple[Any, int]:
        size = _length(data, pos, width)
        pos += width
        if size > len(data) - pos:
            _raise_truncated(data, pos, size)
        return convert(data[pos : pos + size]), pos + size

    return read


def _read_scalars(type_name: str, width: int) -> Read:
    if type_name in ("uint8", "char"):
        return _read_prefixed(bytes, width)
    code, item = CODES[type_name], SCALARS[type_name][1]

    def read(data: memoryview, pos: int) -> tuple[Any, int]:
        count = _length(data, pos, width)
        pos += width
        if count * item > len(data) - pos:
            _raise_truncated(data, pos, count * item)
        return list(struct.unpack_from(f"<{count}{code}", data, pos)), pos + count * item

    return read
