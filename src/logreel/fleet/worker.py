"""A process that does jobs: lines of JSON come from standard input, their results go to standard output."""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from typing import Any

from logreel.fleet.jobs import do_job
from logreel.fleet.source_files import error_text
from logreel.io.imports import import_arrow_without_pandas


def main() -> None:
    """Do the jobs on standard input until it ends; then, or when the parent has died, end at once."""
    # The parent decides when an interrupted run ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import_arrow_without_pandas()
    import pyarrow as pa

    # One processor for each worker: threads of Arrow would compete with those of the other workers.
    pa.set_cpu_count(1)
    # What libraries print must not get between the results.
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)
        lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=_receive, args=(lines,), daemon=True).start()
        while True:
            job = json.loads(lines.get())
            try:
                answer: dict[str, Any] = {"result": do_job(job)}
            except Exception as error:
                answer = {"error": error_text(error)}
            out.write(json.dumps(answer).encode() + b"\n")
            out.flush()


def _receive(lines: queue.SimpleQueue[bytes]) -> None:
    """Pass lines on; end the process when there are no more, even in the middle of a job."""
    for line in sys.stdin.buffer:
        lines.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
