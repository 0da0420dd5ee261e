"""Where a log is written, as what, and what came of it."""

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

#: Called with the messages done and the messages in all.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Copied:
    """One channel of a new log."""

    topic: str
    messages: int


@dataclass(frozen=True, slots=True, repr=False)
class Rewritten(Brief):
    """A log that was written.

    channels  all but the reserved ones
    size      bytes
    notes     one sentence for each thing that is not as it was, though nothing is missing
    skipped   one sentence for each thing that was left out
    """

    path: str
    size: int
    channels: tuple[Copied, ...]
    notes: tuple[str, ...]
    skipped: tuple[str, ...]

    @property
    def messages(self) -> int:
        """Messages of all channels but the reserved ones."""
        return sum(one.messages for one in self.channels)

    def as_dict(self) -> dict[str, Any]:
        """The keys that the verbs have in common."""
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
    """Where to write, and how.

    compression  as the format calls it; None: as the first source has it
    chunk_bytes  of its chunks; None: about as in the first source
    force        replace a file of that name
    thorough     compare the times of all messages, too, when the new file is opened again
    foreign      the suffix says which format is written; False: it is that of the source
    strict       nothing is written where something would be left out
    clock        what the times of the new log count: ``log``, or ``utc`` where shifts add the UTC offset
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
    """The format of *log*, which can be written; raises UnsupportedError for one that cannot be yet."""
    fmt = formats()[log.format]
    if fmt.create is None:
        able = ", ".join(f.title for f in formats().values() if f.create is not None)
        raise UnsupportedError(f"{fmt.title} cannot be written yet; what can be: {able}", path=log.name)
    return fmt


def format_to_write(path: str, log: Log) -> Format:
    """The format that the suffix of *path* names, else that of *log*; raises UnsupportedError as ``format_of``.

    Of several formats of one suffix that of *log* is meant, or what it was converted from.
    """
    known = formats().values()
    able = [fmt for fmt in known if fmt.create is not None and path.lower().endswith(fmt.suffixes)]
    able.sort(key=lambda fmt: fmt.name not in (log.format, log.converted_from))
    return able[0] if able else format_of(log)


def _for_all() -> str:
    """What holds logs of several formats."""
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
