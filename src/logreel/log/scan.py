"""What a format's scan finds: everything that a Log is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from logreel.errors import Finding, Problem
from logreel.index.message_index import MessageIndex
from logreel.layout.layout import Layout
from logreel.log.brief import Brief
from logreel.log.payload_decoder import PayloadDecoder
from logreel.log.schema import Schema

if TYPE_CHECKING:
    from logreel.log.actor import Actor


#: In the metadata of a channel that a conversion added: the topic whose messages it was made of.
MADE_OF = "made_of"


@dataclass(frozen=True, slots=True)
class ChannelInfo:
    """One channel as the format declares it; its number is its place in ``Scan.channels``.

    layout   makes the Layout when first asked; raises DefinitionError where the definition cannot be used
    reading  makes, when first asked, what decodes the messages where the Layout is no walk of their bytes
    """

    topic: str
    schema: Schema
    layout: Callable[[], Layout]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    decoder: Callable[[], PayloadDecoder | None] = lambda: None


@dataclass(frozen=True, slots=True)
class Segment:
    """One of several logs that a file holds, such as a flight of before on a card that was used again.

    number      from 1, in file order
    offset      file position at which it begins
    start, end  ns of its first and its last moment, by its own clock; None if empty
    messages    of all channels but the reserved ones
    """

    number: int
    offset: int
    start: int | None
    end: int | None
    messages: int


@dataclass(frozen=True, slots=True)
class Attachment:
    """A named piece of content that is not a message.

    media_type  MIME type
    read        gives the bytes
    time        ns of its place in the log, None where the log does not tell
    created     ns since 1970 when it was made, None where the log does not tell
    """

    name: str
    media_type: str
    size: int
    read: Callable[[], bytes]
    time: int | None = None
    created: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A parameter set to *value* at *time* (ns)."""

    time: int
    value: float | int | str


@dataclass(frozen=True, slots=True, repr=False)
class Parameter(Brief):
    """A parameter of the robot.

    value     at the start of the log; None where the log only has later changes
    changes   in the order logged
    defaults  by kind, e.g. ``system``, ``setup``; absent kinds equal *value*
    """

    name: str
    type: str
    value: float | int | str | None
    changes: tuple[Change, ...] = ()
    defaults: Mapping[str, float | int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of text that somebody logged for people.

    time    ns
    level   syslog number 0 (emergency) … 7 (debug), or None
    source  who said it, where the log tells
    """

    time: int
    level: int | None
    text: str
    source: str = ""


@dataclass(slots=True)
class Scan:
    """The result of reading a log's structure.

    epoch       what time 0 means: ``unix``, ``boot`` or ``start``
    start, end  ns of the first and the last moment of the log, robust against single absurd stamps; None if empty
    verify      tells what reading the whole file does and opening it does not, checksums above all
    bounds      gives the two in their place, evaluated when asked
    utc_offset  ns to add to a time to get UTC since 1970, or None where the log does not tell; evaluated when asked
    metadata, attachments, parameters, text  evaluated when asked
    ros_axes    the same channels in metres and right-handed axes, when asked; None where the format has no other axes
    actors      who takes part, worked out from the open Log when asked; None where the format has no actors
    segments    the logs in the file, evaluated when asked; empty where there is one, which is the usual case
    segment     the Scan of one of them alone, by its number
    saved       named arrays and plain data from which the format can restore this scan without reading the log again
    reread      the same from all that is wholly in the file, whatever its index says; None: opening did that
    format_state  what the format's FormatWriter needs to take over content of this log as it lies there
    converted_from  name of the format that the log was converted from, with nothing lost; empty where it was not
    """

    version: str | Callable[[], str]
    epoch: str
    start: int | None
    end: int | None
    channels: list[ChannelInfo]
    index: MessageIndex
    problems: list[Problem]
    metadata: Callable[[], Mapping[str, Any]] = dict
    attachments: Callable[[], list[Attachment]] = list
    parameters: Callable[[], list[Parameter]] = list
    text: Callable[[], list[TextLine]] | None = None
    utc_offset: Callable[[], int | None] = lambda: None
    actors: Callable[[Any], Mapping[int, Actor]] | None = None
    ros_axes: Callable[[], list[ChannelInfo]] | None = None
    segments: Callable[[], list[Segment]] = list
    segment: Callable[[int], Scan] | None = None
    saved: Saved | None = None
    bounds: Callable[[], tuple[int | None, int | None]] | None = None
    verify: Callable[[], Iterable[Finding]] = tuple
    reread: Callable[[], Scan] | None = None
    format_state: Any = None
    converted_from: str = ""


@dataclass(frozen=True, slots=True)
class Saved:
    """A scan in a form that a sidecar file can hold: plain JSON data, and arrays by name."""

    plain: dict[str, Any]
    arrays: Mapping[str, Any]
