"""A slice of a log as a stream of bytes: a log, or any other output that is one file."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from logreel.errors import UsageError
from logreel.io.append_file import Appender
from logreel.log.log import Log
from logreel.log.source_files import decrypted_notes
from logreel.log.times import Time, interval
from logreel.ops.selection import Selection
from logreel.outputs.registry import CSV_WITHOUT_FORMULAS, OUTPUTS, Output, Shape, channels_for, logs
from logreel.registry.open import read_itself
from logreel.registry.registry import formats

#: CSV whose text no spreadsheet runs.
SAFE_CSV = "safe-csv"
_UNSAFE = re.compile(r"[^A-Za-z0-9_.\-\[\]]+")


@dataclass(frozen=True, slots=True)
class SliceRequest:
    """Channels, interval and output format of a slice.

    topics, exclude  names or patterns as for ``logreel.slice``
    start, end  times in any form of ``logreel.slice``; half-open
    kind     suffix of an output without the dot, name of a format, or ``safe-csv``: CSV without text that a spreadsheet
             would run; None: the format of the log
    """

    topics: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    start: Time | None = None
    end: Time | None = None
    kind: str | None = None


def kinds() -> dict[str, str]:
    """Return the values of ``SliceRequest.kind`` with their suffixes: formats, and outputs that are one file."""
    every = {**OUTPUTS.all(), **logs()}
    suffixes = {
        suffix[1:]: suffix
        for suffix, output in every.items()
        if output.media and output.shape is not Shape.ITEMS
    }
    suffixes[SAFE_CSV] = ".csv"
    for fmt in formats().values():
        if fmt.create is not None:
            suffixes |= {suffix.lstrip("."): suffix for suffix in fmt.suffixes} | {fmt.name: fmt.suffixes[0]}
    return suffixes


def file_stem(log: Log) -> str:
    """Return the name of the file of *log* without folders and suffix, with only letters that every system accepts."""
    stem = os.path.basename(log.name)
    return _UNSAFE.sub("_", os.path.splitext(stem)[0]).strip("._") or "log"


class SliceStream:
    """The checked answer to a SliceRequest; it can be written several times, always with the same bytes.

    name     file name for the slice
    media    media type
    forward  True: can be streamed while it is written; False: needs a DryRun first
    skipped  sentences about left out content, from the last run so far

    Raises UsageError, TopicError, UnsupportedError, and LogError if there is nothing to write.
    """

    def __init__(self, log: Log, request: SliceRequest) -> None:
        from logreel.ops.rewrite.parts import select_part
        from logreel.ops.rewrite.target import appends_only, format_of, format_to_write

        decrypted_notes(log)
        log = read_itself(log, also_remote=False)
        self._log, self._request = log, request
        self._interval = interval(log, request.start, request.end)
        self.skipped: list[str] = []
        self._output, suffix = (
            (None, format_of(log).suffixes[0]) if request.kind is None else _output(request.kind)
        )
        self.name, self.media = file_stem(log) + suffix, "application/octet-stream"
        if self._output is None:
            self._format = format_of(log) if request.kind is None else format_to_write(self.name, log)
            self._part = select_part(log, Selection(request.topics, request.exclude, *self._interval))
            self.forward = appends_only(self._format)
        else:
            self.media, self.forward = self._output.media, True
            self._channels = channels_for(log, request.topics, self._output, request.exclude)
            if self._output.shape is Shape.TABLES and len(self._channels) != 1:
                raise UsageError(
                    f"{len(self._channels)} channels do not fit into one {suffix} file: choose one channel"
                )

    def write(self, out: Appender) -> None:
        """Write all bytes to *out*."""
        # A service starts without what writes logs.
        from logreel.ops.rewrite.engine import rewrite
        from logreel.ops.rewrite.target import Target
        from logreel.ops.rewrite.transcode import Transcode
        from logreel.outputs.job import Job
        from logreel.outputs.write import write_job

        self.skipped = []
        if self._output is None:
            is_foreign = self._request.kind is not None
            target = Target(self.name, foreign=is_foreign)
            # As convert does, except for other tools' schemas in formats for exchange.
            transforms = [Transcode()] if is_foreign and not self._format.exchange else []
            rewrite([self._part], target, transforms=transforms, out=out, skipped=self.skipped)
            return
        job = Job(self._log, self._channels, *self._interval, skipped=self.skipped)
        write_job(AppenderFile(out), job, self._output)  # type: ignore[arg-type]
        out.finish()


def _output(name_of_format: str) -> tuple[Output | None, str]:
    """Return the output for *name_of_format*, None for a log, and its suffix."""
    known: Mapping[str, str] = kinds()
    name = name_of_format.lower().removeprefix(".")
    suffix = known.get(name)
    if suffix is None:
        raise UsageError(f"no format {name_of_format!r}; there are: {', '.join(sorted(known))}")
    return CSV_WITHOUT_FORMULAS if name == SAFE_CSV else OUTPUTS.get(suffix), suffix


class AppenderFile(io.RawIOBase):
    """Adapts an Appender to the binary file interface."""

    def __init__(self, out: Appender) -> None:
        self._out = out

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._out.tell()

    def write(self, data: Any) -> int:
        self._out.write(data)
        return memoryview(data).nbytes
