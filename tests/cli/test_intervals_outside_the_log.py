"""Bare numbers as times outside of the log are refused with a suggestion."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.harness.cli_runner import Run


@pytest.mark.parametrize(
    "verb",
    [
        ["cat", "flight.ulg"],
        ["text", "flight.ulg"],
        ["sql", "SELECT 1", "flight.ulg"],
        ["slice", "flight.ulg", "-o", "x.ulg"],
        ["slice", "flight.ulg", "-o", "-"],
        ["convert", "flight.ulg", "x.csv/"],
        ["convert", "flight.ulg", "x.mcap"],
        ["play", "flight.ulg"],
        ["stats", "flight.ulg"],
        ["diff", "flight.ulg", "flight.ulg"],
        ["split", "flight.ulg", "--every", "1s", "-o", "parts"],
        ["split", "flight.ulg", "--by-segment", "-o", "parts"],
        ["merge", "flight.ulg", "flight.ulg", "-o", "x.ulg"],
        ["merge", "flight.ulg", "flight.ulg", "-o", "x.mcap"],
    ],
    ids=" ".join,
)
def test_times_of_the_logs_clock_that_do_not_touch_the_log_are_refused(
    run: Run, logs: Path, monkeypatch: pytest.MonkeyPatch, verb: list[str]
) -> None:
    monkeypatch.chdir(logs)
    before = sorted(Path().iterdir())
    done = run(*verb, "-S", "log:5", "-E", "log:15")
    assert (done.code, done.out) == (2, "")
    # An MCAP of several logs counts from 1970.
    assert re.search("nothing between (log:5|1970-01-01T00:00:05)", done.err)
    assert "the log covers" in done.err
    assert "after the start: -S +" in done.err
    assert sorted(Path().iterdir()) == before
