"""Text, information and parameters of real logs against pyulog's tools, kept outputs and live ones of all logs.

Each difference is explained in docs/formats/ulog.md, section "Compared with pyulog and Flight Review", and named here.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from pyulog import ULog
from pyulog.px4_events import PX4Events

import logreel
from logreel.formats.ulog.definitions import RELEASES, release_number
from logreel.log.log import Log
from support.harness.cli_runner import Run
from support.oracles.pyulog_values import flight

#: A log without event definitions: the tool had others at hand, we keep the string that was sent beside the event.
KEPT = {
    "INFO: logging: opening log file 2022-4-29/8_45_27.ulg": "INFO: [logger] [logger] ./log/2022-04-29/08_45_27.ulg"
}
LEVELS = ("EMERGENCY", "ALERT", "CRITICAL", "ERROR", "WARNING", "NOTICE", "INFO", "DEBUG")
MESSAGES = (
    "sample",
    "sample_appended_multiple",
    "sample_log_small",
    "sample_logging_tagged_and_default_params",
    "sample_px4_events",
)


def clock(seconds: int) -> str:
    minutes, s = divmod(seconds, 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{s:02d}"


def messages(log: Log) -> list[str]:
    """Return text as printed by ``ulog_messages`` of older releases: whole seconds, without tagged strings."""
    lines = [
        (line.time // 10**9, LEVELS[line.level or 0], line.text)
        for line in log.text
        if not line.source.startswith("tag ") and line.kind != "check"
    ]
    return [f"{clock(s)} {level}: {text}" for s, level, text in lines]


def info(log: Log) -> list[str]:
    """Return text as printed by ``ulog_info -v``, without multiple information."""
    rows = [ch for ch in log.channels.values() if len(ch) and not ch.reserved]
    start, last = log.start or 0, max(int(ch.times.max()) for ch in rows)
    out = [
        f"Logging start time: {clock(start // 10**9)}, "
        f"duration: {clock((last // 1000 - start // 1000) // 10**6)}"
    ]
    ms = log["~dropout"]["duration"].tolist() if "~dropout" in log else []
    out.append(
        f"Dropouts: count: {len(ms)}, total duration: {sum(ms) / 1000:.1f} s, max: {max(ms)} ms, "
        f"mean: {sum(ms) // len(ms)} ms"
        if ms
        else "No Dropouts"
    )
    out.append("Info Messages:")
    metadata = {k: v for k, v in log.metadata.items() if not isinstance(v, list | dict)}
    # Versions are shown as packed numbers there.
    metadata |= {k: release_number(metadata[k]) for k in RELEASES if k in metadata}
    out += [f" {k}: {metadata[k]}" for k in sorted(metadata)]
    out += ["", f"{'Name (multi id, message size in bytes)':<41} number of data points, total bytes"]
    for ch in sorted(rows, key=lambda ch: ch.schema.name + str(ch.metadata["multi_id"])):
        size = sum(len(leaf.runs) * leaf.width for leaf in ch.layout.leaves)
        name = f"{ch.schema.name} ({ch.metadata['multi_id']}, {size})"
        out.append(f" {name:<40} {len(ch):7d} {len(ch) * size:10d}")
    return out


@pytest.mark.parametrize("name", MESSAGES)
def test_text_equals_ulog_messages(name: str, shared: Path) -> None:
    folder = shared / "data" / "ulog"
    due = (folder / "expected" / f"{name}_messages.txt").read_text().splitlines()
    log = logreel.open(folder / f"{name}.ulg")
    due = [f"{stamp} {KEPT.get(text, text)}" for stamp, text in (line.split(" ", 1) for line in due)]
    # The tool leaves lines in the order of the file, where there are no events among them.
    assert sorted(messages(log)) == sorted(due)
    assert [line.time for line in log.text] == sorted(line.time for line in log.text)


@pytest.mark.parametrize("name", ["sample", "sample_appended_multiple"])
def test_information_equals_ulog_info(name: str, shared: Path) -> None:
    folder = shared / "data" / "ulog"
    due = (folder / "expected" / f"{name}_info.txt").read_text().splitlines()
    due = [line for line in due if not line.startswith(("Info Multiple", " hardfault_plain", "SW Version"))]
    assert info(logreel.open(folder / f"{name}.ulg")) == due


#: Logs of the folder, for collection without it; a test checks that none is missing.
LOGS = (
    "battery_brownout",
    "corrupt_actuator_armed_wrong_size",
    "ekf_failure",
    "esc_status_log",
    "mcap_test_ulog",
    "quadrotor_local",
    "sample",
    "sample_appended_multiple",
    "sample_log_small",
    "sample_logging_tagged_and_default_params",
    "sample_px4_events",
    "yule_powers",
    "yule_short_list",
)
#: Topics whose size the tool states with the padding inside nested types: theirs and ours, bytes per message.
PADDED = {
    "corrupt_actuator_armed_wrong_size": {"position_setpoint_triplet": (248, 239)},
    "ekf_failure": {"esc_status": (336, 294), "position_setpoint_triplet": (248, 239)},
    "esc_status_log": {"esc_status": (400, 340)},
    "mcap_test_ulog": {"position_setpoint_triplet": (224, 221)},
    "quadrotor_local": {"position_setpoint_triplet": (248, 239)},
    "sample_log_small": {"position_setpoint_triplet": (344, 323), "telemetry_status": (104, 83)},
    "sample_logging_tagged_and_default_params": {"position_setpoint_triplet": (248, 230)},
    "sample_px4_events": {"esc_status": (336, 294), "position_setpoint_triplet": (248, 227)},
}
#: Logs whose last time the tool takes from a single message with an absurd one, or whose header has no start.
ABSURD_END, NO_START = {"sample_log_small"}, {"corrupt_actuator_armed_wrong_size"}
#: Messages whose external level is more severe than the internal one, which the tool prints: theirs and ours.
MORE_SEVERE = {"Low battery level, return advised": ("INFO", "WARNING")}
#: What the tool prints of an event without a definition, and the string that we keep.
UNKNOWN = {"[Unknown event with ID 17980399]": "[logger] [logger] ./log/2022-04-29/08_45_27.ulg"}


def tool(monkeypatch: pytest.MonkeyPatch, name: str, *args: object) -> list[str]:
    """Return the lines that a tool of pyulog prints, without a download of definitions.

    A tool that asks for few topics gets the file with all of them, which is read once for all tools.
    """
    module = pytest.importorskip(f"pyulog.{name}")

    class ReadOnce(ULog):
        def __new__(cls, path: str, topics: list[str] | None, ignore: bool) -> Any:
            return flight(Path(path))

    monkeypatch.setattr(module, "ULog", ReadOnce)
    monkeypatch.setattr(PX4Events, "_get_default_json_definitions", staticmethod(lambda _: None))
    monkeypatch.setattr(sys, "argv", [f"ulog_{name}", "--ignore", *map(str, args)])
    with contextlib.redirect_stdout(io.StringIO()) as out:
        module.main()
    return out.getvalue().splitlines()


@pytest.fixture(params=LOGS, scope="module")
def path(request: pytest.FixtureRequest, shared: Path) -> Path:
    return shared / f"data/ulog/{request.param}.ulg"


def test_all_logs_are_compared(shared: Path) -> None:
    assert {path.stem for path in (shared / "data/ulog").glob("*.ulg")} == set(LOGS)


def test_information_equals_ulog_info_live(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    due = tool(monkeypatch, "info", "-v", path)
    with logreel.open(path) as log:
        found = info(log)
        is_damaged = bool(log.problems)
    assert is_damaged == due[0].startswith("Warning: file has data corruption")
    due = [line for line in due if not line.startswith(("Warning:", "SW Version:"))]
    multiple = next((n for n, line in enumerate(due) if line.startswith("Info Multiple Messages:")), None)
    if multiple is not None:
        # Attachments and long texts, which other tests compare.
        del due[multiple : due.index("", multiple)]
    for topic, (theirs, ours) in PADDED.get(path.stem, {}).items():
        changed = [n for n, line in enumerate(due) if re.match(rf" {topic} \(\d+, {theirs}\)", line)]
        assert changed
        for n in changed:
            number, count = re.match(r" \S+ \((\d+), \d+\) +(\d+)", due[n]).groups()  # type: ignore[union-attr]
            due[n] = f" {f'{topic} ({number}, {ours})':<40} {int(count):7d} {int(count) * ours:10d}"
    assert found == due


def test_messages_equal_ulog_messages_live(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    due = []
    for line in tool(monkeypatch, "messages", path):
        stamp, level, text = line.split(" ", 2)
        theirs, ours = MORE_SEVERE.get(text, (level[:-1], level[:-1]))
        assert theirs == level[:-1]
        due.append(f"{stamp} {ours}: {UNKNOWN.get(text, text)}")
    with logreel.open(path) as log:
        found = [
            f"{clock(line.time // 10**9)}.{line.time // 10**6 % 1000:03d} {LEVELS[line.level or 0]}: {line.text}"
            for line in log.text
            if line.kind != "check" and not line.source.startswith("tag ")
        ]
    assert sorted(found) == sorted(due)


def test_parameters_equal_ulog_params_live(path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    due = tool(monkeypatch, "params", "--format", "csv", "--timestamps", path)
    assert run("params", path, "--format", "history", "--timestamps").out.splitlines() == due


def test_the_summary_states_what_ulog_info_prints(path: Path) -> None:
    found = logreel.summary(path)
    peer = flight(path)
    with logreel.open(path) as log:
        assert found["recording"]["messages"].value == sum(
            len(data.data["timestamp"]) for data in peer.data_list
        )
        assert found["recording"]["duration"].value == (log.end or 0) - (log.start or 0)
    start, end = peer.start_timestamp * 1000, peer.last_timestamp * 1000
    assert (found.start_ns == start) == (path.stem not in NO_START)
    assert (found.end_ns == end) == (path.stem not in ABSURD_END)
    lost = [dropout.duration * 10**6 for dropout in peer.dropouts]
    longest = max(lost, default=0)
    assert found["safety"]["dropouts"].value == {"count": len(lost), "ns": sum(lost), "longest_ns": longest}
    if version := peer.get_version_info_str():
        # v1.17.0 (alpha) is v1.17.0-alpha, as in the names of releases.
        written = re.sub(r" \((\w+)\)", lambda kind: f"-{kind[1].lower()}", version)
        assert found["vehicle"]["firmware"].value == written
