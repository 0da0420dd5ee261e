"""Try an installed wheel with the log that is in it, where no checkout and no extra is: ``python tools/try_wheel.py``.

It reads, recovers, converts and compares what it wrote, and, without a global lock, decodes in eight threads at once.
"""

from __future__ import annotations

import lzma
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import logreel
from logreel.cli import main as command
from logreel.cli.show import BUNDLED

THREADS, ROUNDS = 8, 5


def values(path: Path) -> dict[str, bytes]:
    """Return the bytes of every time and every number of a log, by channel and field."""
    log = logreel.open(path)
    out: dict[str, bytes] = {}
    for topic, channel in log.items():
        for name, array in channel.to_numpy().items():
            if array.dtype != object:
                out[f"{topic}.{name}"] = np.ascontiguousarray(array).tobytes()
    return out


def main() -> int:
    """Try it, and return the exit code."""
    with tempfile.TemporaryDirectory() as name:
        log, repaired, other = (Path(name) / file for file in ("f.ulg", "r.ulg", "o.mcap"))
        log.write_bytes(lzma.decompress(BUNDLED.read_bytes()))
        words: tuple[str | Path, ...]
        for words in (
            ("info", log),
            ("health", log),
            ("recover", log, "-o", repaired),
            ("convert", log, other),
        ):
            if code := command([str(word) for word in words]):
                print(f"try_wheel: {words[0]} ended with {code}", file=sys.stderr)  # noqa: T201 - it is a command
                return 1
        right = values(log)
        if not right or values(repaired) != right:
            print("try_wheel: what recover writes has other values", file=sys.stderr)  # noqa: T201
            return 1
        if sysconfig.get_config_var("Py_GIL_DISABLED") and sys._is_gil_enabled():  # type: ignore[attr-defined]
            print("try_wheel: a kernel has switched the global lock on", file=sys.stderr)  # noqa: T201
            return 1
        if sys.platform != "emscripten":
            with ThreadPoolExecutor(THREADS) as pool:
                if any(other != right for other in pool.map(values, [log] * (THREADS * ROUNDS))):
                    print("try_wheel: threads at once read other values", file=sys.stderr)  # noqa: T201
                    return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
