"""Limits: every bound of what a log can make logreel do, in one place; docs/limits.md is the same as a page.

A log is not trusted: a few bytes of it may state or unpack to any number. ``Limits`` has the bounds that a user may
raise for a log, ``FIXED`` those that follow from the formats or from how content is held.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, NamedTuple

from logreel.errors import UsageError

#: Environment variable with other limits than the defaults, for the command line: ``name=number,name=number``.
VARIABLE = "LOGREEL_LIMITS"
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_NUMBER = re.compile(r"(\d{1,18})([kmgt]?)(?:i?b)?", re.IGNORECASE)


def _limit(value: int, reason: str, beyond: str) -> Any:
    return field(default=value, metadata={"reason": reason, "beyond": beyond})


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of what one log may use; pass changed ones as ``logreel.open(path, limits=Limits(…))``.

    chunk_bytes        greatest size of an unpacked chunk in bytes; more of a chunk is not read
    small_chunk_bytes  size in bytes up to which a chunk is unpacked however small its packed bytes are
    chunk_ratio        larger chunks are unpacked to so many times their packed bytes
    cache_bytes        bytes of unpacked chunks that are kept in memory
    spool_bytes        bytes of unpacked chunks that are kept in a temporary file, where unpacking is slow
    event_json_bytes   greatest size of the unpacked event definitions of a ULog in bytes
    index_entries      greatest number of entries of an index: channels × chunks
    remote_bytes       bytes of a remote log that are downloaded

    The environment variable LOGREEL_LIMITS, such as ``chunk_bytes=4G,chunk_ratio=1000``, changes the defaults, also for
    the command line. Raises UsageError for a number that is not positive.
    """

    chunk_bytes: int = _limit(
        1 << 30,
        "a chunk is unpacked as a whole; recorders close chunks at 1 to 64 MiB",
        "the first bytes of the chunk are read, the rest is a problem `chunk`",
    )
    small_chunk_bytes: int = _limit(
        32 << 20,
        "the chunks of recorders are smaller, and may hold zeros only",
        "`chunk_ratio` counts",
    )
    chunk_ratio: int = _limit(
        256,
        "4 kB can unpack to any size; what robots record shrinks to a hundredth at best, and LZ4 to a 255th",
        "the first bytes of the chunk are read, the rest is a problem `chunk`",
    )
    cache_bytes: int = _limit(
        64 << 20,
        "tables and copies read each chunk once; random access reads neighbours again",
        "the chunk that was used least recently is dropped, and unpacked again when it is needed",
    )
    spool_bytes: int = _limit(
        16 << 30,
        "bz2 unpacks slower than a disk reads; the temporary folder may be small",
        "chunks are unpacked again when they are needed",
    )
    event_json_bytes: int = _limit(
        8 << 20,
        "real ones have about 100 kB; hostile JSON takes up to 30 times its size in memory",
        "events have no texts",
    )
    index_entries: int = _limit(
        1 << 27,
        "the index of an MCAP has an entry of 8 bytes for each channel in each chunk",
        "`UnsupportedError`",
    )
    remote_bytes: int = _limit(
        64 << 30,
        "what is downloaded lies in a temporary file; larger logs are read in ranges",
        "`LogError`, before more is downloaded",
    )

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise UsageError(f"limit {one.name}: {value!r:.60} is not a positive integer")

    def unpacked(self, stated: int, packed: int) -> int:
        """Return the most bytes that a chunk of *packed* bytes is unpacked to if it states *stated* bytes."""
        return min(stated, self.chunk_bytes, max(self.small_chunk_bytes, self.chunk_ratio * packed))

    def exceeded(self, packed: int) -> str:
        """Return what a Problem says of a chunk of *packed* bytes that unpacks to more than ``unpacked``."""
        allowed = max(self.small_chunk_bytes, self.chunk_ratio * packed)
        name = "chunk_bytes" if allowed > self.chunk_bytes else "chunk_ratio"
        return f"it unpacks to more than {min(allowed, self.chunk_bytes)} bytes, {beyond(name)}"


def beyond(name: str) -> str:
    """Return the end of a sentence that names a limit and says how to raise it."""
    return f"the limit {name} (raise it with logreel.Limits or {VARIABLE})"


def default_limits() -> Limits:
    """Return the limits of the environment; raises UsageError for a name or number that does not exist."""
    return _parsed(os.environ.get(VARIABLE, ""))


@lru_cache(maxsize=8)
def _parsed(text: str) -> Limits:
    known = {one.name for one in fields(Limits)}
    given: dict[str, Any] = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, _, value = part.partition("=")
        number = _NUMBER.fullmatch(value.strip())
        if name.strip() not in known or number is None:
            raise UsageError(
                f"{VARIABLE}: {part!r:.80}; expected NAME=NUMBER, NAME one of {', '.join(sorted(known))}"
            )
        given[name.strip()] = int(number[1]) << _UNITS[number[2].lower()]
    return replace(Limits(), **given)


class FixedLimit(NamedTuple):
    """A bound that no option raises.

    name    what the page and the texts call it
    where   ``module:CONSTANT``
    reason  why it is there
    beyond  what happens to what is beyond it
    """

    name: str
    where: str
    reason: str
    beyond: str


_REFUSED = "`DefinitionError`, or a problem `definition`: the channel has no fields"
_PAYLOAD = "the message is listed as a problem `payload`"
_GROWING = "`follow` goes on behind it, and its bytes are a problem"

FIXED = (
    FixedLimit(
        "bytes of a message", "logreel.layout.nodes:MAX_SIZE", "Arrow's offsets have 32 bits", _PAYLOAD
    ),
    FixedLimit(
        "items without bytes",
        "logreel.kernels.layout:SPARE",
        "nothing else limits their number: a message may have so many more than it has bytes",
        _PAYLOAD,
    ),
    FixedLimit(
        "leaves of a layout", "logreel.layout.nodes:MAX_LEAVES", "nested definitions double", _REFUSED
    ),
    FixedLimit(
        "depth of a layout", "logreel.layout.nodes:MAX_DEPTH", "definitions may contain each other", _REFUSED
    ),
    FixedLimit(
        "bytes of a ROS 1 definition",
        "logreel.schemas.ros1msg.grammar:MAX_TEXT",
        "real ones have some kB",
        _REFUSED,
    ),
    FixedLimit(
        "bytes of a ROS 2 definition",
        "logreel.schemas.ros2msg.cdr:MAX_TEXT",
        "real ones have some kB",
        _REFUSED,
    ),
    FixedLimit(
        "characters of the name of a ROS type or field",
        "logreel.schemas.ros1msg.grammar:MAX_NAME",
        "real ones have fewer than 100",
        _REFUSED,
    ),
    FixedLimit(
        "bytes of the header of a bag's record",
        "logreel.formats.rosbag.records:MAX_HEADER",
        "the C++ reader has the same",
        "the bytes are a problem",
    ),
    FixedLimit(
        "bytes of an unfinished record of a growing bag",
        "logreel.formats.rosbag.reader:PENDING",
        "a damaged size must not stop `follow`",
        _GROWING,
    ),
    FixedLimit(
        "bytes of an MCAP chunk in offsets",
        "logreel.formats.mcap.chunks:LARGEST",
        "offsets in a chunk have 32 bits",
        "the rest of the chunk is a problem `chunk`",
    ),
    FixedLimit(
        "bytes of an unfinished record of a growing MCAP",
        "logreel.formats.mcap.reader:PENDING",
        "a damaged size must not stop `follow`",
        _GROWING,
    ),
    FixedLimit(
        "series of a BDDF",
        "logreel.formats.bddf.index_builder:MAX_SERIES",
        "the table of series has one entry for each number",
        "the declaration is a problem `garbage`",
    ),
    FixedLimit(
        "bytes of a BDDF descriptor",
        "logreel.formats.bddf.records:MAX_DESCRIPTOR",
        "real ones have some kB",
        "the block is a problem, or `UsageError` when it is written",
    ),
    FixedLimit(
        "dimensions of a BDDF array",
        "logreel.formats.bddf.descriptors:MAX_DIMENSIONS",
        "each is a level of a list",
        "the channel has no fields",
    ),
    FixedLimit(
        "depth of a BDDF struct",
        "logreel.formats.bddf.value_series:MAX_DEPTH",
        "structs may contain each other",
        "a problem; the member is left out",
    ),
    FixedLimit(
        "bytes of an unfinished block of a growing BDDF",
        "logreel.formats.bddf.reader:PENDING",
        "a damaged size must not stop `follow`",
        _GROWING,
    ),
    FixedLimit(
        "bytes of an unfinished packet of a growing CARLA recording",
        "logreel.formats.carla.reader:LONGEST",
        "a damaged size must not stop `follow`",
        _GROWING,
    ),
    FixedLimit(
        "bytes of a format of a ULog",
        "logreel.formats.ulog.definitions:MAX_BYTES",
        "a record has no more",
        _REFUSED,
    ),
    FixedLimit(
        "memory of XZ in a ULog",
        "logreel.formats.ulog.events:MAX_LZMA",
        "PX4 writes a dictionary of 64 MiB; a header can claim 4 GiB",
        "events have no texts",
    ),
    FixedLimit(
        "characters of a text of an event",
        "logreel.formats.ulog.events:MAX_TEXT",
        "real ones have fewer than 400",
        "events have no texts; a text that its arguments make longer is shortened",
    ),
    FixedLimit(
        "segments of a ULog",
        "logreel.formats.ulog.reader:MAX_SEGMENTS",
        "each one gets channels of its own",
        "further ones are kept together in the last one",
    ),
    FixedLimit(
        "bytes of a Koblenz message",
        "logreel.formats.koblenz.records:MAX_SIZE",
        "pictures have some MB",
        "the bytes are a problem",
    ),
    FixedLimit(
        "bytes of an unfinished message of a growing Koblenz log",
        "logreel.formats.koblenz.reader:LONGEST",
        "a damaged size must not stop `follow`",
        _GROWING,
    ),
    FixedLimit(
        "sensors of a Koblenz type",
        "logreel.formats.koblenz.scan_builder:MAX_SENSORS",
        "each one gets a channel",
        "messages of further ones are in one channel, `others`",
    ),
    FixedLimit(
        "unknown types and versions of a Koblenz log",
        "logreel.formats.koblenz.framing:MAX_UNKNOWN",
        "damage looks like new types",
        "the bytes are a problem",
    ),
    FixedLimit(
        "bytes of an index file, in parts of its log",
        "logreel.registry.index_cache:_TIMES",
        "a sparse file costs nothing to make, reading it does",
        "the index file is ignored",
    ),
    FixedLimit(
        "bytes of a line of `record`",
        "logreel.ops.record.lines:LONGEST",
        "a line is held until it ends",
        "the line is cut there",
    ),
    FixedLimit(
        "bytes of a frame of `record`",
        "logreel.ops.record.sources.streams:LONGEST",
        "a frame is held until it ends",
        "it is left out, which a note says",
    ),
    FixedLimit(
        "channels of a Foxglove server",
        "logreel.ops.record.sources.foxglove:MOST_CHANNELS",
        "a server may announce any number",
        "further ones are left out, which a note says",
    ),
    FixedLimit(
        "bytes of a message from Foxglove",
        "logreel.ops.record.sources.foxglove:LARGEST",
        "a server may state any size",
        "`LogError`, unless a larger `largest` is given",
    ),
    FixedLimit(
        "bytes of the head of a request",
        "logreel.outputs.http.server:HEAD_BYTES",
        "a head is held until it ends",
        "the answer is 431",
    ),
    FixedLimit(
        "seconds for the head of a request",
        "logreel.outputs.http.server:HEAD_SECONDS",
        "half a request would hold a connection",
        "the connection is closed",
    ),
    FixedLimit(
        "seconds in which a client takes nothing",
        "logreel.outputs.http.server:SLOW_SECONDS",
        "an answer is held until it is taken",
        "the connection is closed",
    ),
    FixedLimit(
        "connections of `serve` and `view`",
        "logreel.outputs.http.server:CONNECTIONS",
        "each takes memory",
        "the answer is 503",
    ),
    FixedLimit(
        "connections of one address",
        "logreel.outputs.http.server:PER_CLIENT",
        "one client must not keep all others out",
        "the answer is 503",
    ),
    FixedLimit(
        "clients of `play --to foxglove`",
        "logreel.outputs.http.websocket_gate:CONNECTIONS",
        "each gets all messages that it subscribes to",
        "the answer is 503",
    ),
    FixedLimit(
        "handshakes of such clients at a time",
        "logreel.outputs.http.websocket_gate:PENDING",
        "half a handshake would hold a connection",
        "the oldest is closed",
    ),
    FixedLimit(
        "seconds for such a handshake",
        "logreel.outputs.http.websocket_gate:HEAD_SECONDS",
        "half a handshake would hold a connection",
        "the connection is closed",
    ),
    FixedLimit(
        "seconds in which such a client takes nothing",
        "logreel.outputs.http.websocket_gate:SLOW_SECONDS",
        "messages are held until they are taken",
        "the connection is closed",
    ),
    FixedLimit(
        "bytes of a message of such a client",
        "logreel.outputs.http.websocket_gate:MESSAGE_BYTES",
        "a message is held until it ends; those of the app have some kB",
        "the connection is closed",
    ),
    FixedLimit(
        "bytes of a file name from a log",
        "logreel.outputs.files:MAX_BYTES",
        "file systems allow 255",
        "the name is shortened",
    ),
    FixedLimit(
        "slices that `serve` sends at a time",
        "logreel.outputs.http.answer:MOST",
        "each one reads a log",
        "the answer is 503",
    ),
    FixedLimit(
        "logs that these slices read",
        "logreel.outputs.http.answer:LOGS",
        "each one is open meanwhile",
        "the answer is 503",
    ),
    FixedLimit(
        "seconds in which nothing of a slice is taken",
        "logreel.outputs.http.answer:PATIENCE",
        "it keeps others waiting",
        "the connection is closed",
    ),
    FixedLimit(
        "characters of an SQL expression in `view`",
        "logreel.outputs.view.limits:SQL_CHARACTERS",
        "a page sends it",
        "`UsageError`",
    ),
    FixedLimit(
        "seconds of an SQL expression in `view`",
        "logreel.outputs.view.limits:SQL_SECONDS",
        "any number of rows can be joined",
        "`UsageError`",
    ),
    FixedLimit(
        "rows of an SQL expression in `view`",
        "logreel.outputs.view.limits:SQL_ROWS",
        "they are held in memory",
        "`UsageError`",
    ),
    FixedLimit(
        "memory of an SQL expression in `view`",
        "logreel.outputs.view.limits:SQL_MEMORY",
        "the server has other requests",
        "`UsageError`",
    ),
)
