"""Datasets of LeRobot, version 3.0: Parquet, videos and ``meta``, each file with one episode.

The layout is that of ``lerobot.datasets`` 0.4: ``data/chunk-000/file-000.parquet``,
``videos/FEATURE/chunk-000/file-000.mp4``, ``meta/episodes/chunk-000/file-000.parquet``, ``meta/info.json``,
``meta/stats.json``, ``meta/tasks.parquet``.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import MissingDependencyError, UsageError
from logreel.io.atomic_file import make_folders, sync_folder, temporary_for
from logreel.outputs.dataset.episode import (
    KEYS,
    Episode,
    EpisodeCamera,
    EpisodeColumn,
    EpisodeHead,
    Record,
    Stats,
    as_arrays,
    as_lists,
    checked_index,
    combined,
    link,
    vector_stats,
)
from logreel.outputs.files import new_file
from logreel.outputs.media.pictures import add_stream, encode

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = "v3.0"
#: Files per folder, and episodes per file of ``meta/episodes``.
CHUNK, GROUP = 1000, 100
#: Columns that every dataset has, and their types.
DEFAULTS = {
    "timestamp": "float32",
    "frame_index": "int64",
    "episode_index": "int64",
    "index": "int64",
    "task_index": "int64",
}
#: Sizes of files after which LeRobot begins a new one when it adds to the dataset, MB.
_DATA_MB, _VIDEO_MB = 100, 200


class LeRobotStore:
    """See ``Store``. An episode counts for readers when ``meta/info.json`` names it, which is written last."""

    def __init__(self, root: Path, head: EpisodeHead, records: Sequence[Record]) -> None:
        self.root, self.head = root, head
        if head.spec.rate.denominator != 1:
            raise UsageError(
                f"LeRobot needs a whole number of frames per second, not {float(head.spec.rate)}"
            )
        self._fps = head.spec.rate.numerator
        self._stats: dict[str, Stats] = {}
        self._counted = 0
        self._tasks: dict[str, int] = {}
        # All episodes of a file of meta/episodes are written again with each one that is added to it.
        self._number_stats = lru_cache(GROUP)(self._default_stats)
        for record in records:
            self._count(record)

    def _count(self, record: Record) -> None:
        self._tasks.setdefault(record["task"], len(self._tasks))
        stats = as_arrays(self._whole_stats(record))
        self._stats = combined(self._stats, stats)
        self._counted += 1

    def add(self, episode: Episode, records: Sequence[Record]) -> None:
        """See ``Store``."""
        for name, camera in episode.cameras.items():
            path = self.video(name, episode.index)
            make_folders(path.parent)
            if camera.video is not None:
                _put(camera.video, path)
            else:
                with new_file(path, force=True) as out:
                    self._encode(out, camera)
        self._tasks.setdefault(episode.task, len(self._tasks))
        self._write_data(episode)

    def publish(self, records: Sequence[Record]) -> None:
        """See ``Store``."""
        for record in records[self._counted :]:
            self._count(record)
        group = checked_index(records[-1]) // GROUP * GROUP
        self._write_episodes(records[group:], group // GROUP)
        self._write_tasks()
        self._write_json("stats.json", as_lists(self._stats))
        self._write_json("info.json", self._info(records))

    def video(self, name: str, index: int) -> Path:
        """Return the path of the video of an episode."""
        return self.root / "videos" / name / _file(index, "mp4")

    def data(self, index: int) -> Path:
        """Return the path of the table of an episode."""
        return self.root / "data" / _file(index, "parquet")

    def vectors(self, record: Record) -> dict[str, NDArray[Any]]:
        """See ``Store``."""
        import pyarrow.parquet as pq

        table = pq.ParquetFile(self.data(checked_index(record))).read(use_threads=False)
        values = {}
        for head_column in self.head.vectors:
            column: Any = table.column(head_column.name).combine_chunks()
            flat = column.flatten() if len(_shape(head_column)) and head_column.shape[0] > 1 else column
            values[head_column.name] = np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(
                -1, head_column.shape[0]
            )
        return values

    def camera(self, record: Record, name: str) -> EpisodeCamera:
        """See ``Store``."""
        path = self.video(name, checked_index(record))

        def read() -> Iterator[NDArray[np.uint8]]:
            # The file itself is used.
            return iter(())

        return EpisodeCamera(self.head.picture_shape(name), int(record["frames"]), read, video=path)

    def finish(self, records: Sequence[Record]) -> None:
        """See ``Store``."""
        count = len(records)
        folders = ["data", *(f"videos/{column.name}" for column in self.head.cameras)]
        for folder in folders:
            for path in sorted((self.root / folder).glob("chunk-*/file-*")):
                if _number(path) >= count:
                    path.unlink()
        for path in sorted((self.root / "meta/episodes").glob("chunk-*/file-*")):
            if _number(path) * GROUP >= count:
                path.unlink()
        videos = self.root / "videos"
        known = {column.name for column in self.head.cameras}
        for path in sorted(videos.iterdir()) if videos.is_dir() else []:
            if path.name not in known:
                shutil.rmtree(path)

    def _encode(self, out: IO[bytes], camera: EpisodeCamera) -> None:
        try:
            import av
        except ImportError as error:
            raise MissingDependencyError("av", "train") from error
        coding, base = self.head.spec.video, Fraction(1, self._fps)
        height, width = camera.shape
        # One thread: the result must not depend on the number of processors.
        options = {"crf": str(coding.crf), "preset": "fast", "threads": "1"}
        with av.open(out, "w", format="mp4") as file:
            stream = add_stream(file, (width, height), base, coding.gop, options)
            stream.codec_context.framerate = self._fps
            for at, pixels in enumerate(camera.frames()):
                for packet in encode(stream, pixels, at, base):
                    file.mux(packet)
            for packet in stream.encode(None):
                file.mux(packet)

    def _defaults(self, index: int, start: int, count: int, task: str) -> dict[str, NDArray[Any]]:
        frames = np.arange(count, dtype=np.int64)
        return {
            "timestamp": (frames / self._fps).astype(np.float32),
            "frame_index": frames,
            "episode_index": np.full(count, index, np.int64),
            "index": start + frames,
            "task_index": np.full(count, self._tasks[task], np.int64),
        }

    def _default_stats(self, index: int, start: int, count: int, task: str) -> dict[str, dict[str, Any]]:
        numbers = self._defaults(index, start, count, task)
        return as_lists({name: vector_stats(values[:, None]) for name, values in numbers.items()})

    def _whole_stats(self, record: Record) -> dict[str, dict[str, Any]]:
        """Return the statistics of an episode as JSON data, in the order of the features."""
        index, start, count = checked_index(record), int(record["first"]), int(record["frames"])
        stats = {**record["stats"], **self._number_stats(index, start, count, record["task"])}
        names = [*(column.name for column in self.head.columns), *DEFAULTS]
        return {name: {key: stats[name][key] for key in KEYS} for name in names}

    def _write_data(self, episode: Episode) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        fields, arrays = list[Any](), list[Any]()
        for column in self.head.vectors:
            values, value_type = episode.vectors[column.name], pa.from_numpy_dtype(np.dtype(column.dtype))
            flat = pa.array(np.ascontiguousarray(values).reshape(-1), value_type)
            array = flat if column.shape[0] == 1 else pa.FixedSizeListArray.from_arrays(flat, column.shape[0])
            arrays.append(array)
            fields.append(pa.field(column.name, array.type))
        numbers = self._defaults(episode.index, episode.start, episode.count, episode.task)
        for name, values in numbers.items():
            arrays.append(pa.array(values))
            fields.append(pa.field(name, arrays[-1].type))
        path = self.data(episode.index)
        make_folders(path.parent)
        with new_file(path, force=True) as out:
            pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), out, compression="snappy")

    def _write_episodes(self, records: Sequence[Record], number: int) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows = [self._row(record, number) for record in records]
        path = self.root / "meta" / "episodes" / _file(number, "parquet")
        make_folders(path.parent)
        with new_file(path, force=True) as out:
            pq.write_table(pa.Table.from_pylist(rows), out, compression="snappy")

    def _row(self, record: Record, number: int) -> dict[str, Any]:
        """Return the row of an episode in ``meta/episodes``."""
        index, count = checked_index(record), int(record["frames"])
        row: dict[str, Any] = {
            "episode_index": index,
            "tasks": [record["task"]],
            "length": count,
            "data/chunk_index": index // CHUNK,
            "data/file_index": index % CHUNK,
            "dataset_from_index": int(record["first"]),
            "dataset_to_index": int(record["first"]) + count,
        }
        for column in self.head.cameras:
            row |= {
                f"videos/{column.name}/chunk_index": index // CHUNK,
                f"videos/{column.name}/file_index": index % CHUNK,
                f"videos/{column.name}/from_timestamp": 0.0,
                f"videos/{column.name}/to_timestamp": count / self._fps,
            }
        for name, stats in self._whole_stats(record).items():
            row |= {f"stats/{name}/{key}": value for key, value in stats.items()}
        return row | {
            "meta/episodes/chunk_index": number // CHUNK,
            "meta/episodes/file_index": number % CHUNK,
        }

    def _write_tasks(self) -> None:
        import pyarrow.parquet as pq

        with new_file(self.root / "meta" / "tasks.parquet", force=True) as out:
            pq.write_table(tasks_table(list(self._tasks)), out, compression="snappy")

    def _write_json(self, name: str, data: dict[str, Any]) -> None:
        with new_file(self.root / "meta" / name, force=True) as out:
            out.write(json.dumps(data, indent=4, ensure_ascii=False).encode() + b"\n")

    def _info(self, records: Sequence[Record]) -> dict[str, Any]:
        features = {column.name: self._feature(column) for column in self.head.columns}
        for name, dtype in DEFAULTS.items():
            features[name] = {"dtype": dtype, "shape": [1], "names": None}
        return {
            "codebase_version": VERSION,
            "robot_type": self.head.spec.robot or None,
            "total_episodes": len(records),
            "total_frames": records[-1]["first"] + records[-1]["frames"],
            "total_tasks": len(self._tasks),
            "chunks_size": CHUNK,
            "data_files_size_in_mb": _DATA_MB,
            "video_files_size_in_mb": _VIDEO_MB,
            "fps": self._fps,
            "splits": {"train": f"0:{len(records)}"},
            "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
            "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
            if self.head.cameras
            else None,
            "features": features,
        }

    def _feature(self, column: EpisodeColumn) -> dict[str, Any]:
        if not column.pictures:
            return {"dtype": column.dtype, "shape": list(column.shape), "names": list(column.names)}
        height, width = _shape(column)
        return {
            "dtype": "video",
            "shape": [height, width, 3],
            "names": ["height", "width", "channels"],
            "info": {
                "video.height": height,
                "video.width": width,
                "video.codec": "h264",
                "video.pix_fmt": "yuv420p",
                "video.is_depth_map": False,
                "video.fps": self._fps,
                "video.channels": 3,
                "has_audio": False,
            },
        }


def _shape(column: EpisodeColumn) -> tuple[int, ...]:
    """Return the shape of a column in files: videos have even sizes."""
    return tuple(n + n % 2 for n in column.shape) if column.pictures else column.shape


def _file(number: int, suffix: str) -> str:
    return f"chunk-{number // CHUNK:03d}/file-{number % CHUNK:03d}.{suffix}"


def _number(path: Path) -> int:
    """Return the number of a file by its name and folder; -1 for another name."""
    parts = (path.parent.name.partition("-")[2], path.stem.partition("-")[2])
    return int(parts[0]) * CHUNK + int(parts[1]) if all(part.isdecimal() for part in parts) else -1


def _put(src: Path, dst: Path) -> None:
    """Give an existing file a second name, in one step, replacing another one."""
    import os

    beside = temporary_for(dst)
    link(src, beside)
    os.replace(beside, dst)
    sync_folder(dst.parent)


def tasks_table(tasks: Sequence[str]) -> pa.Table:
    """Return the table of tasks as pandas stores it, with the task as index."""
    import pyarrow as pa

    index = "__index_level_0__"
    columns = [
        ("task_index", "task_index", "int64", "int64"),
        (None, index, "unicode", "object"),
    ]
    meta = {
        "index_columns": [index],
        "column_indexes": [
            {
                "name": None,
                "field_name": None,
                "pandas_type": "unicode",
                "numpy_type": "object",
                "metadata": {"encoding": "UTF-8"},
            }
        ],
        "columns": [
            {
                "name": name,
                "field_name": field,
                "pandas_type": pandas_type,
                "numpy_type": numpy,
                "metadata": None,
            }
            for name, field, pandas_type, numpy in columns
        ],
        "creator": {"library": "pyarrow", "version": pa.__version__},
        "pandas_version": "2.0.0",
    }
    numbers = np.arange(len(tasks), dtype=np.int64)
    table = pa.table({"task_index": numbers, index: pa.array(list(tasks), pa.string())})
    return table.replace_schema_metadata({"pandas": json.dumps(meta)})
