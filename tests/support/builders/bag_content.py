"""Results of the plain reader of bags, and the parts that all versions share."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Message:
    """A message; *place*: offset of its data, in the chunk at offset *chunk* if there is one, else in the file."""

    topic: str
    type: str
    md5: str
    time: int
    payload: bytes
    place: int
    chunk: int | None = None


@dataclass(frozen=True)
class Connection:
    """Type information of a topic; *definition* is empty if the bag has none."""

    topic: str
    type: str
    md5: str
    definition: bytes = b""


@dataclass
class Bag:
    """Content of a bag in file order; *lost* are half-open ranges of bytes that are no record.

    Ranges inside of a compressed chunk are given as the range of the chunk.
    """

    version: str
    messages: list[Message] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)
    lost: list[tuple[int, int]] = field(default_factory=list)


class Bad(ValueError):
    """There is no record at an offset."""


def u32(data: bytes, at: int, end: int) -> int:
    if at + 4 > end:
        raise Bad("cut")
    return int.from_bytes(data[at : at + 4], "little")


def seconds(sec: int, nsec: int) -> int:
    """Return a time in ns; the greatest u32 seconds mean negative ones."""
    return (sec - 2**32 if sec >= 0xF0000001 else sec) * 10**9 + nsec
