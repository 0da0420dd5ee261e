"""Which messages a recording takes: topics by name or pattern, and a number of messages for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from logreel.log.topic_match import fitting, listed


class Selection:
    """Decides by topic, and counts.

    topics, exclude  names, shell patterns or ``re:`` and a regular expression, as in ``Log.messages``; None: all
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
        self._unused = {*(self._topics or ()), *self._exclude}
        self._counts = Counter[str]()
        for pattern in self._unused:
            fitting([], pattern)

    def wants(self, topic: str) -> bool:
        """Return whether messages of *topic* are recorded at all."""
        if topic not in self._known:
            fits = {pattern for pattern in self._unused_and_used() if fitting([topic], pattern)}
            self._unused -= fits
            wanted = self._topics is None or bool(fits.intersection(self._topics))
            self._known[topic] = wanted and not fits.intersection(self._exclude)
        return self._known[topic]

    def _unused_and_used(self) -> set[str]:
        return {*(self._topics or ()), *self._exclude}

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
            and not any(char in name for name in self._topics for char in "*?[")
            and not any(name.startswith("re:") for name in self._topics)
            and all(self._counts[name] >= self.limit for name in self._topics)
        )

    def unused(self) -> list[str]:
        """Return the names and patterns that fitted no topic."""
        return [name for name in [*(self._topics or ()), *self._exclude] if name in self._unused]
