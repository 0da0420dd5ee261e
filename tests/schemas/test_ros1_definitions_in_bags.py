"""Definitions and messages in real bags."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import SHARED
from logreel.layout.layout import Layout
from logreel.schemas.ros1msg import define, layout, parse, standard
from support.oracles.layout_walker import decode_all
from support.oracles.ros1 import connections, payloads_1_1

BAGS = sorted((SHARED / "rosbag").glob("*.bag")) or sorted((SHARED / "data" / "rosbag").glob("*.bag"))
#: Bags without a definition in them, or with none that is true.
BARE = ("v20_no_messages", "v20_invalid", "v20_empty_msgdef", "v11_", "syn_v0", "syn_v10", "syn_v11")

if not BAGS:
    pytest.skip(f"no samples of real bags below {SHARED}; set LOGREEL_SHARED", allow_module_level=True)


@pytest.mark.parametrize("path", [b for b in BAGS if not b.name.startswith(BARE)], ids=lambda p: p.stem)
def test_every_definition_has_the_hash_that_the_bag_says(path: Path):
    found = connections(path)
    assert found
    for one, payloads in found:
        definition = parse(one.text, one.type)
        assert definition.md5 == one.md5
        assert definition.matches(one.md5)
        # Types that the text omits are known.
        known = standard().find(one.type, one.md5)
        assert one.type.startswith("pr2_") or known.md5 == one.md5
        node = layout(definition)
        assert not known or layout(known) == node
        for payload in payloads[:50]:
            value, left = decode_all(node.root, payload)
            assert left == 0
            assert repr(node.decoder()(memoryview(payload))) == repr(value)


def test_texts_are_printed_as_they_were():
    texts = [(one.text, one.type) for path in BAGS for one, _ in connections(path) if one.text]
    assert len(texts) > 50
    for text, name in texts:
        assert parse(text, name).text == text


def test_missing_definition_of_a_bag_is_completed():
    (one, payloads) = connections(next(b for b in BAGS if b.stem == "v20_empty_msgdef_zero_data"))[0]
    assert one.text == ""
    assert {len(p) for p in payloads} == {0}
    assert standard().find(one.type, one.md5) is None


def test_messages_of_2008_are_known():
    path = next(b for b in BAGS if b.stem == "v11_real_ekf_test_2008")
    found = payloads_1_1(path)
    assert {key: len(p) for key, p in found.items()} == {
        ("imu_data", "std_msgs/PoseWithRatesStamped"): 4583,
        ("odom", "std_msgs/RobotBase2DOdom"): 1347,
    }
    for (_, name), payloads in found.items():
        node: Layout = layout(define(name))
        values = [decode_all(node.root, payload) for payload in payloads]
        assert {left for _, left in values} == {0}
    first = layout(define("std_msgs/PoseWithRatesStamped")).decoder()(
        memoryview(found["imu_data", "std_msgs/PoseWithRatesStamped"][0])
    )
    assert first["header"] == {"seq": 21227, "stamp": 1230660784310129025, "frame_id": "imu"}
    assert round(first["acc"]["acc"]["az"], 3) == -9.798
    turn = first["pos"]["orientation"]
    assert abs(sum(v * v for v in turn.values()) - 1) < 1e-3
