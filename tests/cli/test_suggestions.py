"""Errors for unknown verbs, options and topics contain suggestions."""

from __future__ import annotations

from pathlib import Path

import pytest

from logreel.cli import app, exits
from logreel.cli.help import VERBS
from support.harness.cli_runner import Run
from support.samples.ulog.builder import flight


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.ulg").write_bytes(flight(2.0))


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("ls", "info"), ("filter", "slice"), ("export", "convert"), ("dump", "cat"), ("echo", "cat"), ("print", "cat"),
        ("Export", "convert"), ("inf", "info"), ("stat", "stats"), ("covnert", "convert"), ("reindex", "recover"),
        ("topics", "info"), ("find", "info"), ("images", "convert"), ("track", "convert"), ("align", "convert"),
        ("completions", "completion"), ("crala", "carla"),
    ],
)  # fmt: skip
def test_a_verb_that_does_not_exist_is_answered_with_the_one_meant(run: Run, wrong: str, right: str) -> None:
    done = run(wrong, "a.ulg")
    assert (done.code, done.out) == (2, "")
    assert f"no such command '{wrong}'; did you mean '{right}'" in done.err
    assert done.err.count("\n") == 1


def test_a_verb_like_none_is_answered_without_a_guess(run: Run) -> None:
    done = run("xyzzy", "a.ulg")
    assert (done.code, "no such command 'xyzzy'; see" in done.err) == (2, True)


def test_a_file_in_place_of_the_verb_is_answered_with_where_it_belongs(run: Run) -> None:
    done = run("a.ulg")
    assert (done.code, "'logreel info a.ulg'" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("cat a.ulg --topics x", "--topic"), ("cat a.ulg --formt csv", "--format"), ("slice a.ulg --out x", "--output"),
        ("cat a.ulg --max 3", "--count"), ("text a.ulg --begin 3", "--start"), ("cat a.ulg --until 3", "--end"),
        ("convert a.ulg x.csv/ --overwrite", "--force"), ("convert a.ulg x.csv/ -f", "--force"),
        ("info a.ulg --jsn", "--json"), ("stats a.ulg --field", "--fields"), ("carla info a.ulg --al", "--all"),
        ("slice a.ulg -o x.ulg --channel x", "--topic"), ("merge a.ulg --excluding x", "--exclude"),
    ],
)  # fmt: skip
def test_an_option_that_does_not_exist_is_answered_with_the_one_meant(
    run: Run, line: str, right: str
) -> None:
    done = run(*line.split())
    assert (done.code, done.out) == (2, "")
    assert f"; did you mean '{right}'?; see 'logreel " in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("line", ["cat a.ulg -q", "cat a.ulg --xyzzy", "params a.ulg --number 3"])
def test_an_option_like_none_is_answered_without_a_guess(run: Run, line: str) -> None:
    done = run(*line.split())
    assert (done.code, "did you mean" in done.err) == (2, False)
    assert "no such option" in done.err


@pytest.mark.parametrize(
    "verb", ["cat", "stats", "info", "schema", "convert", "slice", "split", "play", "merge", "diff"]
)
@pytest.mark.parametrize("flag", ["-t", "-x"])
def test_topics_with_commas_are_answered_with_one_by_one(run: Run, verb: str, flag: str) -> None:
    more = {
        "convert": ["x.csv/"], "slice": ["-o", "x.ulg"], "split": ["--every", "1s", "-o", "parts"],
        "merge": ["a.ulg", "-o", "x.ulg"], "diff": ["a.ulg"],
    }.get(verb, [])  # fmt: skip
    done = run(verb, "a.ulg", *more, flag, "sensor_gps,sensor_accel")
    assert (done.code, done.out) == (2, "")
    assert f"one by one: {flag} sensor_gps {flag} sensor_accel" in done.err
    assert sorted(str(path) for path in Path().iterdir()) == ["a.ulg"]


def test_every_name_of_other_programs_leads_to_one_that_exists_and_hides_none() -> None:
    verbs = {verb for verbs in VERBS.values() for verb in verbs}
    assert {verb for some in app.ALIASES.values() for verb in some.split(" or ")} <= verbs
    assert verbs.isdisjoint(app.ALIASES)
    context = app.click.Context(app.logreel)  # type: ignore[attr-defined]
    commands = [app.logreel.get_command(context, verb) for verb in verbs]
    options = {name for one in commands if one is not None for p in one.params for name in p.opts}
    assert set(exits.ALIASES.values()) <= options


@pytest.mark.parametrize(
    ("wrong", "one", "other"),
    [("fix", "recover", "migrate"), ("doctor", "check", "recover"), ("grep", "text", "cat")],
)
def test_a_verb_of_other_programs_may_mean_two(run: Run, wrong: str, one: str, other: str) -> None:
    done = run(wrong, "a.bag", "b.bag")
    assert f"no such command '{wrong}'; did you mean '{one}' or '{other}'?" in done.err
