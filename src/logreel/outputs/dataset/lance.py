"""A Lance dataset: a row per frame, with vectors as fixed-size lists and pictures as PNG.

Lance has no dots in names of columns: ``observation.state`` is ``observation_state``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError, MissingDependencyError, UsageError
from logreel.outputs.dataset.episode import Episode, EpisodeCamera, EpisodeHead, Record, checked_index
from logreel.outputs.files import sync_all
from logreel.outputs.media.pictures import png

if TYPE_CHECKING:
    import pyarrow as pa

#: Frames in a batch with pictures, and without.
FEW, MANY = 16, 65536
NAME = "frames.lance"


def make(root: Path, head: EpisodeHead, records: Sequence[Record]) -> LanceStore:
    """Return the dataset at *root*; see ``Store``."""
    return LanceStore(root, head, records)


def column_name(feature: str) -> str:
    """Return the name of the column of a feature."""
    return feature.replace(".", "_")


def _version_of(manifest: Path) -> int:
    """Return the version of a manifest by its name: the number, or 2^64 - 1 less the number."""
    number = int(manifest.stem) if manifest.stem.isdecimal() else 0
    return number if number < 1 << 63 else (1 << 64) - 1 - number


class LanceStore:
    """See ``Store``. Lance itself adds an episode completely or not at all, but does not sync it to disk."""

    def __init__(self, root: Path, head: EpisodeHead, records: Sequence[Record]) -> None:
        try:
            import lance
        except ImportError as error:
            raise MissingDependencyError("pylance", "train") from error
        self.root, self.head, self._lance = root, head, lance
        self.path = root / NAME
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
