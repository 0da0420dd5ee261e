"""Which messages a recording takes: topics by name, pattern or condition, and a number of messages for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from logreel.log.channel_facts import TOPIC, Facts
from logreel.log.topic_match import check_pattern, conditions, fitting, is_pattern, listed


@dataclass(frozen=True, slots=True)
class _Channel:
    """What conditions are tested on."""

    facts: Facts


class Selection:
    """Decides by topic and by what a channel says of itself, and counts.

    topics, exclude  names, shell patterns, ``re:`` and a regular expression, or conditions, as in ``Log.messages``;
                     None: all
    limit            most messages of each topic; None: any number

    Raises UsageError for an invalid regular expression.
    """

    def __init__(
        self,
        topics: str | Iterable[str] | None = None,
        exclude: str | Iterable[str] = (),
        limit: int | None = None,
    ) -> None:
        self.limit = limit
        self._topics = None if topics is None else listed(topics)
        self._exclude = listed(exclude)
        self._known: dict[str, bool] = {}
        self._all = {*(self._topics or ()), *self._exclude}
        self._unused = set(self._all)
        self._counts = Counter[str]()
        for pattern in self._all:
            check_pattern(pattern)

    def wants(self, topic: str) -> bool:
        """Return whether messages of *topic* can be recorded, as far as its name decides this."""
        if topic not in self._known:
            fits = self._used({pattern for pattern in self._all if fitting([topic], pattern)})
            chosen = [*(self._topics or ())]
            wanted = self._topics is None or not fits.isdisjoint(chosen) or any(map(conditions, chosen))
            self._known[topic] = wanted and fits.isdisjoint(self._exclude)
        return self._known[topic]

    def accepts(self, facts: Facts) -> bool:
        """Return whether messages of the channel with these facts are recorded."""
        (topic,) = facts[TOPIC]
        channel = {topic: _Channel(facts)}
        fits = self._used({pattern for pattern in self._all if fitting(channel, pattern)})
        return (self._topics is None or not fits.isdisjoint(self._topics)) and fits.isdisjoint(self._exclude)

    def _used(self, fits: set[str]) -> set[str]:
        self._unused -= fits
        return fits

    def takes(self, topic: str) -> bool:
        """Return whether to record the next message of *topic*; counts it if so."""
        if not self.wants(topic):
            return False
        if self.limit is not None:
            if self._counts[topic] >= self.limit:
                return False
            self._counts[topic] += 1
        return True

    def has_all(self, topic: str) -> bool:
        """Return whether all messages of *topic* that are wanted were recorded."""
        return not self.wants(topic) or (self.limit is not None and self._counts[topic] >= self.limit)

    @property
    def is_complete(self) -> bool:
        """Whether the topics were given by names, and each has as many messages as wanted."""
        return (
            self.limit is not None
            and self._topics is not None
            and not any(map(is_pattern, self._topics))
            and all(self._counts[name] >= self.limit for name in self._topics)
        )

    def unused(self) -> list[str]:
        """Return the names, patterns and conditions that fitted no channel."""
        return [name for name in [*(self._topics or ()), *self._exclude] if name in self._unused]
