"""Names and patterns of topics."""

from __future__ import annotations

import pytest

from logreel.errors import TopicError, UsageError
from logreel.log.topic_match import match_topics

NAMES = ["sensor_accel", "sensor_accel[1]", "sensor_gyro", "/imu/data", "~text", "~dropout"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (None, NAMES[:4]),
        ([], []),
        ("sensor_accel", ["sensor_accel"]),
        ("sensor_accel[1]", ["sensor_accel[1]"]),
        ("sensor_accel*", ["sensor_accel", "sensor_accel[1]"]),
        ("sensor_?yro", ["sensor_gyro"]),
        ("*", NAMES[:4]),
        ("~*", ["~text", "~dropout"]),
        ("~text", ["~text"]),
        (["sensor_gyro", "sensor_accel"], ["sensor_accel", "sensor_gyro"]),
        (["*", "~text", "*"], NAMES[:5]),
        ("/imu/*", ["/imu/data"]),
        ("[s/]*", NAMES[:4]),
        ("re:sensor_(accel|gyro)", ["sensor_accel", "sensor_gyro"]),
        ("re:.*", NAMES[:4]),
        ("re:.*\\[1\\]", ["sensor_accel[1]"]),
        ("re:~.*", ["~text", "~dropout"]),
        (["re:/.*", "~text"], ["/imu/data", "~text"]),
    ],
)
def test_matched_names_are_in_the_order_of_the_log(wanted: object, found: list[str]) -> None:
    assert match_topics(NAMES, wanted) == found  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wanted", ["sensor_acel", "SENSOR*", "", "~nothing*", "sensor_accel[2]", "[", "text", "re:imu", "re:"]
)
def test_pattern_without_match_is_named_in_the_error(wanted: str) -> None:
    with pytest.raises(TopicError) as caught:
        match_topics(NAMES, ["sensor_gyro", wanted], "log.ulg")
    assert repr(wanted) in str(caught.value)
    assert "log.ulg" in str(caught.value)
    if wanted == "sensor_acel":
        assert caught.value.nearest[0] == "sensor_accel"


def test_invalid_regular_expression_is_refused() -> None:
    with pytest.raises(UsageError, match="re:\\[: not a regular expression"):
        match_topics(NAMES, "re:[")
    assert match_topics(["re:["], "re:[") == ["re:["]
