"""Datasets as Zarr, HDF5 and Lance: a ``Store`` for each."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError, MissingDependencyError, UsageError
from logreel.outputs.dataset.episode import Episode, EpisodeCamera, EpisodeHead, Record, checked_index
from logreel.outputs.files import new_file, sync_all
from logreel.outputs.media.pictures import png

if TYPE_CHECKING:
    import pyarrow as pa

ZARR = "replay_buffer.zarr"
#: Frames in a chunk of a vector.
ROWS = 4096
#: Pictures that are written at once, and stored in one chunk.
PICTURES = 1


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
    """A Zarr store, version 3, as a replay buffer: ``data/FEATURE`` over all frames and ``meta/episode_ends``.

    It is the folder ``replay_buffer.zarr``. Names are shortened as in diffusion policy: ``observation.state`` is
    ``data/state``, ``observation.images.top`` is ``data/top`` where no other feature has that name; pictures are
    uint8[frames, height, width, 3]. Readers see the shapes in the metadata of the root, which is replaced in one step
    when an episode is complete. See ``Store``.
    """

    def __init__(self, root: Path, head: EpisodeHead, records: Sequence[Record]) -> None:
        try:
            import zarr
        except ImportError as error:
            raise MissingDependencyError("zarr", "train") from error
        self.root, self.head, self._zarr = root, head, zarr
        self.names = array_names(head)
        self.path = root / ZARR
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


class Hdf5Store:
    """A file per episode, as ALOHA and ACT read it: ``episode_0.hdf5`` with ``/action`` and ``/observations/…``.

    Dots in names of features become groups, and ``observation`` is ``observations``: ``observation.images.top`` is
    ``/observations/images/top``, uint8[frames, height, width, 3]. A file gets its name when it is complete. See
    ``Store``.
    """

    def __init__(self, root: Path, head: EpisodeHead, _: Sequence[Record]) -> None:
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


#: Frames in a batch with pictures, and without.
FEW, MANY = 16, 65536
LANCE = "frames.lance"


def column_name(feature: str) -> str:
    """Return the name of the column of a feature."""
    return feature.replace(".", "_")


def _version_of(manifest: Path) -> int:
    """Return the version of a manifest by its name: the number, or 2^64 - 1 less the number."""
    number = int(manifest.stem) if manifest.stem.isdecimal() else 0
    return number if number < 1 << 63 else (1 << 64) - 1 - number


class LanceStore:
    """A row per frame, with vectors as fixed-size lists and pictures as PNG; see ``Store``.

    Lance has no dots in names of columns: ``observation.state`` is ``observation_state``. Lance itself adds an episode
    completely or not at all, but does not sync it to disk.
    """

    def __init__(self, root: Path, head: EpisodeHead, records: Sequence[Record]) -> None:
        try:
            import lance
        except ImportError as error:
            raise MissingDependencyError("pylance", "train") from error
        self.root, self.head, self._lance = root, head, lance
        self.path = root / LANCE
        names = [column_name(column.name) for column in head.columns]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise UsageError(f"two features would be the column {twice!r}: name them differently")
        if self.path.exists():
            self._drop_later_than(sum(int(column["frames"]) for column in records))

    def _drop_later_than(self, rows: int) -> None:
        """Make the version with *rows* rows the latest one: after a power failure, later ones may be damaged."""
        if not rows:
            shutil.rmtree(self.path)
            return
        manifests = sorted((self.path / "_versions").glob("*.manifest"), key=_version_of, reverse=True)
        for number, manifest in enumerate(manifests):
            with suppress(ValueError, OSError):
                if self._lance.dataset(self.path, version=_version_of(manifest)).count_rows() == rows:
                    for later in manifests[:number]:
                        later.unlink()
                    return
        raise LogError(
            f"has no version with the {rows} rows of its finished episodes",
            path=str(self.path),
            hint="remove the dataset, and write it again",
        )

    def schema(self) -> pa.Schema:
        """Return the columns; the metadata of a vector has the names of its elements."""
        import pyarrow as pa

        fields: list[Any] = []
        for name in ("episode_index", "frame_index", "index"):
            fields.append(pa.field(name, pa.int64()))
        fields += [pa.field("timestamp", pa.float64()), pa.field("task", pa.string())]
        for column in self.head.columns:
            if column.pictures:
                media = {"media_type": "image/png"}
                fields.append(pa.field(column_name(column.name), pa.large_binary(), metadata=media))
            else:
                value_type = pa.from_numpy_dtype(np.dtype(column.dtype))
                names = {"names": ",".join(column.names)}
                fields.append(
                    pa.field(column_name(column.name), pa.list_(value_type, column.shape[0]), metadata=names)
                )
        return pa.schema(fields)

    def add(self, episode: Episode, records: Sequence[Record]) -> None:
        """See ``Store``."""
        import pyarrow as pa

        schema = self.schema()
        failed: list[LogError] = []

        def batches() -> Iterator[pa.RecordBatch]:
            try:
                yield from self._batches(episode, schema)
            except LogError as error:
                # Lance makes an OSError of every exception.
                failed.append(error)
                raise

        reader = pa.RecordBatchReader.from_batches(schema, batches())
        mode = "append" if self.path.exists() else "create"
        try:
            self._lance.write_dataset(reader, str(self.path), schema=schema, mode=mode)
        except OSError:
            if failed:
                raise failed[0] from None
            raise
        sync_all()

    def _batches(self, episode: Episode, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        coming = {name: camera.frames() for name, camera in episode.cameras.items()}
        step = FEW if coming else MANY
        for lo in range(0, episode.count, step):
            frames = np.arange(lo, min(lo + step, episode.count))
            arrays: list[Any] = [
                pa.array(np.full(len(frames), episode.index, np.int64)),
                pa.array(frames),
                pa.array(episode.start + frames),
                pa.array(frames / float(self.head.spec.rate)),
                pa.array([episode.task] * len(frames), pa.string()),
            ]
            for column in self.head.columns:
                if column.pictures:
                    images = [png(next(coming[column.name])) for _ in frames]
                    arrays.append(pa.array(images, pa.large_binary()))
                else:
                    flat = pa.array(np.ascontiguousarray(episode.vectors[column.name][frames]).reshape(-1))
                    arrays.append(pa.FixedSizeListArray.from_arrays(flat, column.shape[0]))
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        for rest in coming.values():
            # After the last picture come errors and statistics.
            next(rest, None)

    def publish(self, records: Sequence[Record]) -> None:
        """See ``Store``."""

    def vectors(self, record: Record) -> dict[str, NDArray[Any]]:
        """See ``Store``."""
        table = self._rows(record, [column_name(column.name) for column in self.head.vectors])
        values = {}
        for column in self.head.vectors:
            flat = table.column(column_name(column.name)).combine_chunks().flatten()
            values[column.name] = np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(-1, column.shape[0])
        return values

    def _rows(self, record: Record, names: list[str], lo: int = 0, count: int | None = None) -> Any:
        rows = self._lance.dataset(self.path)
        scanned = rows.scanner(
            columns=names,
            filter=f"episode_index = {checked_index(record)}",
            offset=lo,
            limit=int(record["frames"]) if count is None else count,
            scan_in_order=True,
        )
        return scanned.to_table()

    def camera(self, record: Record, name: str) -> EpisodeCamera:
        """See ``Store``."""

        def read() -> Iterator[NDArray[np.uint8]]:
            import av

            for lo in range(0, int(record["frames"]), FEW):
                rows = self._rows(record, [column_name(name)], lo, FEW)
                for data in rows.column(0).to_pylist():
                    (frame,) = av.CodecContext.create("png", "r").decode(av.Packet(data))
                    yield frame.to_ndarray(format="rgb24")

        return EpisodeCamera(self.head.picture_shape(name), int(record["frames"]), read)

    def finish(self, records: Sequence[Record]) -> None:
        """See ``Store``."""
        self._lance.dataset(self.path).cleanup_old_versions(older_than=timedelta(0))
        sync_all()
