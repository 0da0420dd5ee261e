"""Sources that read a trajectory from a file: the formats of TUM's RGB-D benchmark, KITTI's odometry and EuRoC.

Each line becomes a ``geometry_msgs/PoseStamped``. A line that holds no pose is left out and reported with its number.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from math import isfinite, sqrt
from types import MappingProxyType
from typing import IO

from logreel.errors import LogError, UsageError
from logreel.log.scan import Schema
from logreel.ops.record.source import Feed
from logreel.ops.record.sources.streams import options_of
from logreel.schemas.ros1msg import define

TYPE = "geometry_msgs/PoseStamped"
#: Longer lines hold no pose.
LONGEST = 4096
#: Quaternions of a smaller norm are no rotation; columns of a matrix may differ so far from a rotation's.
LEAST_NORM, ORTHONORMAL = 1e-6, 1e-3
#: Norms of quaternions further from 1 are told: they are kept.
UNIT = 1e-3
SECOND, MOST_SECONDS = 10**9, 2**32
_OPTIONS: Mapping[str, str] = MappingProxyType({"topic": "/pose", "frame": "map"})

#: Position x, y, z and quaternion x, y, z, w.
Numbers = tuple[float, ...]


class PoseLines:
    """The poses in a file; subclasses know its lines.

    address  path of the file, and options behind a ``?``: topic, and frame, the name of the reference frame
    """

    scheme = ""
    options: Mapping[str, str] = _OPTIONS

    def __init__(self, address: str) -> None:
        self.name = f"{self.scheme}:{address}"
        self.path, _, query = address.partition("?")
        self._own = options_of(query, self.options, self.name)
        if not self.path:
            raise UsageError(f"{self.name}: write {self.scheme}:FILE")

    def run(self, feed: Feed) -> None:
        """Pass on all poses."""
        schema = Schema(TYPE, "ros1msg", define(TYPE).text)
        channel = feed.channel(self._own["topic"], schema)
        feed.settled = True
        if channel is None:
            return
        frame = self._own["frame"].encode()
        head, tail = struct.Struct("<3I"), struct.Struct("<7d")
        count = backward = odd = 0
        last = -1
        with contextlib.ExitStack() as files:
            for place, text in lines_of(files.enter_context(open(self.path, "rb")), self.path, feed):
                if feed.stopping:
                    return
                try:
                    time, numbers = self.pose(text, files)
                    if not 0 <= time < MOST_SECONDS * SECOND:
                        raise ValueError("its time is not between 1970 and 2106")
                except ValueError as error:
                    feed.skip(f"{place} is left out: {error}")
                    continue
                odd += abs(sqrt(sum(value * value for value in numbers[3:])) - 1) > UNIT
                backward += time < last
                last = max(last, time)
                stamp = head.pack(count % 2**32, *divmod(time, SECOND))
                payload = b"".join((stamp, struct.pack("<I", len(frame)), frame, tail.pack(*numbers)))
                feed.put(channel, time, payload, wait=True)
                count += 1
            self.end(feed)
        if not count:
            raise LogError(f"no line of {self.path} holds a pose")
        if odd:
            feed.note(f"{odd} quaternion{'s' * (odd != 1)} with a norm other than 1: kept as they are")
        if backward:
            feed.note(f"{backward} pose{'s' * (backward != 1)} older than one before")

    def pose(self, text: str, files: contextlib.ExitStack) -> tuple[int, Numbers]:
        """Return the time in ns and the pose of a line; raises ValueError that says why it holds none.

        files  closes further files at the end
        """
        raise NotImplementedError

    def end(self, feed: Feed) -> None:
        """Tell what is known at the end of the file."""


class TumSource(PoseLines):
    """Lines ``timestamp tx ty tz qx qy qz qw``, times in seconds: ``tum:FILE[?topic=…&frame=…]``."""

    scheme = "tum"

    def pose(self, text: str, files: contextlib.ExitStack) -> tuple[int, Numbers]:
        """Return the time in ns and the pose of a line."""
        words = text.split()
        if len(words) != 8:
            raise ValueError(f"{len(words)} numbers instead of 8")
        return nanoseconds(words[0]), _checked(numbers_of(words[1:]))


class EurocSource(PoseLines):
    """CSV of EuRoC, times in ns, rotations w, x, y, z: ``euroc:FILE[?topic=…&frame=…]``."""

    scheme = "euroc"
    _has_more = False

    def pose(self, text: str, files: contextlib.ExitStack) -> tuple[int, Numbers]:
        """Return the time in ns and the pose of a line."""
        words = [word.strip() for word in text.split(",")]
        if len(words) < 8:
            raise ValueError(f"{len(words)} numbers instead of 8 or more")
        if not words[0].isascii() or not words[0].isdigit() or len(words[0]) > 19:
            raise ValueError(f"{words[0]!r:.40} is no time in ns")
        x, y, z, qw, qx, qy, qz, *more = numbers_of(words[1:])
        self._has_more = self._has_more or any(more)
        return int(words[0]), _checked((x, y, z, qx, qy, qz, qw))

    def end(self, feed: Feed) -> None:
        """Tell whether there were velocities or biases."""
        if self._has_more:
            feed.note("velocities and biases of the sensors are left out: a pose has no place for them")


class KittiSource(PoseLines):
    """Rows of matrices, twelve numbers a line: ``kitti:FILE?times=FILE`` or ``kitti:FILE?rate=HZ``.

    times  a file with the time of each pose in seconds, a line each, as KITTI has it
    rate   poses per second, where there is no such file
    """

    scheme = "kitti"
    options = MappingProxyType({**_OPTIONS, "times": "", "rate": ""})

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self._rate = 0.0
        self._count = 0
        self._times: Iterator[tuple[str, str]] | None = None
        if bool(self._own["times"]) == bool(self._own["rate"]):
            raise UsageError(f"{self.name}: poses of KITTI have no times: give times=FILE, or rate=HZ")
        if self._own["rate"]:
            with contextlib.suppress(ValueError):
                self._rate = float(self._own["rate"])
            if not 0 < self._rate <= 1e6:
                raise UsageError(f"{self.name}: rate is a number above 0, not {self._own['rate']!r:.40}")

    def run(self, feed: Feed) -> None:
        """Pass on all poses."""
        self._feed = feed
        super().run(feed)

    def pose(self, text: str, files: contextlib.ExitStack) -> tuple[int, Numbers]:
        """Return the time in ns and the pose of a line; a line that holds none has a time, too."""
        time = self._next_time(files)
        words = text.split()
        if len(words) != 12:
            raise ValueError(f"{len(words)} numbers instead of 12")
        return time, _of_matrix(numbers_of(words))

    def _next_time(self, files: contextlib.ExitStack) -> int:
        self._count += 1
        if self._rate:
            return round((self._count - 1) * SECOND / self._rate)
        path = self._own["times"]
        if self._times is None:
            file = files.enter_context(open(path, "rb"))  # noqa: SIM115
            self._times = lines_of(file, path, self._feed)
        place, text = next(self._times, ("", ""))
        if not place:
            raise ValueError(f"{path} has no time for it")
        return nanoseconds(text)

    def end(self, feed: Feed) -> None:
        """Tell whether there are times without a pose."""
        if self._times is not None and next(self._times, None) is not None:
            feed.note(f"{self._own['times']} has more times than there are poses")


def lines_of(file: IO[bytes], path: str, feed: Feed) -> Iterator[tuple[str, str]]:
    """Yield the place, for people, and the text of each line that is not blank, and no comment after a #."""
    number = 0
    while line := file.readline(LONGEST):
        number += 1
        if len(line) == LONGEST and line[-1:] != b"\n":
            while (rest := file.readline(LONGEST)) and rest[-1:] != b"\n":
                pass
            feed.skip(f"line {number} of {path} is left out: longer than {LONGEST} bytes")
            continue
        text = line.decode("ascii", "replace").strip()
        if text and text[0] != "#":
            yield f"line {number} of {path}", text


def nanoseconds(text: str) -> int:
    """Return seconds as ns, rounded once; raises ValueError for other text and times before 1970 or after 2106."""
    # A decimal number is as long as its exponent says once it is an integer.
    if not 0 <= number_of(text) < MOST_SECONDS:
        raise ValueError("its time is not between 1970 and 2106")
    try:
        return int((Decimal(text) * SECOND).to_integral_value())
    except InvalidOperation:
        raise ValueError(f"{text!r:.40} is no time in seconds") from None


def number_of(word: str) -> float:
    """Return a number; raises ValueError for other text."""
    # Python allows underscores in numbers, which no other program does.
    if "_" in word:
        raise ValueError(f"{word!r:.40} is no number")
    return float(word)


def numbers_of(words: list[str]) -> Numbers:
    """Return finite numbers; raises ValueError for anything else."""
    numbers = tuple(map(number_of, words))
    if not all(map(isfinite, numbers)):
        raise ValueError("a number is not finite")
    return numbers


def _checked(numbers: Numbers) -> Numbers:
    if not sum(value * value for value in numbers[3:]) > LEAST_NORM**2:
        raise ValueError("its quaternion is no rotation")
    return numbers


def _of_matrix(rows: Numbers) -> Numbers:
    """Return position and quaternion x, y, z, w of three rows of four; raises ValueError if they hold no rotation."""
    a, b, c = rows[0:3], rows[4:7], rows[8:11]
    for row, other, product in ((a, a, 1), (b, b, 1), (c, c, 1), (a, b, 0), (a, c, 0), (b, c, 0)):
        if abs(sum(x * y for x, y in zip(row, other, strict=True)) - product) > ORTHONORMAL:
            raise ValueError("its matrix is no rotation")
    cross = (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
    if sum(x * y for x, y in zip(cross, c, strict=True)) < 0:
        raise ValueError("its matrix mirrors")
    # Four times the squares of w, x, y, z: the greatest one divides without loss of digits.
    squares = (
        1 + a[0] + b[1] + c[2],
        1 + a[0] - b[1] - c[2],
        1 - a[0] + b[1] - c[2],
        1 - a[0] - b[1] + c[2],
    )
    greatest = squares.index(max(squares))
    x, y, z = c[1] - b[2], a[2] - c[0], b[0] - a[1]
    xy, xz, yz = a[1] + b[0], a[2] + c[0], b[2] + c[1]
    most = squares[greatest]
    parts = ((most, x, y, z), (x, most, xy, xz), (y, xy, most, yz), (z, xz, yz, most))[greatest]
    half = 0.5 / sqrt(most)
    w, x, y, z = (part * half for part in parts)
    return rows[3], rows[7], rows[11], x, y, z, w


def spelling_of(path: str) -> str | None:
    """Return the spelling of the source for a file with the suffix of a trajectory; None for another file."""
    suffix = os.path.splitext(path.partition("?")[0])[1].lower()[1:]
    return f"{suffix}:{path}" if suffix in ("tum", "kitti", "euroc") else None
