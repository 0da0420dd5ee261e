"""Kill writers that write as fast as they can, and count what their readers return of all messages written.

Messages have 200 bytes. A write counts when its call has returned; nothing is flushed by hand, so that this measures
the default of each writer; logreel is measured with ``flush_every=0``, too. Libraries that are not installed are left
out. Run as::

    python tests/damage/kill_fast_writers.py [KILLS]

Prints for each writer: messages written, messages returned, and the lost ones of a kill, median and most.
"""

from __future__ import annotations

import mmap
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import logreel
from logreel import Schema
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, FixedArray, Scalar, Struct
from logreel.write.writer import FLUSH_EVERY

START, STEP, SIZE = 1_700_000_000 * 10**9, 1_000_000, 200
#: Seconds between the first message and the kill, least and most.
SECONDS = 0.5, 2.0
#: Writes messages for ever: path, and what is called after each of them.
Write = Callable[[Path, Callable[[], None]], None]
#: Numbers of the messages that a reader returns, in its order.
Read = Callable[[Path], Iterator[int]]


def payload(n: int) -> bytes:
    """Return a message of SIZE bytes that begins with its number."""
    return n.to_bytes(8, "little") + b"\x5a" * (SIZE - 8)


def logreel_writer(flush_every: float) -> Write:
    """Return a function that writes with logreel."""

    def write(path: Path, done: Callable[[], None]) -> None:
        kind = Layout(
            Struct((Field("n", Scalar("int64")), Field("rest", FixedArray(Scalar("uint8"), SIZE - 8))))
        )
        with logreel.create(path, flush_every=flush_every) as w:
            raw = Schema("simple", "application/octet-stream", "")
            number = w.add_channel("simple", raw if path.suffix == ".bddf" else kind)
            # ULog keeps the time of a message in its payload.
            rest = b"\x5a" * (SIZE - 8) if path.suffix == ".ulg" else None
            for n in range(1 << 62):
                w.write(number, START + n * STEP, payload(n) if rest is None else {"n": n, "rest": rest})
                done()

    return write


def logreel_read(path: Path) -> Iterator[int]:
    """Read with logreel, also what is not finished."""
    log = logreel.open(path if path.exists() else Path(f"{path}.active"))
    if path.suffix == ".bddf":
        yield from (int.from_bytes(one.data[:8], "little") for one in log.messages())
    else:
        yield from (int(n) for n in log["simple"]["n"])


def rosbags_write(path: Path, done: Callable[[], None]) -> None:
    """Write with rosbags."""
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC)
    with Writer(path) as w:
        one = w.add_connection("/simple", "std_msgs/msg/String", typestore=store)
        for n in range(1 << 62):
            w.write(one, START + n * STEP, payload(n))
            done()


def rosbags_read(path: Path) -> Iterator[int]:
    """Read with rosbags."""
    from rosbags.rosbag1 import Reader

    with Reader(path) as r:
        yield from (int.from_bytes(raw[:8], "little") for _, _, raw in r.messages())


def mcap_write(path: Path, done: Callable[[], None]) -> None:
    """Write with mcap."""
    from mcap.writer import Writer

    with path.open("wb") as out:
        w = Writer(out)
        w.start()
        schema = w.register_schema("simple", "", b"")
        channel = w.register_channel("/simple", "", schema)
        for n in range(1 << 62):
            w.add_message(channel, START + n * STEP, payload(n), START + n * STEP)
            done()


def mcap_read(path: Path) -> Iterator[int]:
    """Read with mcap from the front; its reader with an index returns nothing of an unfinished file."""
    from mcap.reader import NonSeekingReader

    with path.open("rb") as file:
        for _, _, message in NonSeekingReader(file).iter_messages(log_time_order=False):
            yield int.from_bytes(message.data[:8], "little")


#: Writers with their readers: name, needed library, suffix.
WRITERS: dict[str, tuple[str, str, Write, Read]] = {
    **{
        f"logreel, {name}{how}": ("logreel", suffix, logreel_writer(flush_every), logreel_read)
        for how, flush_every in (("", FLUSH_EVERY), (", each message flushed", 0.0))
        for name, suffix in (("bag", ".bag"), ("ULog", ".ulg"), ("BDDF", ".bddf"), ("MCAP", ".mcap"))
    },
    "rosbags": ("rosbags", ".bag", rosbags_write, rosbags_read),
    "mcap, read from the front": ("mcap", ".mcap", mcap_write, mcap_read),
}


def killed(path: Path, write: Write, seed: int) -> int:
    """Return how many messages a writer had written when it was killed."""
    shared = mmap.mmap(-1, 8)
    written = memoryview(shared).cast("Q")
    pid = os.fork()
    if not pid:

        def done() -> None:
            written[0] += 1

        with suppress(BaseException):
            write(path, done)
        os._exit(1)
    while not written[0]:
        time.sleep(0.001)
    time.sleep(random.Random(seed).uniform(*SECONDS))
    os.kill(pid, signal.SIGKILL)
    assert os.WIFSIGNALED(os.waitpid(pid, 0)[1]), "the writer failed"
    return written[0]


def main() -> None:
    """Kill all writers."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    for name, (library, suffix, write, read) in WRITERS.items():
        if find_spec(library) is None:
            continue
        written, returned, lost = 0, 0, []
        with tempfile.TemporaryDirectory() as folder:
            for seed in range(kills):
                path = Path(folder) / f"{seed}{suffix}"
                count, found = killed(path, write, seed), list[int]()
                # What was read before an error counts.
                with suppress(Exception):
                    found.extend(read(path))
                # The message in flight may be there, too.
                assert found == sorted(set(found)), name
                assert all(n <= count for n in found), name
                written, returned = written + count, returned + min(len(found), count)
                lost.append(max(0, count - len(found)))
                for one in Path(folder).iterdir():
                    one.unlink()
        sys.stdout.write(
            f"{name}: {written} written, {returned} returned ({returned / written:.4f}), "
            f"lost for each kill: median {statistics.median(lost):.0f}, most {max(lost)}\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
