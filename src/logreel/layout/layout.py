"""Layout: the byte layout of a message as a small tree that every schema language compiles to.

A Layout is independent of log formats and always little-endian. A fixed-size Layout also has the offset of each leaf
(``leaves``), so that whole columns are filled in one pass of the gather kernel.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.dataclass import dataclass, field
from logreel.errors import DefinitionError
from logreel.io.arrays import I64
from logreel.layout.nodes import (
    MAX_LEAVES,
    Leaf,
    Measure,
    Place,
    Sequence,
    Struct,
    find,
    has_path,
    leaves_of,
    measure,
    paths,
    project,
    record_of,
)

if TYPE_CHECKING:
    from logreel.layout.program import Program

#: Most parts of a Layout that it keeps; most Layouts that logs share, and most nodes of one of these.
MAX_PARTS, MAX_SHARED, MAX_SHARED_NODES = 64, 1024, 4096


class Leaves(tuple[Leaf, ...]):
    """The columns of a fixed-size Layout, and what filling them needs, which is worked out once for all channels."""

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """Dotted paths."""
        return tuple([".".join(leaf.path) for leaf in self])

    @cached_property
    def by_path(self) -> dict[str, Leaf]:
        """The first Leaf of each dotted path."""
        return dict(zip(reversed(self.paths), reversed(self), strict=True))

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """Bytes of each column for one message."""
        return tuple([len(leaf.runs) * leaf.width for leaf in self])

    @cached_property
    def row_bytes(self) -> int:
        """Bytes of all columns for one message."""
        return sum(self.steps)

    @cached_property
    def runs(self) -> tuple[I64, I64]:
        """int64[k, 5]: rows of the gather kernel's table for columns that begin at 0; int64[k]: the column of each."""
        rows, owner = list[tuple[int, ...]](), list[int]()
        for n, (leaf, step) in enumerate(zip(self, self.steps, strict=True)):
            width = step // max(1, len(leaf.runs))
            rows += [(run, width, i * width, step, 0) for i, run in enumerate(leaf.runs)]
            owner += [n] * len(leaf.runs)
        return np.array(rows, np.int64).reshape(-1, 5), np.array(owner, np.int64)


@dataclass(frozen=True, repr=False)
class Layout:
    """The layout of a message; *root* is a Struct, or a Sequence of Structs: many records in one message.

    Raises DefinitionError for a tree of more than MAX_LEAVES nodes or MAX_DEPTH levels, so that a Layout can always be
    walked.
    """

    root: Struct | Sequence
    name: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.measure.nodes > MAX_LEAVES:
            raise DefinitionError(f"{self.name or 'layout'} has more than {MAX_LEAVES} leaves")

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.root)

    def __repr__(self) -> str:
        # Shared parts, written out, could be far too long.
        size = "any size" if self.size is None else f"{self.size} bytes"
        return f"<logreel.Layout {self.name!r}: {len(list(self.record.visible()))} fields, {size}>"

    @cached_property
    def measure(self) -> Measure:
        """Size and extent of a whole message."""
        return measure(self.root)

    @property
    def size(self) -> int | None:
        """Size of a message in bytes, or None if it depends on the data."""
        return self.measure.size

    @cached_property
    def leaves(self) -> Leaves:
        """The columns of a fixed-size Layout, in file order.

        Raises DefinitionError for a Layout of variable size or of more than MAX_LEAVES runs of bytes.
        """
        if self.measure.runs > MAX_LEAVES:
            raise DefinitionError(f"{self.name or 'layout'} has more than {MAX_LEAVES} leaves")
        if self.size is None:
            raise DefinitionError(f"{self.name or 'layout'} has no fixed size")
        return Leaves(leaves_of(self.root, Place(), {}))

    @property
    def record(self) -> Struct:
        """The Struct of one row of a table."""
        return record_of(self.root, self.name)

    def paths(self) -> list[str]:
        """Return the dotted path of every leaf, in file order; arrays of structs have no index (``esc.esc_rpm``)."""
        return paths(self.record)

    def find(self, path: str) -> Leaf:
        """Return the Leaf at *path*: ``lat``, ``pose.position.x``, ``q[2]``, ``esc[0].esc_rpm``, ``esc.esc_rpm``.

        An array without an index means its whole axis. Works for any leaf at a fixed offset, in a Layout of variable
        size too. Raises NotFoundError (a KeyError) for an unknown path, UsageError for a path that names a whole
        struct, DefinitionError where offset or size depend on the data.
        """
        return find(self.root, path)

    def has(self, path: str) -> bool:
        """Return whether *path* is that of a leaf or of a whole struct."""
        return has_path(self.record, path)

    def project(self, fields: Iterable[str]) -> Layout:
        """Return the same Layout with only *fields* visible: paths of leaves or of whole structs, indices ignored."""
        names = tuple(fields)
        part = self._parts.get(names)
        if part is None:
            part = Layout(project(self.root, names), self.name)
            if len(self._parts) < MAX_PARTS:
                self._parts[names] = part
        return part

    @cached_property
    def _parts(self) -> dict[tuple[str, ...], Layout]:
        """Results of ``project``, which other readers of the channel, or of the same definition, ask for again."""
        return {}

    @cached_property
    def program(self) -> Program:
        """The Program that walks one message and copies its fields; logs that share the Layout share it, too."""
        from logreel.layout.program import compile_layout

        return compile_layout(self)

    def decoder(self) -> Callable[[memoryview], dict[str, Any]]:
        """Return a function that decodes one message into a dict; see ``logreel.layout.decode.decoder``."""
        from logreel.layout.decode import decoder

        return decoder(self.root)


#: Layouts that logs share, by definition; the one that was used last is at the end.
_shared: dict[Hashable, Layout] = {}
_lock = allocate_lock()


def shared(definition: Hashable, make: Callable[[], Layout]) -> Layout:
    """Return the Layout that another log of this process has of *definition*; else that of *make*.

    Logs of one fleet have the same definitions, and compiling those of a small log takes as long as reading it.
    """
    with _lock:
        layout = _shared.pop(definition, None)
        if layout is not None:
            _shared[definition] = layout
    if layout is None:
        layout = make()
        if layout.measure.nodes <= MAX_SHARED_NODES:
            with _lock:
                _shared[definition] = layout
                if len(_shared) > MAX_SHARED:
                    del _shared[next(iter(_shared))]
    return layout
