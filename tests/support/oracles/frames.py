"""Transforms between frames, one at a time and with matrices, from the textbook; and the genuine tf2 of Debian."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from support.oracles.genuine_rosbag import SYSTEM, genuine

Matrix = list[list[float]]


class Sent(NamedTuple):
    """A transform as a robot sends it: quaternion x, y, z, w."""

    parent: str
    child: str
    time: int
    position: tuple[float, float, float]
    rotation: tuple[float, float, float, float]
    static: bool = False


class Oracle:
    """Looks up one transform at one time; a link has one parent."""

    def __init__(self, sent: Sequence[Sent]) -> None:
        self.links: dict[str, list[Sent]] = {}
        for one in sent:
            own = self.links.setdefault(one.child, [])
            if one.static:
                own[:] = [one]
            elif all(one.time != other.time for other in own):
                own.append(one)
        for own in self.links.values():
            own.sort(key=lambda one: one.time)

    def lookup(self, target: str, source: str, time: int) -> Matrix | None:
        """Return the matrix 4 × 4 that maps points of *source* to *target*; None if it is not known."""
        to_root = {}
        for frame in (target, source):
            found, here = identity(), frame
            while here in self.links:
                step = self.step(here, time)
                # Links above the common frame cancel, so that they need not be known: stop there.
                if here in self.common(target, source):
                    break
                if step is None:
                    return None
                found, here = product(step, found), self.links[here][0].parent
            to_root[frame] = found
        return product(inverse(to_root[target]), to_root[source])

    def common(self, a: str, b: str) -> set[str]:
        """Return the frames that are above (or equal to) both."""
        ways = []
        for frame in (a, b):
            way = [frame]
            while way[-1] in self.links:
                way.append(self.links[way[-1]][0].parent)
            ways.append(set(way))
        return ways[0] & ways[1]

    def step(self, child: str, time: int) -> Matrix | None:
        """Return the matrix from *child* to its parent."""
        own = self.links[child]
        if own[0].static:
            return matrix(own[-1].position, own[-1].rotation)
        for one in own:
            if one.time == time:
                return matrix(one.position, one.rotation)
        for one, other in itertools.pairwise(own):
            if one.time < time < other.time:
                f = (time - one.time) / (other.time - one.time)
                place = [a + f * (b - a) for a, b in zip(one.position, other.position, strict=True)]
                return matrix(place, slerp(one.rotation, other.rotation, f))
        return None


def slerp(a: Sequence[float], b: Sequence[float], f: float) -> list[float]:
    """Return the rotation at the fraction *f* of the shortest way from *a* to *b*."""
    a, b = normal(a), normal(b)
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    if dot < 0:
        b, dot = [-x for x in b], -dot
    if dot > 1 - 1e-12:
        return normal([x + f * (y - x) for x, y in zip(a, b, strict=True)])
    angle = math.acos(dot)
    p, q = math.sin((1 - f) * angle) / math.sin(angle), math.sin(f * angle) / math.sin(angle)
    return [p * x + q * y for x, y in zip(a, b, strict=True)]


def normal(q: Sequence[float]) -> list[float]:
    """Return *q* with length 1."""
    size = math.sqrt(sum(x * x for x in q))
    return [x / size for x in q]


def matrix(place: Sequence[float], q: Sequence[float]) -> Matrix:
    """Return the homogeneous matrix of a position and a quaternion x, y, z, w."""
    x, y, z, w = normal(q)
    return [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w), place[0]],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w), place[1]],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y), place[2]],
        [0.0, 0.0, 0.0, 1.0],
    ]


def identity() -> Matrix:
    """Return the matrix that changes nothing."""
    return [[float(i == j) for j in range(4)] for i in range(4)]


def product(a: Matrix, b: Matrix) -> Matrix:
    """Return the matrix product."""
    return [[sum(a[i][k] * b[k][j] for k in range(4)) for j in range(4)] for i in range(4)]


def inverse(a: Matrix) -> Matrix:
    """Return the inverse of a rigid transform."""
    turn = [[a[j][i] for j in range(3)] for i in range(3)]
    move = [-sum(turn[i][k] * a[k][3] for k in range(3)) for i in range(3)]
    return [[*turn[i], move[i]] for i in range(3)] + [[0.0, 0.0, 0.0, 1.0]]


_TF2 = """
import json, sys, rospy, tf2_py
from geometry_msgs.msg import TransformStamped
given = json.load(sys.stdin)
core = tf2_py.BufferCore(rospy.Duration(1000000))
for parent, child, time, place, turn, static in given["sent"]:
    one = TransformStamped()
    one.header.frame_id, one.child_frame_id = parent, child
    one.header.stamp = rospy.Time(time // 10**9, time % 10**9)
    v, q = one.transform.translation, one.transform.rotation
    (v.x, v.y, v.z), (q.x, q.y, q.z, q.w) = place, turn
    (core.set_transform_static if static else core.set_transform)(one, "test")
found = []
for target, source, time in given["asked"]:
    try:
        when = rospy.Time(0) if time is None else rospy.Time(time // 10**9, time % 10**9)
        one = core.lookup_transform_core(target, source, when)
        v, q = one.transform.translation, one.transform.rotation
        found.append([[v.x, v.y, v.z], [q.x, q.y, q.z, q.w], one.header.stamp.to_nsec()])
    except tf2_py.TransformException:
        found.append(None)
json.dump(found, sys.stdout)
"""


def tf2(sent: Sequence[Sent], asked: Sequence[tuple[str, str, int | None]]) -> list[Any]:
    """Return position, quaternion and ns that the genuine tf2 finds for each target, source and time, or None.

    Skips the test if tf2 is not installed.
    """
    genuine("geometry_msgs")
    # tf2 in Python passes times as float64: they are exact near 0 only.
    zero = min(one.time for one in sent) - 100 * 10**9
    moved = [list(one._replace(time=one.time - zero)) for one in sent]
    when = [(target, source, None if time is None else time - zero) for target, source, time in asked]
    given = json.dumps({"sent": moved, "asked": when})
    if subprocess.run([SYSTEM, "-c", "import tf2_py, rospy"], capture_output=True).returncode:
        pytest.skip(f"no tf2_py in {SYSTEM} (Debian: python3-tf2)")
    done = subprocess.run([SYSTEM, "-c", _TF2], input=given.encode(), capture_output=True)
    assert not done.returncode, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return [one and [*one[:2], one[2] + zero] for one in found]
