"""Files of pyramids, in the cache folder or without a name; mapped, so that they take no memory of the process.

    8   magic "LOGREELP"
    8   u64 length of the JSON text, which follows: key, number of rows, whether these are stored, size of the file
    …   arrays, each at a multiple of 64 bytes: time, value, least, most, least_at, most_at

A file is used only if its key and all sizes are the expected ones. Its content is not trusted: the kernel checks each
place that it names.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from logreel._version import __version__
from logreel.io.arrays import I64
from logreel.io.map_guard import MapGuard
from logreel.io.trusted_file import open_trusted
from logreel.kernels.pyramid import FACTOR
from logreel.ops.query.curves import F64
from logreel.registry.index_cache import cache_folder, make_cache, prune

MAGIC = b"LOGREELP"
SUFFIX = ".logreel-pyramid"
_ALIGN, _HEAD = 64, 4096
#: Rows of a file that is believed; more would be no log of this world.
_MOST_ROWS = 1 << 48


@dataclass(frozen=True)
class Shape:
    """Sizes of the arrays of a pyramid.

    rows    number of rows
    stored  whether times and values of all rows are in the file; else only the time of every sixteenth
    """

    rows: int
    stored: bool

    @cached_property
    def begin(self) -> I64:
        """int64[k + 1]: where the groups of each level begin, the finest first; the last is their number."""
        ends, groups = [0], self.rows
        while groups > (0 if len(ends) == 1 else FACTOR):
            groups = -(-groups // FACTOR)
            ends.append(ends[-1] + groups)
        return np.array(ends, np.int64)

    @cached_property
    def arrays(self) -> dict[str, tuple[int, int, str]]:
        """Offset in the file, length and type of each array."""
        groups = int(self.begin[-1])
        times = self.rows if self.stored else -(-self.rows // FACTOR)
        lengths = {
            "time": (times, "<i8"),
            "value": (self.rows if self.stored else 0, "<f8"),
            "least": (groups, "<f8"),
            "most": (groups, "<f8"),
            "least_at": (groups, "|u1"),
            "most_at": (groups, "|u1"),
        }
        found, at = {}, _HEAD
        for name, (length, kind) in lengths.items():
            found[name] = (at, length, kind)
            at += -(-length * np.dtype(kind).itemsize // _ALIGN) * _ALIGN
        found["end"] = (at, 0, "|u1")
        return found

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.arrays["end"][0]


class PyramidFile:
    """A mapped file of a pyramid.

    time      int64[n or ceil(n / 16)] ns, in order
    value     float64[n], or empty
    least, most  float64[m] of the groups of all levels
    least_at, most_at  uint8[m]: which item of the group that is
    """

    def __init__(self, data: mmap.mmap, shape: Shape, place: str, file: BinaryIO | None = None) -> None:
        self.shape, self._file = shape, file
        # Writing the rest of it is no change of a file that is being made.
        whole = np.frombuffer(data, np.uint8)
        self._guard = MapGuard(whole, data, place, None, True)

        def array(name: str) -> NDArray[Any]:
            at, length, kind = shape.arrays[name]
            # A part of the watched array, which is watched as long as one of its parts is used.
            return whole[at : at + length * np.dtype(kind).itemsize].view(kind)

        self.time: I64 = array("time")
        self.value: F64 = array("value")
        self.least: F64 = array("least")
        self.most: F64 = array("most")
        self.least_at: NDArray[np.uint8] = array("least_at")
        self.most_at: NDArray[np.uint8] = array("most_at")

    def check(self) -> None:
        """Raise FileChangedError if the file was truncated since it was mapped; its arrays then have zeros."""
        self._guard.check()

    @property
    def is_whole(self) -> bool:
        """Whether the file has all bytes that it had when it was mapped."""
        return self._guard.error() is None

    def store(self, name: str, at: int, values: NDArray[Any]) -> None:
        """Write *values* into the array *name* from item *at* on; only for files that ``new_file`` made.

        Writing costs less than the page faults of stores into the mapping, and a full disk is an error in place of a
        signal. The arrays show what is written. Raises OSError.
        """
        begin, length, kind = self.shape.arrays[name]
        data = np.ascontiguousarray(values, kind)
        if self._file is None or not 0 <= at <= at + len(data) <= length:
            raise ValueError(f"{len(data)} items at {at} do not fit into {name}")
        rest, place = data.view(np.uint8).data, begin + at * data.itemsize
        while len(rest):
            done = os.pwrite(self._file.fileno(), rest, place)
            rest, place = rest[done:], place + done

    @classmethod
    def load(cls, place: str, key: str) -> PyramidFile | None:
        """Return the file at *place* if it is a whole one with this key, else None."""
        try:
            file = open_trusted(Path(place))
            if file is None:
                return None
            with file:
                head = file.read(_HEAD)
                length = int.from_bytes(head[8:16], "little")
                if head[:8] != MAGIC or length > _HEAD - 16:
                    return None
                found = json.loads(head[16 : 16 + length])
                if found["key"] != key or found["version"] != __version__:
                    return None
                rows, stored = found["rows"], found["stored"]
                if type(rows) is not int or not 0 < rows < _MOST_ROWS or type(stored) is not bool:
                    return None
                shape = Shape(rows, stored)
                if os.fstat(file.fileno()).st_size != shape.size:
                    return None
                with contextlib.suppress(OSError):
                    # The least recently used files are removed first.
                    os.utime(place)
                return cls(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), shape, place)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None


@contextmanager
def new_file(place: str | None, key: str, shape: Shape) -> Iterator[PyramidFile]:
    """Yield a file to fill, which gets its name at the end of the block, and none if that raises.

    place  None, or a folder that cannot be written to: a file without a name
    """
    file, name = _opened(place)
    try:
        with file:
            head = json.dumps(
                {"version": __version__, "key": key, "rows": shape.rows, "stored": shape.stored}
            )
            text = head.encode()
            file.write(MAGIC + len(text).to_bytes(8, "little") + text)
            file.truncate(shape.size)
            file.flush()
            data = mmap.mmap(file.fileno(), shape.size, access=mmap.ACCESS_READ)
            yield PyramidFile(data, shape, name or "a temporary file", file)
        if name is not None and place is not None:
            os.replace(name, place)
            prune(Path(place).parent, SUFFIX)
    except BaseException:
        if name is not None:
            with contextlib.suppress(OSError):
                os.unlink(name)
        raise


def _opened(place: str | None) -> tuple[BinaryIO, str | None]:
    if place is not None:
        name = f"{place}.{os.getpid()}-{threading.get_ident()}"
        with contextlib.suppress(OSError):
            make_cache(Path(place).parent)
            return open(name, "w+b"), name
    return tempfile.TemporaryFile(), None


def key_of(*texts: str) -> str:
    """Return the key for a log (its size, time and digest), a topic and a field, however long these are."""
    return sha256(json.dumps(texts).encode()).hexdigest()


def place_of(key: str) -> str | None:
    """Return the path in the cache folder for the pyramid with this key; None without such a folder."""
    folder = cache_folder()
    return None if folder is None else os.fspath(folder / f"{key[:40]}{SUFFIX}")
