"""What making tables needs to know of a channel and of its log, so that tables stand below both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from logreel.errors import Problem
from logreel.index.message_index import MessageIndex
from logreel.layout.layout import Layout
from logreel.log.payload_decoder import PayloadDecoder
from logreel.log.schema import Schema


class LogContext(Protocol):
    """The log of a channel: its index, its clock, and where Problems are noted."""

    name: str
    epoch: str

    @property
    def index(self) -> MessageIndex: ...

    @property
    def utc_offset(self) -> int | None: ...

    def note(self, problem: Problem) -> None: ...


class TableChannel(Protocol):
    """A channel whose messages become tables; see ``Channel`` for what these are."""

    number: int
    topic: str
    schema: Schema
    metadata: Mapping[str, Any]

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
