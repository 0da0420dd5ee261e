"""What is read of many logs: topics, fields, an interval, definitions; checked once, and plain data."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from logreel.errors import LogError, UsageError
from logreel.fleet.source_files import content_digest
from logreel.log.times import stored_times
from logreel.log.topic_match import check_pattern, listed
from logreel.schemas.catalogue import data_folder

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.times import Time

#: Units of the columns that are timestamps.
UNITS = ("us", "ns")
#: Payload bytes of a task, unless chosen.
TARGET_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What is read of each log.

    topics, fields  names and patterns of channels, and paths of fields; None: all
    start, end   times that are relative to each log, or not; int: ns of its clock; None: no bound
    target_bytes  payload bytes of a task
    definitions, types  as in a Task
    decrypt      True: what is in encrypted logs may be written
    timestamps   unit of the columns that are timestamps, as of ``ingest``
    """

    topics: tuple[str, ...] | None = None
    fields: tuple[str, ...] | None = None
    start: int | str | None = None
    end: int | str | None = None
    target_bytes: int = TARGET_BYTES
    definitions: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    decrypt: bool = False
    timestamps: str = "ns"

    @classmethod
    def of(
        cls,
        topics: str | Iterable[str] | None,
        fields: str | Iterable[str] | None,
        start: Time | None,
        end: Time | None,
        target_bytes: int,
        definitions: Definitions,
        decrypt: bool = False,
        timestamps: str = "ns",
    ) -> Self:
        """Return options that users give; parameters as for ``plan``.

        Raises UsageError for a size below 1, a time or a pattern that cannot be read, and an end before the start;
        LogError for definitions that do not exist.
        """
        if timestamps not in UNITS:
            raise UsageError(f"timestamps are in {' or '.join(UNITS)}, not {timestamps!r}")
        if target_bytes < 1:
            raise UsageError(f"a task has 1 byte or more, not {target_bytes}")
        for pattern in () if topics is None else listed(topics):
            check_pattern(pattern)
        first, last = stored_times(start, end)
        paths, types = _definitions(definitions)
        return cls(
            None if topics is None else tuple(listed(topics)),
            None if fields is None else tuple(listed(fields)),
            first,
            last,
            target_bytes,
            paths,
            types,
            decrypt,
            timestamps,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the options as JSON data."""
        data = asdict(self)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in data.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the options of ``as_dict``."""
        values: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in data.items()}
        return cls(**values)

    @property
    def choice(self) -> dict[str, Any]:
        """The options, as JSON data, that all logs of a dataset share: all but the definitions."""
        data = self.as_dict()
        return {
            name: data[name] for name in ("topics", "fields", "start", "end", "target_bytes", "timestamps")
        }

    def definitions_digest(self) -> str:
        """Return a digest of all definitions that are not in logs: those given, and those of the user."""
        found = hashlib.blake2b(digest_size=12)
        own = data_folder()
        roots = [*self.definitions, *([] if own is None else [os.fspath(own / "definitions")])]
        for root in roots:
            for path in _files(root):
                name = os.path.relpath(path, root)
                found.update(f"{name}\0{content_digest(path)}\0".encode("utf-8", "surrogateescape"))
        found.update(
            "\0".join([*filter(str.isidentifier, self.definitions), *self.types]).encode(
                "utf-8", "surrogateescape"
            )
        )
        return found.hexdigest()


def _definitions(given: Definitions) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return absolute paths, and types as ``TOPIC=TYPE``."""
    several = [given] if isinstance(given, str | os.PathLike | Mapping) else list(given)
    paths, types = list[str](), dict[str, str]()
    for one in several:
        if isinstance(one, Mapping):
            types |= one
            continue
        name = os.fspath(one)
        if not os.path.exists(one):
            if all(part.isidentifier() for part in name.split(".")):
                # An importable module.
                paths.append(name)
                continue
            raise LogError("there are no definitions: no such file, folder or module", path=name)
        paths.append(os.path.abspath(one))
    return tuple(dict.fromkeys(paths)), tuple(f"{topic}={kind}" for topic, kind in sorted(types.items()))


def _files(root: str) -> Iterator[str]:
    """Yield a file, or the regular files in and below a folder that are not hidden, sorted."""
    if os.path.isfile(root):
        yield root
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name[:1] != ".")
        for name in sorted(files):
            path = Path(folder, name)
            if name[:1] != "." and path.is_file():
                yield os.fspath(path)
