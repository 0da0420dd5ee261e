"""Record windows for an hour of log time, as fast as it goes, and measure memory and disk in each tenth of it.

Run as ``python ring_for_an_hour.py RATE``: messages per second of log time, of which one in ten has 20 kB. The time is
that of the messages, which pass the ring, the triggers and the files of windows as live ones do. A trigger comes every
40 s, and the newest three windows are kept. Prints MB in each tenth, and fails if memory or disk grow.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, Field, Scalar, Struct
from logreel.ops.record import Feed, Ring
from logreel.ops.record import record as recording

VALUE = Layout(Struct((Field("n", Scalar("int64")), Field("x", Scalar("float64")))))
BLOB = Layout(Struct((Field("n", Scalar("int64")), Field("data", Bytes()))))
SECOND = 10**9
START = 1_700_000_000 * SECOND
#: Seconds of the log, between two triggers, and of a window before and after one; windows that are kept.
HOUR, EVERY, BEFORE, AFTER, KEPT = 3600, 40, 20, 10, 3
#: Bytes of a long message, and by how much memory may grow in the second half, which is less than its windows have.
LONG, GROWTH = 20_000, 16 << 20


def memory() -> int:
    """Return the bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Meter:
    """Memory, and bytes of all files, whenever the recorder tells of a window; the source may be far ahead of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.memory: list[int] = []
        self.disk: list[int] = []

    def say(self, text: str) -> None:
        """Measure when a window is complete, before the oldest one is removed."""
        if "is complete" in text:
            self.memory.append(memory())
            self.disk.append(sum(path.stat().st_size for path in self._folder.iterdir()))


class Source:
    """A thread that sends values, long messages and a latched one."""

    name = "hour"

    def __init__(self, rate: int) -> None:
        self._rate = rate

    def run(self, feed: Feed) -> None:
        value, blob, place = (
            feed.channel(n, of) for n, of in (("value", VALUE), ("blob", BLOB), ("place", VALUE))
        )
        assert value is not None
        assert blob is not None
        assert place is not None
        feed.settled = True
        data = os.urandom(LONG + 4096)
        feed.put(place, START, {"n": 7, "x": 7.5}, wait=True)
        for n in range(self._rate * HOUR):
            moment = START + n * SECOND // self._rate
            second = n // self._rate
            # The condition holds for the last second of each interval.
            feed.put(value, moment, {"n": n, "x": float(second % EVERY == EVERY - 1)}, wait=True)
            if n % 10 == 0:
                feed.put(blob, moment, {"n": n, "data": data[n % 4096 :][:LONG]}, wait=True)


def main() -> None:
    """Record for an hour of log time."""
    rate = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "windows"
        folder.mkdir()
        meter = Meter(folder)
        ring = Ring("value.x = 1", f"{BEFORE}s", f"{AFTER}s", max_windows=KEPT)
        done = recording(Source(rate), folder / "a.mcap", ring=ring, buffer_size=4 << 20, say=meter.say)
        files = sorted(folder.iterdir())
        total = sum(path.stat().st_size for path in files)
    tenth = len(meter.memory) // 10
    at_tenths = [max(meter.memory[i * tenth : (i + 1) * tenth]) for i in range(10)]
    shown = ", ".join(f"{size / 1e6:.1f}" for size in at_tenths)
    told = f"{rate * HOUR} messages, {len(meter.memory)} windows; most MB in memory in each tenth: {shown}"
    sys.stdout.write(f"{told}; most on disk: {max(meter.disk) / 1e6:.1f}\n")
    # A window holds the messages of its length; the one that is written comes in addition.
    window = (BEFORE + AFTER + 2) * rate * (LONG // 10 + 60)
    if done.lost or done.skipped:
        sys.exit(f"{done.lost} messages are lost: {done.skipped}")
    if len(files) != KEPT or len(done.windows) != KEPT or done.windows[-1].window.number < HOUR // EVERY - 1:
        sys.exit(f"there are {len(files)} files, the last one is window {done.windows[-1].window.number}")
    # The first half loads what is needed and fills what is kept for the next messages, the slower the fewer there are.
    if max(at_tenths[5:]) > at_tenths[4] + GROWTH:
        sys.exit("memory grows")
    if max(meter.disk) > (KEPT + 1) * window or total > KEPT * window:
        sys.exit(f"more than {KEPT + 1} windows of {window} bytes are on the disk")


if __name__ == "__main__":
    main()
