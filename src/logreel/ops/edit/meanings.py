"""Fields with a meaning that edits need: frame ids and stamps, at any depth of a message."""

from __future__ import annotations

from collections.abc import Iterator

from logreel.errors import DefinitionError
from logreel.layout.layout import Layout
from logreel.layout.nodes import FixedArray, Node, Scalar, Struct
from logreel.layout.nodes import Sequence as Counted
from logreel.lenses.base import Nodes, Stamp, find_stamp, is_text

#: Names of fields that contain the name of a frame of coordinates.
FRAMES = {"frame_id", "child_frame_id", "parent_frame_id", "source_frame_id", "target_frame_id"}
#: Deepest structs that are looked at, and most of them.
MAX_STRUCTS = 2000


def structs(layout: Layout) -> Iterator[tuple[str, Nodes]]:
    """Yield path (empty for the message) and members of each struct in a message, arrays without index."""
    try:
        record = layout.record
    except DefinitionError:
        return
    todo: list[tuple[str, Struct]] = [("", record)]
    for _ in range(MAX_STRUCTS):
        if not todo:
            return
        path, struct = todo.pop(0)
        nodes = {f.name: f.node for f in struct.visible()}
        yield path, nodes
        for name, node in nodes.items():
            inner = innermost(node)
            if isinstance(inner, Struct):
                todo.append((joined(path, name), inner))


def innermost(node: Node) -> Node:
    """Return the items of an array (of arrays …), or *node* itself."""
    while isinstance(node, FixedArray | Counted):
        node = node.item
    return node


def joined(path: str, name: str) -> str:
    """Return the path of a member."""
    return f"{path}.{name}" if path else name


def frame_paths(layout: Layout) -> list[str]:
    """Return the paths of all fields with names of frames."""
    return [
        joined(path, name)
        for path, nodes in structs(layout)
        for name, node in nodes.items()
        if name in FRAMES and is_text(node)
    ]


def stamps(layout: Layout, clock_inside: bool) -> list[Stamp]:
    """Return the stamps of a message and of its parts, that of the message first.

    clock_inside  True: the log time of messages is a field of theirs, so that all fields in microseconds whose names
                  say that they are times are on that clock
    """
    by_paths: dict[tuple[str, ...], Stamp] = {}
    for path, nodes in structs(layout):
        stamp = find_stamp(nodes, path)
        if stamp is not None and _is_there(layout, stamp):
            by_paths.setdefault(tuple(stamp.paths), stamp)
        for name, node in nodes.items() if clock_inside else ():
            if node == Scalar("uint64") and _is_clock(name) and (path or name != "timestamp"):
                at = joined(path, name)
                by_paths.setdefault((at,), Stamp(((at, 1000),)))
    return list(by_paths.values())


def _is_clock(name: str) -> bool:
    words = name.lower().split("_")
    return "timestamp" in words and not {"utc", "relative"} & set(words)


def _is_there(layout: Layout, stamp: Stamp) -> bool:
    """Return whether the paths of a stamp are in *layout*; one in a struct inside an array counts, too."""
    known = set(layout.paths())
    return all(path in known for path in stamp.paths)
