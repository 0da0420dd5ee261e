"""A checker of datasets of LeRobot 3.0, written from its documented layout; it shares no code with the writer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DEFAULTS = {"timestamp", "frame_index", "episode_index", "index", "task_index"}
STATS = {"min", "max", "mean", "std", "count"}


@dataclass
class Content:
    """What a dataset holds: ``info.json``, rows of ``meta/episodes``, all frames, tasks by number."""

    root: Path
    info: dict[str, Any]
    episodes: list[dict[str, Any]]
    frames: pa.Table
    tasks: dict[int, str]
    problems: list[str] = field(default_factory=list)

    def expect(self, fact: bool, text: str) -> None:
        if not fact:
            self.problems.append(text)

    def column(self, name: str) -> np.ndarray:
        """Return a feature over all frames: [frames, k]."""
        return np.array(self.frames.column(name).to_pylist()).reshape(len(self.frames), -1)

    def video(self, episode: int, name: str) -> Path:
        row = self.episodes[episode]
        chunk, file = row[f"videos/{name}/chunk_index"], row[f"videos/{name}/file_index"]
        return self.root / self.info["video_path"].format(video_key=name, chunk_index=chunk, file_index=file)

    def pictures(self, episode: int, name: str) -> list[np.ndarray]:
        """Return the decoded pictures of an episode, each found by its time as readers do."""
        row = self.episodes[episode]
        first = row[f"videos/{name}/from_timestamp"]
        shown = {round(t, 4): pixels for t, pixels in decoded(self.video(episode, name))}
        at = np.array(sorted(shown))
        wanted = [first + i / self.info["fps"] for i in range(row["length"])]
        found = []
        for t in wanted:
            nearest = at[np.abs(at - t).argmin()]
            # LeRobot refuses frames that are further away.
            self.expect(abs(nearest - t) < 2e-4, f"no frame of {name} at {t}")
            found.append(shown[float(nearest)])
        return found


def decoded(path: Path) -> Iterator[tuple[float, np.ndarray]]:
    """Yield time in seconds and RGB pixels of the frames of a video."""
    import av

    with av.open(str(path)) as file:
        for frame in file.decode(video=0):
            yield float(frame.pts * frame.time_base), frame.to_ndarray(format="rgb24")


def read(root: Path) -> Content:
    """Return the content; raises what the libraries raise for files that cannot be read."""
    info = json.loads((root / "meta/info.json").read_text())
    rows = [
        row
        for path in sorted((root / "meta/episodes").glob("*/*.parquet"))
        for row in pq.ParquetFile(path).read().to_pylist()
    ]
    tables = [pq.ParquetFile(path).read() for path in sorted((root / "data").glob("*/*.parquet"))]
    tasks = pq.ParquetFile(root / "meta/tasks.parquet").read()
    index = json.loads(tasks.schema.metadata[b"pandas"])["index_columns"][0]
    names = dict(zip(tasks["task_index"].to_pylist(), tasks[index].to_pylist(), strict=True))
    return Content(root, info, rows, pa.concat_tables(tables), names)


def check(root: Path, exact: bool = True, videos: bool = True) -> Content:
    """Return the content of a dataset; raises AssertionError with everything that is wrong with it.

    exact   False: a writer may have been killed; then files may have more than ``info.json`` says
    videos  whether to decode all videos
    """
    found = read(root)
    info, frames = found.info, found.frames
    episodes, total = info["total_episodes"], info["total_frames"]
    found.expect(info["codebase_version"] == "v3.0", "another version")
    found.expect(isinstance(info["fps"], int), "fps is not an integer")
    found.expect(info["splits"] == {"train": f"0:{episodes}"}, f"splits are {info['splits']}")
    found.expect(set(info["features"]) >= DEFAULTS, "a default column is missing")
    more = 0 if exact else 10**9
    found.expect(
        episodes <= len(found.episodes) <= episodes + more, f"{len(found.episodes)} rows of episodes"
    )
    found.expect(total <= len(frames) <= total + more, f"{len(frames)} frames instead of {total}")
    found.expect(info["total_tasks"] <= len(found.tasks) <= info["total_tasks"] + more, "number of tasks")
    found.expect(sorted(found.tasks) == list(range(len(found.tasks))), "numbers of tasks")
    found.expect(frames["index"].to_pylist() == list(range(len(frames))), "index is not a count")
    kinds = {name: one["dtype"] for name, one in info["features"].items()}
    found.expect(
        set(frames.column_names) == {name for name, kind in kinds.items() if kind != "video"},
        f"columns {frames.column_names}",
    )
    for name, one in info["features"].items():
        if one["dtype"] != "video":
            _check_type(found, name, one)
    start = 0
    for number, row in enumerate(found.episodes[:episodes]):
        _check_episode(found, number, row, start, videos)
        start += row["length"]
    found.expect(start == total, f"episodes have {start} frames, not {total}")
    stats = json.loads((root / "meta/stats.json").read_text())
    found.expect(set(stats) == set(info["features"]), f"statistics of {sorted(stats)}")
    if exact:
        for name, one in stats.items():
            _check_stats(found, name, one, np.arange(total))
    assert not found.problems, "\n".join(found.problems)
    return found


def _check_type(found: Content, name: str, one: dict[str, Any]) -> None:
    kind = found.frames.schema.field(name).type
    if one["shape"] == [1]:
        found.expect(str(kind) == _arrow_name(one["dtype"]), f"{name} is {kind}")
        return
    found.expect(
        pa.types.is_list(kind) or (pa.types.is_fixed_size_list(kind) and kind.list_size == one["shape"][0]),
        f"{name} is {kind}",
    )
    found.expect(str(kind.value_type) == _arrow_name(one["dtype"]), f"{name} is {kind}")
    names = one.get("names")
    found.expect(names is None or len(names) == one["shape"][0], f"{name} has names {names}")


def _arrow_name(dtype: str) -> str:
    return {"float32": "float", "float64": "double"}.get(dtype, dtype)


def _check_episode(found: Content, number: int, row: dict[str, Any], start: int, videos: bool) -> None:
    length, fps = row["length"], found.info["fps"]
    found.expect(row["episode_index"] == number, f"episode {number} is {row['episode_index']}")
    found.expect(
        (row["dataset_from_index"], row["dataset_to_index"]) == (start, start + length), f"{number}: range"
    )
    part = found.frames.slice(start, length)
    found.expect(part["episode_index"].to_pylist() == [number] * length, f"{number}: episode_index")
    found.expect(part["frame_index"].to_pylist() == list(range(length)), f"{number}: frame_index")
    times = np.array(part["timestamp"].to_pylist())
    found.expect(bool(np.allclose(times, np.arange(length) / fps, atol=1e-4)), f"{number}: timestamp")
    named = {found.tasks[one] for one in part["task_index"].to_pylist()}
    found.expect(named == set(row["tasks"]), f"{number}: tasks {named}")
    file = found.root / found.info["data_path"].format(
        chunk_index=row["data/chunk_index"], file_index=row["data/file_index"]
    )
    found.expect(number in pq.ParquetFile(file).read()["episode_index"].to_pylist(), f"{number}: in no file")
    for name, one in found.info["features"].items():
        stats = {
            key.rpartition("/")[2]: value for key, value in row.items() if key.startswith(f"stats/{name}/")
        }
        _check_stats(found, name, stats, np.arange(start, start + length))
        if one["dtype"] != "video":
            continue
        seconds = row[f"videos/{name}/to_timestamp"] - row[f"videos/{name}/from_timestamp"]
        found.expect(abs(seconds - length / fps) < 1e-3, f"{number}: {name} has {seconds} s")
        found.expect(found.video(number, name).is_file(), f"{number}: {name} has no video")
        if videos:
            some = found.pictures(number, name)
            found.expect(
                all(list(pixels.shape) == one["shape"] for pixels in some), f"{number}: size of {name}"
            )


def _check_stats(found: Content, name: str, stats: dict[str, Any], rows: np.ndarray) -> None:
    found.expect(set(stats) >= STATS, f"{name} has statistics {sorted(stats)}")
    kind = found.info["features"][name]["dtype"]
    shape = (3, 1, 1) if kind == "video" else tuple(found.info["features"][name]["shape"])
    for key, value in stats.items():
        wanted = (1,) if key == "count" else shape
        found.expect(np.array(value).shape == wanted, f"{name}: shape of {key}")
    if kind == "video":
        found.expect(0 <= np.min(stats["min"]) <= np.max(stats["max"]) <= 1, f"{name}: range")
        return
    values = found.column(name)[rows].astype(np.float64)
    for key, wanted in (
        ("min", values.min(0)),
        ("max", values.max(0)),
        ("mean", values.mean(0)),
        ("std", values.std(0)),
    ):
        # LeRobot computes in float32, by running sums.
        scale = max(1.0, float(np.abs(values).max()))
        found.expect(
            bool(np.allclose(stats[key], wanted, atol=2e-3 * scale)), f"{name}: {key} {stats[key]} {wanted}"
        )
    found.expect(stats["count"] == [len(rows)], f"{name}: count")
