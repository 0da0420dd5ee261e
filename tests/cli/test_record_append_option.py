"""``logreel record --append`` continues a log, with the types that it has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import logreel
from support.harness.cli_runner import Run


def lines(*values: tuple[str, int, float]) -> str:
    return "".join(f'{{"topic": "{t}", "time_ns": {n}, "data": {{"x": {x}}}}}\n' for t, n, x in values)


@pytest.mark.parametrize("suffix", [".bag", ".ulg", ".mcap", ".bddf"])
def test_lines_continue_a_log(suffix: str, run: Run, tmp_path: Path) -> None:
    out, source = tmp_path / f"a{suffix}", tmp_path / "lines"
    topic = "a" if suffix == ".ulg" else "/a"
    source.write_text(lines((topic, 10**9, 1.5), (topic, 2 * 10**9, 2.5)))
    # A missing log is created.
    assert run("record", out, "--append", "--from", source).code == 0
    # As a whole number, it would be another type.
    source.write_text(lines((topic, 3 * 10**9, 3)))
    done = run("record", out, "--append", "--from", source, "--metadata", "note=more", "--json")
    assert done.code == (0 if suffix in (".ulg", ".mcap") else 3), done.err
    found = json.loads(done.out)
    assert (found["messages"], found["channels"]) == (1, [{"topic": topic, "messages": 1}])
    log = logreel.open(out)
    assert log.problems == ()
    assert list(log.match(None)) == [log[topic]]
    assert (log[topic].times.tolist(), log[topic]["x"].tolist()) == (
        [10**9, 2 * 10**9, 3 * 10**9],
        [1.5, 2.5, 3.0],
    )


def test_new_topics_are_added(run: Run, tmp_path: Path) -> None:
    out, source = tmp_path / "a.mcap", tmp_path / "lines"
    source.write_text(lines(("/a", 10**9, 1.5)))
    assert run("record", out, "--from", source).code == 0
    source.write_text(lines(("/a", 2 * 10**9, 2.5), ("/b", 2 * 10**9, 7)))
    assert run("record", out, "--append", "--from", source).code == 0
    log = logreel.open(out)
    assert {topic: log[topic]["x"].tolist() for topic in log} == {"/a": [1.5, 2.5], "/b": [7]}


def test_topics_that_a_ulog_does_not_define_are_left_out(run: Run, tmp_path: Path) -> None:
    out, source = tmp_path / "a.ulg", tmp_path / "lines"
    source.write_text(lines(("a", 10**9, 1.5)))
    assert run("record", out, "--from", source).code == 0
    source.write_text(lines(("a", 2 * 10**9, 2.5), ("b", 2 * 10**9, 7)))
    done = run("record", out, "--append", "--from", source)
    assert (done.code, "format b is not defined in the log" in done.err) == (3, True)
    assert logreel.open(out)["a"]["x"].tolist() == [1.5, 2.5]


def test_without_lines_the_log_stays_as_it_is(run: Run, tmp_path: Path) -> None:
    out, source = tmp_path / "a.mcap", tmp_path / "lines"
    source.write_text(lines(("/a", 10**9, 1.5)))
    assert run("record", out, "--from", source).code == 0
    data = out.read_bytes()
    source.write_text("")
    assert run("record", out, "--append", "--from", source).code == 0
    assert out.read_bytes() == data


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--like", "b.mcap"], "leave out --like"),
        (["--split-size", "1MB"], "leave out --like"),
        (["--split-duration", "1s"], "leave out --like"),
    ],
)
def test_options_of_new_logs_are_refused(
    options: list[str], text: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lines").write_text(lines(("/a", 10**9, 1.5)))
    for name in ("a.mcap", "b.mcap"):
        assert run("record", name, "--from", "lines").code == 0
    done = run("record", "a.mcap", "--append", "--from", "lines", *options)
    assert (done.code, text in done.err) == (2, True)
    done = run("record", "-o", "-", "--format", "mcap", "--append", "--from", "lines")
    assert (done.code, "--append continues a file" in done.err) == (2, True)


def test_damaged_log_is_refused_with_the_way_out(run: Run, tmp_path: Path) -> None:
    out, source = tmp_path / "a.mcap", tmp_path / "lines"
    source.write_text(lines(("/a", 10**9, 1.5)))
    assert run("record", out, "--from", source).code == 0
    out.write_bytes(out.read_bytes()[:-200])
    done = run("record", out, "--append", "--from", source)
    assert done.code == 1
    assert "is damaged" in done.err
    assert "'logreel recover'" in done.err
