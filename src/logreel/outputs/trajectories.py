"""Trajectories as text: the formats of TUM's RGB-D benchmark, of KITTI's odometry, and of EuRoC's ground truth.

Numbers are written with as many digits as it takes to read the same float64 back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO

import numpy as np

from logreel._version import __version__
from logreel.dataclass import replace
from logreel.errors import LogError
from logreel.lenses.rotation import matrices, unit
from logreel.log.times import shift_of
from logreel.meaning.trajectories import (
    Trajectory,
    TrajectorySource,
    frames_named,
    read_frames,
    trajectory_sources,
)
from logreel.outputs.registry import Job

#: Rows that become text at a time.
BLOCK = 4096
#: Other sources that are named.
NAMED = 8
#: The columns of EuRoC's ``state_groundtruth_estimate0/data.csv``.
EUROC = (
    "#timestamp, p_RS_R_x [m], p_RS_R_y [m], p_RS_R_z [m], q_RS_w [], q_RS_x [], q_RS_y [], q_RS_z [], "
    "v_RS_R_x [m s^-1], v_RS_R_y [m s^-1], v_RS_R_z [m s^-1], b_w_RS_S_x [rad s^-1], b_w_RS_S_y [rad s^-1], "
    "b_w_RS_S_z [rad s^-1], b_a_RS_S_x [m s^-2], b_a_RS_S_y [m s^-2], b_a_RS_S_z [m s^-2]"
)
#: Velocity and biases, which the other formats do not have: a log knows them rarely.
_UNKNOWN = ",0" * 9


def chosen_trajectory(job: Job) -> Trajectory:
    """Return the trajectory that *job* chooses by frames or channels, else the best one of its log; tell in its notes.

    Raises LogError if there is none, or if it has no known pose in the interval; NotFoundError for an unknown frame.
    """
    others = list[TrajectorySource]()
    if job.frames is not None:
        trajectory = read_frames(job.log, *frames_named(job.frames), job.start, job.end)
        if not len(trajectory):
            raise LogError(f"no pose of {trajectory.about} is known", path=job.log.name)
    else:
        trajectory, others = _best(job)
    job.notes.append(f"the trajectory is that of {trajectory.about}")
    if others:
        names = [source.name for source in others]
        left = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        job.notes.append(f"the log also has {', '.join(names[:NAMED])}{left}")
    if trajectory.origin is not None:
        job.notes.append(f"its origin is at {_origin(trajectory)}")
    job.notes += trajectory.notes
    if shift := shift_of(job.log, job.utc):
        trajectory = replace(trajectory, time=trajectory.time + shift)
    job.rows[trajectory.topics[0]] = len(trajectory)
    job.advance(job.total)
    return trajectory


def _best(job: Job) -> tuple[Trajectory, list[TrajectorySource]]:
    """Return the best trajectory of the channels of *job* that has a known pose, and the sources behind it."""
    sources = trajectory_sources(job.log, {ch.topic for ch in job.channels})
    why = LogError(
        "no channel holds poses, transforms between the usual frames, or positions of the robot",
        path=job.log.name,
        hint="choose two frames with frames='map:base_link'",
    )
    for number, source in enumerate(sources):
        try:
            trajectory = source.load(job.start, job.end)
        except LogError as error:
            why = error
        else:
            if len(trajectory):
                return trajectory, sources[number + 1 :]
            why = LogError(f"no pose of {trajectory.about} is known", path=job.log.name)
        job.notes.append(f"{source.name} is not used: {why.text}")
    raise why


def _origin(trajectory: Trajectory) -> str:
    latitude, longitude, altitude = trajectory.origin or (0.0, 0.0, 0.0)
    return f"latitude {latitude!r}, longitude {longitude!r} (WGS 84), altitude {altitude!r} m"


def write_tum(out: IO[bytes], job: Job) -> None:
    """Write a line ``timestamp tx ty tz qx qy qz qw`` for each pose, times in seconds with nine decimals.

    Lines that begin with # say what the trajectory is of, its axes, and its origin.
    """
    trajectory = chosen_trajectory(job)
    clock = "Unix time" if job.utc or job.log.epoch == "unix" else f"seconds since {job.log.epoch}"
    head = [f"logreel {__version__}: {trajectory.about}", f"axes: {trajectory.axes}", f"clock: {clock}"]
    head += [f"origin: {_origin(trajectory)}"] if trajectory.origin is not None else []
    head.append("timestamp tx ty tz qx qy qz qw")
    out.writelines(f"# {line}\n".encode("utf-8", "backslashreplace") for line in head)
    numbers = np.hstack([trajectory.position, trajectory.rotation])
    _write(out, trajectory, numbers, lambda time, row: f"{seconds(time)} {' '.join(map(repr, row))}\n")


def write_kitti(out: IO[bytes], job: Job) -> None:
    """Write the upper three rows of the matrix of each pose, row by row, as a line of twelve numbers.

    The format has no times and no comments.
    """
    trajectory = chosen_trajectory(job)
    turn, _ = unit(trajectory.rotation)
    numbers = np.concatenate([matrices(turn), trajectory.position[:, :, None]], axis=2).reshape(-1, 12)
    job.notes.append("KITTI's format has no times: .tum and .euroc have them")
    _write(out, trajectory, numbers, lambda _, row: f"{' '.join(map(repr, row))}\n")


def write_euroc(out: IO[bytes], job: Job) -> None:
    """Write CSV with the columns of EuRoC's ground truth: times in ns, position, rotation w, x, y, z; the rest is 0."""
    trajectory = chosen_trajectory(job)
    out.write(f"{EUROC}\n".encode())
    numbers = np.hstack([trajectory.position, trajectory.rotation[:, [3, 0, 1, 2]]])
    job.notes.append("velocity and biases of the sensors are written as 0: the trajectory does not have them")
    _write(out, trajectory, numbers, lambda time, row: f"{time},{','.join(map(repr, row))}{_UNKNOWN}\n")


def _write(
    out: IO[bytes], trajectory: Trajectory, numbers: np.ndarray, line: Callable[[int, list[float]], str]
) -> None:
    """Write *line* of the time and the row of *numbers* of each pose."""

    def texts() -> Iterator[str]:
        for low in range(0, len(trajectory), BLOCK):
            rows = slice(low, low + BLOCK)
            pairs = zip(trajectory.time[rows].tolist(), numbers[rows].tolist(), strict=True)
            yield "".join(line(time, row) for time, row in pairs)

    out.writelines(text.encode("ascii") for text in texts())


def seconds(time: int) -> str:
    """Return ns as seconds with nine decimals."""
    before, after = divmod(abs(time), 10**9)
    return f"{'-' if time < 0 else ''}{before}.{after:09d}"
