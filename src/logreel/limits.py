"""Limits: every bound of what a log can make logreel do; docs/limits.md lists all of them.

A log is not trusted: a few bytes of it may state or unpack to any number. ``Limits`` has the bounds that a user may
raise for a log. ``fixed_limits`` collects those that follow from the formats or from how content is held: each room
lists its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from logreel.dataclass import NamedTuple, dataclass, field, lazy_pattern
from logreel.errors import UsageError

#: Environment variable with other limits than the defaults, for the command line: ``name=number,name=number``.
VARIABLE = "LOGREEL_LIMITS"
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_NUMBER = lazy_pattern(r"(?i:(\d{1,18})([kmgt]?)(?:i?b)?)")


def _limit(value: int, reason: str, beyond: str) -> Any:
    return field(default=value, metadata={"reason": reason, "beyond": beyond})


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of what one log may use; pass changed ones as ``logreel.open(path, limits=Limits(…))``.

    chunk_bytes        greatest size of an unpacked chunk in bytes; more of a chunk is not read
    small_chunk_bytes  size in bytes up to which a chunk is unpacked however small its packed bytes are
    chunk_ratio        larger chunks are unpacked to so many times their packed bytes
    cache_bytes        bytes of unpacked chunks that are kept in memory
    spool_bytes        bytes of unpacked chunks that are kept in a temporary file, where they are needed again
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
        "the chunk that was used least recently is dropped; where it is unpacked again, `spool_bytes` counts",
    )
    spool_bytes: int = _limit(
        16 << 30,
        "a disk reads faster than bz2 unpacks, and no slower than zstd; at most half of the space that is left is used",
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
        "a downloaded log is kept in a temporary file; larger logs are read in ranges",
        "`LogError`, before more is downloaded",
    )

    def __post_init__(self) -> None:
        for name in _names():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise UsageError(f"limit {name}: {value!r:.60} is not a positive integer")

    def unpacked(self, stated: int, packed: int) -> int:
        """Return the most bytes that a chunk of *packed* bytes is unpacked to if it states *stated* bytes."""
        return min(stated, self.chunk_bytes, max(self.small_chunk_bytes, self.chunk_ratio * packed))

    def exceeded(self, packed: int) -> str:
        """Return what a Problem says of a chunk of *packed* bytes that unpacks to more than ``unpacked``."""
        allowed = max(self.small_chunk_bytes, self.chunk_ratio * packed)
        name = "chunk_bytes" if allowed > self.chunk_bytes else "chunk_ratio"
        return f"it unpacks to more than {min(allowed, self.chunk_bytes)} bytes, {beyond(name)}"


def _names() -> tuple[str, ...]:
    return Limits.__match_args__


def beyond(name: str) -> str:
    """Return the end of a sentence that names a limit and says how to raise it."""
    return f"the limit {name} (raise it with logreel.Limits or {VARIABLE})"


def default_limits() -> Limits:
    """Return the limits of the environment; raises UsageError for a name or number that does not exist."""
    return _parsed(os.environ.get(VARIABLE, ""))


@lru_cache(maxsize=8)
def _parsed(text: str) -> Limits:
    known = _names()
    given: dict[str, Any] = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, _, value = part.partition("=")
        number = _NUMBER.fullmatch(value.strip())
        if name.strip() not in known or number is None:
            raise UsageError(
                f"{VARIABLE}: {part!r:.80}; expected NAME=NUMBER, NAME one of {', '.join(sorted(known))}"
            )
        given[name.strip()] = int(number[1]) << _UNITS[number[2].lower()]
    return Limits(**given)


class FixedLimit(NamedTuple):
    """A bound that no option raises.

    name    what the page and the texts call it
    value   the bound: a number, or a size as text, such as ``256MB``
    reason  why it is there
    beyond  what happens to what is beyond it
    """

    name: str
    value: float | str
    reason: str
    beyond: str


#: What happens beyond several limits of definitions, and beyond those of unfinished records of growing logs.
REFUSED = "`DefinitionError`, or a problem `definition`: the channel has no fields"
GROWING = "`follow` goes on behind it, and its bytes are a problem"


def fixed_limits() -> Iterator[FixedLimit]:
    """Yield the bounds that no option raises: of each room of logreel that lists some, and of formats of others.

    A room is a package of logreel; it lists its bounds by a function ``fixed_limits``.
    """
    from importlib import import_module
    from pkgutil import iter_modules

    package = import_module(__name__.partition(".")[0])
    for room in sorted(module.name for module in iter_modules(package.__path__) if module.ispkg):
        limits = getattr(import_module(f"{package.__name__}.{room}"), "fixed_limits", None)
        yield from limits() if limits is not None else ()
