"""Encoders of tables and of single messages against a plain encoder."""

from __future__ import annotations

import itertools
import struct
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from logreel.errors import UsageError
from logreel.layout import nodes
from logreel.layout.arrow import decode_variable
from logreel.layout.decode import decoder
from logreel.layout.encode import encode_message, encode_table
from logreel.layout.encode_message import encoder
from support.builders.strategies import layouts, payloads
from support.harness.examples import examples
from support.oracles.layout_walker import FORMATS


def plain(node: nodes.Node, value: Any) -> bytes:
    """The bytes of *value*, as the oracle spells it; padding is zero."""
    match node:
        case nodes.Struct(fields=fields):
            shown = (nodes.Padding, nodes.Skip)
            return b"".join(
                plain(f.node, None if isinstance(f.node, shown) else value[f.name]) for f in fields
            )
        case nodes.Padding(size=n):
            return bytes(n)
        case nodes.Time(signed=signed):
            return struct.pack("<iI" if signed else "<II", *divmod(value, 10**9))
        case nodes.Scalar(type=t):
            return struct.pack("<" + FORMATS[t].lstrip("<"), value)
        case nodes.FixedArray(item=nodes.Scalar(type="char"), count=n):
            return value.encode().ljust(n, b"\0")
        case nodes.FixedArray(item=item):
            return b"".join(plain(item, one) for one in value)
        case nodes.Rest():
            return value.encode() if isinstance(value, str) else value
        case nodes.Sequence(item=item, width=w) if not isinstance(value, bytes):
            return len(value).to_bytes(w, "little") + b"".join(plain(item, one) for one in value)
        case _:
            raw = value.encode() if isinstance(value, str) else value
            return len(raw).to_bytes(node.width, "little") + raw


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_encoders_equal_the_plain_encoder(data):
    layout = data.draw(layouts())
    messages = data.draw(st.lists(payloads(layout.root), max_size=5))
    read = decoder(layout.root)
    values = [read(memoryview(m)) for m in messages]
    many = isinstance(layout.root, nodes.Sequence)
    try:
        due = [plain(layout.root, v["records"] if many else v) for v in values]
    except (struct.error, OverflowError):
        # Times beyond 32 bits of seconds; texts that grew because they were no UTF-8.
        assume(False)
    # Python's own conversion turns some of these into others.
    assume("nan" not in repr(values))
    joined = np.frombuffer(b"".join(messages), np.uint8)
    stop = np.cumsum([len(m) for m in messages]).astype(np.int64)
    start = np.concatenate([[0], stop[:-1]]).astype(np.int64) if messages else stop
    got = decode_variable(layout, joined, start, stop)
    names = [f.name for f in layout.record.visible()]
    if names:
        table = pa.table(got.arrays, names=names)
        try:
            out, places = encode_table(layout, table, got.records)
        except UsageError:
            assume(False)
        assert [out[a:b].tobytes() for a, b in itertools.pairwise(places)] == due
    assert [encode_message(layout, v) for v in values] == due
    assert [encoder(layout)(v) for v in values] == due
