"""Threads that read mapped files while these shrink; run by test_shrinking.py: shrinking.py RUNS SEED."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from random import Random

import numpy as np
import pytest

import logreel
from logreel.io.source import Source
from logreel.kernels import mapguard

THREADS = 3
SIZE = 1 << 20


def shrink_once(path: Path, random: Random) -> None:
    """Map a file, read it in three threads by NumPy, and truncate it meanwhile; raises AssertionError."""
    path.write_bytes(b"\x01" * SIZE)
    source = Source.open(path)
    begun, stop = threading.Barrier(THREADS + 1), threading.Event()
    sums: list[int] = []

    def read(first: int) -> None:
        begun.wait()
        while not stop.is_set():
            sums.append(int(source.data[first:].sum(dtype=np.int64)))

    threads = [threading.Thread(target=read, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    begun.wait()
    time.sleep(random.uniform(0, 0.003))
    left = random.randrange(SIZE)
    os.truncate(path, left)
    time.sleep(random.uniform(0, 0.003))
    if random.random() < 0.5:
        # As "cp other s.ulg" does: the pages come back with other content.
        path.write_bytes(b"\x02" * random.randrange(SIZE, 2 * SIZE))
    stop.set()
    for thread in threads:
        thread.join()
    assert int(source.data[-1]) in (0, 1, 2)
    with pytest.raises(logreel.FileChangedError) as caught:
        source.check()
    assert caught.value.path == str(path)


def main(runs: int, seed: int) -> None:
    """Let *runs* files shrink."""
    random = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        for n in range(runs):
            shrink_once(Path(folder) / f"{n}.bin", random)
    assert mapguard.losses() or not mapguard.AVAILABLE


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
