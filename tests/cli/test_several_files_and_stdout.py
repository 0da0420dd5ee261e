"""Folders and several files as input, -o with a file and with stdout, and options that verbs share."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
from pathlib import Path

import pytest

import logreel
from support.builders.sample_logs import tiny
from support.harness.cli_runner import Run, Spawn, environment
from support.harness.forked import forked
from support.samples.mcap.builder import tiny as mcap
from support.samples.rosbag.builder import tiny as bag


@pytest.fixture
def field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: logs in day/ and below it, among other files."""
    monkeypatch.chdir(tmp_path)
    below = tmp_path / "day/second"
    below.mkdir(parents=True)
    (tmp_path / "day/b.ulg").write_bytes(tiny())
    (tmp_path / "day/a.bag").write_bytes(bag())
    (below / "unnamed").write_bytes(mcap())
    (tmp_path / "day/notes.txt").write_text("hello")
    (tmp_path / "day/server.log").write_text("GET /\n")
    (tmp_path / "day/.hidden.ulg").write_bytes(tiny())
    (tmp_path / "one.ulg").write_bytes(tiny())
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0" + bytes(64))
    (tmp_path / "none").mkdir()
    return tmp_path


LOGS = ["day/a.bag", "day/b.ulg", "day/second/unnamed"]


def test_info_of_a_folder_prints_a_line_per_log(run: Run, field: Path) -> None:
    done = run("info", "day")
    assert (done.code, done.err) == (0, "")
    head, *lines = done.out.splitlines()
    assert head.split() == ["format", "start", "duration", "messages", "size", "problems", "log"]
    assert [line.split()[-1] for line in lines] == LOGS
    assert [line.split()[0] for line in lines] == ["rosbag", "ulog", "mcap"]
    assert "25" in lines[1].split()
    assert len({line.index("day/") for line in lines}) == 1
    assert run("info", "one.ulg", "day").out.splitlines()[1].endswith("  one.ulg")


def test_info_long_prints_all_details_of_each_log(run: Run, field: Path) -> None:
    done = run("info", "--long", "day")
    assert [line for line in done.out.splitlines() if line in LOGS] == LOGS
    assert done.out.count("duration") == 3
    assert run("info", "one.ulg").out.startswith("one.ulg\n  format")


def test_info_shows_only_chosen_channels(run: Run, field: Path) -> None:
    done = run("info", "one.ulg", "-t", "rate*", "-x", "rate[1]")
    assert "  rate " in done.out
    assert "rate[1]" not in done.out
    assert "pair" not in done.out
    found = run("info", "one.ulg", "-x", "rate", "--json").json
    assert "rate" not in {ch["topic"] for ch in found["channels"]}
    assert found["messages"] == 25
    assert run("info", "one.ulg", "-t", "rat").code == 2


@pytest.mark.parametrize("verb", ["info", "check"])
def test_json_is_one_object_per_file_and_line(run: Run, field: Path, verb: str) -> None:
    done = run(verb, "day", "one.ulg", "--json")
    assert [json.loads(line)["path"] for line in done.out.splitlines()] == [*LOGS, "one.ulg"]
    (line,) = run(verb, "one.ulg", "--json").out.splitlines()
    assert json.loads(line)["path"] == "one.ulg"


@pytest.mark.parametrize("verb", [["info"], ["info", "--json"], ["check"], ["sql", "FROM pair"]])
def test_a_file_of_unknown_format_does_not_stop_the_others(run: Run, field: Path, verb: list[str]) -> None:
    done = run(*verb, "photo.jpg", "one.ulg", "nothing.ulg")
    assert done.code == 3
    first, second = done.err.splitlines()
    assert first.startswith("logreel: photo.jpg: not a log of a known format")
    assert second == "logreel: nothing.ulg: no such file or directory"
    assert done.out
    # Alone it is what it was.
    done = run(*verb, "photo.jpg")
    assert (done.code, done.out) == (5, "")
    assert run(*verb, "nothing.ulg", "photo.jpg").code == 1


def test_an_unreadable_log_in_a_folder_is_found_by_its_suffix(run: Run, field: Path) -> None:
    Path("day/empty.ulg").touch()
    done = run("info", "day")
    assert done.code == 3
    assert done.err == "logreel: day/empty.ulg: the file is empty\n"


def test_a_folder_without_logs_is_an_error(run: Run, field: Path) -> None:
    for verb in (["info"], ["check"], ["sql", "SELECT 1"], ["merge", "-o", "x.ulg"], ["play"]):
        done = run(*verb, "none")
        assert done.code == 5, verb
        assert done.err == "logreel: none: a folder with no log of a known format in or below it\n"


def test_sql_and_merge_take_folders(run: Run, field: Path) -> None:
    found = run("sql", "SELECT count(*) AS n FROM logreel.logs", "day", "--json").json
    assert found["paths"] == LOGS
    assert found["rows"] == [{"n": 3}]
    done = run("split", "one.ulg", "--every", "20ms", "-o", "parts", "--json").json
    done = run("merge", "parts", "-o", "again.ulg", "--json").json
    assert len(done["paths"]) > 1
    assert done["messages"] == 25


# -- output


@pytest.mark.parametrize(
    "verb",
    [
        ["info", "one.ulg"],
        ["cat", "one.ulg", "-t", "note"],
        ["schema", "one.ulg", "note"],
        ["params", "one.ulg"],
        ["text", "one.ulg"],
        ["stats", "one.ulg", "--json"],
        ["check", "one.ulg"],
        ["formats"],
    ],
)
def test_output_option_writes_text_to_a_file(run: Run, field: Path, verb: list[str]) -> None:
    shown = run(*verb)
    done = run(*verb, "-o", "out.txt")
    assert (done.code, done.out) == (shown.code, "")
    assert done.err == f"{shown.err}logreel: wrote out.txt\n"
    assert Path("out.txt").read_text() == shown.out
    again = run(*verb, "-o", "out.txt")
    assert again.code == 1
    assert "--force" in again.err
    assert run(*verb, "-o", "out.txt", "--force").code == shown.code
    assert run(*verb, "-o", "-").out == shown.out


def test_text_output_never_replaces_a_source_and_is_not_written_after_an_error(run: Run, field: Path) -> None:
    assert run("info", "one.ulg", "-o", "one.ulg", "--force").code == 2
    assert run("check", "day", "-o", "day/b.ulg", "--force").code == 2
    assert Path("one.ulg").read_bytes() == Path("day/b.ulg").read_bytes() == tiny()
    assert run("info", "photo.jpg", "-o", "x.txt").code == 5
    assert run("cat", "one.ulg", "-t", "bogus", "-o", "x.txt").code == 2
    assert not Path("x.txt").exists()


def test_the_suffix_of_the_output_chooses_the_format_of_cat(run: Run, field: Path) -> None:
    run("cat", "one.ulg", "-t", "rate", "-o", "x.csv")
    run("cat", "one.ulg", "-t", "rate", "-o", "x.ndjson")
    run("cat", "one.ulg", "-t", "rate", "-o", "x.log", "--format", "csv")
    assert Path("x.csv").read_text().startswith("time_ns,")
    assert json.loads(Path("x.ndjson").read_text().splitlines()[0])["topic"] == "rate"
    assert Path("x.log").read_text() == Path("x.csv").read_text()


#: Verbs that write a log to stdout, and what they write to a file.
TO_STDOUT = [
    (["slice", "one.ulg", "-t", "rate"], ".ulg"),
    (["sort", "one.ulg"], ".ulg"),
    (["merge", "one.ulg", "day/b.ulg"], ".ulg"),
    (["recover", "one.ulg"], ".ulg"),
    (["recover", "one.ulg", "--format", "mcap"], ".mcap"),
    (["convert", "one.ulg", "--format", "mcap"], ".mcap"),
    (["convert", "day/a.bag", "--format", "rosbag"], ".bag"),
    (["convert", "one.ulg", "--format", "csv", "-t", "rate"], ".csv"),
    (["convert", "one.ulg", "--format", ".parquet", "-t", "rate"], ".parquet"),
    (["convert", "one.ulg", "--format", "ndjson"], ".ndjson"),
]


@pytest.mark.parametrize(
    ("verb", "suffix"), TO_STDOUT, ids=lambda one: " ".join(one) if isinstance(one, list) else ""
)
def test_output_dash_is_stdout(spawn: Spawn, run: Run, field: Path, verb: list[str], suffix: str) -> None:
    done = spawn("-m", "logreel", *verb, "-o", "-")
    assert done.returncode == 0, done.stderr
    assert b"to stdout" in done.stderr
    plain = [arg for n, arg in enumerate(verb) if "--format" not in (arg, verb[n - 1])]
    assert run(*plain, "-o", f"file{suffix}").code == 0
    assert done.stdout == Path(f"file{suffix}").read_bytes()


def test_verbs_can_be_joined_by_pipes(field: Path) -> None:
    program = shlex.join(forked())
    line = (
        f"{program} slice one.ulg -t rate -o - | {program} convert - -o - --format mcap"
        f" | {program} cat - --format ndjson | {program} record -o - --format rosbag | {program} info - --json"
    )
    done = subprocess.run(["sh", "-c", line], capture_output=True, env=environment(), timeout=300)
    found = json.loads(done.stdout)
    assert (found["format"], found["path"]) == ("rosbag", "<stdin>")
    assert found["messages"] == len(logreel.open("one.ulg")["rate"])


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["convert", "one.ulg"], "say where to write: OUT, or -o OUT"),
        (["convert", "one.ulg", "a.csv", "-o", "b.csv"], "give OUT once"),
        (["convert", "one.ulg", "-o", "-"], "--format csv"),
        (["convert", "one.ulg", "-o", "-", "--format", "jpg"], "several files"),
        (["convert", "one.ulg", "-o", "-", "--format", "csv/"], "several files"),
        (["convert", "one.ulg", "-o", "-", "--format", "doc"], "names no output"),
        (["convert", "one.ulg", "-o", "a.csv", "--format", "csv"], "--format is for -o -"),
        (["convert", "one.ulg", "-o", "-", "--format", "mcap", "--json"], "leave out one"),
        (["slice", "one.ulg", "-o", "-", "--json"], "leave out one"),
        (["split", "one.ulg", "--by-topic", "-o", "-"], "several files"),
        (["recover", "one.ulg", "-o", "x.ulg", "--format", "mcap"], "--format is for -o -"),
        (["record", "-"], "--format mcap"),
        (["record", "--from", "one.ulg"], "say where to write"),
        (["attachments", "one.ulg", "-o", "-", "--json"], "leave out one"),
    ],
)
def test_several_files_are_refused_on_stdout(run: Run, field: Path, args: list[str], words: str) -> None:
    done = run(*args)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


def on_a_terminal(*args: str) -> tuple[int, bytes]:
    """Exit code and what a terminal shows of stdout."""
    own, theirs = pty.openpty()
    with subprocess.Popen(
        forked(*args), stdout=theirs, stderr=subprocess.DEVNULL, env=environment()
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(own, 65536):
                shown += piece
        except OSError:
            pass
        os.close(own)
    return process.returncode, shown


def test_a_terminal_gets_text_outputs_only(field: Path) -> None:
    assert on_a_terminal("slice", "one.ulg", "-o", "-") == (2, b"")
    assert on_a_terminal("convert", "one.ulg", "-o", "-", "--format", "parquet", "-t", "rate") == (2, b"")
    code, shown = on_a_terminal("convert", "one.ulg", "-o", "-", "--format", "csv", "-t", "rate")
    assert (code, shown[:7]) == (0, b"time_ns")
    code, shown = on_a_terminal("info", "one.ulg", "day/b.ulg", "--json")
    assert [json.loads(line)["path"] for line in shown.splitlines()] == ["one.ulg", "day/b.ulg"]


# -- the same options everywhere


def test_exclude_leaves_out_channels_in_every_verb(run: Run, field: Path) -> None:
    assert '"rate"' not in run("cat", "one.ulg", "-x", "rate", "--format", "ndjson").out
    assert "rate  (" not in run("schema", "one.ulg", "-t", "rate*", "-x", "rate").out
    assert "rate[1]" in run("schema", "one.ulg", "rate*", "-x", "rate").out
    assert "\nrate " not in run("stats", "one.ulg", "-x", "rate").out
    assert run("convert", "one.ulg", "x.csv/", "-x", "rate*").code == 0
    assert not list(Path("x.csv").glob("rate*"))
    assert list(Path("x.csv").glob("pair*"))
    assert run("convert", "one.ulg", "x.ulg", "-x", "rate*").code == 0
    assert "rate" not in logreel.open("x.ulg")


def test_count_limits_the_lines_of_text(run: Run, field: Path) -> None:
    lines = run("text", "one.ulg").out.splitlines()
    assert run("text", "one.ulg", "-n", "1").out.splitlines() == lines[:1]
