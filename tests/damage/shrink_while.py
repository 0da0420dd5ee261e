"""Run command lines while their log shrinks, see test_shrinking.py; standard input has the work as JSON.

moment    ``mapped``: the log shrinks before it is scanned; ``opened``: after that
left      bytes that stay
folder    for the copies of the log
log       the log
commands  lists of arguments by name, with LOG and OUT for paths

Prints a JSON object: exit code, messages, and files of the output by name.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from logreel.cli import main
from logreel.io.source import Source
from logreel.registry import open as opening

#: The log that shrinks as soon as it is mapped or opened.
pending: list[str] = []


def shrink(path: str | None, left: int) -> None:
    """Truncate the file if it is the one that shall shrink."""
    if path is not None and pending and os.path.realpath(path) == os.path.realpath(pending[0]):
        os.truncate(pending.pop(), left)


def install(moment: str, left: int) -> None:
    """Let the function that maps files, or the one that opens logs, truncate them."""
    if moment == "mapped":
        of_file: Any = vars(Source)["of_file"].__func__

        def mapped(cls: Any, *args: Any, **options: Any) -> Source:
            found = of_file(cls, *args, **options)
            shrink(None if found.path is None else str(found.path), left)
            return found

        Source.of_file = classmethod(mapped)
        return
    log_of = opening.log_of

    def opened(*args: Any) -> Any:
        log = log_of(*args)
        shrink(log.name, left)
        return log

    opening.log_of = opened


def run_all(work: Any) -> dict[str, Any]:
    """Run the commands, each with a log of its own."""
    found = {}
    for name, words in work["commands"].items():
        folder = Path(work["folder"]) / f"{work['moment']}-{len(found)}"
        folder.mkdir()
        log = folder / Path(work["log"]).name
        shutil.copy(work["log"], log)
        pending[:] = [str(log)]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([word.replace("LOG", str(log)).replace("OUT", str(folder / "out")) for word in words])
        found[name] = {"code": code, "text": err.getvalue(), "files": sorted(os.listdir(folder))}
        pending.clear()
    return found


if __name__ == "__main__":
    given = json.load(sys.stdin)
    install(given["moment"], given["left"])
    print(json.dumps(run_all(given)))  # noqa: T201
