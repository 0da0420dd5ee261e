"""Zarr, HDF5 and Lance: the same frames as in LeRobot, without loss, and what a second run writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import UsageError
from support.builders.training_logs import number_of, picture, robot_spec, write_robot

pytest.importorskip("av")
FRONT = "observation.images.front"
TARGETS = ("zarr", "hdf5", "lance")
NEEDS = {"zarr": "zarr", "hdf5": "h5py", "lance": "lance"}


class Read:
    """A dataset as users of the target read it: end of each episode, and all frames."""

    def __init__(self, to: str, root: Path) -> None:
        if to == "zarr":
            zarr = pytest.importorskip("zarr")
            group = zarr.open(root / "replay_buffer.zarr", mode="r")
            self.ends = group["meta"]["episode_ends"][:].tolist()
            data = {name: array[:] for name, array in group["data"].arrays()}
            assert {len(one) for one in data.values()} == {self.ends[-1]}
            self.state, self.action, self.pictures = data["state"], data["action"], data["front"]
            assert group["data"]["state"].attrs["names"] == ["x", "y"]
        elif to == "hdf5":
            h5py = pytest.importorskip("h5py")
            parts: list[tuple[Any, ...]] = []
            while (path := root / f"episode_{len(parts)}.hdf5").exists():
                with h5py.File(path) as file:
                    front = file["/observations/images/front"][:]
                    parts.append((file["/observations/state"][:], file["/action"][:], front))
                    assert {len(one) for one in parts[-1]} == {file.attrs["num_samples"]}
                    assert file["/observations/state"].attrs["names"].tolist() == ["x", "y"]
            self.ends = np.cumsum([len(one[0]) for one in parts]).tolist()
            self.state, self.action, self.pictures = (
                np.concatenate([one[i] for one in parts]) for i in range(3)
            )
        else:
            lance = pytest.importorskip("lance")
            table = lance.dataset(root / "frames.lance").to_table()
            numbers = np.array(table["episode_index"])
            assert table["index"].to_pylist() == list(range(len(table)))
            self.ends = (np.flatnonzero(np.diff(numbers, append=-1)) + 1).tolist()
            self.state = np.array(table["observation_state"].to_pylist(), np.float32)
            self.action = np.array(table["action"].to_pylist(), np.float32)
            self.pictures = np.array(
                [png_pixels(one) for one in table["observation_images_front"].to_pylist()]
            )


def png_pixels(data: bytes) -> np.ndarray:
    import av

    (found,) = av.CodecContext.create("png", "r").decode(av.Packet(data))
    return found.to_ndarray(format="rgb24")


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("bags")
    return [write_robot(folder / f"{i}.bag", 0.8, seed=i) for i in range(3)]


@pytest.mark.parametrize("to", TARGETS)
def test_frames_are_those_of_lerobot(bags: list[Path], tmp_path: Path, to: str) -> None:
    pytest.importorskip(NEEDS[to])
    from support.oracles.lerobot_layout import check

    logreel.dataset(bags[:2], tmp_path / "lerobot", robot_spec())
    done = logreel.dataset(bags[:2], tmp_path / "out", robot_spec(), to=to)
    wanted, found = check(tmp_path / "lerobot"), Read(to, tmp_path / "out")
    assert found.ends == [row["dataset_to_index"] for row in wanted.episodes]
    assert np.array_equal(found.state, wanted.column("observation.state").astype(np.float32))
    assert np.array_equal(found.action, wanted.column("action").astype(np.float32))
    shown = [number_of(p) for i in range(2) for p in wanted.pictures(i, FRONT)]
    assert [number_of(p) for p in found.pictures] == shown
    assert all(np.array_equal(p, picture(n)) for p, n in zip(found.pictures, shown, strict=True))
    assert done.frames == len(found.state)


@pytest.mark.parametrize("to", TARGETS)
def test_second_run_appends_moves_and_removes(bags: list[Path], tmp_path: Path, to: str) -> None:
    pytest.importorskip(NEEDS[to])

    def same(logs: list[Path], spec: dict[str, Any], name: str) -> None:
        logreel.dataset(logs, tmp_path / name, spec, to=to)
        one, two = Read(to, tmp_path / "out"), Read(to, tmp_path / name)
        assert one.ends == two.ends
        for key in ("state", "action", "pictures"):
            assert np.array_equal(getattr(one, key), getattr(two, key))

    logreel.dataset(bags[1:2], tmp_path / "out", robot_spec(), to=to)
    assert logreel.dataset(bags[1:], tmp_path / "out", robot_spec(), to=to).reused == 1
    same(bags[1:], robot_spec(), "appended")
    assert logreel.dataset(bags, tmp_path / "out", robot_spec(), to=to).reused == 2
    same(bags, robot_spec(), "moved")
    assert logreel.dataset(bags[:1], tmp_path / "out", robot_spec(), to=to).reused == 1
    same(bags[:1], robot_spec(), "removed")
    spec = robot_spec()
    spec["features"]["action"] = {"fields": ["/command.y"]}
    done = logreel.dataset(bags[:1], tmp_path / "out", spec, to=to)
    assert (done.reused, done.reused_videos) == (0, 1)
    same(bags[:1], spec, "changed")


@pytest.mark.parametrize("to", ["zarr", "hdf5"])
def test_same_input_gives_same_bytes(bags: list[Path], tmp_path: Path, to: str) -> None:
    pytest.importorskip(NEEDS[to])
    found = []
    for name in ("a", "b"):
        logreel.dataset(bags[:2], tmp_path / name, robot_spec(), to=to)
        root = tmp_path / name
        found.append({p.relative_to(root): p.read_bytes() for p in root.rglob("*") if p.is_file()})
    assert found[0] == found[1]


@pytest.mark.parametrize("to", TARGETS)
def test_broken_picture_leaves_its_frame_out(tmp_path: Path, to: str) -> None:
    pytest.importorskip(NEEDS[to])
    bag = write_robot(tmp_path / "x.bag", 1.5, broken=(7,))
    done = logreel.dataset(bag, tmp_path / "out", robot_spec(), to=to)
    found = Read(to, tmp_path / "out")
    assert len(found.ends) == len(done.episodes) == 2
    assert 7 not in [number_of(p) for p in found.pictures]


def test_lance_needs_different_names_of_columns(bags: list[Path], tmp_path: Path) -> None:
    pytest.importorskip("lance")
    vector = {"fields": ["/state.x"]}
    with pytest.raises(UsageError, match="would be the column 'a_b'"):
        logreel.dataset(
            bags[0], tmp_path / "a", robot_spec(features={"a.b": vector, "a_b": vector}), to="lance"
        )
