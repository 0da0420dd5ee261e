"""Recover writes every message that can be read from a damaged log, or reports that it was left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import logreel
from logreel.testing.mutations import mutate
from support.builders.contents import SAMPLES, patrol
from support.harness.examples import half
from support.samples.carla.builder import eventful
from support.samples.koblenz.drive import drive as ride
from support.samples.mcap.walk import walk
from support.samples.rosbag.builder import drive
from support.samples.rosbag2.builder import robot
from support.samples.ulog.builder import tiny

#: Small logs of each format, by suffix.
SMALL: dict[str, Callable[[], bytes]] = {
    ".bag": lambda: drive(0.2),
    ".bddf": patrol,
    ".mcap": lambda: walk(1.0),
    ".rec": lambda: eventful().bytes(),
    ".ulg": tiny,
    ".vel": lambda: ride(0.3),
    ".db3": lambda: robot(20, 500),
}


def delivered(log: logreel.Log) -> Counter[tuple[int, bytes]]:
    """All messages, by time and bytes: channels may have other names in another file."""
    return Counter((message.time, bytes(message.data)) for message in log.messages())


def test_every_format_is_tried() -> None:
    assert SMALL.keys() == SAMPLES.keys()


@pytest.mark.parametrize("suffix", sorted(SMALL))
@settings(max_examples=half(25), phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(seed=st.integers(0, 1 << 20))
def test_recover_writes_every_message_that_reading_delivers(
    suffix: str, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    out = tmp_path_factory.mktemp("saved") / f"saved{suffix}"
    try:
        log = logreel.open(mutate(SMALL[suffix](), seed))
    except logreel.LogError:
        return
    due = delivered(log)
    done = logreel.recover(log, out)
    found = logreel.open(out)
    assert not [problem for problem in found.problems if problem.lost]
    missing = (due - delivered(found)).total()
    told = sum(int(n) for sentence in done.skipped for n in re.findall(r"(\d+) messages", sentence))
    assert missing <= told, f"{missing} of {due.total()} messages are gone, {told} of them told"


@pytest.mark.parametrize("suffix", sorted(SMALL))
def test_a_cut_log_is_recovered_up_to_the_cut(suffix: str, tmp_path: Path) -> None:
    data = SMALL[suffix]()
    for n, cut in enumerate((len(data) // 3, len(data) // 2, len(data) - 7)):
        log = logreel.open(data[:cut])
        logreel.recover(log, tmp_path / f"{n}{suffix}")
        assert delivered(logreel.open(tmp_path / f"{n}{suffix}")) == delivered(log)
