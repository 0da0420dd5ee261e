"""Every verb ends properly when a call of the system fails at any place, or memory ends."""

from __future__ import annotations

import errno
import json
import lzma
import os
import signal
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import lz4.frame
import numpy as np
import pytest

import logreel
from harness import SANITIZED
from logreel import fleet
from logreel.cli.exits import sentence
from logreel.fleet import jobs, task_reader
from logreel.formats.mcap import writer as chunk_compressor
from logreel.formats.mcap.chunks import _zstd
from logreel.formats.rosbag.chunks import _zlib
from logreel.io import zstd
from logreel.io.lz4_frames import unpack_lz4
from support.formats import sample_log
from support.harness import faults
from support.harness.cli_runner import SRC
from support.harness.system_calls import environment, library
from support.samples.ulog.builder import flight

#: Runs of each verb; ``make fuzz`` sets more, and LOGREEL_FAILING_CALLS=0 means all.
CASES = int(os.environ.get("LOGREEL_FAILING_CALLS", int(os.environ.get("LOGREEL_FUZZ", "500")) // 500))
#: Processes that run side by side; one has less to import than two where it runs few.
LANES = 1 if CASES == 1 else 2

pytestmark = pytest.mark.skipif(
    library() is None or SANITIZED, reason="needs gcc and Linux, and no sanitizer in the process"
)


def verbs_with_files() -> list[str]:
    """Return all verbs of the command line; those that work with files are tested."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
    from failing_calls import NO_FILES

    from test_reference import verbs

    assert set(verbs()) >= NO_FILES
    return [verb for verb in verbs() if verb not in NO_FILES]


@pytest.mark.parametrize("lane", range(LANES))
def test_every_verb_survives_every_failing_call(lane: int) -> None:
    script = Path(__file__).with_name("failing_calls.py")
    chosen = verbs_with_files()[lane::LANES]
    variables = environment(library()) | {"PYTHONPATH": str(SRC), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(script), str(CASES), "1", *chosen]
    done = subprocess.run(command, capture_output=True, env=variables, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = json.loads(done.stdout)
    assert set(counts) == set(chosen)
    assert min(counts.values()) > 0, counts


def test_a_run_that_hangs_is_ended_and_says_where(tmp_path: Path) -> None:
    """The handler of the alarm that writes the frames used up the alarm: a hang was waited for, forever."""
    code = """
import signal, sys, threading
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from support.harness.system_calls import Calls
Calls().report_crash(Path(sys.argv[1]))
signal.alarm(1)
threading.Lock().acquire() and threading.Event().wait()
"""
    arguments = [sys.executable, "-c", code, str(tmp_path / "frames"), str(Path(__file__).parents[1])]
    done = subprocess.run(arguments, env=environment(library()), timeout=60)
    assert done.returncode == -signal.SIGALRM
    frames = (tmp_path / "frames").read_text()
    # Locks of Python 3.13 and newer wait in another function.
    assert "PyThread_acquire_lock_timed" in frames or "_PyParkingLot_Park" in frames


def test_a_thread_that_cannot_start_is_a_sentence() -> None:
    """Python says this of too little memory, too."""
    assert "internal error" not in sentence(RuntimeError("can't start new thread"))
    assert "internal error" in sentence(RuntimeError("something else"))


def test_a_library_for_which_there_is_no_memory_is_a_sentence() -> None:
    error = ImportError("/lib/x.so: failed to map segment from shared object")
    assert sentence(error) == "not enough memory for this"
    assert "internal error" in sentence(ImportError("something else"))


def test_events_are_not_left_out_where_memory_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by `report` in 4 MiB: its findings lacked the texts of events, without a word."""

    def no_memory(*_: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setattr(lzma, "LZMADecompressor", no_memory)
    with pytest.raises(MemoryError):
        logreel.open(flight(2.0)).text  # noqa: B018 - read at first use


#: Libraries with the name of one that dies without memory, and with a name of ours: the first calls back, the second
#: gives a bad address to libc.
FOREIGN = """
#include <stdlib.h>
void die(void (*before)(void)) { if (before) before(); abort(); }
"""
OWN = """
#include <string.h>
void die(char *nowhere) { memset(nowhere, 1, 4096); }
"""
DEATHS = """
import ctypes, os, sys
sys.path[:0] = [sys.argv[1]]
from failing_calls import blamed
from support.harness.system_calls import Calls
from pathlib import Path
folder = Path(sys.argv[2])
foreign, own = ctypes.CDLL(folder / "libarrow.so.99"), ctypes.CDLL(folder / "framed.abi3.so")
back = ctypes.CFUNCTYPE(None)(lambda: own.die(None))
deaths = {"foreign": lambda: foreign.die(None), "own": lambda: own.die(None), "back": lambda: foreign.die(back)}
for name, die in deaths.items():
    child = os.fork()
    if not child:
        Calls().report_crash(folder / name)
        die()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(name, os.waitstatus_to_exitcode(status), blamed((folder / name).read_text().splitlines()))
"""


def test_the_library_that_died_is_found(tmp_path: Path) -> None:
    """So that deaths of Arrow and DuckDB without memory hide none of our kernels, which also die inside of libc."""
    for name, text in (("libarrow.so.99", FOREIGN), ("framed.abi3.so", OWN)):
        source = tmp_path / f"{name}.c"
        source.write_text(text)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / name, source], check=True)
    here = str(Path(__file__).parent)
    variables = environment(library()) | {"PYTHONPATH": str(SRC)}
    command = [sys.executable, "-c", DEATHS, here, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, env=variables, text=True)
    assert done.stdout.splitlines() == [
        f"foreign {-signal.SIGABRT} libarrow.so.99",
        f"own {-signal.SIGSEGV} framed.abi3.so",
        f"back {-signal.SIGSEGV} framed.abi3.so",
    ], done.stderr


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.ENOMEM, "cannot allocate memory")])
@pytest.mark.parametrize(
    "place", [(jobs, "tasks_of"), (task_reader, "open_part"), (lzma, "LZMADecompressor")]
)
def test_a_log_is_read_again_after_memory_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: tuple[Any, str], error: Exception
) -> None:
    """Found by `fleet ingest` in a limited address space: the log stayed `failed`, or lost its events."""

    def no_memory(*_: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(jobs, "WAIT", 0)
    log, dataset = tmp_path / "a.ulg", tmp_path / "fleet"
    log.write_bytes(sample_log("ulog"))
    with monkeypatch.context() as without:
        without.setattr(*place, no_memory)
        assert list(fleet.ingest(log, dataset, engine=faults.Inline()).failed) == [str(log)]
    assert fleet.status(dataset).again == 1
    done = fleet.ingest(log, dataset, engine=faults.Inline())
    assert (done.failed, done.changed, fleet.status(dataset).again) == ({}, [str(log)], 0)


@pytest.mark.parametrize(
    "error",
    [
        zstd.ZstdError("cannot compress: Allocation error : not enough memory"),
        RuntimeError("LZ4F_compressFrame failed with code: ERROR_allocation_failed"),
    ],
)
def test_a_lack_of_memory_while_a_chunk_is_packed_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Found by `convert` in 16 MiB, which said `internal error: ZstdError`."""

    def no_memory(data: object) -> None:
        raise error

    monkeypatch.setattr(chunk_compressor, "_compressor", lambda *options: no_memory)
    log = tmp_path / "a.ulg"
    log.write_bytes(sample_log("ulog"))
    with pytest.raises(MemoryError):
        logreel.convert(log, tmp_path / "a.mcap")
    assert [path.name for path in tmp_path.iterdir()] == ["a.ulg"]


def test_a_lack_of_memory_is_no_damage_of_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """`recover` would leave the chunk out as if its bytes were wrong."""

    class Broken:
        def __init__(self, error: Exception) -> None:
            self.error, self.eof = error, False

        def __call__(self, data: object = None) -> Broken:
            return self

        def fail(self, *_: object, **options: object) -> None:
            raise self.error

        decompress = readinto = fail

    data = bytes(1000)
    allocation = zstd.ZstdError("zstd decompress error: Allocation error : not enough memory")
    for error in (allocation, MemoryError()):
        monkeypatch.setattr(zstd, "unpack", Broken(error).fail)
        monkeypatch.setattr(zstd, "reader", Broken(error))
        with pytest.raises(MemoryError):
            _zstd(np.frombuffer(zstd.compressor(3)(data), np.uint8), 999, 1001)
    packed = np.frombuffer(lz4.frame.compress(data), np.uint8)
    failed = RuntimeError("LZ4F_decompress failed with code: ERROR_allocation_failed")
    monkeypatch.setattr(lz4.frame, "LZ4FrameDecompressor", Broken(failed))
    with pytest.raises(MemoryError):
        unpack_lz4(packed, 1001)
    monkeypatch.setattr(zlib, "decompressobj", Broken(zlib.error("Error -4 while decompressing data")))
    with pytest.raises(MemoryError):
        _zlib(np.frombuffer(zlib.compress(data), np.uint8), 1001)
