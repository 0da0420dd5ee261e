"""Schemas of new CARLA recordings: kinds of packets by topic."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, UsageError
from logreel.formats.carla.write_kinds import Dialect
from logreel.io.arrays import I64
from logreel.io.chunks import Buffer
from logreel.layout.layout import Layout
from logreel.log.schema import Schema
from logreel.write.schema_maker import SchemaMaker


class CarlaSchemaMaker(SchemaMaker):
    """Makes schemas, which are kinds of packets.

    dialect  layouts of the release that is written
    topics   topic by channel number
    """

    encoding = "carla"

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.dialect = Dialect(False, True)
        self.topics: list[str] = []
        self._are_frames: list[bool] = []

    def add_channel(self, topic: str, is_frame: bool) -> None:
        """Add the next channel; *is_frame*: its messages are the starts of frames."""
        self.topics.append(topic)
        self._are_frames.append(is_frame)

    def schema_from_layout(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return the schema of *topic*; it does not depend on the fields."""
        schema = Schema(topic, self.encoding)
        try:
            self.dialect.kind_of(topic, schema, {}, False)
        except UsageError as error:
            raise DefinitionError(error.text) from None
        return schema

    def layout(self, number: int) -> Layout:
        """Return the Layout of the packets of a channel."""
        return self.dialect.layout(self.topics[number])

    def computed_fields(self, number: int) -> Collection[str]:
        """Return ``frame``: readers add the frame number to packets other than FrameStart."""
        return () if self._are_frames[number] else ("frame",)

    def time_dependent_fields(self, number: int) -> Collection[str]:
        """Return the fields of frames."""
        return ("frame", "duration", "elapsed") if self._are_frames[number] else ()

    def misfits(self, number: int, data: Buffer, start: I64, size: I64) -> NDArray[np.bool_]:
        """Return bool[n]: True for payloads that are not packets of a channel."""
        return self.dialect.misfits(self.topics[number], data, start, size)
