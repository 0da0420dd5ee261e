"""Open a log: find its format, scan it or load its index, and hand out a Log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from logreel.errors import DamagedError, TopicError, UsageError
from logreel.io.source import Definitions, Readable, Source
from logreel.log.scan import Scan, TextLine
from logreel.registry import index_cache
from logreel.registry.format import Format
from logreel.registry.registry import find_format

if TYPE_CHECKING:
    pass
from logreel.log.log import Log


def open_log(
    path: Readable,
    *,
    format: str | None = None,
    strict: bool = False,
    definitions: Definitions = (),
    ros_axes: bool = False,
    segment: int | None = None,
) -> Log:
    """An open Log of any known format.

    path    a path, ``-`` for standard input, bytes, or a binary file object
    format  name of the format, where the content is not to be asked
    strict  True: the first Problem raises DamagedError instead of being recorded
    definitions  files or folders with message definitions (.msg …), for logs that do not carry their own; mappings of
                 topics to types among them tell the types of channels whose log does not. What is needed of them is
                 carried into every log that is written from this one
    ros_axes  True: in metres and right-handed axes; see ``Log.ros_axes``
    segment  number of one of several logs in the file; see ``Log.segments``. None: all of them, channels of later ones
             by names of their own

    Raises UnknownFormatError, UnsupportedError, LogError for a folder, or OSError as the system gives it; TopicError
    for the type of a topic that the log does not have, UsageError for one that the log tells otherwise.
    """
    log = open_one_of_several(path, format, strict, definitions, ros_axes, segment)
    check_types([log])
    return log


def open_one_of_several(
    path: Readable,
    format: str | None = None,
    strict: bool = False,
    definitions: Definitions = (),
    ros_axes: bool = False,
    segment: int | None = None,
) -> Log:
    """Open a log as ``open_log`` does, where *definitions* may have types of topics that only other logs have."""
    source = Source.open(path)
    source.define(definitions)
    fmt = find_format(source, format)
    scan = index_cache.load(source, fmt) or index_cache.keep(source, fmt, _fresh(source, fmt))
    log = log_of(source, fmt, scan)
    log._options |= {"format": format, "strict": strict}
    if segment is not None:
        log = log.segment(segment)
    if strict:
        # Of a large log parts of the index may only be read when asked for.
        _ = log.index.table.counts
    if strict and log.problems:
        raise DamagedError(log.problems[0], path=source.name)
    return log.ros_axes() if ros_axes else log


def check_types(logs: Sequence[Log]) -> None:
    """Raise where a type that the user gave is that of no channel of *logs*.

    TopicError for a topic that none of them has, UsageError for one whose log tells what its messages are.
    """
    for log in logs:
        for topic, kind in log.given_types.items():
            found = [one[topic].schema.name for one in logs if topic in one]
            if not found:
                raise TopicError(
                    "channel", topic, {name: None for one in logs for name in one}, path=log.name
                )
            if kind not in found:
                told = f"channel {topic!r} has type {found[0]!r}, which {kind!r:.80} cannot replace"
                raise UsageError(f"{told}: types are given for channels of ROS 1", path=log.name)


def log_of(source: Source, fmt: Format, scan: Scan) -> Log:
    """A Log of what *fmt* found in *source*; its text is read by lenses where the format has no text of its own."""

    def read_text(log: Log) -> Iterable[TextLine]:
        from logreel.lenses import text_lines

        return text_lines(log)

    return Log(source, fmt.name, scan, read_text)


def _fresh(source: Source, fmt: Format) -> Scan:
    scan = fmt.scan(source, None)
    if scan is None:
        raise TypeError(f"format {fmt.name} gave no scan")
    return scan
