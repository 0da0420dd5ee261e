"""Writing of a log with replaced and added messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np

from logreel.layout.layout import Layout
from logreel.log.log import Channel
from logreel.log.schema import Schema
from logreel.ops.rewrite.parts import Part
from logreel.ops.rewrite.read_rows import odd_booleans
from logreel.ops.rewrite.rewrite import Rewriting, rewrite
from logreel.ops.rewrite.streams import Batch
from logreel.ops.rewrite.target import Copied, Rewritten, Target
from logreel.schemas.languages import portable
from logreel.write.writer import Writer, add_channel


class Made(Protocol):
    """A channel with replaced or added messages."""

    @property
    def topic(self) -> str: ...
    @property
    def schema(self) -> Schema: ...
    @property
    def metadata(self) -> Mapping[str, Any]: ...


class Translation(Protocol):
    """Replacements for the messages of one log.

    added    added channels; their numbers follow those of the log
    skipped  sentences about what could not be translated
    """

    @property
    def added(self) -> Sequence[Made]: ...
    @property
    def skipped(self) -> Sequence[str]: ...

    def replaced(self, channel: Channel) -> Made | None:
        """Return the replacement of a channel; None if its messages stay unchanged."""
        ...

    def batches(self, part: Part) -> Iterable[Batch]:
        """Yield all messages by time: those of *part* or their replacements, and those of the added channels."""
        ...


def rewrite_portable(part: Part, target: Target) -> Rewritten:
    """Write *part* as ``rewrite`` does, with definitions that other tools can parse."""
    return rewrite([part], target, how=Portable)


@dataclass
class Portable(Rewriting):
    """Writing of a log with definitions in the form that other tools can parse."""

    #: Channels whose definitions changed by that.
    modernized: list[str] = field(default_factory=list)

    def _declared(
        self, channel: Channel, metadata: Mapping[str, Any]
    ) -> tuple[Schema | Layout, Mapping[str, Any]]:
        schema, more = super()._declared(channel, metadata)
        if isinstance(schema, Layout):
            return schema, more
        found = portable(schema)
        if schema.raw and found.raw != schema.raw:
            self.modernized.append(channel.topic)
        return found, more

    def _account(self, written: Sequence[int]) -> None:
        super()._account(written)
        if self.modernized:
            shown = ", ".join(map(repr, self.modernized[:5])) + " …" * (len(self.modernized) > 5)
            self.notes.append(f"definitions of {shown} are written as tools of today read them")


def translate(part: Part, target: Target, translation: Translation) -> Rewritten:
    """Write *part* with the messages of *translation*; see ``rewrite``."""
    return rewrite([part], target, True, partial(Translating, translation=translation))


@dataclass
class Translating(Portable):
    """Writing of a log with translated messages."""

    #: Batches are large, and built by several threads.
    depth: ClassVar[int] = 1

    translation: Translation = field(kw_only=True)
    #: Names of the added channels, and their message counts after writing.
    added: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def _declared(
        self, channel: Channel, metadata: Mapping[str, Any]
    ) -> tuple[Schema | Layout, Mapping[str, Any]]:
        made = self.translation.replaced(channel)
        return super()._declared(channel, metadata) if made is None else (made.schema, made.metadata)

    def _compose(self, writer: Writer, by_time: bool) -> None:
        self.format_writer.mixes_encodings = True
        super()._compose(writer, by_time)

    def _add_channels(self, writer: Writer) -> np.ndarray:
        table = super()._add_channels(writer)
        numbers = list[int]()
        for one in self.translation.added:
            taken = {*self.names, *self.added}
            number, name = add_channel(writer, one.topic, one.schema, one.metadata, taken)
            numbers.append(number)
            self.added.append(name)
        self.skipped += self.translation.skipped
        return np.append(table, np.array([numbers], np.int32), axis=1)

    def _batches(self, by_time: bool) -> Iterable[Batch]:
        return self.translation.batches(self.parts[0])

    def _account(self, written: Sequence[int]) -> None:
        # Sentences added while messages were translated.
        self.skipped += [text for text in self.translation.skipped if text not in self.skipped]
        for ch in self.parts[0].channels:
            if self.translation.replaced(ch) is not None:
                self.notes += odd_booleans(ch)
        super()._account(written)
        self.counts = dict(zip(self.added, written[len(self.names) :], strict=True))
        for name, count in self.counts.items():
            self.format_writer.extra_messages[self.copier.count_key(name, {})] += count

    def _why_unwritten(self, channel: Channel) -> str:
        made = self.translation.replaced(channel)
        return super()._why_unwritten(channel) if made is None else "they cannot be decoded"

    def _copied(self) -> Iterator[Copied]:
        yield from super()._copied()
        for name, count in self.counts.items():
            if not name.startswith("~"):
                yield Copied(name, count)
