"""Motion of the sample flight as functions of time: take-off, a figure of eight, landing."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

GRAVITY = 9.80665
#: The invented take-off place: degrees, metres above sea level, which is GEOID_M above the ellipsoid.
HOME_LAT, HOME_LON, HOME_ALT_M, GEOID_M = 47.9031862, 11.2874413, 604.3, 46.9
METRES_PER_DEGREE = 111_194.93

# Begin and end of the parts of the flight, as shares of the whole log.
ARMED, CLIMB, EIGHT, DESCENT, LANDED, DISARMED = 0.004, (0.06, 0.20), (0.21, 0.78), (0.79, 0.94), 0.945, 0.97


@dataclass(frozen=True)
class State:
    """State of the vehicle at n times: north-east-down, metres and seconds; body axes forward-right-down.

    position, velocity, acceleration   float64[n, 3], in the local frame
    q                                  float64[n, 4], w x y z, body to local
    rates, force                       float64[n, 3], rad/s and specific force in m/s², in body axes
    heading, thrust                    float64[n], rad; share of full thrust
    flying, armed                      bool[n]
    """

    position: Floats
    velocity: Floats
    acceleration: Floats
    q: Floats
    rates: Floats
    force: Floats
    heading: Floats
    thrust: Floats
    flying: NDArray[np.bool_]
    armed: NDArray[np.bool_]


def _ease(u: Floats) -> Floats:
    """Return a smooth step from 0 to 1, with velocity and acceleration 0 at both ends."""
    u = np.clip(u, 0.0, 1.0)
    return np.asarray(u * u * u * (10.0 + u * (6.0 * u - 15.0)))


class Motion:
    """Motion of a flight of *seconds*; short flights are small, so that accelerations stay plausible."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.laps = max(1, round(seconds / 60.0))
        size = min(1.0, (seconds / 60.0) ** 2)
        self.height, self.width = 12.0 * size, 24.0 * size

    def _part(self, t: Floats, part: tuple[float, float]) -> Floats:
        begin, end = part[0] * self.seconds, part[1] * self.seconds
        return _ease((t - begin) / (end - begin))

    def _turn(self, t: Floats) -> Floats:
        return np.asarray(2.0 * math.pi * self.laps * self._part(t, EIGHT))

    def position(self, t: Floats) -> Floats:
        """Return metres north, east and down of the take-off place at *t* seconds: float64[n, 3]."""
        turn = self._turn(t)
        down = -self.height * (self._part(t, CLIMB) - self._part(t, DESCENT))
        return np.stack((self.width * np.sin(turn), 0.5 * self.width * np.sin(2.0 * turn), down), axis=1)

    def heading(self, t: Floats) -> Floats:
        """Return the heading in rad from north: along the path, also where the speed is 0."""
        turn = self._turn(t)
        return np.asarray(np.arctan2(np.cos(2.0 * turn), np.cos(turn)))

    def _attitude(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        """Return rotation matrices (columns are body axes), velocity and acceleration at *t* seconds."""
        h = 2e-3
        before, here, after = self.position(t - h), self.position(t), self.position(t + h)
        velocity = (after - before) / (2 * h)
        acceleration = (after - 2.0 * here + before) / (h * h)
        # A multirotor pushes along its own z axis only: that axis must oppose the wanted specific force.
        z = np.array((0.0, 0.0, GRAVITY)) - acceleration
        z /= np.linalg.norm(z, axis=1, keepdims=True)
        heading = self.heading(t)
        y = np.cross(z, np.stack((np.cos(heading), np.sin(heading), np.zeros_like(heading)), axis=1))
        y /= np.linalg.norm(y, axis=1, keepdims=True)
        return np.stack((np.cross(y, z), y, z), axis=2), velocity, acceleration

    def at(self, t: Floats) -> State:
        """Return the State at *t* seconds after the start of the log: float64[n]."""
        matrix, velocity, acceleration = self._attitude(t)
        h = 4e-3
        turn = np.einsum("nji,njk->nik", self._attitude(t - h)[0], self._attitude(t + h)[0])
        rates = np.stack((turn[:, 2, 1], turn[:, 0, 2], turn[:, 1, 0]), axis=1) / (2 * h)
        local_force = acceleration - np.array((0.0, 0.0, GRAVITY))
        flying = (t > CLIMB[0] * self.seconds) & (t < DESCENT[1] * self.seconds)
        armed = (t > ARMED * self.seconds) & (t < DISARMED * self.seconds)
        load = np.linalg.norm(local_force, axis=1) / GRAVITY
        return State(
            position=self.position(t),
            velocity=velocity,
            acceleration=acceleration,
            q=_quaternion(matrix),
            rates=rates,
            force=np.einsum("nji,nj->ni", matrix, local_force),
            heading=self.heading(t),
            thrust=np.where(flying, 0.42 * load, np.where(armed, 0.05, 0.0)),
            flying=flying,
            armed=armed,
        )


def _quaternion(matrix: Floats) -> Floats:
    """Return w x y z of rotation matrices, w ≥ 0; the sign flips where the heading passes south, as in real logs."""
    w = 0.5 * np.sqrt(np.maximum(0.0, 1.0 + np.trace(matrix, axis1=1, axis2=2)))
    w = np.maximum(w, 1e-6)
    x = (matrix[:, 2, 1] - matrix[:, 1, 2]) / (4.0 * w)
    y = (matrix[:, 0, 2] - matrix[:, 2, 0]) / (4.0 * w)
    z = (matrix[:, 1, 0] - matrix[:, 0, 1]) / (4.0 * w)
    q = np.stack((w, x, y, z), axis=1)
    return np.asarray(q / np.linalg.norm(q, axis=1, keepdims=True))
