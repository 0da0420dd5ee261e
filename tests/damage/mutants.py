"""Mutants in number: each is opened, read, checked and recovered within a limit of time.

A mutant is named by its sample (``small_samples.py``, or a language of definitions of ``fuzz/targets.py``) and a seed.
Of four seeds, three change fields and records that a walker of the format finds, and one changes bytes at random. Run
as a program, this tries many of them in child processes, and prints counts for each format, so that one that kills or
blocks a process is named too::

    python tests/damage/mutants.py --minutes 30
    python tests/damage/mutants.py --count 20000
    python tests/damage/mutants.py --sample "bag 2.0" --seed 173 --keep mutant.bag

The last command tries one again, in this process, with the whole traceback. Temporary files lie in TMPDIR: memory is
fastest.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import faulthandler
import functools
import gc
import importlib.util
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType, ModuleType
from typing import Any, TextIO

# For imports of small_samples and of damage.structure.
HERE = Path(__file__).parent
sys.path[:0] = [one for one in map(str, (HERE, HERE.parent)) if one not in sys.path]

from small_samples import CARLA, SMALL  # noqa: E402

import logreel  # noqa: E402
from damage.structure import reseal  # noqa: E402
from damage.structure.definitions import mutate_text  # noqa: E402
from damage.structure.operators import mutate  # noqa: E402
from logreel.errors import LogError  # noqa: E402
from logreel.io.platform import readable  # noqa: E402
from logreel.testing.mutations import mutate as mutate_bytes  # noqa: E402

#: Seconds of all processors for one mutant: far more than any needs, even on a busy machine.
SECONDS = 10.0
#: Seconds of a clock after which a process that stands still is ended: locks use no processor.
STANDSTILL = 300.0
SUFFIXES = {"rosbag": "bag", "ulog": "ulg", "carla": "rec", "koblenz": "vel"}
#: Mutants that a child process tries.
BATCH = 200
#: CARLA has the current release with fewer frames.
LOGS = {name: small for name, small in SMALL.items() if name != "carla"} | CARLA
#: Targets of fuzz/ that take a definition or a compressed stream alone; mutants of logs hardly reach into them.
DEFINITIONS = (
    "ros1_definition",
    "ros2_definition",
    "ulog_definition",
    "koblenz_definition",
    "protobuf_definition",
    "json_schema",
    "json_in_mcap",
    "lz4_frames",
    "bag_chunk",
)


class TooLongError(BaseException):
    """A mutant took longer than SECONDS; no Exception, so that nothing between catches it."""


@contextmanager
def limited(standstill: bool = True) -> Iterator[None]:
    """Raise TooLongError after SECONDS of all processors; where that cannot be, end the process with all stacks.

    standstill  end it from inside; False where another process does so, since this costs 2 ms
    """

    def end(number: int, frame: FrameType | None) -> None:
        raise TooLongError(f"no end after {SECONDS} s of a processor")

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, SECONDS, 1.0)
    if standstill:
        faulthandler.dump_traceback_later(STANDSTILL, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        if standstill:
            faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def use(data: bytes, out: Path, standstill: bool = True) -> None:
    """Open, read, check and recover a log; raise what is no error of logreel, or TooLongError."""
    with limited(standstill):
        with suppress(LogError):
            log = logreel.open(data)
            for one in log.messages(list(log.channels), order="file"):
                with suppress(LogError):
                    one.decode()
            for ch in log.channels.values():
                with suppress(LogError):
                    ch.to_arrow()
            logreel.check(log)
        with suppress(LogError):
            logreel.recover(data, out, force=True)


@functools.cache
def targets() -> ModuleType:
    """Return fuzz/targets.py."""
    spec = importlib.util.spec_from_file_location("fuzz_targets", HERE.parents[1] / "fuzz" / "targets.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@functools.cache
def original(sample: str) -> bytes:
    """Return the bytes of a sound log."""
    return LOGS[sample].make()


@functools.cache
def definitions(sample: str) -> list[bytes]:
    """Return sound definitions of a language."""
    return targets().seeds(sample)


def mutant(sample: str, seed: int, standstill: bool = True) -> bytes:
    """Return a mutant of a sample; checksums of BDDF fit, so that they hide nothing."""
    if sample in DEFINITIONS:
        sound = definitions(sample)
        return (
            mutate_text(sound[seed % len(sound)], seed)
            if seed % 2
            else mutate_bytes(sound[seed % len(sound)], seed)
        )
    small = LOGS[sample]
    if seed % 4 == 3:
        data = mutate_bytes(original(sample), seed)
    else:
        with limited(standstill):
            data = mutate(original(sample), small.walk, seed)
    # Every other random change stays without a checksum that fits.
    return reseal(data) if small.format == "bddf" and data[-4:] == b"FDDB" and seed % 8 != 3 else data


def attempt(sample: str, seed: int, out: Path, standstill: bool = True) -> None:
    """Make a mutant and use it; raise what is no error of logreel, or TooLongError."""
    data = mutant(sample, seed, standstill)
    if sample in DEFINITIONS:
        with limited(standstill):
            targets().TARGETS[sample][0](data)
    else:
        use(data, out, standstill)


def output(sample: str, folder: Path) -> Path:
    """Return a place for the recovered log of a mutant."""
    kind = LOGS[sample].format if sample in LOGS else sample
    return folder / f"out.{SUFFIXES.get(kind, kind)}"


def samples_of_formats() -> dict[str, list[str]]:
    """Return the samples of each format, and the languages of definitions."""
    out: dict[str, list[str]] = defaultdict(list)
    for sample, small in LOGS.items():
        out[small.format].append(sample)
    return out | {"definitions": list(DEFINITIONS)}


class Inline(Executor):
    """An executor that works in the calling thread."""

    def __init__(self, *_: Any) -> None:
        super().__init__()

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        """Work at once."""
        future = Future[Any]()
        try:
            future.set_result(work(*args, **named))
        except Exception as error:
            future.set_exception(error)
        return future


def without_threads() -> None:
    """Let this process work in one thread: on a busy machine a mutant waits longer for threads than it computes."""
    modules = [one for name, one in sys.modules.items() if name.startswith("logreel.")]
    for module in (concurrent.futures, *modules):
        if getattr(module, "ThreadPoolExecutor", None) is ThreadPoolExecutor:
            setattr(module, "ThreadPoolExecutor", Inline)  # noqa: B010 - no attribute that mypy knows


def _child(sample: str, seeds: range, tell: Callable[[object], object]) -> None:
    with TemporaryDirectory() as folder:
        out = output(sample, Path(folder))
        for seed in seeds:
            tell(seed)
            try:
                attempt(sample, seed, out, standstill=False)
            except TooLongError:
                tell([seed, "hang", traceback.format_exc()])
            except Exception:
                tell([seed, "undocumented", traceback.format_exc()])
    tell(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _batch(sample: str, seeds: range) -> tuple[int, int, list[tuple[int, str, str]]]:
    """Try mutants in a child; return how many were tried, its greatest memory in KiB, and what was found."""
    receive, send = os.pipe()
    child = os.fork()
    if not child:
        os.close(receive)
        faulthandler.enable(file=sys.__stderr__)
        # One of four batches uses threads, as users do.
        if seeds.start // BATCH % 4:
            without_threads()
        with os.fdopen(send, "w", buffering=1) as pipe, suppress(BaseException):
            _child(sample, seeds, lambda one: pipe.write(json.dumps(one) + "\n"))
            os._exit(0)
        os._exit(1)
    os.close(send)
    said, at, found, rest = 0, seeds.start, list[tuple[int, str, str]](), b""
    blocked = False
    with os.fdopen(receive, "rb", buffering=0) as pipe:
        while True:
            if not readable(pipe, STANDSTILL + 30):
                os.kill(child, signal.SIGABRT)
                blocked = True
            piece = pipe.read(65536)
            *lines, rest = (rest + piece).split(b"\n")
            for line in map(json.loads, lines):
                if isinstance(line, list):
                    found.append((line[0], line[1], line[2]))
                else:
                    said, at = said + 1, line
            if not piece:
                break
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        found.append((at, "hang" if blocked or status == 1 else "death", f"its process ended with {status}"))
        return at - seeds.start + 1, 0, found
    # The last number is the memory.
    return said - 1, at, found


def say(stream: TextIO, text: str) -> None:
    """Write a line at once."""
    stream.write(text + "\n")
    stream.flush()


def run(count: int, minutes: float, first: int, only: str | None = None) -> int:
    """Try mutants of all formats in turn, *count* of each, or as many as *minutes* allow; print JSON lines.

    only  the format to try; None: all
    """
    # Children need not import what using a log imports, and leave these objects in memory that they share.
    with TemporaryDirectory() as folder:
        for sample in (*LOGS, *DEFINITIONS):
            attempt(sample, 0, output(sample, Path(folder)))
    gc.freeze()
    until, tried, kinds = time.monotonic() + 60 * minutes, Counter[str](), Counter[str]()
    of_sample, memory = Counter[str](), Counter[str]()
    formats = {name: some for name, some in samples_of_formats().items() if only in (None, name)}
    turn = dict.fromkeys(formats, 0)

    def summary() -> str:
        return json.dumps({"mutants": tried, "found": kinds, "KiB": memory, "samples": of_sample})

    while time.monotonic() < until and any(tried[one] < count for one in formats):
        for one, samples in formats.items():
            if tried[one] >= count or time.monotonic() >= until:
                continue
            sample = samples[turn[one] % len(samples)]
            turn[one] += 1
            begin = first + of_sample[sample]
            # Definitions take far less time than a process.
            size = BATCH * (50 if sample in DEFINITIONS else 1)
            done, most, found = _batch(sample, range(begin, begin + min(size, count - tried[one])))
            tried[one] += done
            of_sample[sample] += done
            memory[one] = max(memory[one], most)
            for seed, kind, text in found:
                kinds[kind] += 1
                say(sys.stdout, json.dumps({"sample": sample, "seed": seed, "kind": kind, "text": text}))
        say(sys.stderr, summary())
    say(sys.stdout, summary())
    return 1 if kinds else 0


def main() -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=1 << 62, help="mutants of each format")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no mutants after this time")
    parser.add_argument("--format", choices=list(samples_of_formats()), help="try only this one")
    parser.add_argument("--sample", choices=[*LOGS, *DEFINITIONS], help="try one mutant of this sample again")
    parser.add_argument("--seed", type=int, default=0, help="its seed, or the first one of a run")
    parser.add_argument("--keep", type=Path, help="write the mutant to this file")
    args = parser.parse_args()
    os.environ["LOGREEL_CACHE"] = "off"
    if args.sample is None:
        return run(args.count, args.minutes, args.seed, args.format)
    data = mutant(args.sample, args.seed)
    if args.keep:
        args.keep.write_bytes(data)
    with TemporaryDirectory() as folder:
        attempt(args.sample, args.seed, output(args.sample, Path(folder)))
    say(sys.stdout, f"{args.sample}, seed {args.seed}: {len(data)} bytes, nothing undocumented")
    return 0


if __name__ == "__main__":
    sys.exit(main())
