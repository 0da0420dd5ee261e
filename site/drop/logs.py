"""What the page asks of logreel, in the worker: each answer is data of JSON, each error a sentence."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import logreel
from logreel.errors import LogError, missing

#: Libraries that a page may be built without, and what cannot be read then.
CODECS = {"lz4": "bags and MCAP files packed by LZ4", "zstandard": "MCAP files packed by zstd"}
CODECS |= {"google.protobuf": "messages of protobuf", "lzma": "the text of PX4 events"}
VERBS = ("info", "summary", "health", "report", "recover")
#: A ULog file with its header alone: magic number, version, time of the start, and no flags.
EMPTY = b"ULog\x01\x12\x35\x01" + bytes(8) + b"\x28\x00B" + bytes(40)
#: Most channels and problems that are sent to the page.
LISTED = 2000


def lacking() -> list[str]:
    """Return a sentence for each library that the page was built without."""
    from importlib.util import find_spec

    def is_there(name: str) -> bool:
        try:
            return find_spec(name) is not None
        except ModuleNotFoundError:
            return False

    return [_lacking(what, name) for name, what in CODECS.items() if not is_there(name)]


class Shown:
    """The log that the page shows.

    path     where the file is
    scratch  folder for recovered files
    """

    def __init__(self, path: str, scratch: str) -> None:
        self.path = Path(path)
        self.scratch = Path(scratch)
        self.log = logreel.open(path)

    def info(self) -> dict[str, Any]:
        """Return what ``info --json`` tells, with the rate of each channel; its lists are cut."""
        found = logreel.info(self.log)
        told = found.as_dict()
        rates = {channel.topic: channel.rate for channel in found.channels}
        channels = [{"rate": rates[channel["topic"]], **channel} for channel in told["channels"][:LISTED]]
        return told | {
            "channels": channels,
            "channel_count": len(found.channels),
            "problems": told["problems"][:LISTED],
            "problem_count": len(told["problems"]),
        }

    def summary(self) -> dict[str, Any]:
        """Return what ``summary --json`` tells."""
        return logreel.summary(self.log).as_dict()

    def health(self) -> dict[str, Any]:
        """Return what ``health --json`` tells."""
        return logreel.health(self.log).as_dict()

    def report(self, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
        """Return the page that ``report`` writes."""
        return {"name": f"{self.path.stem}.html", "html": logreel.report(self.log, progress=progress).html}

    def recover(self) -> dict[str, Any]:
        """Write what ``recover`` writes, and return what it tells, with the path of the new file."""
        stem, suffix = os.path.splitext(self.path.name.removesuffix(".active"))
        target = self.scratch / f"{stem}_recovered{suffix}"
        self.scratch.mkdir(exist_ok=True)
        done = logreel.recover(self.log, target, force=True)
        told = done.as_dict()
        return told | {
            "path": str(target),
            "name": target.name,
            "lost": told["lost"][:LISTED],
            "lost_count": len(told["lost"]),
        }


class Desk:
    """The log that is open, if any; what is asked of it is answered as JSON."""

    def __init__(self, scratch: str) -> None:
        self._scratch = scratch
        self._shown: Shown | None = None

    def warm_up(self) -> None:
        """Have read and imported what the first log needs, while nobody waits: by a log without messages."""
        path = Path(self._scratch) / "empty.ulg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(EMPTY)
        self.open(str(path))
        for what in VERBS:
            self.ask(what)
        self._shown = None

    def open(self, path: str) -> str:
        """Open a log in place of the one before, and return its format."""

        def opened() -> dict[str, Any]:
            self._shown = None
            self._shown = Shown(path, self._scratch)
            return {"format": self._shown.log.format}

        return answer(opened)

    def ask(self, what: str, progress: Callable[[int, int], None] | None = None) -> str:
        """Return what one of VERBS tells of the log."""
        shown = self._shown
        if what not in VERBS or shown is None:
            return json.dumps({"error": "there is no open log"})
        if what == "report":
            return answer(lambda: shown.report(progress))
        return answer(getattr(shown, what))


def answer(call: Callable[[], Any]) -> str:
    """Return what *call* returns as JSON: ``{"answer": …}``, or ``{"error": …}`` with a sentence."""
    try:
        return json.dumps({"answer": call()}, default=str)
    except MemoryError:
        error = "the log needs more memory than a browser gives to a page: use logreel itself for it"
    except LogError as problem:
        error = str(problem)
    except OSError as problem:
        error = f"the file cannot be read: {problem.strerror or problem}"
    except ImportError as problem:
        name = (problem.name or "").partition(".")[0]
        what = next((what for library, what in CODECS.items() if library.partition(".")[0] == name), None)
        error = str(missing(problem) or problem) if what is None else _lacking(what, name)
    return json.dumps({"error": error})


def _lacking(what: str, name: str) -> str:
    return f"{what} cannot be read: this page was built without {name}"
