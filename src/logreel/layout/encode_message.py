"""Encoders of single messages from dicts, compiled once per Layout: the inverse of ``layout.decode``.

The closures accept only complete values that fit. All others go to ``encode.encode_message``, which is slower and
either encodes the message or raises the error to show.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from logreel.layout.decode import CODES
from logreel.layout.encode import encode_message
from logreel.layout.layout import Layout
from logreel.layout.nodes import (
    HIDDEN,
    MAX_LEAVES,
    Bytes,
    FixedArray,
    Grid,
    Measure,
    Node,
    Padding,
    Rest,
    Scalar,
    Sequence,
    String,
    Struct,
    Time,
    measure,
)

#: Append the bytes of one value.
Put = Callable[[Any, bytearray], None]
#: Append the numbers of one value.
Pull = Callable[[Any, list[Any]], None]
Encode = Callable[[Mapping[str, Any]], bytes]


class _Slow(Exception):
    """Raised for a value that only ``encode_message`` can handle."""


#: Errors of the closures for values that they cannot handle.
_OTHERS = (_Slow, struct.error, TypeError, ValueError, KeyError, OverflowError, AttributeError)


def encoder(layout: Layout) -> Encode:
    """Return a faster function with the results of ``encode_message`` for messages of *layout*."""
    if isinstance(layout.root, Struct) and layout.size is not None:
        flat = _flat_getter(layout.root)
        if flat is not None:
            return _flat_encoder(layout, flat)
    put = _putter(layout.root, {})
    has_records = isinstance(layout.root, Sequence)

    def encode(fields: Mapping[str, Any]) -> bytes:
        out = bytearray()
        try:
            if has_records and len(fields) > 1:
                raise _Slow
            put(fields["records"] if has_records else fields, out)
        except _OTHERS:
            return encode_message(layout, fields)
        return bytes(out)

    return encode


def _flat_encoder(layout: Layout, flat: Callable[[Any], tuple[Any, ...]]) -> Encode:
    """Return the encoder of a message of numbers only."""
    pack = struct.Struct("<" + _run(layout.root, {})[0]).pack
    count = sum(1 for _ in layout.record.visible())

    def encode(fields: Mapping[str, Any]) -> bytes:
        if len(fields) == count:
            try:
                return pack(*flat(fields))
            except _OTHERS:
                pass
        return encode_message(layout, fields)

    return encode


def _putter(node: Node, sizes: dict[int, Measure]) -> Put:
    extent = measure(node, sizes)
    if extent.size is not None and extent.runs <= MAX_LEAVES:
        return _put_run(node, sizes)
    match node:
        case Struct():
            return _put_struct(node, sizes)
        case String(grid=Grid()) | Sequence(grid=Grid()):
            return _refuse
        case String(width=w, tail=0) | Bytes(width=w) | Sequence(item=Scalar(type="char" | "uint8"), width=w):
            return lambda value, out: _put_counted(_raw(value), w, out)
        case Sequence(item=Scalar(type=t), width=w):
            return _put_scalars(CODES[t], w)
        case Sequence(item=item, width=w):
            return _put_items(_putter(item, sizes), w, None)
        case FixedArray(item=item, count=n):
            return _put_items(_putter(item, sizes), 0, n)
        case Rest():
            return lambda value, out: out.extend(_raw(value))
        case _:
            return _refuse


def _refuse(value: Any, out: bytearray) -> None:
    raise _Slow


def _raw(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise _Slow


def _put_counted(raw: bytes, width: int, out: bytearray) -> None:
    out += len(raw).to_bytes(width, "little")
    out += raw


def _put_scalars(code: str, width: int) -> Put:
    def put(value: Any, out: bytearray) -> None:
        out += len(value).to_bytes(width, "little")
        out += struct.pack(f"<{len(value)}{code}", *value)

    return put


def _put_items(item: Put, width: int, count: int | None) -> Put:
    def put(value: Any, out: bytearray) -> None:
        if count is None:
            out += len(value).to_bytes(width, "little")
        elif len(value) != count:
            raise _Slow
        for element in value:
            item(element, out)

    return put


def _put_struct(node: Struct, sizes: dict[int, Measure]) -> Put:
    """Return the writer of a Struct: adjacent members of fixed size are one part, every other member is its own."""
    known = {f.name for f in node.visible()}
    parts: list[tuple[str | None, Put]] = []
    run: list[Any] = []

    def close() -> None:
        if run:
            parts.append((None, _put_run(Struct(tuple(run)), sizes, whole=False)))
            run.clear()

    for f in node.fields:
        extent = measure(f.node, sizes)
        if extent.size is not None and extent.runs <= MAX_LEAVES:
            run.append(f)
            continue
        close()
        parts.append((f.name, _putter(f.node, sizes)))
    close()

    def put(value: Any, out: bytearray) -> None:
        if not value.keys() <= known:
            raise _Slow
        for name, part in parts:
            part(value if name is None else value[name], out)

    return put


def _put_run(node: Node, sizes: dict[int, Measure], whole: bool = True) -> Put:
    """Return the writer of a node of fixed size; *whole*: it is the whole Struct."""
    form, pull = _run(node, sizes, whole)
    pack = struct.Struct("<" + form).pack
    flat = _flat_getter(node)
    if flat is not None:
        known = {f.name for f in node.visible()} if isinstance(node, Struct) else set()

        def put_flat(value: Any, out: bytearray) -> None:
            if whole and not value.keys() <= known:
                raise _Slow
            out += pack(*flat(value))

        return put_flat

    def put(value: Any, out: bytearray) -> None:
        numbers: list[Any] = []
        pull(value, numbers)
        out += pack(*numbers)

    return put


def _flat_getter(node: Node) -> Callable[[Any], tuple[Any, ...]] | None:
    """Return a getter of all members of a Struct of numbers at once; None for other nodes."""
    if not isinstance(node, Struct) or not all(isinstance(f.node, Scalar | Padding) for f in node.fields):
        return None
    names = [f.name for f in node.visible()]
    if len(names) < 2:
        # itemgetter of one name does not return a tuple.
        return lambda value: tuple(value[name] for name in names)
    return itemgetter(*names)


def _run(node: Node, sizes: dict[int, Measure], whole: bool = True) -> tuple[str, Pull]:
    """Return the struct format of a node of fixed size, and the function from its value to numbers."""
    match node:
        case Scalar(type=t):
            return CODES[t], lambda value, out: out.append(value)
        case Time(signed=signed):
            return ("ii" if signed else "II"), lambda value, out: out.extend(divmod(value, 10**9))
        case FixedArray(item=Scalar(type="char"), count=n):
            return f"{n}s", _pull_text(n)
        case FixedArray(item=item, count=n):
            form, pull = _run(item, sizes)
            plain = isinstance(item, Scalar)
            return (f"{n}{form}" if plain else form * n), _pull_items(None if plain else pull, n)
        case Struct():
            return _run_struct(node, sizes, whole)
        case _:
            return f"{measure(node, sizes).size}x", lambda value, out: None


def _pull_text(count: int) -> Pull:
    def pull(value: Any, out: list[Any]) -> None:
        raw = _raw(value)
        if len(raw) > count:
            raise _Slow
        out.append(raw)

    return pull


def _pull_items(item: Pull | None, count: int) -> Pull:
    """Return a Pull that appends the numbers of *count* items; *item*: Pull of one, None for plain numbers."""

    def pull(value: Any, out: list[Any]) -> None:
        if len(value) != count:
            raise _Slow
        if item is None:
            out.extend(value)
        else:
            for element in value:
                item(element, out)

    return pull


def _run_struct(node: Struct, sizes: dict[int, Measure], whole: bool) -> tuple[str, Pull]:
    runs = [_run(f.node, sizes) for f in node.fields]
    members = [
        (f.name, pull)
        for f, (_, pull) in zip(node.fields, runs, strict=True)
        if not isinstance(f.node, HIDDEN)
    ]
    known = {name for name, _ in members}

    def pull(value: Any, out: list[Any]) -> None:
        if whole and not value.keys() <= known:
            raise _Slow
        for name, part in members:
            part(value[name], out)

    return "".join(form for form, _ in runs), pull
