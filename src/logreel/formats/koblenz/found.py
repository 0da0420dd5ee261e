"""What reading a Koblenz log found: the block table of its messages, and their kinds."""

from __future__ import annotations

from dataclasses import dataclass

from logreel.errors import Problem
from logreel.formats.koblenz.framing import Framing
from logreel.formats.koblenz.kinds import Kind
from logreel.formats.koblenz.records import HEAD
from logreel.index.block_table import Blocks
from logreel.index.rules import FieldAt
from logreel.io.arrays import I64


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that reading found in one file.

    framing  the tables by which messages were accepted, with the size reading and the valid mark
    kinds    by column of *blocks*
    end      position of the end mark, or None
    """

    framing: Framing
    kinds: list[Kind]
    blocks: Blocks
    end: int | None
    problems: list[Problem]

    @property
    def size_field(self) -> FieldAt:
        """The field of a message header that gives the size of its payload in bytes."""
        return FieldAt(-HEAD, 4, 1, -self.framing.size_reading.base)

    def sizes(self, offsets: I64) -> I64:
        """Return int64[n]: sizes of payloads in bytes, as their headers state them."""
        return self.size_field.read(self.framing.source.data, offsets)
