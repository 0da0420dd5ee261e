"""``logreel.info``: keys and values."""

from __future__ import annotations

import json

import logreel
from logreel.ops.json_values import to_json_values
from support.builders.sample_logs import damaged, hostile, short_flight, tiny

KEYS = [
    "path", "format", "version", "size", "epoch", "start_ns", "end_ns", "messages", "channels", "metadata",
    "attachments", "segments", "problems",
]  # fmt: skip
CHANNEL_KEYS = ["topic", "type", "encoding", "messages", "bytes", "start_ns", "end_ns", "metadata"]


def test_keys_are_those_of_the_contract() -> None:
    data = logreel.info(tiny()).as_dict()
    assert list(data) == KEYS
    assert all(list(channel) == CHANNEL_KEYS for channel in data["channels"])
    assert all(list(one) == ["name", "media_type", "size"] for one in data["attachments"])


def test_values_agree_with_the_log() -> None:
    log = logreel.open(short_flight())
    data = logreel.info(log).as_dict()
    assert (data["format"], data["version"], data["size"]) == (log.format, log.version, log.size)
    assert (data["start_ns"], data["end_ns"], data["epoch"]) == (log.start, log.end, log.epoch)
    assert data["messages"] == log.message_count
    assert data["messages"] == sum(c["messages"] for c in data["channels"] if c["topic"][0] != "~")
    assert [c["topic"] for c in data["channels"]] == list(log.channels)
    assert any(c["messages"] == 0 and c["start_ns"] is None for c in data["channels"])
    assert [a["name"] for a in data["attachments"]] == list(log.attachments)


def test_problems_are_in_the_info() -> None:
    (problem,) = logreel.info(damaged()).as_dict()["problems"]
    assert list(problem) == ["code", "offset", "size", "lost", "text"]
    assert problem["lost"] is True


def test_every_value_of_a_log_becomes_valid_json() -> None:
    for log in (tiny(), hostile(), damaged()):
        json.dumps(logreel.info(log).as_dict(), allow_nan=False)


def test_to_json_values_keeps_every_value() -> None:
    value = {1: [b"\x00\xff", (float("nan"), float("inf"), -float("inf"))], "n": 2**63, "x": 0.1, "t": True}
    found = {"1": ["AP8=", ["NaN", "Infinity", "-Infinity"]], "n": 2**63, "x": 0.1, "t": True}
    assert to_json_values(value) == found
