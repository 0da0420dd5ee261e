"""Small answers: --brief, --fields and --limit of every verb, and the JSON Schemas of all answers."""

from __future__ import annotations

import functools
import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logreel.cli import main
from logreel.cli.answer_schemas import SCHEMAS, schema_of
from logreel.cli.answers import BRIEF, ShapedAnswers
from support.builders.sample_logs import damaged, hostile, short_flight, tiny
from support.harness.cli_runner import Run, Spawn, environment
from support.harness.json_schema import faults
from support.samples.bddf.builder import walk as bddf_walk
from support.samples.carla.builder import eventful
from support.samples.koblenz.drive import drive as car_drive
from support.samples.mcap.walk import walk as mcap_walk
from support.samples.rosbag.builder import drive
from test_reference import ARGUMENTS, command_of, verbs, write_files

#: Verbs with --json that write: what they print is an account of it.
WRITES = {
    "convert", "record", "slice", "merge", "split", "sort", "recover", "migrate", "edit", "add", "index", "geotag",
    "fleet ingest", "fleet remove", "dataset", "plot", "report", "view", "ci", "verify",
}  # fmt: skip
#: Verbs whose --fields are those of messages.
OWN_FIELDS = {"stats", "diff"}
READS = sorted(set(ARGUMENTS) - WRITES)
SCRIPTS = "ä漢🛩\u202e"
#: Verbs that take any log, with words behind it.
OF_ANY_LOG = {
    "info": [], "summary": [], "health": [], "cat": [], "schema": [], "params": [], "text": [], "attachments": [],
    "stats": [], "du": [], "check": [], "tf": [],
}  # fmt: skip


def options_of(verb: str) -> set[str]:
    return {name for p in command_of(verb).params if isinstance(p, click.Option) for name in p.opts}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """Return the current folder of the test, with the files that ARGUMENTS name for its verb."""
    monkeypatch.chdir(tmp_path)
    verb = getattr(request.node, "callspec", None) and request.node.callspec.params["verb"]
    write_files(ARGUMENTS[verb] if verb else ["log.rec"])
    return tmp_path


def is_small(text: str) -> bool:
    return 0 < len(text.encode("utf-8", "backslashreplace")) <= BRIEF


@pytest.mark.parametrize("verb", verbs())
def test_every_verb_with_json_takes_the_options_for_small_answers(verb: str) -> None:
    options = options_of(verb)
    has_json = "--json" in options
    # That of record is about the messages that it takes.
    assert ("--limit" in options) == has_json
    assert ("--keys" in options) == has_json
    assert ("--brief" in options) == (has_json and verb not in WRITES)
    if has_json:
        fields = [p for p in command_of(verb).params if "--fields" in p.opts]
        assert [isinstance(p, click.Option) and p.is_flag for p in fields] == [verb in OWN_FIELDS]


@pytest.mark.parametrize("verb", READS)
def test_a_brief_answer_has_at_most_two_kilobytes(verb: str, folder: Path, run: Run) -> None:
    whole = run(*verb.split(), *ARGUMENTS[verb], "--json")
    text = run(*verb.split(), *ARGUMENTS[verb], "--brief")
    answer = run(*verb.split(), *ARGUMENTS[verb], "--brief", "--json")
    assert whole.code == text.code == answer.code
    assert is_small(text.out)
    assert is_small(answer.out)
    assert answer.json["left_out"] is not None
    for line in answer.json["ask"]:
        assert line in text.out or "left out" not in text.out
    if verb in ("summary", "carla replay"):
        return
    # What is left out is counted: nothing is missing without a count.
    for name, item in whole.json.items():
        shown = answer.json.get(name)
        if isinstance(item, list) and len(shown or []) < len(item):
            assert answer.json["left_out"][name] == len(item) - len(shown or [])


#: What makes logs of all formats.
LOGS: dict[str, Callable[[], bytes]] = {
    "flight.ulg": short_flight, "damaged.ulg": damaged, "hostile.ulg": hostile, "drive.bag": lambda: drive(2.0),
    "cut.bag": lambda: drive(2.0)[:-40_000], "walk.mcap": mcap_walk, "walk.bddf": lambda: bddf_walk(2.0),
    "town.log": lambda: eventful().bytes(), "car.log": lambda: car_drive(0.5),
}  # fmt: skip


@functools.cache
def log_named(name: str) -> bytes:
    return LOGS[name]()


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("verb", OF_ANY_LOG)
def test_answers_about_any_log_fit_their_schema_and_brief_ones_two_kilobytes(
    verb: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(log_named(name))
    words = [verb, name, *OF_ANY_LOG[verb]]
    whole = run(*words, *(["--limit", "5"] if verb == "cat" else []), "--json")
    if whole.code not in (0, 3, 4):
        pytest.skip(whole.err)
    assert not [*faults(whole.json, schema_of(verb))]
    for more in ([], ["--json"]):
        done = run(*words, "--brief", *more)
        assert done.code == whole.code, done.err
        assert is_small(done.out)


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log of 300 channels with names of half a kilobyte in many scripts, at a long path."""
    folder = tmp_path_factory.mktemp("logs") / ("ü" * 100) / ("x" * 200)
    folder.mkdir(parents=True)
    lines = [
        {"topic": f"/{n}/{SCRIPTS * 120}", "time_ns": n * 10**9, "data": {"x": n, "text": "漢" * 50}}
        for n in range(300)
    ]
    (folder / "lines.ndjson").write_text("\n".join(map(json.dumps, lines)))
    assert main(["record", str(folder / "crowded.mcap"), "--from", str(folder / "lines.ndjson")]) == 0
    return folder / "crowded.mcap"


@pytest.mark.parametrize("verb", OF_ANY_LOG)
def test_brief_answers_about_a_hostile_log_have_at_most_two_kilobytes(
    verb: str, crowded: Path, run: Run
) -> None:
    for more in ([], ["--json"]):
        done = run(verb, crowded, "--brief", *more)
        assert done.code in (0, 4)
        assert is_small(done.out)
        if more:
            assert set(done.json) >= {"left_out", "ask"}


def random_value(random: Random, depth: int = 0) -> Any:
    """Return JSON data: texts in many scripts up to a kilobyte, and lists of up to 300 entries."""
    sort = random.choice("nsstldd" if depth < 4 else "ns")
    if sort == "l":
        entry = random_value(random, depth + 1)
        return [
            random.choice((entry, random_value(random, depth + 2))) for _ in range(random.choice((0, 3, 30)))
        ]
    if sort == "d":
        return {random_text(random): random_value(random, depth + 1) for _ in range(random.choice((0, 2, 8)))}
    return (
        random_text(random)
        if sort in "st"
        else random.choice((None, True, 0, -1.5e300, 2**63, random.random()))
    )


def random_text(random: Random) -> str:
    return random.choice(SCRIPTS + "abc\n\x1b\ud800") * random.choice((0, 1, 7, 40, 1000))


@given(st.integers(0, 2**32), st.booleans(), st.sampled_from((1, 3, 30)))
@settings(max_examples=25)
def test_any_object_is_cut_to_two_kilobytes(seed: int, as_json: bool, logs: int) -> None:
    import contextlib
    import io

    random = Random(seed)
    value: dict[str, Any] = {
        f"{random_text(random)}{n}": random_value(random) for n in range(random.choice((1, 5, 40)))
    }
    command = click.Command("any")
    context = click.Context(
        command, info_name="any", parent=click.Context(click.Group("logreel"), info_name="logreel")
    )
    answer = ShapedAnswers(context, ["any", "file"], (), None, True, as_json)
    answer.share(logs)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        for _ in range(1 if as_json else logs):
            answer.show(value)
    text = out.getvalue()
    assert len(text.encode("utf-8", "backslashreplace")) <= BRIEF
    if as_json:
        cut = json.loads(text)
        small = {name: item for name, item in cut.items() if name not in ("left_out", "ask")}
        assert small == value or cut["left_out"] or "characters)" in text


def test_many_problems_are_counted(tmp_path: Path, run: Run) -> None:
    data = bytearray(short_flight())
    for at in range(len(data) // 3, len(data), 100):
        data[at : at + 3] = b"\xff\xff\xff"
    path = tmp_path / "broken.ulg"
    path.write_bytes(data)
    whole = run("info", path, "--json").json
    assert len(whole["problems"]) > 50
    brief = run("info", path, "--brief", "--json").json
    assert len(brief["problems"]) + brief["left_out"]["problems"] == len(whole["problems"])
    assert brief["problems"] == [
        {name: problem[name] for name in ("code", "text", "offset", "size", "lost")}
        for problem in whole["problems"][: len(brief["problems"])]
    ]
    text = run("info", path, "--brief").out
    assert f" of {len(whole['problems'])}):" in text


def test_a_summary_in_brief_says_what_must_be_known_first(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "flight.ulg"
    path.write_bytes(short_flight())
    done = run("summary", path, "--brief", "--json")
    answer = done.json
    assert not [*faults(answer, schema_of("summary"))]
    assert answer["what"]["format"].startswith("ulog")
    assert answer["when"]["clock"] == "boot"
    assert answer["vehicle"]["Type"]
    assert answer["damage"] == {"problems": 0, "lost_bytes": 0}
    assert answer["happened"]
    assert 0 < len(answer["topics"]) <= 20
    # The questions that it proposes are answered, and are small, too.
    assert len(answer["ask"]) >= 3
    for line in answer["ask"]:
        words = shlex.split(line)
        assert words[0] == "logreel"
        again = run(*words[1:])
        assert again.code in (0, 4)
        assert is_small(again.out)


def test_a_summary_in_brief_names_the_damage_and_asks_for_a_check(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "damaged.ulg"
    path.write_bytes(damaged())
    done = run("summary", path, "--brief", "--json")
    assert done.code == 3
    assert done.json["damage"]["problems"] == 1
    assert done.json["damage"]["lost_bytes"] > 0
    assert done.json["damage"]["first"]
    assert done.json["ask"][0] == f"logreel check {path} --brief"


def test_several_logs_share_the_text_and_have_an_object_each(tmp_path: Path, run: Run) -> None:
    for n in range(30):
        (tmp_path / f"{n:02}.ulg").write_bytes(tiny())
    for verb in ("info", "stats"):
        text = run(verb, *sorted(tmp_path.iterdir()), "--brief").out
        assert is_small(text)
        assert " of 30 logs; " in text.splitlines()[0]
    lines = run("info", tmp_path, "--brief", "--json").out.splitlines()
    assert len(lines) == 30
    assert all(is_small(line) and json.loads(line)["left_out"] for line in lines)
    three = run("info", *sorted(tmp_path.iterdir())[:3], "--brief").out
    assert is_small(three)
    assert three.count("left out: ") == 3


def test_fields_choose_members_at_any_depth(folder: Path, run: Run) -> None:
    whole = run("info", "log.ulg", "--json").json
    done = run(
        "info",
        "log.ulg",
        "--fields",
        "messages, channels.topic,metadata.sys_name",
    )
    assert done.json["messages"] == whole["messages"]
    assert done.json["channels"] == [{"topic": ch["topic"]} for ch in whole["channels"]]
    assert set(done.json) == {"messages", "channels", "metadata"}
    assert run("stats", "log.ulg", "--keys", "channels.rate").json["channels"][0].keys() == {"rate"}
    messages = run("cat", "log.ulg", "--fields", "path,messages.time_ns").json
    assert set(messages) == {"path", "messages"}
    assert {*messages["messages"][0]} == {"time_ns"}


@pytest.mark.parametrize("verb", ARGUMENTS)
def test_an_unknown_member_is_refused_before_anything_is_done(verb: str, folder: Path, run: Run) -> None:
    before = set(folder.rglob("*"))
    done = run(*verb.split(), *ARGUMENTS[verb], "--keys", "nonsense")
    assert done.code == 2
    known = [
        name
        for name in ("path", "same", "formats", "definitions", "logs", "rows", "tick")
        if name in done.err
    ]
    assert "no member 'nonsense'" in done.err
    assert known or verb in ("sql", "merge", "record")
    assert before == set(folder.rglob("*"))


def test_an_unknown_inner_member_is_refused_with_those_that_there_are(folder: Path, run: Run) -> None:
    done = run("info", "log.ulg", "--fields", "channels.rate")
    assert done.code == 2
    assert (
        "no member 'rate' in channels of info --json; there are: topic, type, encoding, messages" in done.err
    )
    assert run("info", "log.ulg", "--fields", "path,,size").code == 2


@pytest.mark.parametrize("verb", sorted(set(READS) - {"carla replay"} | {"slice", "split"}))
def test_limit_shortens_lists_and_counts_the_rest(verb: str, folder: Path, run: Run) -> None:
    done = run(
        *verb.split(),
        *ARGUMENTS[verb],
        "--json",
        "--limit",
        "1",
    )
    assert done.code in (0, 3, 4), done.err
    answer = done.json
    for name, item in answer.items():
        if isinstance(item, list) and name not in ("columns",):
            assert len(item) <= 1
    assert isinstance(answer["left_out"], dict)
    if verb == "info":
        whole = run("info", "log.ulg", "--json").json
        assert answer["left_out"]["channels"] == len(whole["channels"]) - 1
    if verb == "cat":
        whole = run("cat", "log.ulg", "--json").json
        assert answer["left_out"] == {"messages": len(whole["messages"]) - 1}
        assert answer["messages"] == whole["messages"][:1]
        assert not [*faults(answer, schema_of("cat"))]


def test_limit_does_not_cut_values_of_the_robot(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "flight.ulg"
    path.write_bytes(short_flight())
    message = run("cat", path, "-t", "vehicle_attitude", "--json", "--limit", "1").json["messages"][0]
    assert len(message["data"]["q"]) == 4
    rows = run("sql", "SELECT q FROM vehicle_attitude", path, "--json", "--limit", "2").json
    assert [len(row["q"]) for row in rows["rows"]] == [4, 4]
    assert rows["left_out"]["rows"] > 2


def test_lines_are_limited_too(folder: Path, run: Run) -> None:
    lines = run(
        "carla", "replay", "log.rec", "--json", "--limit", "2", "--fields", "tick,time_ns"
    ).out.splitlines()
    assert [{*json.loads(line)} for line in lines] == [{"tick", "time_ns"}] * 2


def test_options_that_make_no_sense_together_are_refused(folder: Path, run: Run) -> None:
    assert "add it; -n limits" in run("cat", "log.ulg", "--limit", "3").err
    assert "shortens the lists of --json" in run("info", "log.ulg", "--limit", "3").err
    assert "-f goes on" in run("info", "log.ulg", "-f", "--brief").err
    assert "channels (1 of " in run("info", "log.ulg", "--brief", "--limit", "1").out


@pytest.mark.parametrize("verb", ARGUMENTS)
def test_every_answer_fits_its_schema(verb: str, folder: Path, run: Run) -> None:
    done = run(*verb.split(), *ARGUMENTS[verb], "--json")
    schema = schema_of(verb)
    answers = [json.loads(line) for line in done.out.splitlines()] if verb == "carla replay" else [done.json]
    for answer in answers:
        assert not [*faults(answer, schema)]
        # The schema is no blank cheque.
        assert [*faults({**answer, "nonsense": 1}, schema)]
        assert [*faults(dict.fromkeys(answer), schema)]


def test_schemas_are_those_of_all_verbs_with_json(run: Run) -> None:
    assert set(SCHEMAS) == {verb for verb in verbs() if "--json" in options_of(verb)}
    assert run("schema", "--of", "info").json == schema_of("info")
    wrong = run("schema", "--of", "inof")
    assert wrong.code == 2
    assert "nearest: info" in wrong.err


def test_a_command_of_another_package_has_the_schema_of_all_answers(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(SCHEMAS, "carla actors")
    schema = run("schema", "--of", "carla actors").json
    assert schema["title"] == "logreel carla actors --json"
    assert not [*faults(run("carla", "actors", "log.rec", "--json").json, schema)]
    assert run("schema", "--of", "carla nonsense").code == 2


def test_errors_name_the_option_that_was_given(folder: Path, run: Run) -> None:
    for option, words in (("--json", "--json"), ("--brief", "--brief"), ("--fields=problems", "--fields")):
        assert (
            f"{words} is a form of its own"
            in run("sql", "FROM pair", "log.ulg", option, "--format", "csv").err
        )
        assert f"--format and {words} are two" in run("params", "log.ulg", option, "--format", "csv").err


def test_pages_and_answers_do_not_both_go_to_stdout(folder: Path, run: Run) -> None:
    for verb in (["report", "log.ulg"], ["plot", "log.ulg", "pair"]):
        assert "--json and -o - would both" in run(*verb, "-o", "-", "--json").err


def test_the_viewer_prints_its_address_as_json(folder: Path) -> None:
    command = [sys.executable, "-m", "logreel", "view", "log.ulg", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment()
    ) as child:
        assert child.stdout is not None
        answer = json.loads(child.stdout.readline())
        child.terminate()
    assert not [*faults(answer, schema_of("view"))]
    assert answer["address"] == f"{answer['url']}#token={answer['token']}"


def test_usual_answers_load_none_of_what_shapes_them(tmp_path: Path, spawn: Spawn) -> None:
    (tmp_path / "tiny.ulg").write_bytes(tiny())
    code = (
        "import sys; from logreel.cli import main; main(['info', 'tiny.ulg', '--json']);"
        "print(sorted({'answers', 'answer_schemas', 'orientation'} & {m.split('.')[-1] for m in sys.modules}))"
    )
    done = spawn("-c", code, cwd=tmp_path)
    assert done.stdout.decode().splitlines()[-1] == "[]"
