"""The targets of training data: how each stores episodes."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.outputs.dataset.episode import Camera, Episode, Head

#: What a finished episode is: JSON data, see ``records``.
Record = Mapping[str, Any]


class Store(Protocol):
    """A dataset of one kind in a folder: ``make(root, head, records)``.

    root     its folder
    head     what all episodes share
    records  the episodes that are complete; what else is in the folder does not count, and is overwritten

    Raises MissingDependencyError without the library that it needs, UsageError for a *head* that it cannot store.
    """

    def add(self, episode: Episode, records: Sequence[Record]) -> None:
        """Store one more episode; the dataset can be loaded at any moment, with it or without it.

        records  the episodes before it
        """
        ...

    def publish(self, records: Sequence[Record]) -> None:
        """Let readers see all of *records*, whose content was added; may be repeated."""
        ...

    def vectors(self, record: Record) -> dict[str, NDArray[Any]]:
        """Return the vectors of an episode, by feature."""
        ...

    def camera(self, record: Record, name: str) -> Camera:
        """Return the pictures of an episode."""
        ...

    def finish(self, records: Sequence[Record]) -> None:
        """Remove what does not belong to the dataset."""
        ...


#: Module of each target; its function ``make`` returns the store.
TARGETS = {
    "lerobot": "logreel.outputs.dataset.lerobot",
    "zarr": "logreel.outputs.dataset.zarr",
    "hdf5": "logreel.outputs.dataset.hdf5",
    "lance": "logreel.outputs.dataset.lance",
}


def make_store(to: str, root: Path, head: Head, records: Sequence[Record]) -> Store:
    """Return the store of the target *to* at *root*; raises UsageError for an unknown one."""
    made: Store = importlib.import_module(module_of(to)).make(root, head, records)
    return made


def module_of(to: str) -> str:
    """Return the module of a target; raises UsageError for an unknown one."""
    if to not in TARGETS:
        raise UsageError(f"{to!r} is no target; there are: {', '.join(TARGETS)}")
    return TARGETS[to]


def checked_index(record: Record) -> int:
    """Return the number of an episode."""
    return int(record["episode"])


def typed(values: NDArray[np.float64], dtype: str) -> NDArray[Any]:
    """Return *values* as another type; for integers rounded, and limited to what the type holds."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        found: NDArray[Any] = values != 0
        return found
    if kind.kind in "iu":
        info = np.iinfo(kind)
        # The largest int64 is no float64: limit it to the one below.
        most = np.nextafter(2.0**63, 0) if kind == np.int64 else float(info.max)
        return np.rint(values).clip(float(info.min), most).astype(kind)
    with np.errstate(over="ignore"):
        return values.astype(kind)


def link(src: str | os.PathLike[str], dst: str | os.PathLike[str]) -> None:
    """Give a file a second name, or copy it where that is not possible."""
    import shutil

    try:
        os.link(src, dst)
    except OSError:
        shutil.copyfile(src, dst)
