"""Random Layouts, and payloads that fit them."""

from __future__ import annotations

import struct

from hypothesis import strategies as st

from logreel.layout import layout as lo
from support.oracles.layout_walker import FORMATS

scalars = st.sampled_from(sorted(lo.SCALARS)).map(lo.Scalar)
times = st.booleans().map(lo.Time)
widths = st.sampled_from([1, 2, 4])
fixed_leaves = scalars | times | st.builds(lo.FixedArray, scalars | times, st.integers(0, 5))
leaves = (
    fixed_leaves
    | widths.map(lo.String)
    | widths.map(lo.Bytes)
    | st.builds(lo.Sequence, scalars | times, widths)
)


def structs(nodes: st.SearchStrategy[lo.Node], max_size: int = 4) -> st.SearchStrategy[lo.Struct]:
    """Structs of *nodes*, with some padding between them."""

    def named(members: list[lo.Node]) -> lo.Struct:
        names = ["" if isinstance(m, lo.Padding) else f"f{i}" for i, m in enumerate(members)]
        return lo.Struct(tuple(lo.Field(*pair) for pair in zip(names, members, strict=True)))

    padding = st.integers(0, 3).map(lo.Padding)
    return st.lists(nodes | nodes | nodes | padding, max_size=max_size).map(named)


def solid(nodes: st.SearchStrategy[lo.Node]) -> st.SearchStrategy[lo.Node]:
    """Those of *nodes* that always take some bytes: only these can be items."""
    return nodes.filter(lambda node: lo.measure(node).least > 0)


def _deeper_fixed(nodes: st.SearchStrategy[lo.Node]) -> st.SearchStrategy[lo.Node]:
    return structs(nodes) | st.builds(lo.FixedArray, solid(nodes), st.integers(0, 3))


def _deeper(nodes: st.SearchStrategy[lo.Node]) -> st.SearchStrategy[lo.Node]:
    return _deeper_fixed(nodes) | st.builds(lo.Sequence, solid(nodes), widths)


fixed_nodes = st.recursive(fixed_leaves, _deeper_fixed, max_leaves=8)
nodes = st.recursive(leaves, _deeper, max_leaves=10)
fixed_layouts = structs(fixed_nodes).map(lo.Layout)


@st.composite
def layouts(draw: st.DrawFn) -> lo.Layout:
    """Layouts of every kind: fixed or not, with a Rest at the end or not, one record or many."""
    record = draw(structs(nodes))
    if draw(st.booleans()) and lo.measure(record).least:
        return lo.Layout(lo.Sequence(record, draw(widths)))
    if draw(st.booleans()):
        record = lo.Struct((*record.fields, lo.Field("rest", lo.Rest(draw(st.booleans())))))
    return lo.Layout(record)


def payloads(node: lo.Node) -> st.SearchStrategy[bytes]:
    """Bytes that decode as *node*, with nothing left over."""
    return st.composite(lambda draw: _payload(draw, node))()


def _payload(draw: st.DrawFn, node: lo.Node) -> bytes:
    match node:
        case lo.Struct(fields=fields):
            return b"".join(_payload(draw, f.node) for f in fields)
        case lo.FixedArray(item=item, count=n):
            return b"".join(_payload(draw, item) for _ in range(n))
        case lo.Sequence(item=item, width=w):
            n = draw(st.integers(0, 3))
            return n.to_bytes(w, "little") + b"".join(_payload(draw, item) for _ in range(n))
        case lo.String(width=w):
            text = draw(st.text(max_size=20).map(str.encode) | st.binary(max_size=20))
            return len(text).to_bytes(w, "little") + text
        case lo.Bytes(width=w):
            raw = draw(st.binary(max_size=40))
            return len(raw).to_bytes(w, "little") + raw
        case lo.Rest():
            return draw(st.binary(max_size=40))
        case lo.Skip(node=inner):
            return _payload(draw, inner)
        case lo.Time():
            return draw(st.binary(min_size=8, max_size=8))
        case lo.Scalar(type=t):
            size = struct.calcsize(FORMATS[t])
            return draw(st.binary(min_size=size, max_size=size))
        case lo.Padding(size=n):
            return draw(st.binary(min_size=n, max_size=n))
    raise TypeError(node)
