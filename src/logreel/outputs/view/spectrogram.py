"""The power of each frequency of a field over time."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from starlette.responses import Response
from starlette.types import ASGIApp

from logreel.errors import UsageError
from logreel.io.arrays import F64, I64
from logreel.meaning.columns import Window
from logreel.meaning.curves import spectral_density
from logreel.outputs.http.routes import BYTES, Parameters, RequestParameter, Route, number
from logreel.outputs.view.columns import wanted_series
from logreel.outputs.view.limits import SPECTROGRAM
from logreel.outputs.view.parameters import FROM, ONE_SERIES, TO

if TYPE_CHECKING:
    from logreel.outputs.view.session import Session
    from logreel.outputs.view.view_log import ViewLog

#: Columns of the picture that are computed at once, between two looks at whether the client still waits.
AT_ONCE = 64
#: Values of a picture: this many decibels below the greatest power are the darkest ones.
RANGE_DB = 80.0
#: Samples of a spectrum at least, without which it says nothing.
LEAST = 16
_SIZE = tuple(
    RequestParameter(name, number(LEAST // 2, SPECTROGRAM), "Pixels", 256) for name in ("width", "height")
)


def routes() -> list[Route]:
    """Return the request for a spectrogram."""
    return [Route("/api/logs/{log}/spectrogram", _spectrogram, (*ONE_SERIES, FROM, TO, *_SIZE), BYTES)]


def _spectrogram(session: Session, log: ViewLog, given: Parameters) -> ASGIApp:
    lo, hi = given.interval()
    width, height = given.get("width"), given.get("height")
    (wanted,) = wanted_series(given)
    column = log.columns.get(wanted, given)
    window = Window(column, log.clock(lo), log.clock(hi))
    height = min(height, len(window) // 2)
    if height < LEAST // 2:
        raise UsageError(f"a spectrogram needs at least {LEAST} samples, here are {len(window)}")
    rows = _segments(window, width, 2 * height)
    power = np.empty((len(rows), height))
    times = np.empty((len(rows), 2), np.int64)
    steps: list[F64] = []
    for at in range(0, len(rows), AT_ONCE):
        some = rows[at : at + AT_ONCE]
        known, where = np.unique(some, return_inverse=True)
        with log.reading(column, given):
            t, v = column.read(known)
        t, v = t[where].reshape(some.shape), v[where].reshape(some.shape)
        times[at : at + len(some)] = t[:, [0, -1]]
        steps.append(np.diff(t, axis=1).ravel().astype(np.float64))
        power[at : at + len(some)] = spectral_density(v)
    step = float(np.median(np.concatenate(steps)))
    if not step > 0:
        raise UsageError("the samples have no distance in time")
    picture, least, most = in_decibels(power * (step / 1e9))
    middle = times.mean(axis=1) - log.start
    half = (middle[-1] - middle[0]) / (2 * max(1, len(rows) - 1))
    head = {
        "from": int(middle[0] - half),
        "to": int(middle[-1] + half),
        "frequency_max": 0.5e9 / step,
        "width": len(rows),
        "height": height,
        "unit": f"({column.unit})²/Hz" if column.unit else "",
        "least": least,
        "most": most,
    }
    text = json.dumps(head).encode()
    return Response(
        struct.pack("<I", len(text)) + text + picture.tobytes(), media_type="application/octet-stream"
    )


def _segments(window: Window, width: int, samples: int) -> I64:
    """Return int64[w, samples]: rows of overlapping or distant segments that are evenly spread, w <= width."""
    count = len(window) - samples + 1
    first = np.unique(np.linspace(0, count - 1, min(width, count)).astype(np.int64))
    rows: I64 = window.first + first[:, None] + np.arange(samples)
    return rows


def in_decibels(power: F64) -> tuple[NDArray[np.uint8], float, float]:
    """Return uint8[h, w], lowest frequency first, with the decibels that 0 and 255 mean."""
    most = float(10 * np.log10(power.max())) if power.max() > 0 else 0.0
    least = most - RANGE_DB
    with np.errstate(divide="ignore"):
        decibels = 10 * np.log10(power)
    scaled = np.clip((decibels - least) * (255 / RANGE_DB), 0, 255)
    return np.ascontiguousarray(scaled.T.astype(np.uint8)), least, most
