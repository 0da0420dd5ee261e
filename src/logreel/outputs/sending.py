"""A part of a log as the bytes of one file, to be sent on instead of being written: a log, or any other output."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from logreel.errors import UsageError
from logreel.io.append_file import Appender
from logreel.io.two_pass import DryRun
from logreel.log.log import Log
from logreel.log.times import Time, interval
from logreel.ops.rewrite.parts import select_part
from logreel.ops.rewrite.rewrite import rewrite
from logreel.ops.rewrite.target import Target, format_of, format_to_write
from logreel.outputs.convert import channels_for
from logreel.outputs.job import Job
from logreel.outputs.registry import OUTPUTS, Output, Shape, logs
from logreel.outputs.write import write_job
from logreel.registry.format import Format
from logreel.registry.registry import formats

_UNSAFE = re.compile(r"[^A-Za-z0-9_.\-\[\]]+")


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants of a log.

    topics, exclude  names or patterns as ``logreel.slice`` takes them
    start, end  ns, or times as people write them; half-open
    kind     suffix of an output without its dot, or name of a format; None: that of the log
    """

    topics: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    start: Time | None = None
    end: Time | None = None
    kind: str | None = None


def kinds() -> dict[str, str]:
    """What ``Wish.kind`` can be, and the suffix that each means: outputs that are one file to be sent, every format."""
    every = {**OUTPUTS, **logs()}
    found = {
        suffix[1:]: suffix for suffix, one in every.items() if one.media and one.shape is not Shape.ITEMS
    }
    for fmt in formats().values():
        if fmt.create is not None:
            found |= {suffix.lstrip("."): suffix for suffix in fmt.suffixes} | {fmt.name: fmt.suffixes[0]}
    return found


class Sending:
    """What a Wish gives, checked and ready to be made as often as is needed; the bytes are always the same.

    name     what a file with it would be called
    media    its media type
    forward  whether it is sent as it is made; else a DryRun has to come first
    skipped  sentences about what is left out, as far as it was made the last time

    Raises UsageError, TopicError, UnsupportedError, and LogError where there is nothing that could be made.
    """

    def __init__(self, log: Log, wish: Wish) -> None:
        self._log, self._wish = log, wish
        self._interval = interval(log, wish.start, wish.end)
        self.skipped: list[str] = []
        self._output, suffix = _output(wish.kind, log)
        stem = os.path.basename(log.name)
        stem = _UNSAFE.sub("_", os.path.splitext(stem)[0]).strip("._") or "log"
        self.name, self.media = stem + suffix, "application/octet-stream"
        if self._output is None:
            self._format = format_of(log) if wish.kind is None else format_to_write(self.name, log)
            self._part = select_part(log, wish.topics, wish.exclude, *self._interval)
            self.forward = _appends_only(self._format)
        else:
            self.media, self.forward = self._output.media, True
            self._channels = channels_for(log, wish.topics, self._output, wish.exclude)
            if self._output.shape is Shape.TABLES and len(self._channels) != 1:
                raise UsageError(
                    f"{len(self._channels)} channels do not fit into one {suffix} file: choose one channel"
                )

    def make(self, out: Appender) -> None:
        """Give *out* all of it, from the beginning to the end."""
        self.skipped = []
        if self._output is None:
            target = Target(self.name, foreign=self._wish.kind is not None)
            rewrite([self._part], target, out=out, skipped=self.skipped)
            return
        job = Job(self._log, self._channels, *self._interval, skipped=self.skipped)
        write_job(_File(out), job, self._output)  # type: ignore[arg-type]
        out.finish()


def _output(kind: str | None, log: Log) -> tuple[Output | None, str]:
    """The output that *kind* means, None where that is a log; and its suffix."""
    if kind is None:
        return None, format_of(log).suffixes[0]
    known: Mapping[str, str] = kinds()
    suffix = known.get(kind.lower().lstrip("."))
    if suffix is None:
        raise UsageError(f"no format {kind!r}; there are: {', '.join(sorted(known))}")
    return OUTPUTS.get(suffix), suffix


def _appends_only(fmt: Format) -> bool:
    format_writer = fmt.create(DryRun("")) if fmt.create is not None else None
    return format_writer is not None and bool(format_writer.appends_only)


class _File(io.RawIOBase):
    """An Appender as the binary file that outputs write to."""

    def __init__(self, out: Appender) -> None:
        self._out = out

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._out.tell()

    def write(self, data: Any) -> int:
        self._out.write(data)
        return memoryview(data).nbytes
