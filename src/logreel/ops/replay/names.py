"""Other topics for the channels of a replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from logreel.errors import TopicError, UsageError
from logreel.log.log import Channel


def renamed(channels: Sequence[Channel], prefix: str, names: Mapping[str, str]) -> list[Channel]:
    """Return *channels* with the topics that they are played with; a channel that keeps its topic is the same object.

    prefix  text in front of each topic, except reserved ones and those in *names*; ``//`` becomes ``/``, and a topic
            that begins with ``/`` still does
    names   complete new topics by old ones; an old topic is that of the log, or that with the prefix; a ``/`` at the
            begin of both may be left out, as in ROS

    Channels of one topic with other definitions (``/imu[1]``) keep that number. Raises TopicError for an old topic that
    no channel has, UsageError for an empty new one.
    """
    new = NewTopics(prefix, names)
    found = [new.of(ch) for ch in channels]
    new.check(channels)
    return found


class NewTopics:
    """The topics that channels are played with, of channels that may come one after the other; see ``renamed``."""

    def __init__(self, prefix: str, names: Mapping[str, str]) -> None:
        for old, new in names.items():
            if not new or not old:
                raise UsageError(f"a topic is renamed from one name to another, not from {old!r} to {new!r}")
        self._prefix, self._names, self._used = prefix, names, set[str]()
        self._copies: dict[Channel, Channel] = {}

    def of(self, ch: Channel) -> Channel:
        """Return *ch* with its topic of the replay: the same object in every call, with the present content of *ch*."""
        topic = _topic(ch.topic, self._prefix, self._names, self._used)
        if topic == ch.topic:
            return ch
        if ch not in self._copies:
            # Not copy.copy, which looks the channel up in its log, as pickle does.
            self._copies[ch] = object.__new__(type(ch))
        other = self._copies[ch]
        vars(other).update(vars(ch))
        other.topic = topic
        return other

    def check(self, channels: Sequence[Channel]) -> None:
        """Raise TopicError for an old topic that none of *channels*, all channels that were renamed, has."""
        for old in self._names:
            if old not in self._used:
                raise TopicError("channel to be renamed", old, [ch.topic for ch in channels])


def _topic(topic: str, prefix: str, names: Mapping[str, str], used: set[str]) -> str:
    """Return the new name of *topic*; adds the key of *names* that it took to *used*."""
    name, bracket, number = topic.partition("[")
    full = name if name[:1] == "~" else _prefixed(name, prefix)
    for whole in (topic, full, name):
        if whole in names:
            used.add(whole)
            return names[whole] + (bracket + number if whole != topic else "")
        if whole[:1] == "/" and whole[1:] in names:
            used.add(whole[1:])
            return "/" + names[whole[1:]].removeprefix("/") + bracket + number
    return full + bracket + number


def _prefixed(name: str, prefix: str) -> str:
    if not prefix:
        return name
    if name[:1] == "/" and prefix[:1] != "/":
        prefix = "/" + prefix
    return prefix + (name[1:] if name[:1] == "/" and prefix[-1:] == "/" else name)
