"""The log of a test: a Log of logreel whose fields are Signals."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np

import logreel
from logreel_pytest.signals import Signal

_NOTHING = np.zeros((0, 0))
_NAME = re.compile(r'"([^"]+)"\.|([A-Za-z_]\w*)\.')


class RunLog:
    """An open log; members are those of ``logreel.Log``, which is its attribute ``log``.

    Functions of logreel take it as they take a path: ``logreel.check(log)``.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the log at *path*; raises what ``logreel.open`` raises."""
        self.path = os.fspath(path)
        self.log = logreel.open(self.path)

    def __enter__(self) -> RunLog:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the log."""
        self.log.close()

    def __fspath__(self) -> str:
        """Return the path, so that functions which take paths take it."""
        return self.path

    def __getattr__(self, name: str) -> Any:
        """Return a member of the log."""
        return getattr(self.log, name)

    def __contains__(self, topic: object) -> bool:
        """Return whether the log has a topic."""
        return topic in self.log

    def __getitem__(self, topic: str) -> RunChannel:
        """Return a channel; raises TopicError, which names similar ones."""
        return RunChannel(self.log[topic], self.log.start or 0)

    def where(self, condition: str) -> Signal:
        """Return for each message of a topic whether it meets a condition in SQL, such as ``battery_status.v < 14``.

        The condition is about the fields of one topic. Needs ``logreel[sql]``. Raises UsageError for one that names no
        topic of the log, or several.
        """
        topics = {topic.strip("/"): topic for topic in self.log.channels}
        named = {quoted or plain for quoted, plain in _NAME.findall(condition)} & topics.keys()
        if len(named) != 1:
            told = "no topic of the log" if not named else f"several topics, {', '.join(sorted(named))}"
            raise logreel.UsageError(
                f"the condition {condition!r} names {told}: it is about the fields of one"
            )
        (name,) = named
        query = f'SELECT time_ns, coalesce(({condition}), false) AS met FROM "{name}" ORDER BY time_ns'
        table = logreel.sql(query, self.log)
        times = np.array(table["time_ns"].to_pylist(), np.int64)
        met = np.array(table["met"].to_pylist(), bool)
        return Signal(
            met, condition, times, self.log.start or 0, self._compared(topics[name], name, condition, times)
        )

    def _compared(self, topic: str, name: str, condition: str, times: Any) -> Any:
        """Return the values of the first field in a condition in the order of *times*; None if it is no number."""
        field = re.search(rf'(?:"{re.escape(name)}"|\b{re.escape(name)})\.([\w.\[\]]+)', condition)
        try:
            values = np.asarray(self.log[topic][field[1]]) if field is not None else _NOTHING
        except logreel.LogError:
            return None
        if values.ndim != 1 or values.dtype.kind not in "iufb" or len(values) != len(times):
            return None
        return values[np.argsort(self.log[topic]["time"], kind="stable")]


class RunChannel:
    """A channel; members are those of ``logreel.Channel``, which is its attribute ``channel``."""

    def __init__(self, channel: logreel.Channel, start: int) -> None:
        """Take over an open channel; *start*: first time of the log, ns."""
        self.channel, self._start = channel, start

    def __getattr__(self, name: str) -> Any:
        """Return a member of the channel."""
        return getattr(self.channel, name)

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self.channel)

    def __getitem__(self, key: Any) -> Any:
        """Return a field as a Signal; anything else as the channel does."""
        values = self.channel[key]
        if not isinstance(key, str) or key == "time":
            return values
        return Signal(values, f"{self.channel.topic}.{key}", self.channel["time"], self._start)
