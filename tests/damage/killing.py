"""Kill recorders at random moments, and check the files that remain. Run as ``python killing.py FORMAT RUNS SEED``.

The recorders are forks of this process, which has imported everything once. After every flush, each announces the
number of messages that it has written and the size of its file. These messages must be in the file: as it was left,
cut after the flushed bytes, and with zeros there, as after a power failure. Prints the failures.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import logreel
from logreel.errors import DamagedError, DefinitionError, UnsupportedError
from logreel.layout import encode_message  # noqa: F401 - loaded before there are forks
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Scalar, Struct
from logreel.ops.rewrite.recover import recover

sys.path[:0] = [str(Path(__file__).parents[1])]
from support.formats import builtin_formats, sample_log  # noqa: E402
from support.harness.limits import ended  # noqa: E402

#: Folder in memory, where calls of the system take less time; a process that is killed loses nothing of what it wrote.
SHM = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
START = 1_700_000_000 * 10**9
ANNOUNCED = struct.Struct("<QQQ")
#: `make soak` records longer; a shorter recording comes to all that a longer one does, and to its end more often.
SOAK = "LOGREEL_SOAK" in os.environ
#: Seconds after which a recorder is killed at the latest, that part of them if it has written, and messages after which
#: it closes its file.
LATEST, WRITTEN, MOST = (0.03, 1.0, 5000) if SOAK else (0.03, 0.3, 800)
#: Topic and content of a message.
Key = tuple[str, bytes]


class Simple:
    """Numbered messages of one channel, for formats that define types."""

    layout = Layout(Struct((Field("n", Scalar("int64")), Field("x", Scalar("float64")))))
    most = MOST

    def begin(self, w: logreel.Writer) -> None:
        self._number = w.add_channel("simple", self.layout)

    def write(self, w: logreel.Writer, n: int) -> None:
        w.write(self._number, START + n * 1_000_000, {"n": n, "x": n / 2})

    def due(self, count: int) -> Counter[Key]:
        return Counter(("simple", b"%d" % n) for n in range(count))

    def found(self, log: logreel.Log) -> Counter[Key]:
        # If zeros begin inside a message, its header may state a message without a payload …
        found = Counter[Key]()
        for m in log.messages():
            # … which cannot be decoded in formats with text payloads.
            with contextlib.suppress(DamagedError):
                if len(m.data):
                    found[m.channel.topic, b"%d" % m.decode()["n"]] += 1
        return found


class Replay:
    """The messages of the sample, unchanged, for formats that cannot define types."""

    def __init__(self, sample: bytes) -> None:
        self._log = logreel.open(sample)
        # Synthetic channels are not written: the reader builds them again.
        rules = self._log.index.rules
        found = [ch.topic for ch in self._log.match(None) if rules[ch.number].synthetic is None]
        some = itertools.islice(self._log.messages(found, order="file"), MOST)
        self._messages = [(m.channel.topic, m.time, bytes(m.data)) for m in some]
        self.most = len(self._messages)
        self.channels = [self._log[topic] for topic in found]

    def message(self, n: int) -> tuple[str, int, bytes]:
        return self._messages[n]

    def begin(self, w: logreel.Writer) -> None:
        self._numbers = {
            ch.topic: w.add_channel(ch.topic, ch.schema, ch.metadata) for ch in self._log.match(None)
        }

    def write(self, w: logreel.Writer, n: int) -> None:
        if n < len(self._messages):
            topic, moment, data = self._messages[n]
            w.write(self._numbers[topic], moment, data)

    def __len__(self) -> int:
        return len(self._messages)

    def due(self, count: int) -> Counter[Key]:
        return Counter((topic, self._stable(topic, data)) for topic, _, data in self._messages[:count])

    def found(self, log: logreel.Log) -> Counter[Key]:
        return Counter(
            (m.channel.topic, self._stable(m.channel.topic, bytes(m.data))) for m in log.messages()
        )

    def _stable(self, topic: str, data: bytes) -> bytes:
        """Return the part of a payload that stays: the duration of a frame is filled in when the next one begins."""
        # Zeros may lie in the name of a topic, where a format keeps that with each message.
        is_frame = topic in self._log and self._log[topic].schema == logreel.Schema("frames", "carla")
        return data[:8] + data[16:] if is_frame else data


def content_of(name: str, folder: Path) -> Simple | Replay:
    """Return content that a format can hold."""
    w = logreel.create(folder / "try", format=name)
    try:
        Simple().begin(w)
    except (DefinitionError, UnsupportedError):
        return Replay(sample_log(name))
    finally:
        w.discard()
    return Simple()


def recorder(path: Path, name: str, content: Simple | Replay, seed: int, announced: int) -> None:
    """Record until killed, or close after MOST messages."""
    rng, active = random.Random(seed), Path(f"{path}.active")
    with logreel.create(path, format=name, flush_every=rng.choice((None, 0.0, 0.001))) as w:
        content.begin(w)
        n, most = 0, rng.randrange(1, MOST)
        while n < most:
            for _ in range(min(most - n, rng.choice((1, 7, 300)))):
                content.write(w, n)
                n += 1
            w.flush(sync=rng.random() < 0.02)
            now = active.stat()
            os.write(announced, ANNOUNCED.pack(n, now.st_size, now.st_ino))


#: Records until it is killed: path, format, content, seed, and the handle for announcements.
Recorder = Callable[[Path, str, Simple | Replay, int, int], None]


def killed(
    path: Path,
    name: str,
    content: Simple | Replay,
    seed: int,
    record: Recorder | None = None,
    latest: float | None = None,
) -> tuple[int, int, int]:
    """Return the last announcement of a killed recorder: number of messages, size and inode of its file.

    record  function that records until it is killed; None: ``recorder``
    latest  seconds until the kill at most; None: LATEST
    """
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        code = 1
        with contextlib.suppress(BaseException):
            os.close(read)
            (record or recorder)(path, name, content, seed, write)
            code = 0
        os._exit(code)
    os.close(write)
    # Most recorders are killed after their first announcement, the others at any time.
    announced = os.read(read, ANNOUNCED.size) if seed % 4 else b""
    latest = (LATEST if latest is None else latest) * (WRITTEN if announced else 1)
    time.sleep(random.Random(~seed).random() * latest)
    os.kill(pid, signal.SIGKILL)
    status = ended(pid)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"the recorder failed: {status}"
    with open(read, "rb") as pipe:
        announced += pipe.read()
    whole = len(announced) // ANNOUNCED.size * ANNOUNCED.size
    count, size, file = ANNOUNCED.unpack_from(announced, whole - ANNOUNCED.size) if whole else (0, 0, 0)
    return count, size, file


def left(path: Path, size: int, file: int, rng: random.Random) -> Iterator[tuple[str, bytes]]:
    """Yield the file as it is, and as a power failure may leave it.

    A file that replaced the flushed one (formats with an index in front) was on the disk before.
    """
    data = path.read_bytes()
    yield "as it is", data
    if path.suffix == ".active" and path.stat().st_ino == file and size <= len(data):
        cut = rng.randint(size, len(data))
        yield f"cut at {cut}", data[:cut]
        yield f"zeros from {cut}", data[:cut] + bytes(-cut % 4096 + rng.choice((0, 4096)))


def wrong(data: bytes, due: Counter[Key], content: Simple | Replay, saved: Path) -> str:
    """Return a description if messages are missing in a file, else an empty text."""
    if not due:
        return ""
    log = logreel.open(data)
    found = content.found(log)
    if missing := due - found:
        return f"{missing.total()} of {due.total()} messages are gone"
    done = recover(log, saved, force=True)
    again = logreel.open(saved)
    if again.problems or content.found(again) != found:
        return f"recovered it is not the same: {done.messages} messages, {again.problems[:1]}"
    return ""


def main() -> None:
    """Kill recorders of one format."""
    name, runs, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    bad: list[Any] = []
    announced = 0
    with tempfile.TemporaryDirectory(dir=SHM) as where:
        folder = Path(where)
        content = content_of(name, folder)
        for run in range(seed, seed + runs):
            path = folder / f"{run}{builtin_formats()[name].suffixes[0]}"
            count, size, file = killed(path, name, content, run)
            announced += count > 0
            kept = path if path.exists() else Path(f"{path}.active")
            if not kept.exists():
                bad += [(run, "there is no file")] * (count > 0)
                continue
            for how, data in left(kept, size, file, random.Random(run)):
                text = wrong(data, content.due(count), content, folder / f"saved{path.suffix}")
                bad += [(run, how, text)] if text else []
            kept.unlink()
    if bad:
        sys.exit(f"{len(bad)} of {runs} runs: {bad[:5]}")
    if announced < runs // 3:
        sys.exit(f"only {announced} of {runs} recorders came to write anything")


if __name__ == "__main__":
    main()
