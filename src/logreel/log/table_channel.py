"""Protocols of a channel and its log with only what tables need, so that tables do not import Log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from logreel.errors import Problem
from logreel.index.gather import Gathered, Want
from logreel.index.message_index import MessageIndex
from logreel.layout.layout import Layout
from logreel.log.payload_decoder import PayloadDecoder
from logreel.log.schema import Schema


class LogContext(Protocol):
    """The part of a Log that tables need: index, clock, name, ``note`` for Problems, ``gather`` for columns."""

    name: str
    epoch: str

    @property
    def index(self) -> MessageIndex: ...

    @property
    def utc_offset(self) -> int | None: ...

    def note(self, problem: Problem) -> None: ...

    def gather(self, want: Want) -> Gathered: ...


class TableChannel(Protocol):
    """The part of a Channel that tables need; see ``Channel`` for its members."""

    number: int
    topic: str
    schema: Schema
    metadata: Mapping[str, Any]

    @property
    def members(self) -> Sequence[TableChannel]: ...

    @property
    def shifts(self) -> Sequence[int]: ...

    @property
    def log(self) -> LogContext: ...

    @property
    def layout(self) -> Layout: ...

    @property
    def decoder(self) -> PayloadDecoder | None: ...

    @property
    def is_uniform(self) -> bool: ...

    @property
    def time_label(self) -> str | None: ...

    def __len__(self) -> int: ...
