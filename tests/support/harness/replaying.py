"""Logs of numbered messages, and a clock that the test controls, for tests of replays."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Condition
from typing import NamedTuple

import logreel
from logreel.ops.replay.transport import Timer

#: ns of the first moment of most logs.
BASE = 1_000 * 10**9
MS = 10**6
NUMBER = logreel.Schema("std_msgs/Int32", "ros1msg", "int32 data\n")


class Numbered(NamedTuple):
    """A message with a number; *time*: ns after BASE."""

    topic: str
    time: int
    number: int


def bag(path: Path, messages: Iterable[Numbered], latched: tuple[str, ...] = ()) -> logreel.Log:
    """Return an open bag of *messages* in the given order."""
    with logreel.create(path) as w:
        channels: dict[str, int] = {}
        for topic, time, number in messages:
            if topic not in channels:
                channels[topic] = w.add_channel(topic, NUMBER, {"latching": topic in latched})
            w.write(channels[topic], BASE + time, struct.pack("<i", number))
    return logreel.open(path)


def number(message: logreel.Message) -> int:
    """Return the number in a message."""
    found: int = struct.unpack("<i", message.data)[0]
    return found


def numbers(messages: Iterable[logreel.Message]) -> list[int]:
    """Return the numbers in messages, without those of the clock."""
    return [number(m) for m in messages if m.channel.topic != "/clock"]


class FakeTimer(Timer):
    """Clock that advances only during sleep; ``at`` schedules calls."""

    def __init__(self) -> None:
        self.time = 5 * 10**9
        self.begin = self.time
        self.slept: list[int] = []
        self.plan: list[tuple[int, Callable[[], object]]] = []

    def at(self, ns: int, call: Callable[[], object]) -> None:
        """Schedule a call at a time after the start."""
        self.plan.append((self.begin + ns, call))
        self.plan.sort(key=lambda one: one[0])

    @property
    def passed(self) -> int:
        """Time since the start, ns."""
        return self.time - self.begin

    def now(self) -> int:
        return self.time

    def sleep(self, changed: Condition, ns: int) -> None:
        self.slept.append(ns)
        if self.plan and self.plan[0][0] <= self.time + ns:
            self.time, call = max(self.time, self.plan[0][0]), self.plan.pop(0)[1]
            call()
        elif ns >= 60 * 10**9 and not self.plan:
            raise AssertionError("waits for what never happens")
        else:
            self.time += ns

    def nap(self) -> None:
        self.time += 1000
