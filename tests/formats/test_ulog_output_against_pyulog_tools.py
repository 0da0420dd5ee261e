"""Text and information of real logs in the notation of pyulog's tools, against the output of these tools."""

from __future__ import annotations

from pathlib import Path

import pytest

import logreel
from logreel.formats.ulog.information import RELEASES, release_number
from logreel.log.log import Log

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
        if not line.source.startswith("tag ")
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
