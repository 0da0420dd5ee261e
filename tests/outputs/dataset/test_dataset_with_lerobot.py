"""Datasets read by lerobot itself, and one of its own read by our checker; ``make test-train`` installs it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from support.builders.training_logs import HEIGHT, KINDS, WIDTH, number_of, picture, robot_spec, write_robot
from support.oracles.lerobot_layout import check

if importlib.util.find_spec("lerobot") is None:
    pytest.skip("lerobot is not installed: make test-train", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore")
FRONT = "observation.images.front"


@pytest.fixture(scope="module", autouse=True)
def offline(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Let nothing look for the dataset in the network, nor write into the folder of the user."""
    home = tmp_path_factory.mktemp("hf")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        for name in ("HF_HOME", "HF_LEROBOT_HOME"):
            patch.setenv(name, str(home))
        yield


@pytest.fixture(scope="module")
def lerobot(offline: Any) -> Any:
    """Return the class of datasets."""
    import warnings

    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import torchvision  # noqa: F401
        except RuntimeError:
            # A torch without CUDA does not load the operators of a torchvision that has it; datasets need none.
            for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
                del sys.modules[name]
            library = torch.library.Library("torchvision", "DEF")
            for name in ("nms", "qnms"):
                library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            pytest.MonkeyPatch().setattr(torch, "_kept_library", library, raising=False)
        from lerobot.datasets.lerobot_dataset import LeRobotDataset

    return LeRobotDataset


def shown(frame: Any) -> int:
    """Return the number that a decoded picture says, [3, height, width] from 0 to 1."""
    return number_of(frame.permute(1, 2, 0).numpy() * 255)


def test_lerobot_reads_frames_videos_and_deltas(lerobot: Any, tmp_path: Path) -> None:
    bags = [write_robot(tmp_path / f"{i}.bag", 2.0 + i, seed=i) for i in range(2)]
    spec = robot_spec(
        episodes={"list": [{"log": "0.bag", "task": "left"}, {"log": "1.bag", "task": "right"}]}
    )
    done = logreel.dataset(bags, tmp_path / "out", spec)
    wanted = check(tmp_path / "out")
    deltas = {FRONT: [-0.1, 0.0], "action": [0.0, 0.1, 0.2], "observation.state": [-0.2, 0.0]}
    data = lerobot("local/x", root=tmp_path / "out", video_backend="pyav", delta_timestamps=deltas)
    assert (len(data), data.num_episodes, data.fps) == (done.frames, 2, 10)
    assert set(data.meta.stats) == set(wanted.info["features"])
    state, action = wanted.column("observation.state"), wanted.column("action")
    numbers = [number_of(p) for i in range(2) for p in wanted.pictures(i, FRONT)]
    ends = [row["dataset_to_index"] for row in wanted.episodes]
    for i in [0, 1, ends[0] - 1, ends[0], ends[0] + 7, ends[1] - 1]:
        item = data[i]
        episode = int(i >= ends[0])
        first, last = wanted.episodes[episode]["dataset_from_index"], ends[episode] - 1
        assert item["task"] == ("left", "right")[episode]
        assert [shown(p) for p in item[FRONT]] == [numbers[max(first, i - 1)], numbers[i]]
        assert np.allclose(
            item["action"][:, None] if item["action"].ndim == 1 else item["action"],
            action[[min(last, i + k) for k in range(3)]],
        )
        assert np.allclose(item["observation.state"], state[[max(first, i - 2), i]])
        assert item["action_is_pad"].tolist() == [i + k > last for k in range(3)]
    chosen = lerobot("local/x", root=tmp_path / "out", video_backend="pyav", episodes=[1])
    assert len(chosen) == wanted.episodes[1]["length"]
    assert shown(chosen[3][FRONT]) == numbers[ends[0] + 3]


def test_lerobot_reads_a_dataset_of_vectors_alone(lerobot: Any, tmp_path: Path) -> None:
    spec = robot_spec()
    del spec["features"][FRONT]
    logreel.dataset(write_robot(tmp_path / "x.bag", 1.0), tmp_path / "out", spec)
    data = lerobot("local/x", root=tmp_path / "out")
    assert data[4]["observation.state"].shape == (2,)


def test_checker_accepts_what_lerobot_writes(lerobot: Any, tmp_path: Path) -> None:
    features = {
        "observation.state": {"dtype": "float32", "shape": (2,), "names": ["x", "y"]},
        "action": {"dtype": "float32", "shape": (1,), "names": ["x"]},
        FRONT: {"dtype": "video", "shape": (HEIGHT, WIDTH, 3), "names": ["height", "width", "channels"]},
    }
    made = lerobot.create("local/y", 10, features, root=tmp_path / "theirs", robot_type="cart", vcodec="h264")
    for episode in range(2):
        for i in range(12):
            number = (episode * 12 + i) % KINDS
            made.add_frame(
                {
                    "observation.state": np.array([i, -i], np.float32),
                    "action": np.array([i / 2], np.float32),
                    FRONT: picture(number),
                    "task": "move",
                }
            )
        made.save_episode()
    made.finalize()
    found = check(tmp_path / "theirs")
    assert [number_of(p) for i in range(2) for p in found.pictures(i, FRONT)] == list(range(24))
    ours = tmp_path / "ours"
    logreel.dataset(write_robot(tmp_path / "x.bag", 1.0), ours, robot_spec())
    same = check(ours)
    assert set(same.info) == set(found.info)
    assert set(same.episodes[0]) == set(found.episodes[0])
    for name in features:
        assert set(same.info["features"][name]) <= {*found.info["features"][name], "info"}
        one, two = same.info["features"][name].get("info", {}), found.info["features"][name].get("info", {})
        assert set(one) == set(two)
    assert same.frames.column_names == found.frames.column_names
    kinds = [[str(one.type) for one in content.frames.schema] for content in (same, found)]
    assert [kind.replace("fixed_size_", "") for kind in kinds[0]] == [
        k.replace("fixed_size_", "") for k in kinds[1]
    ]
