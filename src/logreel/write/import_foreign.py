"""What a log of another format holds besides messages, given to a Sink piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from logreel.errors import LogError, UnsupportedError

if TYPE_CHECKING:
    from logreel.log.log import Log
    from logreel.write.format_writer import Sink


def adopt(sink: Sink, log: Log, quiet: bool) -> list[str]:
    """Give *sink* the metadata, parameters and attachments of *log*; tells what it has no place for.

    quiet  True: what the format has no place for at all is no loss, since the log was converted from that format
    """
    told = adopt_metadata(sink, log, quiet)
    told += each("parameter", log.parameters, lambda name: _parameter(sink, log, name), quiet)
    return told + each("attachment", log.attachments, lambda name: _attachment(sink, log, name), quiet)


def adopt_metadata(sink: Sink, log: Log, quiet: bool) -> list[str]:
    """Give *sink* the metadata of *log*, but for what its format tells of the file under its own name."""
    names = [name for name in log.metadata if name != log.format]
    return each("metadata", names, lambda name: sink.metadata(name, log.metadata[name]), quiet)


def each(what: str, names: Iterable[str], give: Callable[[str], None], quiet: bool) -> list[str]:
    """Call *give* with each name; tells of those that were refused."""
    left, why, told = list[str](), "", list[str]()
    for name in names:
        try:
            give(name)
        except UnsupportedError as error:
            left.append(name)
            why = error.text
        except LogError as error:
            told.append(f"{what} {name!r} was left out: {error.text}")
    if left and not quiet:
        shown = ", ".join(repr(name) for name in left[:5]) + " …" * (len(left) > 5)
        told.append(f"{what} {shown} left out: {why}")
    return told


def _parameter(sink: Sink, log: Log, name: str) -> None:
    one = log.parameters[name]
    if one.value is not None:
        sink.parameter(name, one.value, None)


def _attachment(sink: Sink, log: Log, name: str) -> None:
    one = log.attachments[name]
    sink.attachment(name, one.read(), one.media_type)
