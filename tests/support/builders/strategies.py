"""Hypothesis strategies for Layouts, and for payloads that fit them."""

from __future__ import annotations

import struct

from hypothesis import strategies as st

from logreel.layout import nodes
from logreel.layout.layout import Layout
from support.oracles.layout_walker import FORMATS

scalars = st.sampled_from(sorted(nodes.SCALARS)).map(nodes.Scalar)
times = st.booleans().map(nodes.Time)
widths = st.sampled_from([1, 2, 4])
fixed_leaves = scalars | times | st.builds(nodes.FixedArray, scalars | times, st.integers(0, 5))
leaves = (
    fixed_leaves
    | widths.map(nodes.String)
    | widths.map(nodes.Bytes)
    | st.builds(nodes.Sequence, scalars | times, widths)
)


def structs(items: st.SearchStrategy[nodes.Node], max_size: int = 4) -> st.SearchStrategy[nodes.Struct]:
    """Return structs of *items*, with some padding between them."""

    def named(members: list[nodes.Node]) -> nodes.Struct:
        names = ["" if isinstance(m, nodes.Padding) else f"f{i}" for i, m in enumerate(members)]
        return nodes.Struct(tuple(nodes.Field(*pair) for pair in zip(names, members, strict=True)))

    padding = st.integers(0, 3).map(nodes.Padding)
    return st.lists(items | items | items | padding, max_size=max_size).map(named)


def solid(items: st.SearchStrategy[nodes.Node]) -> st.SearchStrategy[nodes.Node]:
    """Return the *items* that are never empty: only these can be items of arrays."""
    return items.filter(lambda node: nodes.measure(node).least > 0)


def _deeper_fixed(items: st.SearchStrategy[nodes.Node]) -> st.SearchStrategy[nodes.Node]:
    return structs(items) | st.builds(nodes.FixedArray, solid(items), st.integers(0, 3))


def _deeper(items: st.SearchStrategy[nodes.Node]) -> st.SearchStrategy[nodes.Node]:
    return _deeper_fixed(items) | st.builds(nodes.Sequence, solid(items), widths)


fixed_nodes = st.recursive(fixed_leaves, _deeper_fixed, max_leaves=8)
any_node = st.recursive(leaves, _deeper, max_leaves=10)
fixed_layouts = structs(fixed_nodes).map(Layout)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Return Layouts of every kind: of fixed size or not, with a Rest at the end or not, one record or many."""
    record = draw(structs(any_node))
    if draw(st.booleans()) and nodes.measure(record).least:
        return Layout(nodes.Sequence(record, draw(widths)))
    if draw(st.booleans()):
        record = nodes.Struct((*record.fields, nodes.Field("rest", nodes.Rest(draw(st.booleans())))))
    return Layout(record)


def payloads(node: nodes.Node) -> st.SearchStrategy[bytes]:
    """Return bytes that decode as *node*, without leftover bytes."""
    return st.composite(lambda draw: _payload(draw, node))()


def _payload(draw: st.DrawFn, node: nodes.Node) -> bytes:
    match node:
        case nodes.Struct(fields=fields):
            return b"".join(_payload(draw, f.node) for f in fields)
        case nodes.FixedArray(item=item, count=n):
            return b"".join(_payload(draw, item) for _ in range(n))
        case nodes.Sequence(item=item, width=w):
            n = draw(st.integers(0, 3))
            return n.to_bytes(w, "little") + b"".join(_payload(draw, item) for _ in range(n))
        case nodes.String(width=w):
            text = draw(st.text(max_size=20).map(str.encode) | st.binary(max_size=20))
            return len(text).to_bytes(w, "little") + text
        case nodes.Bytes(width=w):
            raw = draw(st.binary(max_size=40))
            return len(raw).to_bytes(w, "little") + raw
        case nodes.Rest():
            return draw(st.binary(max_size=40))
        case nodes.Skip(node=inner):
            return _payload(draw, inner)
        case nodes.Time():
            return draw(st.binary(min_size=8, max_size=8))
        case nodes.Scalar(type=t):
            size = struct.calcsize(FORMATS[t])
            return draw(st.binary(min_size=size, max_size=size))
        case nodes.Padding(size=n):
            return draw(st.binary(min_size=n, max_size=n))
    raise TypeError(node)
