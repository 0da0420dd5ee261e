"""What a format offers: the record that its folder fills in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from logreel.io.source import Source
from logreel.log.scan import Saved, Scan

if TYPE_CHECKING:
    from logreel.layout.layout import Layout
    from logreel.log.schema import Schema


@dataclass(frozen=True)
class Format:
    """One log format: what a format's folder offers as ``FORMAT``.

    name      short, lower case; also the value of ``Log.format``
    title     what people call it
    suffixes  usual file name endings, for naming outputs only
    sniff     True if the content is of this format; looks at ``source.head`` first, never raises
    scan      reads the structure; with *saved* restores an earlier scan of the same bytes, and returns None when
              *saved* does not fit. Raises UnsupportedError for what it cannot do
    create    gives the FormatWriter of a new file, ``create(appender, **options)``; None where such files cannot be
    written
    copier    gives the LogCopier of a FormatWriter that ``create`` gave, which copies logs into it; None: one that
              copies nothing format-specific
    like      options for ``create`` that make a file like one with this metadata, e.g. of the same compression
    layout    the Layout of messages whose schema is of this format's own language, by that and the topic, in whatever
              file they lie; None where these do not tell
    sample    bytes of a realistic log that the package makes itself
    exchange  True for a format that takes any schema and is read by many tools: logs converted to it get channels in
              schemas that these know
    showcase  True for the format whose sample the demo shows
    api       name of the module that ``logreel.NAME`` gives: what can be done with logs of this format only
    commands  ``module:name`` of a tuple of ``model.commands.Command``, which become ``logreel NAME COMMAND``
    frames    ``module:name`` of a function that gives, for a Log, a function that tells in lines of text of messages
              that have one time
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    sniff: Callable[[Source], bool]
    scan: Callable[[Source, Saved | None], Scan | None]
    versions: str = ""
    create: Callable[..., Any] | None = None
    copier: Callable[[Any], Any] | None = None
    like: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda metadata: {}
    layout: Callable[[Schema, str], Layout | None] | None = None
    sample: Callable[[], bytes] | None = None
    exchange: bool = False
    showcase: bool = False
    api: str = ""
    commands: str = ""
    frames: str = ""
    extra: dict[str, Any] = field(default_factory=dict)
