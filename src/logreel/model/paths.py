"""Field paths: which there are, where one lies, and a Layout that shows only some."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NoReturn

from logreel.errors import DefinitionError, TopicError, UsageError
from logreel.model.layout import (
    HIDDEN,
    MAX_LEAVES,
    Field,
    FixedArray,
    Layout,
    Leaf,
    Measure,
    Node,
    Padding,
    Place,
    Scalar,
    Sequence,
    Skip,
    Struct,
    Time,
    leaves_of,
    measure,
    parse_path,
)

#: Names listed in an error text; more would help nobody.
MAX_NAMED = 100


def paths(struct: Struct) -> list[str]:
    """The dotted path of every leaf below *struct*, in file order."""
    return [".".join(path) for path in _below(struct, ())]


def _below(node: Node, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    node = _innermost(node)
    if isinstance(node, Struct):
        for f in node.visible():
            yield from _below(f.node, (*path, f.name))
    else:
        yield path


def _innermost(node: Node) -> Node:
    while isinstance(node, FixedArray | Sequence):
        node = node.item
    return node


def steps_of(layout: Layout, path: str) -> tuple[str | int, ...]:
    """*path* in steps, every name checked; raises TopicError (a KeyError) with the nearest paths."""
    try:
        steps = parse_path(path)
    except ValueError:
        _unknown(layout, path)
    node: Node = layout.record
    for i, step in enumerate(steps):
        if isinstance(step, str):
            node = _member(_innermost(node), step) or _unknown(layout, path)
        elif isinstance(node, FixedArray | Sequence):
            if isinstance(node, FixedArray) and step >= node.count:
                there = [spell((*steps[:i], k)) for k in range(min(node.count, MAX_NAMED))]
                raise TopicError("field", path, there)
            node = node.item
        else:
            _unknown(layout, path)
    return steps


def _member(node: Node, name: str) -> Node | None:
    if not isinstance(node, Struct):
        return None
    return next((f.node for f in node.visible() if f.name == name), None)


def _unknown(layout: Layout, path: str) -> NoReturn:
    raise TopicError("field", path, layout.paths())


def spell(steps: Iterable[str | int]) -> str:
    """*steps* as people write them: ``("esc", 0, "rpm")`` is ``esc[0].rpm``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")


def find(layout: Layout, path: str) -> Leaf:
    """The Leaf at *path*; see ``Layout.find``."""
    steps = steps_of(layout, path)
    sizes: dict[int, Measure] = {}
    node: Node = layout.root
    place = Place()
    for step in steps:
        if isinstance(step, int) and isinstance(node, FixedArray):
            place = place._replace(offset=place.offset + step * _fixed(node.item, path, sizes))
            node = node.item
        else:
            node, place = _into_axes(node, place, path, sizes)
            node, place = _into_member(node, place, str(step), path, sizes)
    return _single_leaf(node, place, path, sizes)


def _fixed(node: Node, path: str, sizes: dict[int, Measure]) -> int:
    size = measure(node, sizes).size
    if size is None:
        raise DefinitionError(f"where {path} lies differs from message to message")
    return size


def _into_axes(node: Node, place: Place, path: str, sizes: dict[int, Measure]) -> tuple[Node, Place]:
    while isinstance(node, FixedArray):
        axis = (node.count, _fixed(node.item, path, sizes))
        node, place = node.item, place._replace(axes=(*place.axes, axis))
    return node, place


def _into_member(
    node: Node, place: Place, name: str, path: str, sizes: dict[int, Measure]
) -> tuple[Node, Place]:
    if not isinstance(node, Struct):
        raise DefinitionError(f"where {path} lies differs from message to message")
    at = place.offset
    for f in node.fields:
        if f.name == name and not isinstance(f.node, HIDDEN):
            return f.node, Place((*place.path, name), at, place.axes)
        at += _fixed(f.node, path, sizes)
    raise DefinitionError(f"{path} is hidden")


def _single_leaf(node: Node, place: Place, path: str, sizes: dict[int, Measure]) -> Leaf:
    inner = _innermost(node)
    if isinstance(inner, Struct):
        below = [".".join((path, *names)) for names in _below(inner, ())]
        raise UsageError(
            f"{path} is a group of fields; name one of: {', '.join(below[:MAX_NAMED]) or '(it is empty)'}"
        )
    _fixed(node, path, sizes)
    if not isinstance(inner, Scalar | Time):
        raise DefinitionError(f"{path} has no fixed size")
    runs = 1
    for count, _ in place.axes:
        runs *= count
    if runs * measure(node, sizes).runs > MAX_LEAVES:
        raise DefinitionError(f"{path} has more than {MAX_LEAVES} runs of bytes in a message")
    return next(leaves_of(node, place, sizes))


Wanted = dict[str, "Wanted | None"]


def project(layout: Layout, fields: Iterable[str]) -> Layout:
    """The same bytes with only *fields* visible; see ``Layout.project``."""
    wanted: Wanted = {}
    for path in fields:
        names = [step for step in steps_of(layout, path) if isinstance(step, str)]
        _want(wanted, names)
    sizes: dict[int, Measure] = {}
    if isinstance(layout.root, Sequence):
        root = replace(layout.root, item=_narrow_struct(layout.record, wanted, sizes))
        return Layout(root, layout.name)
    return Layout(_narrow_struct(layout.root, wanted, sizes), layout.name)


def _want(wanted: Wanted, names: list[str]) -> None:
    for name in names[:-1]:
        below = wanted.setdefault(name, {})
        if below is None:
            return
        wanted = below
    wanted[names[-1]] = None


def _narrow_struct(struct: Struct, wanted: Wanted, sizes: dict[int, Measure]) -> Struct:
    return Struct(tuple(_narrow_field(f, wanted, sizes) for f in struct.fields))


def _narrow_field(f: Field, wanted: Wanted, sizes: dict[int, Measure]) -> Field:
    if f.name in wanted and not isinstance(f.node, HIDDEN):
        below = wanted[f.name]
        return f if below is None else Field(f.name, _narrow(f.node, below, sizes), f.unit)
    if isinstance(f.node, HIDDEN):
        return f
    size = measure(f.node, sizes).size
    return Field("", Skip(f.node) if size is None else Padding(size))


def _narrow(node: Node, wanted: Wanted, sizes: dict[int, Measure]) -> Node:
    match node:
        case Struct():
            return _narrow_struct(node, wanted, sizes)
        case FixedArray(item=item, count=n):
            return FixedArray(_narrow(item, wanted, sizes), n)
        case Sequence(item=item):
            return replace(node, item=_narrow(item, wanted, sizes))
        case _:
            return node
