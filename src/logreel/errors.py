"""Exceptions of logreel, and reports of damage as data: Problem and Finding."""

from __future__ import annotations

import copyreg
from _thread import _local as Local  # noqa: N812
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from errno import EIO
from typing import Any, Literal

from logreel.dataclass import asdict, dataclass

#: Severities of a Finding, worst first.
SEVERITIES = ("error", "warn", "note")
Severity = Literal["error", "warn", "note"]


class LogError(Exception):
    """Base of all exceptions that logreel raises on purpose; all can be copied and pickled.

    text    what is wrong, followed by *hint* if there is one
    path    the file concerned, as the caller named it, or None
    offset  byte offset in that file, or None
    hint    what to do about it, such as ``pass force=True``. The command line words it with its options: parameters are
            written as ``name=`` or ``name=value``, and functions as ``logreel.name``
    """

    text: str
    offset: int | None
    hint: str

    def __init__(
        self,
        text: str,
        *,
        path: str | None = None,
        offset: int | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(text)
        self._fact = text
        self.text, self.path, self.offset = _with(text, hint), path, offset
        self.hint = hint

    def __str__(self) -> str:
        return self._placed(self.text)

    def with_hint(self, hint: str) -> str:
        """Return ``str(error)`` with another hint in place of its own."""
        return self._placed(_with(self._fact, hint))

    def _placed(self, text: str) -> str:
        where = f" (at byte {self.offset})" if self.offset is not None else ""
        return f"{self.path}: {text}{where}" if self.path else f"{text}{where}"

    def __reduce__(self) -> tuple[Any, ...]:
        # Subclasses take other arguments than those in ``args``; ``path`` of an ImportError is not in ``__dict__``.
        state = {**self.__dict__, "args": self.args, "path": self.path}
        return copyreg.__newobj__, (type(self), *self.args), state  # type: ignore[attr-defined]


def _with(text: str, hint: str) -> str:
    return f"{text}; {hint}" if hint else text


class UnknownFormatError(LogError):
    """Content that no registered format recognises."""


class UnsupportedError(LogError):
    """A file of a known format that needs a feature logreel does not have; the text names it."""


class DamagedError(LogError):
    """Damaged content: a payload that cannot be decoded, or the first Problem with ``strict=True``.

    problem  the Problem
    """

    def __init__(self, problem: Problem, *, path: str | None = None) -> None:
        super().__init__(problem.text, path=path, offset=problem.offset)
        self.problem = problem


class FileChangedError(LogError):
    """A file that was truncated, overwritten or became unreadable while it was open; what was read of it is not valid.

    ``offset`` is the first byte that is known to be missing, or None.
    """


class UnreachableError(LogError, OSError):
    """A server that cannot be reached, does not answer in time, or fails: another attempt may succeed later."""

    #: Those who repeat what failed with an OSError that may pass repeat this as well.
    errno = EIO


class DefinitionError(LogError):
    """A schema text or a Layout that cannot be used."""


class UsageError(LogError):
    """Invalid arguments: values that contradict each other, or a time or name that cannot be read."""


class IncompleteOutputError(LogError):
    """An output that would be incomplete or empty, so that nothing is written.

    skipped  one sentence for each thing that would be missing
    """

    def __init__(self, why: str, skipped: Sequence[str], *, path: str | None = None) -> None:
        more = f", and {len(skipped) - 1} more like this" if len(skipped) > 1 else ""
        super().__init__(f"nothing is written, because {why}{skipped[0]}{more}", path=path)
        self.skipped = tuple(skipped)


#: Libraries by the name of their module: the name of their package, and the extra that installs it; the extra of those
#: that are always installed is empty.
LIBRARIES = {
    "av": ("av", "video"),
    "cryptography": ("cryptography", "encrypted"),
    "daft": ("daft", "daft"),
    "duckdb": ("duckdb", "sql"),
    "foxglove": ("foxglove-sdk", "foxglove"),
    "google": ("protobuf", ""),
    # It comes with uvicorn.
    "h11": ("uvicorn", "view"),
    "h5py": ("h5py", "train"),
    "lance": ("pylance", "train"),
    "lz4": ("lz4", ""),
    "matplotlib": ("matplotlib", "plot"),
    "obstore": ("obstore", "remote"),
    "pandas": ("pandas", "pandas"),
    "plotext": ("plotext", "plot"),
    "pmtiles": ("pmtiles", "tiles"),
    "polars": ("polars", "polars"),
    "pyarrow": ("pyarrow", "arrow"),
    "ray": ("ray", "ray"),
    "rerun": ("rerun-sdk", "rerun"),
    "rich": ("rich", ""),
    "rich_click": ("rich-click", ""),
    "starlette": ("starlette", "view"),
    "uvicorn": ("uvicorn", "view"),
    "websockets": ("websockets", "foxglove"),
    "xarray": ("xarray", "xarray"),
    "zarr": ("zarr", "train"),
    "zstandard": ("zstandard", ""),
}


class MissingDependencyError(LogError, ImportError):
    """A library that is not installed; the text says how to install it.

    extra  the extra of logreel that has it; empty for a library without which logreel is not installed correctly
    """

    def __init__(self, library: str, extra: str) -> None:
        package = f"'logreel[{extra}]'" if extra else library
        super().__init__(f"this needs {library}: pip install {package}")


def missing(error: ImportError) -> MissingDependencyError | None:
    """Return the error for people where *error* is that of a library that is not installed; None for others."""
    if isinstance(error, MissingDependencyError):
        return error
    module = (error.name or "").partition(".")[0]
    return MissingDependencyError(*LIBRARIES[module]) if module in LIBRARIES else None


def library(module: str) -> Any:
    """Return an imported library; raises MissingDependencyError if it is not installed."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        # What a broken library says may name nothing.
        known = MissingDependencyError(*LIBRARIES[module]) if module in LIBRARIES else error
        raise missing(error) or known from error


class NotFoundError(LogError, KeyError):
    """An unknown name, such as that of a field, an actor or an attachment; the text names similar ones.

    *none* is the clause for the case that nothing is known. Attributes:

    name     the name that was requested
    nearest  up to three similar names that exist
    """

    def __init__(
        self, kind: str, name: str, known: Iterable[str], *, path: str | None = None, none: str | None = None
    ) -> None:
        from difflib import get_close_matches

        names = list(known)
        near = get_close_matches(str(name), names, n=3, cutoff=0.5)
        suggestions = ", ".join(near or names[:3]) + ("" if near or len(names) <= 3 else " …")
        hint = (
            f"; {'nearest' if near else 'there are'}: {suggestions}"
            if names
            else f"; {none or f'there are no {kind}s'}"
        )
        super().__init__(f"no {kind} {name!r}{hint}", path=path)
        self.name, self.nearest = name, near


class TopicError(NotFoundError):
    """An unknown channel; the text names similar ones."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A defect that reading found and recorded instead of raising an error.

    code    short stable name: ``truncated``, ``garbage``, ``zeros``, ``segment``, ``definition`` …
    offset  byte offset in the file where the defect begins
    size    bytes concerned
    lost    True: these bytes could not be read as data; False: nothing is missing
    text    one sentence for people
    count   for the code ``payload``: number of messages that cannot be decoded
    file    the file that it is in, where a log is opened from several files; else empty
    """

    code: str
    offset: int
    size: int
    lost: bool
    text: str
    count: int = 1
    file: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the Problem as a dict with the stable keys of ``info --json``."""
        values = asdict(self)
        del values["count"]
        if not self.file:
            del values["file"]
        return values


#: Of a log whose index was read instead of it, and differs from what the log holds now.
CHANGED = Problem("changed", 0, 0, False, "the index is older than damage that the log has now")


@dataclass(frozen=True, slots=True)
class Finding:
    """A result of a check.

    code      short stable name
    severity  ``error``: content is lost or wrong; ``warn``: something is not as it should be; ``note``: information
    offset    byte offset in the file where it begins, or None if it has no place
    size      bytes concerned
    text      one sentence for people
    topic     the channel concerned, or None
    time_ns   ns of the log's clock where it begins, or None
    count     number of defects that it stands for; its place is that of the first one
    rule      the line of a contract that it is about, its keys with dots; else empty
    """

    code: str
    severity: Severity
    offset: int | None
    size: int
    text: str
    topic: str | None = None
    time_ns: int | None = None
    count: int = 1
    rule: str = ""

    @classmethod
    def of(cls, problem: Problem) -> Finding:
        """Return a Problem as a Finding: an error if something was lost, else a warning."""
        # What concerns the log or a channel as a whole is recorded at its first byte, without any bytes.
        place = problem.offset if problem.offset or problem.size else None
        return cls(problem.code, "error" if problem.lost else "warn", place, problem.size, problem.text)

    def at_least(self, severity: Severity) -> bool:
        """Return whether it is as severe as *severity* or worse."""
        return SEVERITIES.index(self.severity) <= SEVERITIES.index(severity)

    def as_dict(self) -> dict[str, Any]:
        """Return the Finding as a dict with the stable keys of ``check --json``; ``rule`` only where there is one."""
        values = asdict(self)
        if not self.rule:
            del values["rule"]
        return values


#: Functions that are called with one sentence; the command line adds one that prints it.
listeners: list[Callable[[str], None]] = []


_local = Local()


@contextmanager
def heard() -> Iterator[list[str]]:
    """Collect the sentences of this thread in a list, in place of passing them to the listeners."""
    outer: list[str] | None = getattr(_local, "heard", None)
    sentences: list[str] = []
    _local.heard = sentences
    try:
        yield sentences
    finally:
        _local.heard = outer


def notice(text: str) -> None:
    """Pass one sentence to all listeners, or to the block of ``heard`` that this thread is in."""
    if (sentences := getattr(_local, "heard", None)) is not None:
        sentences.append(text)
        return
    for listener in listeners:
        listener(text)
