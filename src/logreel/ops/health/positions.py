"""Positions that jump farther than any vehicle can move."""

from __future__ import annotations

from collections.abc import Iterator

from logreel.errors import LogError
from logreel.lenses.detection import Detection, Detector, NotAssessed
from logreel.lenses.meaning import since_start
from logreel.log.log import Log
from logreel.meaning.tracks import JUMP_M, JUMP_SPEED, is_of_robot, length_text, track_of
from logreel.ops.health.sensors import MESSAGES, sensors

#: Jumps of one channel whose intervals are listed.
LISTED = 20


def detect(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each channel of positions that jumps, with the interval of its farthest jump."""
    looked = False
    for ch, lenses in sensors(log):
        for lens in lenses:
            try:
                track = track_of(ch, lens) if is_of_robot(lens) else None
            except LogError:
                continue
            if track is None or len(track) < MESSAGES:
                continue
            looked = True
            way = track.way
            if way.jumps:
                far = way.jumps[0]
                more = f", the farthest of {len(way.jumps)} jumps" if len(way.jumps) > 1 else ""
                yield Detection(
                    f"{ch.topic} jumps by {length_text(far.metres)} at {since_start(far.end, log)}{more}",
                    "error",
                    far.start,
                    far.end,
                    (ch.topic,),
                    {
                        "metres": far.metres,
                        "jumps": len(way.jumps),
                        "intervals_ns": [[jump.start, jump.end] for jump in way.jumps[:LISTED]],
                    },
                    f"a step of {JUMP_M:.0f} m at {JUMP_SPEED:.0f} m/s",
                    "logreel",
                )
            break
    if not looked:
        yield NotAssessed("the log has no positions")


JUMPS = Detector(
    "position-jumps", f"steps of positions above {JUMP_M:.0f} m and {JUMP_SPEED:.0f} m/s", detect
)
