"""Write the log that ``logreel demo`` brings, ``src/logreel/cli/flight.ulg.xz``: ``python tools/demo_log.py``."""

from __future__ import annotations

import lzma
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from support.samples.ulog.builder import flight  # noqa: E402

if __name__ == "__main__":
    (ROOT / "src/logreel/cli/flight.ulg.xz").write_bytes(lzma.compress(flight(), preset=9))
