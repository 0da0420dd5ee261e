"""Tables of messages, the tree of frames and states of parts, against plain loops over the messages."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from logreel.lenses import Diagnostics
from logreel.meaning import frames
from logreel.meaning.frames import LISTED, LogFrames
from outputs.view.test_view_requests import Page, viewing
from support.oracles.ros1 import channel
from support.samples.rosbag.cart import RATE, SECONDS, STRAIGHT, cart, transform

S = 10**9


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    path = tmp_path / "cart.bag"
    path.write_bytes(cart())
    with viewing(path) as opened:
        yield opened


def test_rows_are_the_fields_of_messages(page: Page) -> None:
    got = page.json("rows", topic="/joint_states", at=2 * S + 1, first=18, count=5)
    assert (got["count"], got["first"], got["row"], got["error"]) == (SECONDS * RATE + 1, 18, 20, None)
    assert got["times"] == [n * S // RATE for n in range(18, 23)]
    assert len(got["rows"]) == 5
    names = got["fields"]
    assert {"header.stamp", "header.frame_id", "name", "position"} <= {*names}
    assert got["rows"][2][names.index("name")] == "[wheel_joint, mast_joint]"


def test_rows_leave_out_bytes_and_end_with_the_channel(page: Page) -> None:
    got = page.json("rows", topic="/camera/image/compressed", first=19, count=50)
    assert [len(row) for row in got["rows"]] == [len(got["fields"])] * 2
    assert "format" in got["fields"]
    assert "data" not in got["fields"]
    assert page.json("rows", topic="/points", first=10**9)["rows"] == []
    assert page.json("rows", topic="/points", count=0)["row"] == 0


def test_states_of_parts_are_the_last_ones_the_worst_first(page: Page) -> None:
    got = page.json("diagnostics", at=2 * S)
    assert [(one["name"], one["level"], one["since"]) for one in got["parts"]] == [
        ("motor", 2, 1.5 * S),
        ("lidar", 1, S // 2),
        ("battery", 0, S // 2),
    ]
    assert got["parts"][0]["values"] == [["tick", "15"]]
    assert page.json("diagnostics", at=0)["parts"] == []


def test_states_at_each_moment_are_those_of_a_plain_loop() -> None:
    rng = np.random.default_rng(5)
    messages = [
        {
            "status": [
                {
                    "name": str(rng.choice(["a", "b", "c"])),
                    "level": int(rng.integers(4)),
                    "message": f"{n}.{k}",
                }
                for k in range(rng.integers(4))
            ]
        }
        for n in range(40)
    ]
    ch = channel("diagnostic_msgs/DiagnosticArray", *messages)
    latest = Diagnostics().states(ch)
    worst = {2: 0, 3: 1, 1: 2, 0: 3}
    last: dict[str, dict[str, Any]] = {}
    since: dict[str, int] = {}
    for n, message in enumerate(messages):
        for one in message["status"]:
            if one["name"] not in last or last[one["name"]]["level"] != one["level"]:
                since[one["name"]] = n
            last[one["name"]] = one
        want = sorted(last.values(), key=lambda one: (worst[one["level"]], one["name"]))
        found = latest(n * S + 1)
        assert [(p.name, p.level, p.message) for p in found] == [
            (o["name"], o["level"], o["message"]) for o in want
        ]
        assert {p.name: p.since // S for p in found} == since
        for part in found:
            status = ch[part.row].decode()["status"][part.place]
            assert (status["name"], status["message"]) == (part.name, part.message)


def test_frames_have_their_age_at_the_moment(page: Page) -> None:
    frames = page.json("frames", at=2 * S + 30_000_000)["frames"]
    assert [(one["name"], one["parent"], one["depth"], one["static"]) for one in frames] == [
        ("map", "", 0, True),
        ("base_link", "map", 1, False),
        ("camera", "base_link", 2, True),
        ("lidar", "base_link", 2, True),
    ]
    base = frames[1]
    assert (base["age"], base["rate"], base["messages"]) == (30_000_000, RATE, SECONDS * RATE + 1)
    assert base["topics"] == ["/tf"]


def test_interruptions_of_frames_are_listed_the_longest_ones() -> None:
    place = {"x": 0.0, "y": 0.0, "z": 0.0}
    # Ten a second, with pauses that grow.
    times, now = [], 0
    for n in range(LISTED + 5):
        times += [now + k * S // 10 for k in range(40)]
        now = times[-1] + (2 * S + n * S // 4)
    messages = [{"transforms": [transform("base", place, STRAIGHT, "map", t + S)]} for t in times]
    messages += [{"transforms": [transform("tool", place, STRAIGHT, "base", times[0] + S)]}]
    log = channel("tf2_msgs/TFMessage", *messages).log
    found = LogFrames.of(log)
    gaps = [(a + S, b + S) for a, b in pairwise(times) if b - a > S]
    _, base, tool = found.states(gaps[3][0] + S)
    assert (base.gap_count, base.gaps, base.is_gap) == (LISTED + 4, gaps[4:], True)
    assert base.age == S
    assert tool.rate is None
    assert found.states(times[0])[1].age == -S
    assert not found.states(times[5] + S)[1].is_gap


def test_frames_in_a_circle_are_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    place = {"x": 0.0, "y": 0.0, "z": 0.0}
    pairs = [("a", "b"), ("b", "a"), ("c", "a")]
    sent = [transform(child, place, STRAIGHT, parent, S) for child, parent in pairs]
    log = channel("tf2_msgs/TFMessage", {"transforms": sent}).log
    assert sorted(state.name for state in LogFrames.of(log).states(S)) == ["a", "b", "c"]
    monkeypatch.setattr(frames, "MESSAGES", 0)
    assert sorted(state.name for state in LogFrames(log).states(S)) == ["a", "b", "c"]


def test_logs_without_transforms_have_no_frames() -> None:
    plain = channel("std_msgs/String", {"data": "x"}).log
    assert LogFrames.of(plain).states(0) == []
