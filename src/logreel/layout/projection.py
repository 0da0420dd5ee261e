"""Selected fields of a Layout, resolved once for all messages that are read."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Seq
from functools import cached_property
from typing import Any

import pyarrow as pa

from logreel.layout.arrow_from_buffers import arrow_field
from logreel.layout.arrow_select import arrow_select
from logreel.layout.layout import Layout
from logreel.layout.nodes import FixedArray, Node, Sequence, Struct
from logreel.layout.paths import steps_of
from logreel.layout.program import Program, compile_layout


class Projection:
    """The fields of a Layout that are read, and the Arrow columns that they become.

    layout  the whole Layout
    fields  field paths in the order of the columns; None: every visible top-level member
    part    *layout* with only these fields visible: what kernels and PayloadDecoders read

    Raises NotFoundError (a KeyError) for an unknown path.
    """

    def __init__(self, layout: Layout, fields: Iterable[str] | None = None) -> None:
        self.layout = layout
        self.fields = None if fields is None else tuple(fields)
        self.part = layout if self.fields is None else layout.project(self.fields)

    @cached_property
    def program(self) -> Program:
        """The Program that walks one message and copies these fields."""
        return compile_layout(self.part)

    @cached_property
    def _steps(self) -> list[tuple[str | int, ...]]:
        return [steps_of(self.part.record, path) for path in self.fields or ()]

    @cached_property
    def _records_fields(self) -> list[pa.Field[Any]]:
        if self.fields is None:
            return [arrow_field(f) for f in self.layout.record.visible()]
        return [self._field(*one) for one in zip(self.fields, self._steps, strict=True)]

    def arrow_fields(self, explode: bool = True) -> list[pa.Field[Any]]:
        """One Arrow field per column; a unit is in its metadata under ``unit``.

        explode  False: where one message holds many records, every type is a list
        """
        if explode or not isinstance(self.layout.root, Sequence):
            return self._records_fields
        return [f.with_type(pa.list_(f.type)) for f in self._records_fields]

    def _field(self, path: str, steps: Seq[str | int]) -> pa.Field[Any]:
        record = self.part.record
        node: Node = record
        unit = ""
        for name in steps:
            while isinstance(node, FixedArray | Sequence):
                node = node.item
            if isinstance(name, str) and isinstance(node, Struct):
                member = next(f for f in node.visible() if f.name == name)
                node, unit = member.node, member.unit
        top = next(f for f in record.visible() if f.name == steps[0])
        # pyarrow imports pandas, if it is installed, to convert a Python list.
        empty = pa.nulls(0, arrow_field(top).type)
        kind = arrow_select(empty, steps[1:]).type
        return pa.field(path, kind, metadata={"unit": unit} if unit else None)

    def select(self, arrays: Seq[Any]) -> list[Any]:
        """Return one array per column, from one array per visible member of ``part``."""
        if self.fields is None:
            return list(arrays)
        top = dict(zip((f.name for f in self.part.record.visible()), arrays, strict=True))
        return [arrow_select(top[str(first)], rest) for first, *rest in self._steps]
