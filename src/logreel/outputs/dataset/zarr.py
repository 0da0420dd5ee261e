"""A Zarr store, version 3, with the layout of a replay buffer: ``data/FEATURE`` over all frames, ``meta/episode_ends``.

It is the folder ``replay_buffer.zarr``.

Names are shortened as in diffusion policy: ``observation.state`` is ``data/state``, ``observation.images.top`` is
``data/top`` where no other feature has that name; pictures are uint8[frames, height, width, 3].
"""

from __future__ import annotations

import asyncio
import functools
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import MissingDependencyError
from logreel.outputs.dataset.episode import Episode, EpisodeCamera, EpisodeHead, Record
from logreel.outputs.files import new_file, sync_all

NAME = "replay_buffer.zarr"
#: Frames in a chunk of a vector.
ROWS = 4096
#: Pictures that are written at once, and stored in one chunk.
PICTURES = 1


def make(root: Path, head: EpisodeHead, records: Sequence[Record]) -> ZarrStore:
    """Return the dataset at *root*; see ``Store``."""
    return ZarrStore(root, head, records)


def array_names(head: EpisodeHead) -> dict[str, str]:
    """Return the name of the array of each feature: its last part, or all of it where that is not unique."""
    last = [column.name.rpartition(".")[2] for column in head.columns]
    return {
        column.name: short if last.count(short) == 1 else column.name
        for column, short in zip(head.columns, last, strict=True)
    }


@functools.cache
def _durable_store() -> Any:
    """Return a kind of LocalStore whose files are, after a power failure, whole: the old one or the new one."""
    from zarr.storage import LocalStore

    class DurableStore(LocalStore):  # type: ignore[misc, unused-ignore]
        async def set(self, key: str, value: Any) -> None:
            path = self.root / key
            if path.exists():
                # Metadata, and chunks that also have frames of other episodes.
                await asyncio.to_thread(_replace, path, value.to_bytes())
            else:
                # sync_all() syncs new chunks together.
                await super().set(key, value)

    return DurableStore


def _replace(path: Path, content: bytes) -> None:
    with new_file(path, force=True) as out:
        out.write(content)


class ZarrStore:
    """See ``Store``.

    Readers see the shapes in the metadata of the root, which is replaced in one step when an episode is complete.
    """

    def __init__(self, root: Path, head: EpisodeHead, records: Sequence[Record]) -> None:
        try:
            import zarr
        except ImportError as error:
            raise MissingDependencyError("zarr", "train") from error
        self.root, self.head, self._zarr = root, head, zarr
        self.names = array_names(head)
        self.path = root / NAME
        # Not as readers see it: an interrupted run may have left longer arrays.
        group = zarr.open_group(
            _durable_store()(self.path), mode="r+" if records else "w", use_consolidated=False
        )
        self._group = group
        if records:
            return
        group.attrs["fps"] = float(head.spec.rate)
        data, meta = group.require_group("data"), group.require_group("meta")
        for column in head.columns:
            shape = (*column.shape, 3) if column.pictures else column.shape
            data.create_array(
                self.names[column.name],
                shape=(0, *shape),
                chunks=(PICTURES if column.pictures else ROWS, *shape),
                dtype=column.dtype,
                overwrite=True,
                attributes={} if column.pictures else {"names": list(column.names)},
            )
        # A chunk per episode: adding one changes no file that readers may be reading.
        meta.create_array("episode_ends", shape=(0,), chunks=(1,), dtype="int64", overwrite=True)

    def add(self, episode: Episode, records: Sequence[Record]) -> None:
        """See ``Store``."""
        end = episode.start + episode.count
        data = self._group["data"]
        for column in self.head.vectors:
            array = data[self.names[column.name]]
            array.resize((end, *array.shape[1:]))
            array[episode.start : end] = episode.vectors[column.name]
        for name, camera in episode.cameras.items():
            array = data[self.names[name]]
            array.resize((end, *array.shape[1:]))
            for at, pixels in enumerate(camera.frames()):
                array[episode.start + at] = pixels
        ends = self._group["meta"]["episode_ends"]
        ends.resize((episode.index + 1,))
        ends[episode.index] = end
        sync_all()

    def publish(self, records: Sequence[Record]) -> None:
        """See ``Store``."""
        self._publish()

    def _publish(self) -> None:
        """Replace the metadata that readers see."""
        with warnings.catch_warnings():
            # They are no part of the specification of version 3 yet; who does not know them reads those of the arrays.
            warnings.simplefilter("ignore")
            self._zarr.consolidate_metadata(_durable_store()(self.path))

    def vectors(self, record: Record) -> dict[str, NDArray[Any]]:
        """See ``Store``."""
        lo, hi = _rows(record)
        data = self._group["data"]
        return {column.name: data[self.names[column.name]][lo:hi] for column in self.head.vectors}

    def camera(self, record: Record, name: str) -> EpisodeCamera:
        """See ``Store``."""
        lo, hi = _rows(record)
        array = self._group["data"][self.names[name]]

        def read() -> Iterator[NDArray[np.uint8]]:
            for at in range(lo, hi):
                yield array[at]

        return EpisodeCamera(self.head.picture_shape(name), hi - lo, read)

    def finish(self, records: Sequence[Record]) -> None:
        """See ``Store``."""
        end = _rows(records[-1])[1]
        for name in self.names.values():
            array = self._group["data"][name]
            if array.shape[0] != end:
                array.resize((end, *array.shape[1:]))
        ends = self._group["meta"]["episode_ends"]
        if ends.shape[0] != len(records):
            ends.resize((len(records),))
        self._publish()


def _rows(record: Record) -> tuple[int, int]:
    return int(record["first"]), int(record["first"]) + int(record["frames"])
