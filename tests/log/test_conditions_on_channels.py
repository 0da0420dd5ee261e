"""Channels selected by what they say of themselves: ``key=value``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

import logreel
from logreel.errors import TopicError, UsageError
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, FixedArray, Scalar, Sequence, String, Struct
from logreel.log.scan import Facts, Schema, units_of
from logreel.log.topic_match import fitting, match_in_each, match_topics
from support.builders.contents import SAMPLES
from support.samples.bddf.builder import T0, Builder, num, raw

SERVICE, TYPE = "bosdyn:grpc:service", "bosdyn:message-type"


def calls(service: str = "robot-state") -> bytes:
    """Return a log of calls of two services, and plain values in metres and radians."""
    out = Builder()
    for name in (service, "power"):
        for kind in ("requests", "responses"):
            message = f"{name}.{kind}"
            content = raw(4, raw(1, "application/protobuf") + raw(2, message) + num(3, False))
            spec = {SERVICE: name, TYPE: message}
            number = out.series(spec, content, kind=f"bosdyn:grpc:{kind}", annotations={"site:owner": "a, b"})
            out.data(number, T0, b"")
    out.values(out.pods({"varname": "x"}, "float32", units="m"), T0, "float32", [1])
    out.values(out.pods({"varname": "v"}, "float32", units="m/s"), T0, "float32", [1])
    return out.bytes()


@pytest.fixture(scope="module")
def log() -> Iterator[logreel.Log]:
    with logreel.open(calls()) as found:
        yield found


REQUESTS, RESPONSES = "robot-state/robot-state.requests", "robot-state/robot-state.responses"
POWER = ["power/power.requests", "power/power.responses"]
FOUR = [REQUESTS, RESPONSES, *POWER]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("service=robot-state", [REQUESTS, RESPONSES]),
        ("bosdyn:grpc:service=robot-state", [REQUESTS, RESPONSES]),
        ("spec.bosdyn:grpc:service=robot-state", [REQUESTS, RESPONSES]),
        ("service=robot*", [REQUESTS, RESPONSES]),
        ("service=re:robot-.*|power", FOUR),
        ("type=*.requests", [REQUESTS, POWER[0]]),
        ("type=*.requests,service=power", [POWER[0]]),
        (["service=power,type=power.responses", "units=m"], [POWER[1], "x"]),
        ("series_type=bosdyn:grpc:requests", [REQUESTS, POWER[0]]),
        ("encoding=protobuf", FOUR),
        ("encoding=b*", ["x", "v"]),
        ("units=m", ["x"]),
        ("unit=m/*", ["v"]),
        ("owner=a, b", FOUR),
        ("annotations.site:owner=a, b,service=power", POWER),
        ("topic=power/*", POWER),
        ("is_metadata=false", FOUR),
    ],
)
def test_channels_are_selected_by_type_units_and_metadata(
    log: logreel.Log, wanted: str, found: list[str]
) -> None:
    assert [ch.topic for ch in log.match(wanted)] == found


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("servce=power", "no key 'servce'; nearest: service"),
        ("service=powr", "no channel with service 'powr'; nearest: power"),
        ("service=power,units=m", "no channel with service=power and units 'm'; none states its units"),
        (
            "type=*.requests,service=x",
            "no channel with type=*.requests and service 'x'; there are: robot-state, power",
        ),
    ],
)
def test_a_condition_without_match_lists_the_keys_or_values_that_exist(
    log: logreel.Log, wanted: str, said: str
) -> None:
    with pytest.raises(TopicError) as caught:
        log.match(wanted)
    assert caught.value.text == said


def test_an_invalid_expression_in_a_condition_is_refused(log: logreel.Log) -> None:
    with pytest.raises(UsageError, match="not a regular expression"):
        log.match("service=re:[")


def described(**channels: dict[str, Any]) -> dict[str, Any]:
    """Return channels with the given metadata, by topic."""

    class One:
        def __init__(self, topic: str, metadata: dict[str, Any]) -> None:
            self.facts = Facts(topic, Schema("T", "e"), metadata)

    return {topic: One(topic, metadata) for topic, metadata in channels.items()}


def test_an_existing_topic_is_never_a_condition() -> None:
    channels = described(**{"type=T": {}, "b": {}})
    assert match_topics(channels, "type=T") == ["type=T"]
    assert match_topics(channels, "topic=type=T") == ["type=T"]
    assert match_topics({"b": channels["b"]}, "type=T") == ["b"]


def test_an_existing_value_is_no_pattern() -> None:
    channels = described(a={"k": "x*"}, b={"k": "xy"})
    assert match_topics(channels, "k=x*") == ["a"]
    assert match_topics(channels, "k=x?") == ["a", "b"]


def test_topics_with_an_equals_sign_fit_patterns_if_no_channel_has_the_key() -> None:
    assert match_topics(described(**{"a=1": {}, "a=2": {}}), "a=*") == ["a=1", "a=2"]
    assert match_topics(["a=1", "type=T"], "*=*") == ["a=1", "type=T"]


def test_reserved_channels_are_selected_only_by_their_topic() -> None:
    channels = described(**{"~text": {}, "b": {}})
    assert match_topics(channels, "type=T") == ["b"]
    assert match_topics(channels, "type=T,topic=~*") == ["~text"]


def test_lists_nested_entries_numbers_and_bytes_are_values() -> None:
    metadata = {
        "headers": ({"callerid": "/a"}, {"callerid": "/b"}),
        "latching": True,
        "id": 7,
        "raw": b"\xffz",
        "none": None,
    }
    facts = Facts("t", Schema("T", "e"), MappingProxyType(metadata))
    assert facts["callerid"] == facts["headers.callerid"] == ("/a", "/b")
    assert facts["latching"] == ("true",)
    assert facts["id"] == ("7",)
    assert facts["raw"] == ("\\xffz",)
    assert "none" not in facts
    assert facts["unit"] == facts["units"] == ()


def test_units_are_those_of_all_fields_once_each() -> None:
    point = Struct(
        (Field("x", Scalar("float32"), "m"), Field("name", String()), Field("t", Scalar("int8"), "s"))
    )
    root = Struct(
        (Field("a", FixedArray(point, 2)), Field("b", Sequence(point)), Field("v", Scalar("int8"), "V"))
    )
    assert sorted(units_of(Layout(root))) == ["V", "m", "s"]


def test_a_condition_has_to_fit_one_of_several_logs(log: logreel.Log) -> None:
    with logreel.open(calls("arm")) as other:
        both = (log.channels, other.channels)
        assert match_in_each(both, "service=arm") == [set(), {"arm/arm.requests", "arm/arm.responses"}]
        with pytest.raises(
            TopicError, match="no channel with service 'x'; there are: robot-state, power, arm"
        ):
            match_in_each(both, ["service=power", "service=x"])


def test_every_place_that_takes_topics_takes_conditions(log: logreel.Log, tmp_path: Any) -> None:
    one = [REQUESTS, RESPONSES]
    assert {message.channel.topic for message in log.messages("service=robot-state")} == {*one}
    assert list(log.tables("units=m")) == ["x"]
    logreel.slice(log, tmp_path / "s.bddf", topics="encoding=protobuf", exclude="service=power")
    with logreel.open(tmp_path / "s.bddf") as cut:
        assert list(cut) == one
        assert [ch.topic for ch in logreel.diff(log, cut, topics="service=robot-state").channels] == one
    logreel.merge([log], tmp_path / "m.bddf", topics="service=power", exclude="type=*.requests")
    with logreel.open(tmp_path / "m.bddf") as cut:
        assert list(cut) == POWER[1:]
    assert [ch.topic for ch in logreel.info(log, topics="units=m*", exclude="units=m").channels] == ["v"]
    logreel.convert(log, tmp_path / "x.csv", topics="units=m")
    assert {message.channel.topic for message in logreel.play(log, topics="service=power", rate=1000)} == {
        *POWER
    }


def test_fields_can_be_taken_of_channels_that_fit_a_condition(log: logreel.Log) -> None:
    from logreel.log.topic_fields import fields_by_topic

    assert fields_by_topic(log, "units=m/s:value") == {"v": ["value"]}
    assert fields_by_topic(log, "encoding=bddf:value,sample") == {
        "x": ["value", "sample"],
        "v": ["value", "sample"],
    }
    with pytest.raises(UsageError, match="only whole channels"):
        log.match("units=m/s:value")


def test_names_without_channels_have_no_conditions() -> None:
    assert fitting(["a"], "type=T") == set()
    with pytest.raises(TopicError, match="no channel 'type=T'"):
        match_topics(["a"], "type=T")


@pytest.mark.parametrize("suffix", SAMPLES)
def test_lens_selects_by_the_meaning_of_messages(tmp_path: Path, suffix: str) -> None:
    from logreel.lenses import Image, Position, lenses

    path = tmp_path / f"a{suffix}"
    path.write_bytes(SAMPLES[suffix]())
    log = logreel.open(path)
    for name, kind in (("position", Position), ("image", Image)):
        due = [
            ch.topic
            for ch in log.channels.values()
            if not ch.reserved and any(isinstance(one, kind) for one in lenses(ch))
        ]
        if due:
            assert [ch.topic for ch in log.match(f"lens={name}")] == due
            assert [ch.topic for ch in log.match(f"lens={name[:4]}*")] == due
        else:
            with pytest.raises(logreel.TopicError, match="lens"):
                log.match(f"lens={name}")


def test_every_lens_has_a_name() -> None:
    from typing import get_args, get_type_hints

    from logreel import lenses
    from logreel.log.log import Channel

    named = set()
    for finder in lenses.LENSES.own().values():
        assert finder.name
        named |= set(get_args(get_type_hints(finder.find, localns={"Channel": Channel})["return"])) - {
            type(None)
        }
    assert named == set(get_args(lenses.Lens))


def test_types_of_ros_1_and_ros_2_are_the_same_in_both_spellings() -> None:
    types = {
        "/one": "sensor_msgs/LaserScan",
        "/two": "sensor_msgs/msg/LaserScan",
        "/other": "a/srv/LaserScan",
    }
    channels: Any = {
        topic: SimpleNamespace(facts=Facts(topic, Schema(name, "ros1msg"))) for topic, name in types.items()
    }
    for wanted in (
        "type=sensor_msgs/LaserScan", "type=sensor_msgs/msg/LaserScan", "type=sensor_msgs/*",
        "type=re:sensor_msgs/msg/.*", "type=sensor_msgs/msg/Laser*",
    ):  # fmt: skip
        assert match_topics(channels, wanted) == ["/one", "/two"], wanted
    assert match_topics(channels, "type=a/srv/LaserScan") == ["/other"]
