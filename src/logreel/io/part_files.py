"""Files of a split recording, ``drive_0.bag``, ``drive_1.bag`` …: their names, and which one comes next."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from logreel.io.append_file import ACTIVE

#: Name of a part. Numbers are short: those with more digits are dates or times.
_PART = re.compile(r"(?P<stem>.+)_(?P<number>0|[1-9]\d{0,5})(?P<end>(?:\.[A-Za-z]\w*)*)")
#: ``rosbag record --split`` without a name gives each part the time of its beginning.
_DATE = re.compile(r"\d{4}(?:-\d\d){5}$")
#: The last write to a part is at most so many ns after the last write to the next one, if that is not written any more.
_SLACK = 2 * 10**9


def part_name(path: str, number: int | str, suffixes: tuple[str, ...]) -> str:
    """Return the name of a part: ``drive_2.bag`` for ``drive.bag`` and 2."""
    fitting = [suffix for suffix in suffixes if path.lower().endswith(suffix)]
    end = len(path) - max(map(len, fitting)) if fitting else len(os.path.splitext(path)[0])
    return f"{path[:end]}_{number}{path[end:]}"


def existing_parts(path: str, suffixes: tuple[str, ...]) -> list[str]:
    """Return the paths of all files with names of parts of *path*, finished or not."""
    stem, end = part_name(path, "/", suffixes).rsplit("_/", 1)
    begun = re.escape(os.path.basename(stem))
    name = re.compile(rf"{begun}_\d+{re.escape(end)}(?:{re.escape(ACTIVE)})?")
    folder = Path(path).parent
    if not folder.is_dir():
        return []
    return sorted(
        os.path.join(os.path.dirname(path), one) for one in os.listdir(folder) if name.fullmatch(one)
    )


def split_recordings(paths: Iterable[str]) -> list[list[str]]:
    """Return the paths whose names are those of several parts of one recording, each recording in order.

    Their numbers follow each other, and there is more before them than digits, or the date that rosbag puts there.
    """
    found: dict[tuple[str, str, str], dict[int, str]] = {}
    for path in paths:
        folder, name = os.path.split(path)
        match = _PART.fullmatch(name.removesuffix(ACTIVE))
        if match is None:
            continue
        date = _DATE.search(match["stem"])
        stem = match["stem"] if date is None else match["stem"][: date.start()]
        if date is not None or any(character.isalpha() for character in stem):
            found.setdefault((folder, stem, match["end"]), {})[int(match["number"])] = path
    each = [[numbered[n] for n in sorted(numbered)] for numbered in found.values() if _follow(numbered)]
    return [parts for parts in each if len(parts) > 1]


def _follow(numbers: Collection[int]) -> bool:
    return max(numbers) - min(numbers) == len(numbers) - 1


class LaterParts:
    """The parts after one part of a split recording, as they appear.

    path  final name of the part; if it has no number, there are none

    Files with fitting names that were there before, and were last written before the part, are of another recording.
    """

    def __init__(self, path: Path) -> None:
        self._folder, self._name = path.parent, path.name
        match = _PART.fullmatch(path.name)
        self._number = -1
        #: Files by device and inode that may be of an earlier recording.
        self._old = set[tuple[int, int]]()
        if match is None:
            return
        self._number = int(match["number"])
        stem, self._end = match["stem"], match["end"]
        date = _DATE.search(stem)
        begun = re.escape(stem) if date is None else re.escape(stem[: date.start()]) + _DATE.pattern[:-1]
        self._pattern = re.compile(
            rf"(?P<name>{begun}_(?P<number>\d{{1,6}}){re.escape(self._end)})({ACTIVE})?"
        )
        self._next = f"{stem}_{self._number + 1}{self._end}"
        self._old = {(found.st_dev, found.st_ino) for _, _, found in self._files(self._listed())}

    def __bool__(self) -> bool:
        """Whether the name is that of a part."""
        return self._number >= 0

    def next(self, written: int, all_numbers: bool) -> Path | None:
        """Return the final name of the next part, whose file may be unfinished; None: there is none so far.

        written      modification time of the part in ns
        all_numbers  True: the next number that exists, and names with another date, too; False: only the next number,
                     which needs no list of the folder
        """
        if not self:
            return None
        names = [self._next, self._next + ACTIVE]
        if all_numbers:
            # A file that gets another name meanwhile may be missing in a list.
            names = [*self._listed(), *self._listed()]
        there = [
            (number, name)
            for number, name, found in self._files(names)
            if (found.st_dev, found.st_ino) not in self._old or found.st_mtime_ns >= written - _SLACK
        ]
        return self._folder / min(there)[1] if there else None

    def _listed(self) -> list[str]:
        try:
            return os.listdir(self._folder)
        except OSError:
            return []

    def _files(self, names: list[str]) -> Iterator[tuple[int, str, os.stat_result]]:
        """Yield number, final name and status of those of *names* that are later parts and exist."""
        for name in names:
            match = self._pattern.fullmatch(name)
            if match is not None and int(match["number"]) > self._number:
                with contextlib.suppress(OSError):
                    yield int(match["number"]), match["name"], os.stat(self._folder / name)
