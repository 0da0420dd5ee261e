"""HDF5, a file per episode, as ALOHA and ACT read it: ``episode_0.hdf5`` with ``/action`` and ``/observations/…``.

Dots in names of features become groups, and ``observation`` is ``observations``: ``observation.images.top`` is
``/observations/images/top``, uint8[frames, height, width, 3].
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import MissingDependencyError
from logreel.outputs.dataset.episode import Episode, EpisodeCamera, EpisodeHead, Record, checked_index
from logreel.outputs.files import new_file


def make(root: Path, head: EpisodeHead, records: Sequence[Record]) -> Hdf5Store:
    """Return the dataset at *root*; see ``Store``."""
    return Hdf5Store(root, head)


class Hdf5Store:
    """See ``Store``. A file gets its name when it is complete."""

    def __init__(self, root: Path, head: EpisodeHead) -> None:
        try:
            import h5py
        except ImportError as error:
            raise MissingDependencyError("h5py", "train") from error
        self.root, self.head, self._h5py = root, head, h5py

    def path(self, index: int) -> Path:
        """Return the path of an episode."""
        return self.root / f"episode_{index}.hdf5"

    def add(self, episode: Episode, records: Sequence[Record]) -> None:
        """See ``Store``."""
        # The library opens files by name.
        with new_file(self.path(episode.index), force=True) as out, self._h5py.File(out.name, "w") as file:
            file.attrs["sim"] = False
            file.attrs["fps"] = float(self.head.spec.rate)
            file.attrs["num_samples"] = episode.count
            file.attrs["task"] = episode.task
            for column in self.head.vectors:
                made = file.create_dataset(dataset_path(column.name), data=episode.vectors[column.name])
                made.attrs["names"] = list(column.names)
            times = np.arange(episode.count) / float(self.head.spec.rate)
            file.create_dataset("timestamp", data=times)
            for name, camera in episode.cameras.items():
                shape = (*camera.shape, 3)
                made = file.create_dataset(
                    dataset_path(name),
                    (episode.count, *shape),
                    "uint8",
                    chunks=(1, *shape),
                    compression="gzip",
                    compression_opts=1,
                    shuffle=False,
                )
                for at, pixels in enumerate(camera.frames()):
                    made[at] = pixels

    def publish(self, records: Sequence[Record]) -> None:
        """See ``Store``."""

    def vectors(self, record: Record) -> dict[str, NDArray[Any]]:
        """See ``Store``."""
        with self._h5py.File(self.path(checked_index(record)), "r") as file:
            return {column.name: file[dataset_path(column.name)][:] for column in self.head.vectors}

    def camera(self, record: Record, name: str) -> EpisodeCamera:
        """See ``Store``."""
        path = self.path(checked_index(record))

        def read() -> Iterator[NDArray[np.uint8]]:
            with self._h5py.File(path, "r") as file:
                for at in range(int(record["frames"])):
                    yield file[dataset_path(name)][at]

        return EpisodeCamera(self.head.picture_shape(name), int(record["frames"]), read)

    def finish(self, records: Sequence[Record]) -> None:
        """See ``Store``."""
        for path in self.root.glob("episode_*.hdf5"):
            number = path.stem.partition("_")[2]
            if number.isdecimal() and int(number) >= len(records):
                with contextlib.suppress(FileNotFoundError):
                    path.unlink()


def dataset_path(name: str) -> str:
    """Return the path in a file of a feature."""
    first, *rest = name.split(".")
    return "/".join(["observations" if first == "observation" else first, *rest])
