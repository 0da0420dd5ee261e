"""A log written anew with other messages in place of, and besides, those that it has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np

from logreel.errors import LogError
from logreel.model.channel import Channel
from logreel.model.schema import Schema
from logreel.model.writer import Writer
from logreel.ops.parts import Part
from logreel.ops.rewrite import Copied, Rewriting, Rewritten, Target, add_channel, rewrite
from logreel.ops.streams import Batch


class Made(Protocol):
    """A channel of other messages than the log has."""

    @property
    def topic(self) -> str: ...
    @property
    def schema(self) -> Schema: ...
    @property
    def metadata(self) -> Mapping[str, Any]: ...


class Translation(Protocol):
    """Other messages for those of one log.

    added  channels that come besides; their numbers follow those of the log
    told   sentences about what could not be translated
    """

    @property
    def added(self) -> Sequence[Made]: ...
    @property
    def told(self) -> Sequence[str]: ...

    def replaced(self, channel: Channel) -> Made | None:
        """What comes in place of the messages of a channel; None where these stay."""
        ...

    def batches(self, part: Part) -> Iterable[Batch]:
        """All messages by time: those of *part*, or what is in their place, and those of the added channels."""
        ...


def translate(part: Part, target: Target, translation: Translation) -> Rewritten:
    """Write *part* with the messages of *translation*; see ``rewrite``."""
    return rewrite([part], target, True, partial(Translating, translation=translation))


@dataclass
class Translating(Rewriting):
    """One new log of translated messages in the making."""

    translation: Translation = field(kw_only=True)
    #: Names of the added channels, and messages by the number that the translation gives to their channel.
    added: list[str] = field(default_factory=list)
    written: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    def _declared(self, channel: Channel, metadata: Mapping[str, Any]) -> tuple[Schema, Mapping[str, Any]]:
        made = self.translation.replaced(channel)
        return super()._declared(channel, metadata) if made is None else (made.schema, made.metadata)

    def _compose(self, writer: Writer, by_time: bool) -> None:
        self.sink.mixed = True
        super()._compose(writer, by_time)

    def _add_channels(self, writer: Writer) -> np.ndarray:
        table = super()._add_channels(writer)
        numbers = list[int]()
        for one in self.translation.added:
            taken = {*self.names, *self.added}
            number, name = add_channel(writer, one.topic, one.schema, one.metadata, taken)
            numbers.append(number)
            self.added.append(name)
        self.skipped += self.translation.told
        return np.append(table, np.array([numbers], np.int32), axis=1)

    def _batches(self, by_time: bool) -> Iterable[Batch]:
        count = len(self.parts[0].log.channels)
        self.written = np.zeros(count + len(self.added), np.int64)
        for batch in self.translation.batches(self.parts[0]):
            self.written += np.bincount(batch.channel, minlength=len(self.written))
            yield batch
        for number, name in enumerate(self.added, count):
            self.sink.added[self.sink.kept_as(name, {})] += int(self.written[number])
        for name, members in self.names.items():
            self._account(name, members[0][1])
        # What turned out on the way.
        self.skipped += [text for text in self.translation.told if text not in self.skipped]
        if self.target.strict and self.skipped:
            raise LogError(f"nothing is written, because {self.skipped[0]}", path=self.target.path)

    def _account(self, name: str, channel: Channel) -> None:
        """Tell of messages that could not be translated."""
        missing = self.parts[0].count(channel.number) - int(self.written[channel.number])
        if missing:
            self.sink.added[self._kept_as(name, channel)] -= missing
            self.skipped.append(
                f"{missing} messages of {channel.topic!r} were left out: they cannot be decoded"
            )

    def _copied(self) -> Iterator[Copied]:
        yield from super()._copied()
        count = len(self.parts[0].log.channels)
        for number, name in enumerate(self.added, count):
            if not name.startswith("~"):
                yield Copied(name, int(self.written[number]))
