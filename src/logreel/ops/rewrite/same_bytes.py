"""Layouts with the same bytes: messages that another format holds as they are, whatever its names for the fields."""

from __future__ import annotations

from logreel.layout.layout import Layout
from logreel.layout.nodes import FixedArray, Node, Padding, Scalar, Struct, Time

#: Longest list of runs that is compared.
MAX_RUNS = 4096

#: Type of consecutive numbers, and how many there are.
Run = tuple[str, int]
_PADDING = "padding"


def same_bytes(old: Layout, new: Layout) -> int | None:
    """Return how many first bytes of messages of *old* are the messages of *new*; None if they have to be encoded.

    Only for messages of fixed size. What *old* has behind the fields is padding.
    """
    if old.size is None or new.size is None or new.size > old.size:
        return None
    before, after = list[Run](), list[Run]()
    if not _collect(old.root, before) or not _collect(new.root, after):
        return None
    if before and before[-1][0] == _PADDING and before[:-1] == after:
        return new.size
    return new.size if before == after else None


def _collect(node: Node, out: list[Run]) -> bool:
    """Append the runs of *node*; return False if there are too many, or it has bytes of another kind."""
    match node:
        case Scalar(type=name):
            return _add(out, name, 1)
        case Time(signed=signed):
            return _add(out, f"time {signed}", 1)
        case Padding(size=size):
            return _add(out, _PADDING, size)
        case FixedArray(item=Scalar(type=name), count=count):
            return _add(out, name, count)
        case FixedArray(item=item, count=count):
            return count <= MAX_RUNS and all(_collect(item, out) for _ in range(count))
        case Struct(fields=fields):
            return all(_collect(field.node, out) for field in fields)
    return False


def _add(out: list[Run], name: str, count: int) -> bool:
    if out and out[-1][0] == name:
        out[-1] = name, out[-1][1] + count
    elif count:
        out.append((name, count))
    return len(out) <= MAX_RUNS
