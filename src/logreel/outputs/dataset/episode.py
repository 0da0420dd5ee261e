"""Episodes as they are handed to a target: vectors, pictures one at a time, and what is known about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.outputs.dataset.spec import Spec
from logreel.outputs.dataset.stats import PictureStats, Stats

RGB = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Column:
    """One feature of a dataset: the same for all of its episodes.

    shape     number of elements of a vector; height and width of pictures
    names     of the elements; empty for pictures
    dtype     NumPy type; ``uint8`` for pictures
    pictures  whether it is pictures
    """

    name: str
    shape: tuple[int, ...]
    names: tuple[str, ...]
    dtype: str
    pictures: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the column as JSON data."""
        return {
            "shape": list(self.shape),
            "names": list(self.names),
            "dtype": self.dtype,
            "pictures": self.pictures,
        }

    @classmethod
    def of(cls, name: str, data: Mapping[str, Any]) -> Column:
        """Return the column from JSON data."""
        return cls(name, tuple(data["shape"]), tuple(data["names"]), data["dtype"], data["pictures"])


@dataclass
class Camera:
    """Pictures of an episode.

    shape   height and width
    count   number of frames
    read    returns the pictures in order, uint8[height, width, 3]; may raise after the last one
    video   the same as a video file that the target has made before, or None
    stats   known after the pictures were read
    """

    shape: tuple[int, int]
    count: int
    read: Callable[[], Iterator[RGB]]
    video: Path | None = None
    stats: Stats | None = None

    def frames(self) -> Iterator[RGB]:
        """Yield the pictures, and collect their statistics."""
        if self.stats is not None:
            yield from self.read()
            return
        found = PictureStats(self.count)
        for pixels in self.read():
            found.add(pixels)
            yield pixels
        self.stats = found.result()


@dataclass
class Episode:
    """One episode.

    index, start  number of the episode, and of its first frame, in the dataset
    count         number of frames
    task          what is done, in words
    vectors       by feature: [count, k] of its type
    cameras       by feature
    stats         of the vectors
    """

    index: int
    start: int
    count: int
    task: str
    vectors: Mapping[str, NDArray[Any]]
    cameras: Mapping[str, Camera]
    stats: dict[str, Stats] = field(default_factory=dict)

    def all_stats(self) -> dict[str, Stats]:
        """Return the statistics of all features; call it after the pictures were read."""
        return self.stats | {name: one.stats for name, one in self.cameras.items() if one.stats is not None}


@dataclass(frozen=True)
class Head:
    """What all episodes of a dataset share."""

    spec: Spec
    columns: tuple[Column, ...]

    @property
    def vectors(self) -> list[Column]:
        """Columns that are vectors."""
        return [one for one in self.columns if not one.pictures]

    @property
    def cameras(self) -> list[Column]:
        """Columns that are pictures."""
        return [one for one in self.columns if one.pictures]

    def picture_shape(self, name: str) -> tuple[int, int]:
        """Return height and width of the pictures of a feature."""
        ((height, width),) = (one.shape for one in self.cameras if one.name == name)
        return height, width
