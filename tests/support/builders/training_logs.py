"""Logs of a robot with a camera whose pictures say which one they are, for tests of training data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import logreel
from logreel.outputs.media.pictures import png

SECOND = 10**9
START = 1_700_000_000 * SECOND
#: Size of pictures, and how many different ones there are.
WIDTH, HEIGHT, KINDS = 64, 48, 24


def picture(number: int) -> NDArray[np.uint8]:
    """Return RGB pixels whose brightness on the left says *number*, and on the right its rest."""
    pixels = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    pixels[:, : WIDTH // 2] = 10 * (number % KINDS) + 8
    pixels[:, WIDTH // 2 :] = 60 * (number // KINDS % 4) + 20
    return pixels


def number_of(pixels: NDArray[Any]) -> int:
    """Return the number that a picture says, [height, width, 3] from 0 to 255."""
    left = float(pixels[8:-8, 8 : WIDTH // 2 - 8].mean())
    right = float(pixels[8:-8, WIDTH // 2 + 8 : -8].mean())
    return round((left - 8) / 10) + KINDS * round((right - 20) / 60)


def write_robot(
    path: Path,
    seconds: float = 3.0,
    *,
    seed: int = 1,
    gap: tuple[float, float] = (0.0, 0.0),
    broken: tuple[int, ...] = (),
    encoding: str = "png",
    start: int = START,
) -> Path:
    """Write a bag: ``/state`` at 50 Hz, ``/command`` at 20 Hz, ``/camera`` at 10 Hz, all with jitter; return *path*.

    gap       seconds between which ``/state`` says nothing
    broken    numbers of pictures that cannot be decoded
    encoding  ``png``, or ``rgb8`` for raw pixels
    """
    rng = np.random.default_rng(seed)

    def times(rate: float, jitter: float) -> list[int]:
        count = int(seconds * rate)
        at = np.arange(count) / rate + rng.uniform(-jitter, jitter, count) + 0.001
        return [start + max(0, int(t * SECOND)) for t in at]

    todo: list[tuple[int, str, dict[str, Any]]] = []
    for t in times(50, 0.004):
        s = (t - start) / SECOND
        if not gap[0] <= s < gap[1]:
            todo.append((t, "/state", {"x": s, "y": float(np.sin(s)), "z": 1.0}))
    for t in times(20, 0.01):
        todo.append((t, "/command", {"x": 10 * (t - start) / SECOND, "y": -1.0, "z": 0.0}))
    for i, t in enumerate(times(10, 0.01)):
        pixels = picture(i)
        if encoding == "rgb8":
            todo.append(
                (
                    t,
                    "/camera",
                    {
                        "height": HEIGHT,
                        "width": WIDTH,
                        "encoding": "rgb8",
                        "step": 3 * WIDTH,
                        "data": pixels.tobytes(),
                    },
                )
            )
        else:
            data = png(pixels)
            todo.append((t, "/camera", {"format": "png", "data": data[:-30] if i in broken else data}))
    kind = "sensor_msgs/Image" if encoding == "rgb8" else "sensor_msgs/CompressedImage"
    with logreel.create(path) as w:
        schemas = {"/state": "geometry_msgs/Vector3", "/command": "geometry_msgs/Vector3", "/camera": kind}
        channels = {
            topic: w.add_channel(topic, logreel.Schema(name, "ros1msg", ""))
            for topic, name in schemas.items()
        }
        for t, topic, fields in sorted(todo, key=lambda one: one[0]):
            w.write(channels[topic], t, fields)
    return path


def robot_spec(**changes: Any) -> dict[str, Any]:
    """Return a specification of features of such a log."""
    spec: dict[str, Any] = {
        "rate": 10,
        "task": "move",
        "robot": "cart",
        "sync": {"max_error": "60ms"},
        "features": {
            "observation.state": {
                "fields": ["/state.x", "/state.y"],
                "names": ["x", "y"],
                "method": "linear",
            },
            "action": {"fields": ["/command.x"], "method": "previous"},
            "observation.images.front": {"pictures": "/camera"},
        },
    }
    return spec | changes
