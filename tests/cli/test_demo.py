"""The log that comes with logreel is the one that its builder makes."""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pytest

import logreel
from logreel.cli.show import BUNDLED
from support.harness.cli_runner import Run
from support.samples.ulog.builder import flight


def test_the_bundled_log_is_what_tools_demo_log_makes() -> None:
    """Other versions of NumPy and of libm may change the last digits of values, and of liblzma an attachment."""
    with logreel.open(lzma.decompress(BUNDLED.read_bytes())) as bundled, logreel.open(flight()) as made:
        assert list(bundled.channels) == list(made.channels)
        assert bundled.text == made.text
        assert bundled.parameters == made.parameters
        assert list(bundled.attachments) == list(made.attachments)
        for ch in made.match(None):
            ours = bundled[ch.topic]
            assert np.array_equal(ours.times, ch.times), ch.topic
            for path in ch.fields:
                value = ch[path]
                if value.dtype.kind == "f":
                    np.testing.assert_allclose(ours[path], value, rtol=1e-5, atol=1e-6, err_msg=path)
                elif value.dtype.kind in "iub":
                    assert np.array_equal(ours[path], value), (ch.topic, path)


@pytest.fixture
def no_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tour only show its commands; test_reading_verbs.py runs them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("logreel.cli.main", lambda words: 0)


def test_the_tour_leaves_a_log_and_runs_again(run: Run, no_commands: None) -> None:
    for _ in range(2):
        assert run("demo").code == 0
    assert Path("logreel-demo/flight.ulg").read_bytes() == lzma.decompress(BUNDLED.read_bytes())


def test_the_tour_says_what_the_viewer_needs_where_it_is_missing(
    run: Run, no_commands: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    hint = "-m pip install 'logreel[view]'"
    assert hint not in run("demo").out
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    shown = run("demo").out.splitlines()
    at = next(n for n, line in enumerate(shown) if hint in line)
    assert shown[at + 1].startswith("$ ")
    assert " view " in shown[at + 1]
