"""Live sources continue a log: topics keep their channels, whatever the other sources do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Scalar, Struct
from logreel.ops.record import Feed, record

START = 1_700_000_000 * 10**9
NUMBERED = Layout(Struct((Field("n", Scalar("int64")), Field("x", Scalar("float64")))))
OTHER = Layout(Struct((Field("name", Scalar("float32")),)))


class Numbers:
    """A source of *count* messages, one ms apart."""

    def __init__(self, topic: str, first: int, count: int, layout: Layout = NUMBERED) -> None:
        self.name = f"numbers of {topic}"
        self._topic, self._first, self._count, self._layout = topic, first, count, layout

    def run(self, feed: Feed) -> None:
        channel = feed.channel(self._topic, self._layout)
        feed.settled = True
        if channel is not None:
            for n in range(self._first, self._first + self._count):
                row: dict[str, Any] = {"n": n, "x": n / 2} if self._layout is NUMBERED else {"name": n}
                feed.put(channel, START + n * 10**6, row, wait=True)


@pytest.mark.parametrize("suffix", [".bag", ".bddf", ".mcap", ".ulg"])
def test_live_messages_continue_their_channels(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    for first in (0, 500, 1000):
        done = record([Numbers("a", first, 500), Numbers("b", first, 500)], path, mode="a")
        assert (done.skipped, done.losses) == ((), ())
    log = logreel.open(path)
    assert log.problems == ()
    assert sorted(ch.topic for ch in log.match(None)) == ["a", "b"]
    for topic in "ab":
        assert log[topic]["n"].tolist() == list(range(1500))


def test_another_type_of_a_known_topic_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    record(Numbers("a", 0, 10), path)
    done = record([Numbers("a", 10, 10, OTHER), Numbers("b", 10, 10)], path, mode="a")
    assert any("another definition" in sentence for sentence in done.skipped), done.skipped
    log = logreel.open(path)
    assert (len(log["a"]), len(log["b"])) == (10, 10)
