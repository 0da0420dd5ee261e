"""Cameras that send one picture again and again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.lenses import Image
from logreel.lenses.detection import Detection, Detector, NotAssessed, runs
from logreel.lenses.meaning import since_start
from logreel.log.log import Channel, Log
from logreel.log.times import SECOND, duration_text
from logreel.ops.health.sensors import sensors

#: Equal pictures one after another, and for this time.
PICTURES, LEAST_NS = 5, SECOND
#: Bytes at the end of a message that are compared, at most half of it; its beginning has the time.
TAIL = 4096


def detect(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each interval in which the pictures of a camera are the same."""
    looked = False
    for ch, found in sensors(log):
        if any(isinstance(lens, Image) for lens in found) and len(ch) >= PICTURES:
            looked = True
            yield from _frozen(ch)
    if not looked:
        yield NotAssessed("no camera has enough pictures")


def _frozen(ch: Channel) -> Iterator[Detection]:
    stamps: list[int] = []
    equal: list[bool] = []
    last = b""
    for message in ch.log.messages(ch.topic):
        tail = bytes(message.data[-min(TAIL, len(message.data) // 2) :])
        equal.append(bool(stamps) and tail == last)
        stamps.append(message.time)
        last = tail
    times, same = np.array(stamps, np.int64), np.array(equal, bool)
    for start, end in runs(times, same):
        count = int(np.count_nonzero(same[(times >= start) & (times <= end)])) + 1
        first = int(np.searchsorted(times, start)) - 1
        begin = int(times[max(first, 0)])
        if count >= PICTURES and end - begin >= LEAST_NS:
            yield Detection(
                f"{ch.topic} shows one picture for {duration_text(end - begin)}"
                f" from {since_start(begin, ch.log)} on",
                "error",
                begin,
                end,
                (ch.topic,),
                {"pictures": count, "duration_ns": end - begin},
                f"{PICTURES} equal pictures over {duration_text(LEAST_NS)}",
                "logreel",
            )


FROZEN = Detector(
    "frozen-camera", f"{PICTURES} equal pictures over {duration_text(LEAST_NS)} or more", detect
)
