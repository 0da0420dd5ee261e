"""What info, text, summary, report and the viewer say of one log agrees, on real logs."""

from __future__ import annotations

import functools
import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest

import logreel
from logreel.log.times import duration_text
from logreel.meaning.tracks import read_track, track_sources
from logreel.ops.inspect.text import level_counts
from logreel.ops.inspect.text import text as text_of
from logreel.outputs.page.html import printable
from logreel.outputs.page.report_page import ROWS
from support.harness.viewing import viewing

LOGS = [
    "ulog/ekf_failure.ulg",
    "ulog/battery_brownout.ulg",
    "ulog/quadrotor_local.ulg",
    "ulog/mcap_test_ulog.ulg",
    "ulog/sample_px4_events.ulg",
    "ulog/sample_appended_multiple.ulg",
    "ulog/esc_status_log.ulg",
    "rosbag/v20_real_turtlesim.bag",
    "rosbag/v20_multi_connections.bag",
    "rosbag/v20_real_two_chunks_2011.bag",
]


# All tests of a log come together: its summary and report are made once, by the worker that runs them.
@pytest.fixture(params=LOGS, scope="module")
def path(request: pytest.FixtureRequest, shared: Path) -> Path:
    found = shared / "data" / request.param
    if not found.exists():
        pytest.skip(f"no {request.param} among the samples")
    return found


#: Of one log, for the tests that compare them with something else.
summary_of = functools.cache(logreel.summary)
report_of = functools.cache(logreel.report)


@functools.cache
def page_of(path: Path) -> str:
    """Return the text of the report."""
    return plain(report_of(path).html)


def plain(html: str) -> str:
    """Return the text of a page, without its scripts and tags."""
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", html, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())


def test_start_length_and_messages_are_those_of_info(path: Path) -> None:
    info, summary = logreel.info(path), summary_of(path)
    recording = summary["recording"]
    assert (summary.start_ns, summary.end_ns) == (info.start_ns, info.end_ns)
    length = (info.end_ns or 0) - (info.start_ns or 0)
    assert recording["duration"].value == length
    assert recording["messages"].value == info.messages
    page = page_of(path)
    assert f"Duration {duration_text(length)} " in page
    assert f"Messages {info.messages} in " in page
    with viewing(path) as viewer:
        (one,) = viewer.json("session", None)["logs"]
    assert (int(one["start"]), one["duration"], one["messages"]) == (info.start_ns, length, info.messages)


def test_lines_of_text_are_those_of_the_verb_also_before_the_first_data_message(path: Path) -> None:
    with logreel.open(path) as log:
        lines = list(text_of(log))
        start = log.start or 0
    summary = summary_of(path)
    if levels := level_counts(lines):
        assert summary["text"]["levels"].value == levels
    page = page_of(path)
    assert len(lines) < ROWS
    for line in lines:
        assert printable(" ".join(line.text.split()))[:100] in page
    with viewing(path) as viewer:
        shown = viewer.json("text", limit=1000)["lines"]
    assert [(one["t"], one["text"]) for one in shown] == [(line.time - start, line.text) for line in lines]


def test_errors_in_the_text_are_findings_of_the_report(path: Path) -> None:
    with logreel.open(path) as log:
        severe = {line.text.strip() for line in text_of(log, level=3) if line.level is not None}
    found = report_of(path).findings
    texts = " ".join(text for one in found for text in (one.text, *one.more)).casefold()
    if len(severe) <= 6:
        # Modules that PX4 writes before a text are its source.
        assert all(re.sub(r"^\[\w+\] (Preflight Fail: )?", "", text).casefold() in texts for text in severe)


def test_lengths_of_tracks_are_the_same_everywhere(path: Path) -> None:
    summary, page = summary_of(path), page_of(path)
    told = {fact.key: fact.text for fact in summary["track"]} if "track" in summary else {}
    with logreel.open(path) as log:
        # A track of a frame has another name than its topic.
        shown = {one.id: read_track(log, one).about for one in track_sources(log)}
    assert told.keys() <= shown.keys()
    for topic, text in told.items():
        assert text.startswith(shown[topic])
    if told:
        assert any(f"{topic}: {shown[topic]}." in page for topic in told)


def test_rates_are_those_of_info_in_stats_and_summary(path: Path) -> None:
    with logreel.open(path) as log:
        stats = {one.topic: one.rate for one in logreel.stats(log)}
        for channel in logreel.info(log).channels:
            if channel.topic in stats and np.all(np.diff(log[channel.topic].times) >= 0):
                assert stats[channel.topic] == pytest.approx(channel.rate)
