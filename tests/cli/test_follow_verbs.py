"""``cat -f``, ``text -f``, ``info -f`` and ``play -f``: output while the file is written, and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

import logreel
from support.harness.cli_runner import environment
from support.harness.forked import forked

SCHEMA = logreel.Schema("wind", "ulog", "wind:uint64_t timestamp;uint64_t n;")
#: Seconds after which a process that should print or end is killed: far more than it ever takes.
PATIENCE = 100.0


@contextmanager
def follower(*args: object, program: Sequence[str] = ()) -> Iterator[subprocess.Popen[str]]:
    """Run ``logreel``, or *program*, until the end of the block; it is killed if it hangs."""
    process = subprocess.Popen(
        [*(program or forked()), *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    timer = threading.Timer(PATIENCE, process.kill)
    timer.start()
    try:
        yield process
    finally:
        timer.cancel()
        process.kill()
        process.communicate()


class Recorder:
    """Writes numbered messages and texts to a ULog, in the file at each call."""

    def __init__(self, path: Path) -> None:
        self.writer = logreel.create(path)
        self.channel = self.writer.add_channel("wind", SCHEMA)
        self.n = 0
        self()

    def __call__(self) -> None:
        self.n += 1
        self.writer.write(self.channel, self.n * 10**9, {"n": self.n})
        self.writer.text(self.n * 10**9, f"text {self.n}", level=6)
        self.writer.flush()


def test_cat_prints_messages_while_they_are_written_and_ends_with_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "x.ulg"
    w = Recorder(path)
    with follower("cat", "-f", path, "--format", "ndjson") as cat:
        for n in range(1, 5):
            # The line comes before the next message is written.
            assert json.loads(cat.stdout.readline()) == {
                "topic": "wind",
                "time_ns": n * 10**9,
                "data": {"timestamp": n * 10**6, "n": n},
            }
            if n < 4:
                w()
        w.writer.close()
        assert cat.communicate() == ("", "")
        assert cat.returncode == 0


def test_cat_chooses_fields_times_and_a_count_of_a_growing_log(tmp_path: Path) -> None:
    w = Recorder(tmp_path / "x.ulg")
    with follower("cat", "-f", tmp_path / "x.ulg", "-t", "wind.n", "-S", "+1s", "-n", 2, "--json") as cat:
        w()
        assert json.loads(cat.stdout.readline())["data"] == {"n": 2}
        w()
        assert json.loads(cat.stdout.readline())["data"] == {"n": 3}
        assert cat.wait() == 0
    w.writer.close()


def test_ctrl_c_ends_with_a_whole_line_and_exit_code_130(tmp_path: Path) -> None:
    w = Recorder(tmp_path / "x.ulg")
    process = (sys.executable, "-m", "logreel")
    with follower("cat", "-f", tmp_path / "x.ulg", program=process) as cat:
        first = cat.stdout.readline()
        cat.send_signal(signal.SIGINT)
        out, err = cat.communicate()
        assert (first[-4:], out, err, cat.returncode) == ("n=1\n", "", "logreel: interrupted\n", 130)
    w.writer.close()


def test_a_follower_ends_silently_when_its_reader_goes_away(tmp_path: Path) -> None:
    w = Recorder(tmp_path / "x.ulg")
    with follower("cat", "-f", tmp_path / "x.ulg") as cat:
        cat.stdout.readline()
        cat.stdout.close()
        # Although nothing is written any more.
        assert cat.wait() == 0
        assert cat.stderr.read() == ""
    w.writer.close()


def test_a_follower_says_that_it_waits_for_a_file(tmp_path: Path) -> None:
    with follower("cat", "-f", tmp_path / "x.ulg") as cat:
        assert "waiting for" in cat.stderr.readline()
        w = Recorder(tmp_path / "x.ulg")
        assert cat.stdout.readline().endswith("n=1\n")
        w.writer.close()
        assert cat.wait() == 0


def test_text_prints_new_lines_once(tmp_path: Path) -> None:
    w = Recorder(tmp_path / "x.ulg")
    with follower("text", "-f", tmp_path / "x.ulg", "--json") as text:
        for n in range(1, 4):
            assert json.loads(text.stdout.readline())["text"] == f"text {n}"
            w()
        w.writer.close()
        assert [json.loads(line)["text"] for line in text.communicate()[0].splitlines()] == ["text 4"]
        assert text.returncode == 0


def test_info_shows_a_log_again_when_it_has_grown(tmp_path: Path) -> None:
    w = Recorder(tmp_path / "x.ulg")
    with follower("info", "-f", tmp_path / "x.ulg", "--json") as info:
        assert json.loads(info.stdout.readline())["messages"] == 1
        w()
        w()
        w.writer.close()
        assert json.loads(info.communicate()[0].splitlines()[-1])["messages"] == 3
        assert info.returncode == 0


def test_play_passes_messages_on_as_they_come(tmp_path: Path) -> None:
    w = Recorder(tmp_path / "x.ulg")
    with follower("play", "-f", tmp_path / "x.ulg", "--to", "stdout") as play:
        for n in range(1, 4):
            # The times are a second apart, but nobody waits for a message that was waited for.
            assert json.loads(play.stdout.readline())["data"]["n"] == n
            w()
        w.writer.close()
        assert json.loads(play.communicate()[0])["data"]["n"] == 4
        assert play.returncode == 0


def test_play_keeps_the_intervals_of_messages_that_are_there(tmp_path: Path) -> None:
    w = Recorder(tmp_path / "x.ulg")
    w()
    w.writer.close()
    before = time.monotonic()
    with follower("play", "-f", tmp_path / "x.ulg", "-n", 2, "-r", "0.5", "--to", "stdout") as play:
        assert len(play.communicate()[0].splitlines()) == 2
        assert play.returncode == 0
    # One second at half speed.
    assert time.monotonic() - before >= 2


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["cat", "-f", "x.ulg", "--format", "csv"], "leave out --format csv"),
        (["cat", "-f", "x.ulg", "-o", "out.txt"], "redirect the output"),
        (["info", "-f", "a.ulg", "b.ulg"], "one log, not 2"),
        (["play", "-f", "x.ulg", "--loop"], "--loop needs the end of the log"),
    ],
)
def test_what_cannot_be_followed_is_wrong_usage(args: list[str], reason: str) -> None:
    with follower(*args) as process:
        assert reason in process.communicate()[1]
        assert process.returncode == 2


@pytest.mark.parametrize(
    "args",
    [
        ["cat", "-t", "wind"],
        ["cat", "--json"],
        ["text"],
        ["text", "--json", "-S", "+0s"],
        ["play", "--to", "stdout", "-r", "0", "-t", "wind"],
    ],
)
def test_verbs_follow_a_recording_from_part_to_part(args: list[str], tmp_path: Path) -> None:
    first = Recorder(tmp_path / "x_0.ulg")
    with follower(args[0], "-f", tmp_path / "x_0.ulg", *args[1:]) as verb:
        lines = [verb.stdout.readline()]
        last = Recorder(tmp_path / "x_1.ulg")
        first()
        first.writer.close()
        lines += [verb.stdout.readline(), verb.stdout.readline()]
        last.writer.close()
        rest, errors = verb.communicate()
    assert verb.returncode == 0, errors
    assert rest == ""
    # Both parts begin with 1.
    assert ["1" if "1" in line.replace("-1", "") else "2" for line in lines] == ["1", "2", "1"]


def test_info_shows_the_summary_of_each_part(tmp_path: Path) -> None:
    first = Recorder(tmp_path / "x_0.ulg")
    with follower("info", "-f", "--json", tmp_path / "x_0.ulg") as info:
        seen = [json.loads(info.stdout.readline())]
        last = Recorder(tmp_path / "x_1.ulg")
        first.writer.close()
        seen.append(json.loads(info.stdout.readline()))
        last.writer.close()
        info.communicate()
        assert info.returncode == 0
    assert [one["path"] for one in seen] == [str(tmp_path / f"x_{n}.ulg") for n in range(2)]


def test_a_topic_of_the_first_part_is_not_missed_in_the_last_one(tmp_path: Path) -> None:
    first = Recorder(tmp_path / "x_0.ulg")
    args = ["-t", "wind", "-t", "nothing", "-S", "0ns", "-E", "2s"]
    with follower("cat", "-f", tmp_path / "x_0.ulg", *args) as cat:
        assert "wind" in cat.stdout.readline()
        with logreel.create(tmp_path / "x_1.ulg") as w:
            w.write(
                w.add_channel("other", logreel.Schema("other", "ulog", "other:uint64_t timestamp;")),
                9 * 10**9,
                {},
            )
        first.writer.close()
        _, errors = cat.communicate()
    assert cat.returncode == 2
    assert "nothing" in errors
    assert "wind" not in errors.partition("channel")[0]
