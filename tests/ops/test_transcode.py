"""Channels whose definitions a format cannot hold are encoded again in its own, and come back as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import logreel
from support.builders.contents import SAMPLES


def sample(folder: Path, suffix: str) -> Path:
    path = folder / f"a{suffix}"
    path.write_bytes(SAMPLES[suffix]())
    return path


def test_a_flight_becomes_a_bag_with_the_names_of_px4(tmp_path: Path) -> None:
    flight = logreel.open(sample(tmp_path, ".ulg"))
    done = logreel.convert(flight, tmp_path / "a.bag")
    bag = logreel.open(tmp_path / "a.bag")
    lost = "channel '~text': tag left out: lines of text have no such fields"
    assert [text for text in done.skipped if text.startswith("channel")] == [lost]
    names = {"/px4/sensor_accel_0": "sensor_accel", "/px4/sensor_accel_1": "sensor_accel[1]"}
    names |= {"/px4/vehicle_attitude": "vehicle_attitude", "/px4/esc_status": "esc_status"}
    for name, before in names.items():
        assert bag[name].to_arrow().columns[1:] == flight[before].to_arrow().columns[1:]
        np.testing.assert_array_equal(bag[name].times, flight[before].times)
    assert bag["/px4/sensor_accel_1"].schema.name == "px4_msgs/SensorAccel"
    assert bag["/px4/vehicle_attitude"].schema.name == "px4_msgs/VehicleAttitude"


def test_texts_that_a_reader_would_cut_at_a_nul_are_counted(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "a.bag") as writer:
        note = writer.add_channel("/note", logreel.Schema("my/Note", "ros1msg", "string text\nfloat64 x\n"))
        for n, text in enumerate(["whole", "a\0b", "\0", "also whole"]):
            writer.write(note, 10**18 + n * 10**9, {"text": text, "x": n / 2})
    done = logreel.convert(tmp_path / "a.bag", tmp_path / "a.ulg")
    assert "channel '/note': 2 texts of 'text' end at a NUL character" in done.skipped
    with logreel.open(tmp_path / "a.ulg") as log:
        (topic,) = (topic for topic in log if "note" in topic)
        assert [message.decode()["text"] for message in log[topic]] == ["whole", "a", "", "also whole"]
    assert not any("NUL" in text for text in logreel.convert(tmp_path / "a.bag", tmp_path / "a.vel").skipped)


def test_messages_that_were_never_stamped_have_the_time_at_which_they_were_logged(tmp_path: Path) -> None:
    first = 100 * 10**9
    with logreel.create(tmp_path / "a.ulg") as writer:
        fields = logreel.Schema("sound", "ulog", "sound:uint64_t timestamp;float x;\n")
        sound, never = writer.add_channel("sound", fields), writer.add_channel("never", fields)
        once = writer.add_channel("once", fields)
        writer.write(once, 3 * 10**9, {"x": 0.0})
        for n in range(20):
            writer.write(sound, first + n * 10**8, {"x": float(n)})
            writer.write(never, 0, {"x": float(n)})
    flight = logreel.open(tmp_path / "a.ulg")
    assert flight["never"].times.tolist() == [0] * 20
    assert flight.start is not None
    done = logreel.convert(flight, tmp_path / "a.bag")
    note = "messages with times outside of the log have the time at which they were logged: "
    with logreel.open(tmp_path / "a.bag") as bag:
        assert bag.start >= min(first, flight.start)
        np.testing.assert_array_equal(bag["/px4/never"].times, flight["sound"].times)
        assert bag["/px4/never"]["timestamp"].tolist() == [0] * 20
        assert bag["/px4/once"].times.tolist() == [max(first, flight.start)] or flight.start < first
    assert [text for text in done.notes if text.startswith(note)], done.notes
    logreel.convert(tmp_path / "a.bag", tmp_path / "b.ulg")
    for topic, channel in logreel.open(tmp_path / "b.ulg").channels.items():
        np.testing.assert_array_equal(channel.times, flight[topic].times)
    # A part is selected by these times, too.
    logreel.convert(flight, tmp_path / "part.bag", start=first + 10**9, force=True)
    assert len(logreel.open(tmp_path / "part.bag")["/px4/never"]) == 10
    # A conversion of bytes keeps all times.
    logreel.convert(flight, tmp_path / "a.mcap", raw=True)
    assert logreel.open(tmp_path / "a.mcap")["never"].times.tolist() == [0] * 20


def test_constants_are_noted_once_and_come_back(tmp_path: Path) -> None:
    text = "uint8 OK = 0\nuint8 BAD=1  # worse\nstring NAME = a # b\nuint8 state\nstring words\n"
    with logreel.create(tmp_path / "a.bag") as writer:
        for topic in ("/one", "/two"):
            number = writer.add_channel(topic, logreel.Schema("my/State", "ros1msg", text))
            writer.write(number, 10**18, {"state": 1, "words": "OK = 2"})
    for other in (".ulg", ".bddf", ".vel"):
        done = logreel.convert(tmp_path / "a.bag", tmp_path / f"b{other}")
        (note,) = (text for text in done.notes if "constants" in text)
        assert note.startswith("definitions of 2 new channels have no constants (OK, BAD, NAME of '/one')")
        logreel.convert(tmp_path / f"b{other}", tmp_path / "c.bag", force=True)
        assert logreel.open(tmp_path / "c.bag")["/two"].schema.text == text


def test_values_of_enumerations_are_their_names_in_all_formats(tmp_path: Path) -> None:
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorProto(name="m.proto", package="m", syntax="proto3")
    kind = file.message_type.add(name="State")
    values = kind.enum_type.add(name="Mode").value
    for name, number in (("IDLE", 0), ("WALK", 1), ("RUN", 5)):
        values.add(name=name, number=number)
    kind.field.add(name="mode", number=1, type=14, type_name=".m.State.Mode", label=1)
    schema = logreel.Schema.of(
        "m.State", "protobuf", descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    )
    with logreel.create(tmp_path / "a.mcap") as writer:
        number = writer.add_channel("state", schema)
        for n, mode in enumerate(["WALK", "RUN", "IDLE", "RUN"]):
            writer.write(number, 10**18 + n, {"mode": mode})
    before = [m.decode()["mode"] for m in logreel.open(tmp_path / "a.mcap")["state"]]
    assert before == ["WALK", "RUN", "IDLE", "RUN"]
    for other in (".bag", ".ulg", ".bddf", ".vel"):
        logreel.convert(tmp_path / "a.mcap", tmp_path / f"b{other}")
        (channel,) = logreel.open(tmp_path / f"b{other}").channels.values()
        assert [m.decode()["mode"] for m in channel] == before
        logreel.convert(tmp_path / f"b{other}", tmp_path / "c.mcap", force=True)
        back = logreel.open(tmp_path / "c.mcap")["state"]
        assert (back.schema, [m.decode()["mode"] for m in back]) == (schema, before)


@pytest.mark.parametrize(
    ("one", "other"), [(".ulg", ".bag"), (".bag", ".vel"), (".vel", ".bag"), (".rec", ".bag")]
)
def test_messages_with_the_same_bytes_are_copied_as_if_encoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one: str, other: str
) -> None:
    from logreel.ops.rewrite.transcoded import Transcoded

    source = sample(tmp_path, one)
    copied = []
    cut = Transcoded.__dict__["copied_bytes"].func
    monkeypatch.setattr(
        Transcoded, "copied_bytes", property(lambda self: copied.append(cut(self)) or copied[-1])
    )
    logreel.convert(source, tmp_path / f"fast{other}")
    monkeypatch.setattr(Transcoded, "copied_bytes", None)
    logreel.convert(source, tmp_path / f"slow{other}")
    assert (tmp_path / f"fast{other}").read_bytes() == (tmp_path / f"slow{other}").read_bytes()
    if (one, other) == (".ulg", ".bag"):
        assert any(size is not None for size in copied)


def test_layouts_with_the_same_bytes() -> None:
    from logreel.layout.layout import Layout
    from logreel.layout.nodes import Field, FixedArray, Padding, Scalar, String, Struct
    from logreel.ops.rewrite.transcoded import same_bytes

    def layout(*nodes: object) -> Layout:
        return Layout(Struct(tuple(Field(f"f{n}", node) for n, node in enumerate(nodes))), "T")  # type: ignore[arg-type]

    u1, f4 = Scalar("uint8"), Scalar("float32")
    pair = Struct((Field("a", u1), Field("b", f4)))
    hidden = Layout(Struct((Field("a", f4), Field("", Padding(4)))), "T")
    assert same_bytes(layout(u1, f4, f4), layout(u1, FixedArray(f4, 2))) == 9
    assert same_bytes(layout(FixedArray(pair, 2)), layout(pair, pair)) == 10
    assert same_bytes(hidden, layout(f4)) == 4
    for old, new in [
        (layout(f4), hidden),
        (layout(u1, f4), layout(f4, u1)),
        (layout(Scalar("int8")), layout(u1)),
        (layout(f4, f4), layout(f4)),
        (layout(String()), layout(String())),
        (Layout(Struct((Field("", Padding(4)), Field("a", f4))), "T"), layout(f4)),
    ]:
        assert same_bytes(old, new) is None
