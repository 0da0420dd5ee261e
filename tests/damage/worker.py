"""Read damaged logs in a separate process, one after another, so that a crash or a hang affects one case only.

Speaks JSON lines: a case on standard input, its outcome on standard output. Run as ``python worker.py MIB``.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import pyarrow as pa  # noqa: E402
import pytest  # noqa: E402
from bombs import BOMBS  # noqa: E402
from full_read import full_read  # noqa: E402
from mutations import mutate  # noqa: E402
from ulog_byte_accounting import assert_accounted  # noqa: E402

from logreel.index import block_table  # noqa: E402
from support.samples.ulog import builder  # noqa: E402

#: Bytes of a block where every kind of damage shall be at the edge of one.
SMALL_BLOCK = 256


@cache
def base(name: str) -> bytes:
    """Return a valid log by name: a sample of the package, or a file."""
    made = {"tiny": builder.tiny, "flight": lambda: builder.flight(2)}
    return made[name]() if name in made else Path(name).read_bytes()


@contextmanager
def small_blocks() -> Iterator[None]:
    """Collect records in blocks of SMALL_BLOCK bytes, which would grow with the number of channels."""
    builder, declare = block_table.BlockBuilder, block_table.BlockBuilder.declare

    def declare_small(self: block_table.BlockBuilder, channels: int) -> None:
        declare(self, channels)
        self._block = SMALL_BLOCK

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_table, "BLOCK", SMALL_BLOCK)
        patch.setattr(block_table, "MAX_BLOCK", SMALL_BLOCK)
        patch.setattr(builder, "declare", declare_small)
        yield


def _memory(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) << 10
    raise KeyError(key)


def _case(kind: str, name: str, seed: int) -> dict[str, object]:
    data = b"" if kind == "fault" else BOMBS[name](seed) if kind == "bomb" else mutate(base(name), seed)
    size = len(data) if isinstance(data, bytes) else Path(data).stat().st_size
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak of resident memory
    before, begin = _memory("VmRSS"), time.process_time()
    log = None
    try:
        with small_blocks() if kind == "blocks" else nullcontext():
            log = full_read(data) if kind != "fault" else _fault(name, seed)
        outcome = "refused" if log is None else "problems" if log.problems else "clean"
        text = "" if log is None else " ".join(p.code for p in log.problems[:20])
    except BaseException as error:
        outcome, text = type(error).__name__, traceback.format_exc(limit=-4)
    # Processor time: the machine may be busy with something else.
    used, grown = time.process_time() - begin, max(0, _memory("VmHWM") - before)
    try:
        if log is not None:
            assert_accounted(log)
    except AssertionError as error:
        outcome, text = "unaccounted", str(error)
    return {"outcome": outcome, "text": text, "seconds": round(used, 4), "size": size, "grown": grown}


def _fault(name: str, amount: int) -> None:
    """Crash, hang for *amount* ms, or use that many MiB deliberately, to test the harness."""
    match name:
        case "hang":
            end = time.process_time() + amount / 1000
            while time.process_time() < end:
                pass
        case "die":
            ctypes.string_at(0)
        case "hoard":
            assert len(b"\1" * (amount << 20))
        case "raise":
            raise KeyError(amount)


def main() -> None:
    """Answer cases until standard input ends."""
    faulthandler.enable()
    warnings.simplefilter("error")
    # Threads would each reserve address space, which the limit below counts.
    pa.set_cpu_count(1)
    full_read(builder.tiny())
    room = int(sys.argv[1]) << 20
    if room:
        resource.setrlimit(resource.RLIMIT_AS, (_memory("VmSize") + room,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin:
        print(json.dumps(_case(*json.loads(line))), flush=True)  # noqa: T201 - the answer to the parent


if __name__ == "__main__":
    main()
