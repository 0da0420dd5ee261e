"""The content of a BDDF file, as reading it from the front or by its own index found it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from logreel.errors import Problem
from logreel.formats.bddf.descriptors import FileDescriptor, Series
from logreel.formats.bddf.records import EndBlock
from logreel.index.block_table import Blocks, Separate
from logreel.index.message_index import MessageIndex


@dataclass(slots=True)
class Found:
    """The content of a file.

    series   the series of each channel, by channel number
    table    offsets of the data blocks, by channel
    times    a function that returns the least and the greatest time of the data blocks, ns
    ending   the end block of the file, or None
    indexed  True if the index of the file was used
    ranged   the index of a remote file, of which data blocks are fetched when they are needed; else None
    """

    file: FileDescriptor
    series: list[Series]
    table: Blocks | Separate
    times: Callable[[], tuple[int | None, int | None]]
    problems: list[Problem] = field(default_factory=list)
    ending: EndBlock | None = None
    indexed: bool = False
    ranged: MessageIndex | None = None
