"""Targets and results of writing a log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from logreel.errors import UnsupportedError, UsageError
from logreel.io.atomic_file import keep_sources
from logreel.log.brief import Brief
from logreel.log.log import Log
from logreel.ops.rewrite.parts import Part
from logreel.registry.format import Format
from logreel.registry.registry import formats

#: Called with the number of messages written and the total.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Copied:
    """One channel of a new log."""

    topic: str
    messages: int


@dataclass(frozen=True, slots=True, repr=False)
class Rewritten(Brief):
    """Result of writing a log.

    channels  channels except reserved ones
    size      bytes
    notes     sentences about changes without loss
    skipped   sentences about what was left out
    """

    path: str
    size: int
    channels: tuple[Copied, ...]
    notes: tuple[str, ...]
    skipped: tuple[str, ...]

    @property
    def messages(self) -> int:
        """Number of messages of all channels except reserved ones."""
        return sum(one.messages for one in self.channels)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data that all verbs have in common."""
        return {
            "output": self.path,
            "size": self.size,
            "messages": self.messages,
            "channels": [asdict(one) for one in self.channels],
            "notes": list(self.notes),
            "skipped": list(self.skipped),
        }


@dataclass(frozen=True, slots=True)
class Target:
    """Path and options of a log to write.

    compression  compression of chunks; None: that of the first source
    chunk_bytes  size of chunks; None: about that of the first source
    force        replace an existing file
    thorough     also compare the times of all messages when the new file is read back
    foreign      True: the suffix selects the format; False: the format is that of the source
    strict       write nothing if something would be left out
    clock        clock of the new log: ``log``, or ``utc`` if shifts add the UTC offset
    """

    path: str
    compression: str | None = None
    force: bool = False
    thorough: bool = False
    progress: Progress | None = None
    chunk_bytes: int | None = None
    foreign: bool = False
    strict: bool = False
    clock: str = "log"


def format_of(log: Log) -> Format:
    """Return the format of *log*; raises UnsupportedError if it cannot be written."""
    fmt = formats()[log.format]
    if fmt.create is None:
        able = ", ".join(f.title for f in formats().values() if f.create is not None)
        raise UnsupportedError(f"{fmt.title} cannot be written yet; what can be: {able}", path=log.name)
    return fmt


def format_to_write(path: str, log: Log) -> Format:
    """Return the format with the suffix of *path*, else that of *log*; raises UnsupportedError as ``format_of``.

    If formats share a suffix, the format of *log*, or the one it was converted from, has precedence.
    """
    known = formats().values()
    able = [fmt for fmt in known if fmt.create is not None and path.lower().endswith(fmt.suffixes)]
    able.sort(key=lambda fmt: fmt.name not in (log.format, log.converted_from))
    return able[0] if able else format_of(log)


def _for_all() -> str:
    """Return a hint which format can hold logs of several formats."""
    able = [fmt for fmt in formats().values() if fmt.exchange]
    return f": write {able[0].title} (*{able[0].suffixes[0]}), which holds both" if able else ""


def check_names(parts: Sequence[Part], target: Target, fmt: Format) -> None:
    """Raise UsageError for an output that is an input, inputs of several formats, or the suffix of another format."""
    keep_sources(target.path, [part.log.name for part in parts])
    for part in parts:
        if part.log.format != (parts[0].log.format if target.foreign else fmt.name):
            text = f"is a log of another format than {parts[0].log.name}{_for_all()}"
            raise UsageError(text, path=part.log.name)
    for other in formats().values():
        if target.path.lower().endswith(other.suffixes) and not target.path.lower().endswith(fmt.suffixes):
            raise UsageError(
                f"the suffix is that of {other.title}, but the log is one of {fmt.title}", path=target.path
            )
