"""-S, -E and -n select the same messages in all verbs as in ``slice``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import logreel
from support.harness.cli_runner import Run
from support.samples.ulog.builder import flight

S = 10**9
SPAN = ("-S", "+2s", "-E", "+5s")


def bag(path: Path, start: int, topics: tuple[str, ...] = ("/a", "/b"), shift: int = 0) -> Path:
    """Ten seconds of ten messages a second for each topic, whose values count from *shift*."""
    with logreel.create(path) as w:
        channels = [w.add_channel(topic, logreel.Schema("std_msgs/Int32", "ros1msg", "")) for topic in topics]
        for i in range(100):
            for channel in channels:
                w.write(channel, start + i * S // 10, {"data": i + shift * (i >= 50)})
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return bag(tmp_path / "x.bag", 1_700_000_000 * S)


def channels(run: Run, *args: str | Path) -> list[dict[str, Any]]:
    done = run("stats", *args, "--fields", "--json")
    assert done.code == 0, done.err
    found: list[dict[str, Any]] = done.json["channels"]
    return found


@pytest.mark.parametrize("suffix", [".bag", ".ulg"])
def test_stats_of_an_interval_are_those_of_the_slice(
    run: Run, tmp_path: Path, log: Path, suffix: str
) -> None:
    if suffix == ".ulg":
        log = tmp_path / "x.ulg"
        log.write_bytes(flight(8.0))
    part = tmp_path / f"part{suffix}"
    assert run("slice", log, "-o", part, *SPAN).code == 0
    names = [arg for one in channels(run, part) for arg in ("-t", one["topic"])]
    assert channels(run, log, *SPAN, *names) == channels(run, part)
    assert channels(run, log) != channels(run, part)


def test_diff_of_an_interval_leaves_out_what_differs_elsewhere(run: Run, tmp_path: Path, log: Path) -> None:
    other = bag(tmp_path / "y.bag", 1_700_000_000 * S, shift=1000)
    assert run("diff", log, other, "--messages", "--fields").code == 4
    assert run("diff", log, other, "--messages", "--fields", *SPAN).code == 0
    done = run("diff", log, other, "--messages", "-S", "+4s", "-E", "+6s", "--json")
    assert done.code == 4
    (a, _) = done.json["channels"]
    assert (a["topic"], a["messages"]) == ("/a", [20, 20])
    assert (a["compared"]["equal"], a["compared"]["changed"]) == (10, 10)
    # Numbers of messages are those in the channel, not those in the interval.
    assert (a["compared"]["first"]["a"], a["compared"]["first"]["b"]) == (50, 50)


def test_diff_applies_the_interval_to_each_log(run: Run, tmp_path: Path, log: Path) -> None:
    later = bag(tmp_path / "later.bag", 1_700_001_000 * S)
    done = run("diff", log, later, "-S", "+4s", "-E", "+6s", "--json")
    assert done.code == 4
    assert {one["name"]: (one["a"], one["b"]) for one in done.json["log"]} == {
        "start_ns": (1_700_000_004 * S, 1_700_001_004 * S),
        "end_ns": (1_700_000_005_900_000_000, 1_700_001_005_900_000_000),
    }
    done = run("diff", log, later, "-S", "1990-01-01T00:00:00Z", "-E", "1991-01-01T00:00:00Z")
    assert (done.code, done.out) == (2, "")


def test_split_of_an_interval_counts_from_its_start(run: Run, tmp_path: Path, log: Path) -> None:
    parts = tmp_path / "parts"
    done = run("split", log, "-S", "+2.5s", "-E", "+5s", "--every", "1s", "-o", parts, "--json")
    assert [one["messages"] for one in done.json["logs"]] == [20, 20, 10]
    starts = [logreel.open(one["output"]).start for one in done.json["logs"]]
    assert starts == [1_700_000_002_500_000_000 + n * S for n in range(3)]


@pytest.mark.parametrize("how", [["--size", "1kB"], ["--by-topic"], ["--by-segment"], ["--every", "700ms"]])
def test_split_then_merge_is_the_slice(run: Run, tmp_path: Path, log: Path, how: list[str]) -> None:
    assert run("split", log, *SPAN, *how, "-o", tmp_path / "parts").code == 0
    assert run("merge", tmp_path / "parts", "-o", tmp_path / "whole.bag").code == 0
    assert run("slice", log, *SPAN, "-o", tmp_path / "slice.bag").code == 0
    found = run("diff", tmp_path / "whole.bag", tmp_path / "slice.bag", "--messages", "--json").json
    assert (found["log"], [one["compared"]["equal"] for one in found["channels"]]) == ([], [30, 30])


@pytest.mark.parametrize("align", [[], ["--align", "start"], ["--align", "+2.5s"]])
def test_merge_of_an_interval_is_the_slice_of_the_merge(
    run: Run, tmp_path: Path, log: Path, align: list[str]
) -> None:
    other = bag(tmp_path / "y.bag", 1_700_000_003 * S, ("/c",))
    some, whole, part = (tmp_path / name for name in ("some.bag", "whole.bag", "part.bag"))
    span = ("-S", "+4s", "-E", "2023-11-14T22:13:28Z")
    assert run("merge", log, other, "-o", some, *align, *span).code == 0
    assert run("merge", log, other, "-o", whole, *align).code == 0
    assert run("slice", whole, "-o", part, *span).code == 0
    assert run("diff", some, part, "--messages").code == 0
    assert 0 < logreel.open(some).message_count < logreel.open(whole).message_count


def test_merge_of_logs_of_different_formats_takes_an_interval(run: Run, tmp_path: Path, log: Path) -> None:
    (tmp_path / "x.ulg").write_bytes(flight(8.0))
    both = (tmp_path / "x.ulg", log)
    done = run("merge", *both, "-o", tmp_path / "both.mcap", "--align", "start", *SPAN)
    assert done.code == 0, done.err
    found = logreel.open(tmp_path / "both.mcap")
    assert len(found["/a"]) == 30
    assert found.duration is not None
    assert found.duration < 3 * S
    done = run("merge", *both, "-o", tmp_path / "no.mcap", "--align", "start", "-S", "+1h")
    assert done.code == 2
    assert "nothing between" in done.err
    assert ".logreel-merge" not in done.err
    assert not (tmp_path / "no.mcap").exists()


def unordered(path: Path) -> Path:
    """A log whose channels have times that go back, and one channel of few messages at the end of the file."""
    with logreel.create(path) as w:
        a, b, c = (w.add_channel(f"/{n}", logreel.Schema("std_msgs/Int32", "ros1msg", "")) for n in "abc")
        for i in range(40):
            w.write((a, b)[i % 2], (1000 + i - 7 * (i % 5)) * S, {"data": i})
        w.write(c, 1002 * S, {"data": -1})
    return path


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


@pytest.mark.parametrize("many", [0, 1, 7, 30, 1000])
@pytest.mark.parametrize("span", [[], ["-S", "+3s", "-E", "+25s"]], ids=["all", "part"])
@pytest.mark.parametrize(
    "how",
    [["x.ndjson"], ["x.csv", "-t", "/a"], ["x.csv", "--layout", "long"], ["x.ndjson", "--layout", "long"]],
    ids=" ".join,
)
def test_convert_gives_the_messages_that_slice_gives(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: list[str], span: list[str], many: int
) -> None:
    monkeypatch.chdir(tmp_path)
    log = unordered(tmp_path / "u.bag")
    out, *options = how
    topics = options if "-t" in options else []
    assert run("slice", log, "-o", "part.bag", "-n", str(many), *span, *topics).code == 0
    assert run("convert", "part.bag", f"part.{out}", *options).code == 0
    done = run("convert", log, out, "-n", str(many), *span, *options)
    assert done.code == 0, done.err
    assert lines(Path(out)) == lines(Path(f"part.{out}"))


@pytest.mark.parametrize(
    "options", [["x.bag"], ["x.mcap", "--raw"], ["x.mcap"], ["x.parquet/"]], ids=" ".join
)
def test_convert_makes_logs_and_folders_of_the_first_messages(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    log = unordered(tmp_path / "u.bag")
    done = run("convert", log, *options, "-n", "7", "--json")
    assert done.code == 0, done.err
    rows = {one["topic"]: one["rows"] for one in done.json["channels"]}
    assert (rows["/a"], rows["/b"], rows.get("/c", 0)) == (4, 3, 0)


def test_count_counts_messages_of_the_channels_of_the_output(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.ulg").write_bytes(flight(8.0))
    assert run("convert", tmp_path / "x.ulg", tmp_path / "x.gpx", "-n", "3", "-t", "sensor_gps").code == 0
    assert (tmp_path / "x.gpx").read_text().count("<trkpt") == 3


@pytest.mark.parametrize("rate", ["0", "-1e6"])
@pytest.mark.parametrize("many", [0, 1, 7, 41, 1000])
def test_play_gives_the_messages_that_cat_gives(run: Run, tmp_path: Path, many: int, rate: str) -> None:
    log = unordered(tmp_path / "u.bag")
    span = ("-S", "+3s", "-n", str(many))
    shown = [line["data"]["data"] for line in run("cat", log, *span, "--json").json["messages"]]
    played = run("play", log, *span, "-r", rate)
    assert played.code == 0, played.err
    found = [json.loads(line)["data"]["data"] for line in played.out.splitlines()]
    assert found == (shown if rate == "0" else shown[::-1])


def test_play_of_the_first_messages_ends_with_them(tmp_path: Path, log: Path) -> None:
    player = logreel.Player(log, rate=0, count=20)
    assert player.end_time - player.start_time == 900_000_000
    assert len(list(player)) == 20
    with pytest.raises(logreel.UsageError, match="-1"):
        logreel.Player(log, count=-1)
