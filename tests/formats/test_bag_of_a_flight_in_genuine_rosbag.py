"""A bag made from a ULog, read by genuine rosbag: every message has the values that the ULog has."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import logreel
from support.builders.contents import SAMPLES
from support.oracles import genuine_rosbag


def comparable(value: Any) -> Any:
    """Return *value* as rosbag shows it: bytes as numbers, text of fixed size without NULs, NaN equal to NaN."""
    if isinstance(value, dict):
        return {name: comparable(one) for name, one in value.items()}
    if isinstance(value, bytes):
        return list(value)
    if isinstance(value, (list, tuple)):
        return [comparable(one) for one in value]
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    return value


def compare(flight: Path, bag: Path) -> int:
    """Compare all messages by topic; return their number."""
    logreel.convert(flight, bag)
    found = defaultdict(list)
    for one in genuine_rosbag.decoded(bag):
        found[one.topic].append((one.time, one.md5, comparable(one.data)))
    log, made = logreel.open(flight), logreel.open(bag)
    compared = 0
    for topic, messages in found.items():
        assert len(messages) == len(made[topic])
        # Not the type: rosbag has one class for all types with the same checksum, that is the same fields.
        assert {md5 for _, md5, _ in messages} == {made[topic].metadata["md5sum"]}
        if topic == "/rosout":
            # Its lines are those of the logged strings.
            due = log["~text"]["text"].tolist()
            assert all(
                text.endswith(data["msg"]) for text, (_, _, data) in zip(due, messages, strict=True)
            ), topic
            continue
        source = log[original(made[topic])]
        due = [comparable(message.decode()) for message in source.log.messages([source.topic], order="file")]
        # rosbag returns messages by time, which is not always their order in a ULog.
        assert sorted(repr(data) for _, _, data in messages) == sorted(map(repr, due)), topic
        compared += len(messages)
    assert set(found) == {topic for topic, ch in made.channels.items() if len(ch)}
    return compared


def original(channel: logreel.Channel) -> str:
    from logreel.write.log_copier import original_of

    was = original_of(channel)
    assert was is not None
    return was.topic


def test_a_generated_flight(tmp_path: Path) -> None:
    genuine_rosbag.genuine("std_msgs")
    (tmp_path / "a.ulg").write_bytes(SAMPLES[".ulg"]())
    assert compare(tmp_path / "a.ulg", tmp_path / "a.bag") > 1000


def test_a_real_flight(shared: Path, tmp_path: Path) -> None:
    genuine_rosbag.genuine("std_msgs")
    path = shared / "data" / "ulog" / "mcap_test_ulog.ulg"
    if not path.exists():
        pytest.skip("no samples beside the repository (LOGREEL_SHARED)")
    assert compare(path, tmp_path / "a.bag") > 1000
