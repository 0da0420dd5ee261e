"""Trajectories in text files, recorded as poses: what ``convert`` wrote comes back; bad lines are told."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import logreel
from logreel.errors import LogError, UsageError
from logreel.ops.record.sources.trajectories import LONGEST, nanoseconds
from support.harness.cli_runner import Run
from support.samples.rosbag.builder import drive

TUM = "1403636580.013555527 1 2 3 0 0 0 1\n"


def recorded(tmp_path: Path, spelling: str, suffix: str = ".bag") -> tuple[logreel.Log, logreel.Recorded]:
    done = logreel.record(spelling, tmp_path / f"out{suffix}", force=True)
    return logreel.open(tmp_path / f"out{suffix}"), done


def numbers(log: logreel.Log, topic: str, inner: str = "pose") -> np.ndarray:
    fields = [f"{inner}.position.{axis}" for axis in "xyz"] + [
        f"{inner}.orientation.{axis}" for axis in "xyzw"
    ]
    return np.stack([log[topic][field] for field in fields], axis=-1)


@pytest.mark.parametrize("suffix", [".tum", ".euroc"])
@pytest.mark.parametrize("out", [".bag", ".mcap"])
def test_a_trajectory_comes_back_bit_by_bit(tmp_path: Path, suffix: str, out: str) -> None:
    bag = logreel.open(drive())
    logreel.convert(bag, tmp_path / f"a{suffix}")
    log, done = recorded(tmp_path, f"{suffix[1:]}:{tmp_path}/a{suffix}?topic=/odom_again&frame=odom", out)
    assert done.skipped == ()
    assert np.array_equal(numbers(log, "/odom_again"), numbers(bag, "/odom", "pose.pose"))
    assert log["/odom_again"].times.tolist() == np.asarray(bag["/odom"]["header.stamp"]).tolist()
    assert set(log["/odom_again"]["header.frame_id"]) == {"odom"}
    assert log["/odom_again"].schema.name == "geometry_msgs/PoseStamped"


def test_poses_of_kitti_get_their_times_from_a_file_or_a_rate(tmp_path: Path) -> None:
    bag = logreel.open(drive())
    logreel.convert(bag, tmp_path / "a.kitti")
    count = len(bag["/odom"])
    (tmp_path / "times.txt").write_text("".join(f"{n / 8:.6e}\n" for n in range(count)))
    log, _ = recorded(tmp_path, f"kitti:{tmp_path}/a.kitti?times={tmp_path}/times.txt")
    assert log["/pose"].times.tolist() == [n * 125_000_000 for n in range(count)]
    found, wanted = numbers(log, "/pose"), numbers(bag, "/odom", "pose.pose")
    assert np.array_equal(found[:, :3], wanted[:, :3])
    # A quaternion and its negative are the same rotation.
    assert np.allclose(np.abs((found[:, 3:] * wanted[:, 3:]).sum(axis=1)), 1, atol=1e-12)
    log, _ = recorded(tmp_path, f"kitti:{tmp_path}/a.kitti?rate=10")
    assert log["/pose"].times[:3].tolist() == [0, 100_000_000, 200_000_000]


@pytest.mark.parametrize("turn", [(1, 2, 3, 4), (4, 3, 2, -1), (-1, 5, 0, 1), (0, 0, 1, 0), (1, 0, 0, 0)])
def test_every_matrix_is_the_rotation_that_was_written(tmp_path: Path, turn: tuple[float, ...]) -> None:
    size = math.sqrt(sum(value * value for value in turn))
    unit = [value / size for value in turn]
    (tmp_path / "a.tum").write_text(f"1.0 0 0 0 {' '.join(map(repr, unit))}\n")
    recorded(tmp_path, f"tum:{tmp_path}/a.tum")
    logreel.convert(tmp_path / "out.bag", tmp_path / "a.kitti")
    log, _ = recorded(tmp_path, f"kitti:{tmp_path}/a.kitti?rate=1", ".mcap")
    assert abs(abs(numbers(log, "/pose")[0, 3:] @ unit) - 1) < 1e-12


def test_lines_that_hold_no_pose_are_left_out_and_told(tmp_path: Path) -> None:
    bad = (
        "1 2 3\n", "1403636581 1 2 3 0 0 0 0\n", "1403636582 nan 2 3 0 0 0 1\n", "-1 1 2 3 0 0 0 1\n",
        "1e300 1 2 3 0 0 0 1\n", "x 1 2 3 0 0 0 1\n", "1 " * LONGEST + "\n", "1_0 1 2 3 0 0 0 1\n",
        "1403636583 ± 2 3 0 0 0 1\n",
    )  # fmt: skip
    text = "# timestamp tx ty tz qx qy qz qw\n\n" + TUM + "".join(bad) + TUM.replace("\n", "")
    (tmp_path / "a.tum").write_text(text)
    log, done = recorded(tmp_path, f"tum:{tmp_path}/a.tum")
    assert log["/pose"].times.tolist() == [1403636580013555527] * 2
    assert done.broken == len(done.skipped) == len(bad)
    for number, (sentence, why) in enumerate(
        zip(
            done.skipped,
            ("3 numbers instead of 8", "no rotation", "not finite", "between 1970 and 2106",
             "between 1970 and 2106", "could not convert", "longer than", "'1_0'", "could not convert"),
            strict=True,
        ),
        4,
    ):  # fmt: skip
        assert f"line {number} of" in sentence
        assert why in sentence


def test_what_is_odd_but_kept_is_noted(tmp_path: Path) -> None:
    (tmp_path / "a.tum").write_text("2 0 0 0 0 0 0 2\n1 0 0 0 0 0 0 1\n")
    log, done = recorded(tmp_path, f"tum:{tmp_path}/a.tum")
    assert log["/pose"]["pose.orientation.w"].tolist() == [2.0, 1.0]
    text = " ".join(done.notes)
    assert "1 quaternion with a norm other than 1: kept as they are" in text
    assert "1 pose older than one before" in text
    (tmp_path / "a.csv").write_text("#timestamp, …\n1403636580838555648,4,1,0,1,0,0,0,0.5,0,0,0,0,0,0,0,0\n")
    log, done = recorded(tmp_path, f"euroc:{tmp_path}/a.csv")
    assert log["/pose"].times.tolist() == [1403636580838555648]
    assert any("velocities and biases of the sensors are left out" in note for note in done.notes)


def test_matrices_that_are_no_rotation(tmp_path: Path) -> None:
    rows = ("1 0 0 0 0 1 0 0 0 0 1 0", "2 0 0 0 0 1 0 0 0 0 1 0", "1 0 0 0 0 1 0 0 0 0 -1 0", "1 0 0")
    (tmp_path / "a.kitti").write_text("\n".join(rows))
    (tmp_path / "times.txt").write_text("0\n1\n2\n3\n4\n")
    log, done = recorded(tmp_path, f"kitti:{tmp_path}/a.kitti?times={tmp_path}/times.txt")
    assert len(log["/pose"]) == 1
    assert [sentence.rpartition(": ")[2] for sentence in done.skipped] == [
        "its matrix is no rotation", "its matrix mirrors", "3 numbers instead of 12",
    ]  # fmt: skip
    assert any("more times than there are poses" in note for note in done.notes)
    (tmp_path / "times.txt").write_text("5\n")
    log, done = recorded(tmp_path, f"kitti:{tmp_path}/a.kitti?times={tmp_path}/times.txt")
    assert log["/pose"].times.tolist() == [5 * 10**9]
    assert "has no time for it" in done.skipped[0]


@pytest.mark.parametrize(
    ("spelling", "why"),
    [
        ("kitti:a.kitti", "give times=FILE, or rate=HZ"),
        ("kitti:a.kitti?rate=1&times=b", "give times=FILE, or rate=HZ"),
        ("kitti:a.kitti?rate=nan", "rate is a number above 0"),
        ("tum:", "write tum:FILE"),
        ("tum:a.tum?rate=1", "no option 'rate'"),
    ],
)
def test_spellings_that_cannot_be_used(spelling: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        logreel.live_source(spelling)


def test_files_without_a_pose_make_no_log(tmp_path: Path) -> None:
    (tmp_path / "a.tum").write_text("# nothing\n")
    with pytest.raises(LogError, match=r"no line of .* holds a pose"):
        recorded(tmp_path, f"tum:{tmp_path}/a.tum")
    with pytest.raises(LogError, match="No such file"):
        recorded(tmp_path, f"tum:{tmp_path}/b.tum")
    assert not (tmp_path / "out.bag").exists()


def test_the_command_knows_the_suffix(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.tum").write_text(TUM + "nothing\n")
    done = run("record", tmp_path / "a.mcap", "--from", tmp_path / "a.tum")
    assert done.code == 3
    assert "wrote 1 message of 1 channel" in done.err
    assert "line 2 of" in done.err
    (tmp_path / "a.kitti").write_text("1 0 0 0 0 1 0 0 0 0 1 0\n")
    done = run("record", tmp_path / "b.mcap", "--from", f"{tmp_path}/a.kitti?rate=5")
    assert done.code == 0, done.err


def test_seconds_are_rounded_once() -> None:
    assert nanoseconds("1.403636580013555527e+09") == 1403636580013555527
    assert nanoseconds("0.9999999999") == 10**9
    assert nanoseconds("1e-999999999") == 0
