"""Decoders of message series, and of the additional indexes, which are stored outside the payload."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import DefinitionError, Problem
from logreel.formats.bddf.descriptors import PROTOBUF, MessageSeriesType
from logreel.index.block_table import MISSING_SIZE
from logreel.index.gather import places
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.source import FILE, Source
from logreel.kernels import bddf
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Scalar
from logreel.log.scan import Noted, PayloadDecoder
from logreel.log.side_columns import SideColumnsDecoder, with_members
from logreel.schemas.json.payload_decoder import JsonDecoder
from logreel.schemas.protobuf.payload_decoder import ProtobufDecoder, WireDecoder

if TYPE_CHECKING:
    from logreel.schemas.protobuf.types import Types

#: Characters with a meaning in paths of fields.
_PATH_SEPARATORS = re.compile(r"[.\[\]]")


def with_additional_indexes(layout: Layout, names: Sequence[str]) -> Layout:
    """Return *layout* with the additional indexes as int64 members before its own members."""
    return with_members(layout, [Field(name, Scalar("int64")) for name in names])


def distinct_names(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Return *names* as valid member names: not empty, all different, not in *taken*, without ``.``, ``[``, ``]``."""
    used = set(taken)
    distinct = []
    for i, name in enumerate(names):
        name = label = _PATH_SEPARATORS.sub("_", name) or f"index_{i}"
        n = 1
        while label in used:
            n += 1
            label = f"{name}_{n}"
        used.add(label)
        distinct.append(label)
    return distinct


def column_names(layout: Layout) -> set[str]:
    """Return the names of the columns of a table of *layout*."""
    return {f.name for f in layout.record.visible()} | {"time"}


class AdditionalIndexDecoder(SideColumnsDecoder):
    """Decodes additional indexes as columns, followed by the columns that *body* decodes from the payload."""

    def __init__(self, channel: int, names: Sequence[str], body: PayloadDecoder) -> None:
        super().__init__(names, partial(_additional_indexes, channel=channel, count=len(names)), body)
        self.logged = tuple(names)


def _additional_indexes(
    index: MessageIndex, rows: I64, *, channel: int, count: int
) -> list[np.ndarray[Any, Any]]:
    """Return each of the *count* additional indexes of some messages of a channel: int64[n]."""
    out = np.zeros((len(rows), count), np.int64)
    if len(rows):
        data, start = index.chunks[FILE], _starts(index, channel, rows)
        bddf.gather_numbers(data, start, out)
    return list(out.T)


def _starts(index: MessageIndex, channel: int, rows: I64) -> I64:
    """Return int64[n]: the starts of the blocks of some messages; -1 for blocks that are not what the index says."""
    if not index.reads_in_ranges:
        return index.starts(channel)[rows]
    # Resolves these blocks only.
    _, _, size = places(index, channel, rows)
    _, start, _ = index.locate(channel, rows)
    start[size == MISSING_SIZE] = -1
    return start


class MessageDecoders:
    """Decoders of the protobuf and JSON series of one log; unusable definitions are recorded as a Problem, once."""

    def __init__(self, source: Source, problems: list[Problem]) -> None:
        self._source, self._problems = source, problems
        self._noted = Noted()
        self._protobuf: dict[tuple[str, bytes], ProtobufDecoder | WireDecoder] = {}

    @cached_property
    def _types(self) -> Types:
        from logreel.schemas.protobuf.types import Types

        try:
            return Types(self._source.definitions)
        except DefinitionError as error:
            self._add_problem(error.text)
            return Types()

    def descriptors(self, series_type: MessageSeriesType, own: bytes) -> bytes:
        """Return the FileDescriptorSet of a type: *own*, of its series, else that the user passed, or b""."""
        if series_type.content_type != PROTOBUF:
            return b""
        if own or not self._source.definitions:
            return own
        return self._types.set_of(series_type.name)

    def _add_problem(self, text: str) -> None:
        problem = Problem("definition", 0, 0, False, text)
        self._noted.add(self._problems, problem)

    def protobuf(
        self, topic: str, series_type: MessageSeriesType, own: bytes = b""
    ) -> ProtobufDecoder | WireDecoder:
        """Return the decoder of a protobuf series: fields by name if the type is described, else by number.

        own  a FileDescriptorSet that the series contains; empty: none
        """
        key = series_type.name, own
        if key not in self._protobuf:
            self._protobuf[key] = self._protobuf_decoder(topic, series_type.name, own)
        return self._protobuf[key]

    def json(self, topic: str, schema: str) -> JsonDecoder | None:
        """Return the decoder of a series of JSON by its JSON Schema, or None if the schema has no fields."""
        try:
            decoder = JsonDecoder(schema)
        except DefinitionError as error:
            self._add_problem(f"{topic}: {error.text}; its messages are shown as text")
            return None
        return decoder if decoder.has_fields else None

    def _own_descriptor(self, topic: str, name: str, own: bytes) -> Any:
        from logreel.schemas.protobuf.types import Types

        try:
            return Types(own=own).find(name)
        except DefinitionError as error:
            self._add_problem(f"{topic}: {error.text}")
            return None

    def _protobuf_decoder(self, topic: str, name: str, own: bytes) -> ProtobufDecoder | WireDecoder:
        descriptor = self._own_descriptor(topic, name, own) if own else None
        if descriptor is None and name:
            descriptor = self._types.find(name)
        if descriptor is None:
            said = f"{topic}: nothing describes {name or 'its messages'}"
            self._add_problem(
                f"{said}; its fields are shown by number (a file with descriptors can be given when the log is opened)"
            )
            return WireDecoder()
        try:
            return ProtobufDecoder(descriptor)
        except DefinitionError as error:
            self._add_problem(f"{topic}: {error.text}; its fields are shown by number")
            return WireDecoder()
