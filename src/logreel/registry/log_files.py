"""The log files that names mean: a file, a folder, a pattern, an address of a prefix. Each is a log of its own."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from logreel.errors import LogError, UnknownFormatError, UsageError
from logreel.io.remote.address import is_url
from logreel.io.source import Readable, Source
from logreel.log.log import Log

if TYPE_CHECKING:
    from logreel.log.joined_log import Openable


def expand(names: Sequence[str]) -> list[str]:
    """Return *names* with each folder replaced by the logs in and below it, and each pattern by the files it matches.

    An address that ends with a slash means the logs below it.

    Hidden files are ignored, and so are files that no format recognises, unless only one format has their suffix.
    A folder without logs and a pattern without files stay in the list: opening them is an error.
    """
    return [path for name in names for path in (_logs_of(name) or (name,))]


def _logs_of(name: str) -> list[str]:
    """Return the logs that a folder, a pattern or an address of a prefix means; nothing if *name* is none of these."""
    if is_url(name):
        return _remote_logs(name)
    return list(_logs_below(name)) if os.path.isdir(name) else matches(name)


def matches(name: str) -> list[str]:
    """Return the files that the pattern *name* matches, in natural order; nothing if it is no pattern."""
    if not is_pattern(name):
        return []
    from logreel.log.part_checks import natural_key

    return sorted((path for path in glob.glob(name) if os.path.isfile(path)), key=natural_key)


def is_pattern(name: str) -> bool:
    """Return whether *name* is a pattern such as ``*.bag``, and not the name of a file."""
    return glob.has_magic(name) and not os.path.lexists(name)


def one_file(name: str) -> str:
    """Return *name* if it can be one log; for a folder or a pattern, raise an error that says what to do.

    UnknownFormatError for a folder without logs, UsageError for a pattern without files, and for both of several logs.
    """
    if is_url(name):
        return name
    is_folder = os.path.isdir(name)
    if not is_folder and not is_pattern(name):
        return name
    files = _logs_of(name)
    if not files and is_folder:
        raise UnknownFormatError("a folder with no log of a known format in or below it", path=name)
    if not files:
        raise UsageError("no file matches this pattern", path=name)
    count = f"{len(files)} logs" if len(files) > 1 else "one log"
    raise UsageError(
        f"a folder with {count}, and not a log"
        if is_folder
        else f"a pattern that matches {count}, and not a log",
        path=name,
        hint=f"open its files one by one, or as the parts of one recording with open([{name!r}])",
    )


def part_files(what: Openable) -> list[Readable | Log] | None:
    """Return the files of a list of parts, with those of folders and patterns in it; None for a single file.

    Raises UsageError for an empty list, and what ``one_file`` raises.
    """
    if isinstance(what, (list, tuple)):
        if not what:
            raise UsageError("there is no file to open")
        return [part for item in what for part in several_logs(item)]
    if isinstance(what, (str, os.PathLike)) and isinstance(name := os.fspath(what), str):
        one_file(name)
    return None


def several_logs(what: Openable | Log) -> list[Readable | Log]:
    """Return the logs that an argument means: those of a list, folder or pattern, or *what* itself."""
    if isinstance(what, (list, tuple)):
        return [log for item in what for log in several_logs(item)]
    if isinstance(what, (str, os.PathLike)) and isinstance(name := os.fspath(what), str):
        files = _logs_of(name)
        if files:
            return list(files)
        one_file(name)
    return [what]  # type: ignore[list-item]


def _remote_logs(url: str) -> list[str]:
    """Return the objects below a prefix with a suffix of a known format, in natural order."""
    from logreel.io.remote.object_store import is_prefix, objects_below
    from logreel.log.part_checks import natural_key
    from logreel.registry.registry import log_suffixes

    if not is_prefix(url):
        return []
    suffixes = log_suffixes()
    logs = (address for address in objects_below(url) if address.lower().endswith(suffixes))
    return sorted(logs, key=natural_key)


def _logs_below(root: str) -> Iterator[str]:
    """Yield the paths of the logs in and below a folder, in natural order."""
    from logreel.log.part_checks import natural_key
    from logreel.registry.registry import formats

    counts = Counter(suffix for fmt in formats().values() for suffix in fmt.suffixes)
    own = tuple(suffix for suffix, count in counts.items() if count == 1)
    for folder, folders, files in os.walk(root):
        folders[:] = sorted((name for name in folders if name[:1] != "."), key=natural_key)
        for name in sorted(files, key=natural_key):
            path = os.path.join(folder, name)
            if name[:1] != "." and os.path.isfile(path) and (name.lower().endswith(own) or _is_log(path)):
                yield path


def _is_log(path: str) -> bool:
    from logreel.registry.registry import find_format

    try:
        find_format(Source.open(path))
    except (LogError, OSError):
        return False
    return True
