"""What every writer of logs offers; each format that can be written has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self

from logreel.model.schema import Schema


class Writer(Protocol):
    """An open log being written.

    Messages are appended in the order given. What was flushed survives a crash; the file appears under its final name
    only when it is closed.
    """

    def add_channel(self, topic: str, schema: Schema, metadata: Mapping[str, Any] | None = None) -> int:
        """A number for *topic*, to be used with ``write``; raises DefinitionError if the schema cannot be written."""

    def write(self, channel: int, time: int, data: bytes | memoryview | Mapping[str, Any]) -> None:
        """Append one message at *time* ns: its payload, or its fields, which are encoded by the channel's Layout."""

    def flush(self) -> None:
        """Hand everything written so far to the system."""

    def close(self) -> None:
        """Finish the file and give it its final name."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...
