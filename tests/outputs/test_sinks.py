"""The sinks ``stdout``, ``frames`` and ``null``, and sinks of other packages."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.outputs import sinks
from support.harness.replaying import BASE, MS, Numbered, bag
from support.samples.carla.builder import eventful
from support.samples.rosbag.builder import drive, version_2_0
from support.samples.rosbag.builder import tiny as tiny_bag
from support.samples.rosbag.old import Topic


def frames_of(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Return kind, number and body of each frame, as documented in docs/howto/play.md."""
    at = 0
    while at < len(data):
        size, kind, number = struct.unpack_from("<IBI", data, at)
        yield kind, number, data[at + 9 : at + 4 + size]
        at += 4 + size
    assert at == len(data)


def test_raw_frames_contain_channels_times_and_payloads() -> None:
    log, out = logreel.open(drive(2.0)), io.BytesIO()
    sink = logreel.sink("stdout", frames="raw", out=out)
    logreel.Player(log, rate=0, sink=sink).run()
    channels: dict[int, dict[str, Any]] = {}
    found = []
    for kind, number, body in frames_of(out.getvalue()):
        if kind == 0:
            channels[number] = json.loads(body)
        else:
            found.append((channels[number]["topic"], struct.unpack("<q", body[:8])[0], body[8:]))
    assert found == [(m.channel.topic, m.time, bytes(m.data)) for m in log.messages()]
    for told in channels.values():
        ch = log[told["topic"]]
        assert (told["type"], told["encoding"], told["text"]) == (
            ch.schema.name,
            ch.schema.encoding,
            ch.schema.text,
        )


def test_lines_skip_messages_that_cannot_be_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    short, unusable = Topic("/a", "std_msgs/Int32"), Topic("/b", "std_msgs/Int32")
    content = [(short, BASE, b"\1\0\0\0"), (short, BASE, b"\1"), (unusable, BASE, bytes(4))]
    log, out = logreel.open(version_2_0(content)), io.BytesIO()

    def no_layout() -> Any:
        raise logreel.DefinitionError("no such type")

    monkeypatch.setattr(log["/b"], "_info", replace(log["/b"]._info, layout=no_layout))
    sink = logreel.sink("stdout", out=out)
    assert logreel.Player(log, rate=0, sink=sink).run().messages == 3
    assert [json.loads(line)["data"] for line in out.getvalue().splitlines()] == [{"data": 1}]
    assert sink.skipped[0] == "channel '/b' was left out: no such type"
    assert sink.skipped[1].startswith("1 message of '/a' left out: ")


def test_frames_print_time_and_counts() -> None:
    out = io.BytesIO()
    logreel.Player(logreel.open(tiny_bag()), rate=0, sink=logreel.sink("frames", out=out)).run()
    assert out.getvalue().decode().splitlines() == [
        *("0.000000 s: /chatter", "0.000000 s: /count", "0.020000 s: /chatter"),
        *("0.020000 s: /count", "0.030000 s: /chatter", "0.030000 s: /count"),
    ]


def test_messages_of_one_time_are_a_frame(tmp_path: Path) -> None:
    times = (0, 0, 0, 5, 5)
    log = bag(tmp_path / "a.bag", [Numbered(f"/{'ab'[n == 1]}", t * MS, n) for n, t in enumerate(times)])
    out = io.BytesIO()
    logreel.Player(log, rate=0, clock=1000, sink=logreel.sink("frames", out=out)).run()
    assert out.getvalue().decode().splitlines() == ["0.000000 s: /a ×2, /b", "0.005000 s: /a ×2"]


def test_a_format_can_describe_its_frames() -> None:
    log, out = logreel.open(eventful().bytes()), io.BytesIO()
    logreel.Player(log, rate=0, sink=logreel.sink("frames", out=out)).run()
    lines = out.getvalue().decode().splitlines()
    heads = [line for line in lines if line.startswith("Frame ")]
    assert len(heads) == len(log["frames"])
    assert heads[0].startswith("Frame 1 at 0 seconds: ")
    # Events are described as by the query of the simulator.
    told = [
        line for line in logreel.carla.info(log).lines() if line.startswith((" Create", " Destroy", " Coll"))
    ]
    assert told == [line for line in lines if line.startswith((" Create", " Destroy", " Coll"))]
    assert told


def test_frames_escape_control_characters() -> None:
    topic = Topic("/a\x1b[2J", "std_msgs/Int32")
    log, out = logreel.open(version_2_0([(topic, BASE, bytes(4))])), io.BytesIO()
    logreel.Player(log, rate=0, sink=logreel.sink("frames", out=out)).run()
    assert out.getvalue() == b"0.000000 s: /a\\x1b[2J\n"


class Radio(logreel.Sink):
    """A sink of another package."""

    def __init__(self, host: str = "localhost", port: int = 1, loud: bool = False, gain: float = 1.0) -> None:
        self.told = (host, port, loud, gain)


def dict_of() -> dict[str, str]:
    """A class that is no sink."""
    return {}


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    points = metadata.EntryPoints(
        metadata.EntryPoint(name, f"{__name__}:{value}", sinks.GROUP)
        for name, value in (("radio", "Radio"), ("broken", "Nothing"), ("wrong", "dict_of"))
    )
    monkeypatch.setattr(metadata, "entry_points", lambda **which: points.select(**which))
    sinks.SINKS.forget()
    yield
    sinks.SINKS.forget()


@pytest.mark.usefixtures("plugins")
def test_sinks_of_other_packages_are_found() -> None:
    made = logreel.sink("radio", port="8765", loud="yes", gain="0.5")
    assert isinstance(made, Radio)
    assert made.told == ("localhost", 8765, True, 0.5)
    assert logreel.sink("radio", host="there", port=2).told == ("there", 2, False, 1.0)  # type: ignore[attr-defined]
    assert sinks.sink_names() == [
        "stdout",
        "null",
        "frames",
        "foxglove",
        "rerun",
        "ros",
        "broken",
        "radio",
        "wrong",
    ]


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    ("name", "options", "error", "text"),
    [
        (
            "television",
            {},
            logreel.UsageError,
            "there are: stdout, null, frames, foxglove, rerun, ros, broken, radio, wrong",
        ),
        (
            "radio",
            {"colour": "1"},
            logreel.UsageError,
            "has no option 'colour'; it has: host, port, loud, gain",
        ),
        ("radio", {"port": "x"}, logreel.UsageError, "'port' is a number, not 'x'"),
        ("radio", {"loud": "x"}, logreel.UsageError, "'loud' is yes or no, not 'x'"),
        ("broken", {}, logreel.LogError, "cannot be loaded"),
        ("wrong", {}, logreel.LogError, "gave no Sink"),
    ],
)
def test_wrong_sinks_and_options_raise_errors(
    name: str, options: dict[str, str], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        logreel.sink(name, **options)


def test_the_null_sink_accepts_all_messages(tmp_path: Path) -> None:
    log = bag(tmp_path / "a.bag", [Numbered("/a", n * MS, n) for n in range(5000)])
    assert logreel.Player(log, rate=0, sink=logreel.sink("null")).run().messages == 5000
    assert logreel.Player(log, rate=1e6, sink=logreel.Sink()).run().topics == {"/a": 5000}
