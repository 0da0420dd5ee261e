"""The files that one log consists of: a list, a pattern, or a folder whose names differ only in numbers."""

from __future__ import annotations

import glob
import os
from typing import TYPE_CHECKING

from logreel.errors import UnknownFormatError, UsageError
from logreel.io.remote.address import is_url
from logreel.io.source import Readable
from logreel.log.log import Log
from logreel.log.part_checks import natural_key, shape_of
from logreel.registry.registry import log_suffixes

if TYPE_CHECKING:
    from logreel.log.joined_log import Openable


def parts_of(what: Openable) -> list[Readable | Log] | None:
    """Return the files that *what* names, or None for one that is not a list, a pattern or a folder.

    Raises UsageError for an empty list and for a pattern that matches no file, UnknownFormatError for a folder without
    logs, UsageError for one with different logs.
    """
    if isinstance(what, (list, tuple)):
        if not what:
            raise UsageError("there is no file to open")
        return [part for one in what for part in (parts_of(one) or [one])]
    if not isinstance(what, (str, os.PathLike)):
        return None
    text = os.fspath(what)
    if is_url(text):
        return None
    if isinstance(text, str) and glob.has_magic(text) and not os.path.lexists(text):
        found = sorted((name for name in glob.glob(text) if os.path.isfile(name)), key=natural_key)
        if not found:
            raise UsageError("no file matches this pattern", path=text)
        return list(found)
    return list(_in_folder(text)) if os.path.isdir(text) else None


def _in_folder(folder: str) -> list[str]:
    """Return the logs in a folder, whose names have to be alike except for their numbers."""
    suffixes = log_suffixes()
    names = [
        os.path.join(folder, name)
        for name in sorted(os.listdir(folder), key=natural_key)
        if name[:1] != "." and name.lower().endswith(suffixes)
    ]
    names = [name for name in names if os.path.isfile(name)]
    if not names:
        raise UnknownFormatError("a folder with no log of a known format in it", path=folder)
    shapes = {shape_of(name): name for name in reversed(names)}
    if len(shapes) > 1:
        one, other = (os.path.basename(name) for name in list(shapes.values())[:2])
        raise UsageError(
            f"a folder is one log if the names in it differ only in numbers, unlike {other!r} and {one!r}",
            path=folder,
            hint="give the files of one log as a list",
            cli="give the files of one log by their names",
        )
    return names
