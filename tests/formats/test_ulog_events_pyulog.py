"""PX4 events of real logs, against pyulog."""

from __future__ import annotations

import json
import lzma
import random
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from logreel.formats.ulog import events
from logreel.formats.ulog.events import Line, Row, load

ULog = pytest.importorskip("pyulog").ULog
PX4Events = pytest.importorskip("pyulog.px4_events").PX4Events
Parser = pytest.importorskip("pyulog.libevents_parse.parser").Parser

SHARED = Path(__file__).resolve().parents[3] / "shared"
LOGS = SHARED / "data" / "ulog"
pytestmark = pytest.mark.skipif(not LOGS.exists(), reason="the shared sample logs are not on this machine")
STEMS = ["sample_px4_events", "battery_brownout", "ekf_failure", "quadrotor_local", "mcap_test_ulog"]
SAMPLES = [LOGS / f"{stem}.ulg" for stem in STEMS]
NAMES = ["EMERGENCY", "ALERT", "CRITICAL", "ERROR", "WARNING", "NOTICE", "INFO", "DEBUG"]


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prevent pyulog from downloading definitions that a log lacks."""

    def refuse(*_: object) -> None:
        raise OSError("no network in tests")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def metadata(log: Any) -> bytes:
    return b"".join(log.msg_info_multiple_dict["metadata_events"][0])


def rows_of(log: Any) -> Iterator[Row]:
    """Yield the messages of the topic event, read by pyulog; times in us."""
    data = log.get_dataset("event").data
    width = sum(name.startswith("arguments[") for name in data)
    for n, time in enumerate(data["timestamp"]):
        arguments = bytes(int(data[f"arguments[{i}]"][n]) for i in range(width))
        yield Row(int(time), int(data["id"][n]), arguments, int(data["log_levels"][n]))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_event_sentences_of_real_logs_equal_pyulog(path: Path, offline: None) -> None:
    log = ULog(str(path))
    definitions = load(metadata(log))
    judge = PX4Events()
    judge.set_default_json_definitions_cb(lambda _: pytest.fail("this log has definitions of its own"))
    theirs = [(int(time), NAMES.index(level), text) for time, level, text in judge.get_logged_events(log)]
    assert theirs
    # The tool shows neither checks that fail nor the external level, which may be more severe.
    external = {row.time: row.log_levels & 0xF for row in rows_of(log)}
    theirs = [(time, min(level, external[time]), text) for time, level, text in theirs]
    lines = events.lines([], rows_of(log), definitions)
    assert [line[:3] for line in lines if not line.group] == theirs

    parser = Parser()
    parser.load_definitions(json.loads(lzma.decompress(metadata(log))))
    for row in rows_of(log):
        event, other = definitions.sentence(row.id, row.arguments), parser.parse(row.id, row.arguments)
        assert (event.name, event.group) == (f"{other.namespace()}::{other.name()}", other.group())
        assert event.message == other.message()


def valid_argument(kind: str, space: str, enums: dict[str, Any], rng: random.Random) -> bytes:
    """Return the bytes of a random argument; floats have few bits, since pyulog prints them as doubles."""
    if kind == "float":
        return struct.pack("<f", rng.randrange(-4000, 4000) / 8)
    enum = enums.get(kind if "::" in kind else f"{space}::{kind}")
    if enum is None:
        return rng.randbytes(int(kind.strip("uint_")) // 8)
    known = [int(key) for key in enum["entries"]]
    chosen = rng.sample(known, rng.randrange(len(known))) if enum.get("is_bitfield") else [rng.choice(known)]
    return sum(chosen).to_bytes(int(enum["type"].strip("uint_")) // 8, "little")


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_event_definition_equals_pyulog(path: Path) -> None:
    raw = metadata(ULog(str(path), message_name_filter_list=["event"]))
    content, definitions, rng = json.loads(lzma.decompress(raw)), load(raw), random.Random(1)
    parser = Parser()
    parser.load_definitions(content)
    parser.set_profile("dev")
    enums = {
        f"{component['namespace']}::{name}": enum
        for component in content["components"].values()
        for name, enum in component["enums"].items()
    }
    count = 0
    for number, component in content["components"].items():
        for group in component["event_groups"].values():
            for sub, event in group["events"].items():
                types = [argument["type"] for argument in event.get("arguments", [])]
                space = component["namespace"]
                data = b"".join(valid_argument(kind, space, enums, rng) for kind in types)
                event_id = int(number) << 24 | int(sub)
                ours, theirs = definitions.sentence(event_id, data), parser.parse(event_id, data)
                assert ours.message == theirs.message()
                assert ours.description == theirs.description()
                count += 1
    assert count == len(definitions) > 300


def test_log_text_equals_ulog_messages_tool() -> None:
    log = ULog(str(LOGS / "sample_px4_events.ulg"))
    strings = [Line(m.timestamp, m.log_level - ord("0"), m.message) for m in log.logged_messages]
    found = []
    for line in events.lines(strings, rows_of(log), load(metadata(log))):
        if line.group:
            continue
        minutes, seconds = divmod(line.time // 1_000_000, 60)
        level = NAMES[line.level or 0]
        found.append(f"{minutes // 60}:{minutes % 60:02}:{seconds:02} {level}: {line.text}")
    expected = LOGS / "expected" / "sample_px4_events_messages.txt"
    assert found == expected.read_text(encoding="utf-8").splitlines()
