"""Command lines of ``rosbag play`` with ``logreel play``."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from logreel.cli.play import play, translated
from support.harness.cli_runner import Run
from support.harness.replaying import MS, Numbered, bag

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "play.md"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Twenty messages in two seconds on /a and /b by turns."""
    found = tmp_path / "a.bag"
    bag(found, [Numbered(f"/{'ab'[n % 2]}", 100 * MS * n, n) for n in range(20)]).close()
    return found


def shown(run: Run, *args: str | Path) -> list[tuple[str, int]]:
    """The topic and the number of each message that is printed."""
    done = run("play", *args)
    assert done.code == 0, done.err
    lines = [json.loads(line) for line in done.out.splitlines()]
    return [(line["topic"], next(iter(line["data"].values()))) for line in lines]


def rows() -> list[list[str]]:
    """The rows of the table of options: the code in each cell, and the text of the last one."""
    text = PAGE.read_text(encoding="utf-8").partition(
        "| `rosbag play` | `logreel play` | |\n|---|---|---|\n"
    )[2]
    return [line.strip("| ").split(" | ") for line in text.partition("\n\n")[0].splitlines()]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_each_row_of_the_table_has_two_ways_to_say_the_same(row: list[str], path: Path) -> None:
    theirs = re.findall(r"`([^`]+)`", row[0])
    ours = re.findall(r"`([^`]+)`", row[1].strip("| "))
    context = play.make_context("play", [str(path), *(ours[0].split() if ours else [])])
    expected = {**context.params}
    for words in theirs:
        if words in ("-p", "-i", "-l", "-k") and words != theirs[-1]:
            continue
        found = play.make_context("play", [str(path), *words.split()]).params
        if "try-future" in words:
            found["try_future_version"] = False
        assert _meaning(found) == _meaning(expected)


def _meaning(params: dict[str, object]) -> dict[str, object]:
    """Return parameters in one form where there are several."""
    from logreel.log.times import duration_ns

    found = dict(params)
    if found.pop("immediate"):
        found["rate"] = 0.0
    if (offset := found.pop("offset")) is not None:
        found["start"] = f"+{offset}s"
    if (hz := found.pop("hz")) is not None:
        found["clock"] = hz
    for name in ("delay", "duration", "skip_silence", "rate_control_max_delay"):
        if isinstance(value := found[name], str):
            found[name] = duration_ns(value)
    return found


def test_the_table_has_every_option_of_the_genuine_program() -> None:
    if not shutil.which("rosbag"):
        pytest.skip("no rosbag here (Debian: python3-rosbag)")
    text = subprocess.run(["rosbag", "play", "--help"], capture_output=True, text=True).stdout
    options = set(re.findall(r"--[a-z][a-z-]+", text.partition("Options:")[2])) - {"--help"}
    assert len(options) > 15
    named = " ".join(row[0] for row in rows())
    # --start means something else here, which its row says.
    assert {option for option in options if option not in named} == {"--start"}


def test_words_are_translated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words, ours in (
        ("--clock a.bag", "--clock=100 a.bag"),
        ("--clock 5 a.bag", "--clock 5 a.bag"),
        ("a.bag --clock", "a.bag --clock=100"),
        ("a.bag --topics /a /b -r 2", "a.bag --topic=/a --topic=/b -r 2"),
        ("--pause-topics=/a a.bag", "--pause-topics=/a a.bag"),
        ("--topics /a --bags a.bag b.bag", "--topic=/a a.bag b.bag"),
        ("--bags=a.bag", "a.bag"),
        ("a.bag /a:=/b", "a.bag --rename=/a:=/b"),
        ("a.bag --rename /a:=/b", "a.bag --rename /a:=/b"),
        ("-- --clock /a:=/b", "-- --clock /a:=/b"),
    ):
        assert translated(words.split()) == ours.split()
    (tmp_path / "a:=b").touch()
    assert translated(["a:=b"]) == ["a:=b"]


def test_a_line_of_rosbag_play_plays_the_same(run: Run, path: Path) -> None:
    found = shown(run, "--clock", path, "-i", "-p", "/x", "/b:=/c", "-s", "0.5", "-u", "0.4")
    assert [one for one in found if one[0] != "/clock"] == [("/c", 5), ("/x/a", 6), ("/c", 7), ("/x/a", 8)]
    assert sum(topic == "/clock" for topic, _ in found) == 31
    ticks = shown(run, path, "-q", "-i", "--hz", "10", "--clock", "--topics", "/a", "/b", "-u", "1")
    assert sum(topic == "/clock" for topic, _ in ticks) == 10
    assert [number for topic, number in ticks if topic != "/clock"] == list(range(10))


def test_quiet_prints_nothing_on_stderr(run: Run, path: Path) -> None:
    assert run("play", path, "-i", "-q").err == ""
    assert run("play", path, "-i").err == "logreel: played 20 messages\n"


def test_options_that_contradict_each_other_are_wrong_usage(run: Run, path: Path) -> None:
    for args, text in (
        (["-i", "-r", "2"], "leave -r out"),
        (["-s", "1", "-S", "+1s"], "-s and -S are both the start"),
        (["--hz", "5"], "add --clock"),
        (["--rename", "/a"], "write OLD:=NEW"),
        (["--rate-control-max-delay", "1"], "belongs to --rate-control-topic"),
        (["--queue", "5"], "the sink 'stdout' has no option 'queue'"),
        (["-f", "--duration", "1s"], "--duration needs the end of the log: leave it or -f out"),
        (["-f", "--pause-topics", "/a"], "--pause-topics needs keys to go on, which -f does not have"),
        (["-f", "--clock", "5"], "--clock runs ahead to the next message"),
        (["/q:=/r"], "no channel to be renamed '/q'"),
        (["--delay", "-1s"], "a delay is not negative"),
    ):
        done = run("play", path, *args)
        assert (done.code, done.out) == (2, ""), args
        assert text in done.err, args
