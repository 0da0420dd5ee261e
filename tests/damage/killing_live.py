"""Kill recorders of live sources, which split their log, and check all files that remain.

Run as ``python killing_live.py FORMAT RUNS SEED``. A source feeds the recorder, which announces after every flush how
many messages it has written. Those must be in the parts: all parts that have their names are sound, and the newest one,
``.active``, is checked as it was left, cut after the flushed bytes, and with zeros there. Prints the failures.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from killing import ANNOUNCED, SHM, SOAK, START, Key, Replay, Simple, content_of, killed, left

import logreel
from logreel.errors import UnknownFormatError
from logreel.layout import encode_message  # noqa: F401 - loaded before there are forks
from logreel.ops.record import Feed
from logreel.ops.record import record as recording
from logreel.ops.record import session as sessions
from support.formats import builtin_formats

#: Seconds after which a recorder is killed at the latest.
LATEST = 0.06
NUMBER = re.compile(r"_(\d+)\.")


class Source:
    """A thread that sends the content, sometimes slowly."""

    name = "content"

    def __init__(self, content: Simple | Replay, most: int, seed: int) -> None:
        self._content, self._most, self._rng = content, most, random.Random(seed)

    def run(self, feed: Feed) -> None:
        if isinstance(self._content, Simple):
            made = {"simple": feed.channel("simple", Simple.layout)}
        else:
            made = {ch.topic: feed.channel(ch.topic, ch.schema, ch.metadata) for ch in self._content.channels}
        feed.settled = True
        for n in range(self._most):
            if isinstance(self._content, Simple):
                topic, moment, data = "simple", START + n * 1_000_000, {"n": n, "x": n / 2}
            else:
                topic, moment, data = self._content.message(n)
            channel = made[topic]
            if channel is not None:
                feed.put(channel, moment, data, wait=True)
            if self._rng.random() < 0.01:
                time.sleep(0.0005)


class Announcing(sessions.RecordingSession):
    """A session that flushes often, and says after each flush how many messages are safe."""

    pipe = -1

    def _do_regularly(self) -> None:
        super()._do_regularly()
        writer = self._writer
        writer.flush()
        found = os.stat(f"{writer.path}.active")
        os.write(self.pipe, ANNOUNCED.pack(self.messages, found.st_size, found.st_ino))


def empty_size(folder: Path, name: str, content: Simple | Replay) -> int:
    """Return the bytes of a log without messages."""
    path = folder / f"empty{builtin_formats()[name].suffixes[0]}"
    with logreel.create(path, format=name) as w:
        content.begin(w)
    return path.stat().st_size


def recorder(
    path: Path, name: str, content: Simple | Replay, seed: int, announced: int, empty: int = 0
) -> None:
    """Record until killed, or until the content ends.

    empty  bytes that each part has without messages
    """
    rng = random.Random(seed)
    Announcing.pipe = announced
    sessions.GATHER = 0.001
    sys.modules["logreel.ops.record.record"].RecordingSession = Announcing  # type: ignore[attr-defined]
    most = rng.randrange(1, content.most)
    recording(
        Source(content, most, seed),
        path,
        format=name,
        flush_every=None,
        split_size=empty + rng.choice((2000, 10_000, 40_000)) if seed % 8 else None,
        split_duration=10**8 if seed % 3 == 0 else None,
    )


def number_of(path: Path) -> int:
    found = NUMBER.search(path.name)
    return int(found[1]) if found else 0


def wrong(how: str, older: Counter[Key], newest: bytes, due: Counter[Key], content: Simple | Replay) -> str:
    """Return a description if messages are missing or doubled in the parts, else an empty text."""
    found = older.copy()
    # The newest part may have nothing yet, not even a header.
    with contextlib.suppress(UnknownFormatError):
        found += content.found(logreel.open(newest))
    if due - found:
        return f"{(due - found).total()} of {due.total()} messages are gone"
    # Zeros inside of the last message make it another message number 0.
    if isinstance(content, Simple) and how == "as it is" and max(found.values(), default=0) > 1:
        return f"{found.most_common(1)} is there more than once"
    return ""


def main() -> None:
    """Kill recorders of one format."""
    name, runs, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    bad: list[Any] = []
    announced = splits = 0
    with tempfile.TemporaryDirectory(dir=SHM) as where:
        content = content_of(name, Path(where))
        # In a soak, parts of some formats are full with their first message: hundreds of them, which takes long.
        record = partial(recorder, empty=0 if SOAK else empty_size(Path(where), name, content))
        for run in range(seed, seed + runs):
            folder = Path(where) / str(run)
            folder.mkdir()
            count, size, file = killed(
                folder / f"a{builtin_formats()[name].suffixes[0]}", name, content, run, record, LATEST
            )
            announced += count > 0
            # For a moment, a file has both its temporary and its final name. Hidden files were never announced.
            found = [path for path in sorted(folder.iterdir()) if path.name[0] != "."]
            parts = sorted({path.stat().st_ino: path for path in found}.values(), key=number_of)
            splits += len(parts) > 1
            if not parts:
                bad += [(run, "there is no file")] * (count > 0)
                continue
            older = Counter[Key]()
            for path in parts:
                if path != parts[-1] or path.suffix != ".active":
                    log = logreel.open(path)
                    if path.suffix != ".active" and log.problems:
                        bad.append((run, f"{path.name} has its name, but is not sound"))
                    older += content.found(log) if path != parts[-1] else Counter()
            for how, data in left(parts[-1], size, file, random.Random(run)):
                text = wrong(how, older, data, content.due(count), content)
                bad += [(run, how, text)] if text else []
            shutil.rmtree(folder)
    if bad:
        sys.exit(f"{len(bad)} of {runs} runs: {bad[:5]}")
    if announced < runs // 3 or splits < runs // 5:
        sys.exit(f"only {announced} of {runs} recorders wrote anything, and {splits} came to a second part")
    sys.stdout.write(f"{runs} recorders killed: {announced} had written, {splits} had split\n")


if __name__ == "__main__":
    main()
