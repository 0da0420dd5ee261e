"""What notebooks show of logs and plots: pictures without scripts, and nothing that leaves the machine."""

from __future__ import annotations

import re
import subprocess
import sys
from base64 import b64decode
from pathlib import Path
from xml.etree import ElementTree

import pytest

import logreel
from logreel.log import shown
from support.builders.contents import SAMPLES
from support.builders.sample_logs import damaged
from support.harness.cli_runner import environment
from support.samples.ulog.builder import flight

PICTURE = re.compile(r'src="data:image/svg\+xml;base64,([^"]+)"')


def pictures(html: str) -> list[ElementTree.Element]:
    """Return the pictures of HTML, which are well-formed, and ask for nothing."""
    assert "<script" not in html
    assert not re.search(r"https?://", html)
    assert set(re.findall(r' (?:src|href|srcset|data)="(.{10})', html)) <= {"data:image"}
    found = []
    for data in PICTURE.findall(html):
        text = b64decode(data).decode()
        assert set(re.findall(r"https?://[^\"]+", text)) == {"http://www.w3.org/2000/svg"}
        root = ElementTree.fromstring(text)
        names = {element.tag.partition("}")[2] for element in root.iter()}
        assert names <= {"svg", "style", "text", "line", "path", "rect"}
        found.append(root)
    return found


@pytest.mark.parametrize("suffix", sorted(SAMPLES))
def test_a_log_shows_what_happened_and_a_picture(suffix: str) -> None:
    with logreel.open(SAMPLES[suffix]()) as log:
        html = log._repr_html_()
        drawn = pictures(html)
        assert drawn
        assert all(root.findall(".//{*}path") for root in drawn)
        assert "No problems." in html
        assert all(ch.topic in html for ch in list(log.channels.values())[:5] if not ch.reserved)
        if suffix == ".ulg":
            assert "Battery</b>" in html
            assert "Flight: " in html


def test_a_damaged_log_shows_its_problems_first() -> None:
    with logreel.open(damaged()) as log:
        lost = sum(problem.size for problem in log.problems if problem.lost)
        html = log._repr_html_()
    assert lost
    assert f"{lost} bytes lost" in html
    assert html.index("bytes lost") < html.index("channels</summary>")


def test_names_of_a_log_are_text_also_in_pictures(tmp_path: Path) -> None:
    evil = "</text></svg><script>alert(1)</script>&\"'\x1b]"
    schema = logreel.Schema("std_msgs/Float64", "ros1msg", "float64 data\n")
    with logreel.create(tmp_path / "a.mcap") as writer:
        channel = writer.add_channel(evil, schema)
        for n in range(10):
            writer.write(channel, 10**18 + n, {"data": n})
    with logreel.open(tmp_path / "a.mcap") as log:
        html = log._repr_html_()
        assert len(pictures(html)) == 2
        assert "&lt;script&gt;" in html
        assert "\x1b" not in html
        pictures(log.plot(evil).still())


def test_a_large_log_is_shown_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown, "QUICK", 1000)
    with logreel.open(flight()) as log:
        html = log._repr_html_()
    assert pictures(html) == []
    assert "logreel.summary(log)" in html
    assert "battery_status" in html


def test_logs_plot_fields_and_their_own_charts(tmp_path: Path) -> None:
    with logreel.open(flight()) as log:
        plot = log.plot("battery_status.voltage_v", "vehicle_attitude.q", start="+10s")
        assert [len(panel.curves) for panel in plot.panels] == [1, 4]
        assert "<iframe" in plot._repr_html_()
        assert len(pictures(plot.still(300))) == 2
        own = log.plot()
        assert [panel.title for panel in own.panels] == ["Attitude [deg]", "Altitude [m]", "Battery"]
        assert own.panels[0].names == ["roll", "pitch"]
        own.save(tmp_path / "own.html")
        assert "Attitude" in own.text(60)
    with logreel.create(tmp_path / "empty.mcap"):
        pass
    with logreel.open(tmp_path / "empty.mcap") as empty:
        with pytest.raises(logreel.UsageError, match="nothing to plot"):
            empty.plot()
        assert "0 channels" in empty._repr_html_()


def test_a_viewer_in_a_notebook_ends_with_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "a.ulg").write_bytes(flight())
    code = (
        "import logreel, sys, urllib.request\n"
        "viewer = logreel.open(sys.argv[1]).view()\n"
        "print(viewer._repr_html_())\n"
        "print(urllib.request.urlopen(viewer.url).status)\n"
    )
    # Nobody closes it: the process ends nevertheless.
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "a.ulg"],
        capture_output=True,
        env=environment(),
        timeout=120,
        check=True,
    )
    frame, status = done.stdout.decode().split("\n")[:2]
    assert re.match(r'<iframe src="http://127\.0\.0\.1:\d+/#token=[^"]+" ', frame)
    assert status == "200"
