"""Reference pages name everything public: docs/api.md the Python names, docs/cli.md the commands and options.

Links between pages lead somewhere.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import logreel
import logreel.plugin
from logreel.cli import main
from logreel.cli.app import logreel as group
from logreel.cli.help import VERBS
from logreel.log.scan import Actor
from logreel.ops.replay.timeline import PlayPosition
from logreel.registry.commands import Answer
from logreel.registry.registry import COMMANDS
from support.builders.ulog_camera import PICTURE, camera_log, shots
from support.builders.ulog_gps import gps_log, pieces
from support.harness.faults import Inline
from support.samples.carla.builder import eventful
from support.samples.carla.trajectories import POSES
from support.samples.rosbag.builder import drive
from support.samples.rosbag2.builder import walked
from support.samples.ulog.builder import tiny

DOCS = Path(__file__).resolve().parents[1] / "docs"
CODE = re.compile(r"`([^`]+)`")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
WORD = re.compile(r"[A-Za-z_]\w*")


def sections(page: str) -> dict[str, str]:
    """Return text by heading of the second level, including the heading."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return {part.partition("\n")[0]: part for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]}


def words(text: str) -> set[str]:
    """Return every identifier in inline code."""
    plain = FENCED.sub("", text)
    return {word for code in CODE.findall(plain) for word in WORD.findall(code)}


def members(thing: Any) -> set[str]:
    """Return public methods, properties and instance attributes, without those of Python's own tuples."""
    names = {*dir(type(thing)), *getattr(thing, "__dict__", ())} - {*dir(tuple)}
    return {name for name in names if name[:1] != "_"}


def section_of(page: str, verb: str) -> str:
    return next((text for head, text in sections(page).items() if head == f"`{verb}`"), "")


def test_the_api_page_has_every_public_name() -> None:
    assert set(logreel.__all__) <= words((DOCS / "api.md").read_text(encoding="utf-8"))


def test_the_api_page_has_the_names_for_authors_of_formats() -> None:
    text = next(text for head, text in sections("api.md").items() if head.startswith("`logreel.plugin`"))
    named = {word for row in re.findall(r"^\| (.*?) \|", text, re.MULTILINE) for word in words(row)}
    assert named == set(logreel.plugin.__all__)


def test_the_api_page_has_every_member_of_what_people_hold() -> None:
    log = logreel.open(tiny())
    message = next(log.messages())
    for thing in (log, message.channel, message, message.channel.schema):
        name = type(thing).__name__
        assert not members(thing) - words(section_of("api.md", name)), f"docs/api.md lacks these of {name}"


def test_the_api_page_has_every_name_of_one_format_only() -> None:
    text = next(text for head, text in sections("api.md").items() if head.startswith("`logreel.carla`"))
    assert set(logreel.carla.__all__) <= words(text)
    for thing in (*logreel.carla.MetricsLog.__mro__[:-1], logreel.carla.Replay, logreel.carla.Tick, Answer):
        assert {name for name in vars(thing) if name[:1] != "_"} <= words(text), thing
    assert {name for name in vars(Actor) if name[:1] != "_"} <= words(section_of("api.md", "Actor"))


def test_the_api_page_has_every_member_of_a_writer(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "a.bag") as writer:
        assert not members(writer) - words(section_of("api.md", "Writer"))


def test_the_api_page_has_every_member_of_a_player() -> None:
    player = logreel.Player(tiny(), rate=0)
    run = next(player._timeline.runs(PlayPosition(0)))
    assert not members(player) - words(section_of("api.md", "Player"))
    assert not members(player.tally) - words(section_of("api.md", "Player"))
    assert not members(logreel.Sink()) - words(section_of("api.md", "Sink"))
    assert not members(run) - words(section_of("api.md", "Sink"))
    options = set(inspect.signature(logreel.Player).parameters) - {"logs"}
    text = next(text for head, text in sections("api.md").items() if head.startswith("`logreel.play("))
    assert options == options & words(text)


def test_the_api_page_has_every_member_of_a_feed() -> None:
    feed = {name for name in dir(logreel.Feed) if name[:1] != "_"}
    assert not feed - words(section_of("api.md", "Feed"))
    options = set(inspect.signature(logreel.record).parameters)
    text = next(text for head, text in sections("api.md").items() if head.startswith("`logreel.record("))
    assert options == options & words(text)


def test_the_api_page_has_every_error() -> None:
    errors = {name for name in logreel.__all__ if name.endswith("Error")}
    assert errors <= words(sections("api.md")["Errors"])


@functools.cache
def verbs() -> tuple[str, ...]:
    """Return all commands; those of a group as ``carla info``. Commands of other packages have pages of their own."""
    own = [verb for verbs in VERBS.values() for verb in verbs]
    every = group.list_commands(click.Context(group))
    groups = [name for name in every if isinstance(command_of(name), click.Group)]
    inner = [(name, verb) for name in groups for verb in command_of(name).commands]  # type: ignore[attr-defined]
    return (*own, *(f"{name} {verb}" for name, verb in inner if f"{name}.{verb}" not in COMMANDS.added_names))


def command_of(verb: str) -> click.Command:
    """Return the Click command of a name from ``verbs``."""
    found: click.Command = group
    for name in verb.split():
        inner = found.get_command(click.Context(found), name)  # type: ignore[attr-defined]
        assert inner is not None, verb
        found = inner
    return found


@pytest.mark.parametrize("verb", verbs())
def test_the_command_line_page_has_every_option(verb: str) -> None:
    text = section_of("cli.md", verb)
    assert text, f"docs/cli.md has no section `{verb}`"
    command = command_of(verb)
    named = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", " ".join(CODE.findall(FENCED.sub("", text)))))
    options = {o for p in command.params if isinstance(p, click.Option) for o in (*p.opts, *p.secondary_opts)}
    assert not options - named, f"docs/cli.md, `{verb}`, lacks these"
    assert not named - options, f"docs/cli.md, `{verb}`, names what is no option"
    for parameter in command.params:
        if isinstance(parameter.type, click.Choice):
            assert set(parameter.type.choices) <= words(text) | set(CODE.findall(FENCED.sub("", text)))


def test_the_table_of_options_names_the_verbs_that_have_them() -> None:
    text = next(text for head, text in sections("cli.md").items() if head == "For all verbs")
    table = text.partition("| option | verbs |\n|---|---|\n")[2].partition("\n\n")[0]
    own = {verb for verbs in VERBS.values() for verb in verbs}
    assert len(table.splitlines()) >= 7
    for line in table.splitlines():
        options, named = (CODE.findall(cell) for cell in line.strip("| ").split(" | "))
        accepted = own - set(named) if " all but " in line else set(named)
        for option in (option.split()[0] for option in options):
            assert accepted == {
                verb for verb in own if any(option in p.opts for p in command_of(verb).params)
            }, option


def test_the_command_line_page_has_no_verb_that_does_not_exist() -> None:
    heads = {head.strip("`") for head in sections("cli.md") if head.startswith("`")}
    assert heads == set(verbs())


#: Arguments of each verb that has --json.
ARGUMENTS = {
    "info": ["log.ulg"],
    "cat": ["log.ulg"],
    "schema": ["log.ulg"],
    "params": ["log.ulg"],
    "text": ["log.ulg"],
    "attachments": ["log.ulg"],
    "notes": ["log.ulg"],
    "stats": ["log.ulg", "--fields"],
    "du": ["log.ulg"],
    "tf": ["log.ulg"],
    "summary": ["log.ulg"],
    "health": ["log.ulg"],
    "check": ["log.ulg"],
    "ci": ["log.ulg", "--contract", "contract.toml", "-o", "verdict"],
    "diff": ["log.ulg", "more.ulg", "--messages", "--fields"],
    "compare": ["log.ulg", "more.ulg"],
    "sql": ["FROM pair", "log.ulg"],
    "convert": ["log.ulg", "out.csv/"],
    "record": ["out.bag", "--from", "log.ndjson"],
    "slice": ["log.ulg", "-o", "out.ulg"],
    "merge": ["log.ulg", "log.ulg", "-o", "out.ulg"],
    "split": ["log.ulg", "--every", "1s", "-o", "parts"],
    "sort": ["log.ulg", "-o", "out.ulg"],
    "recover": ["log.ulg", "-o", "out.ulg"],
    "migrate": ["log.ulg", "-o", "out.ulg", "--rules", "rules.toml"],
    "edit": ["log.ulg", "-o", "out.ulg", "--rename", "rate=speed"],
    "add": ["metadata", "log.ulg", "operator=Kim"],
    "index": ["log.ulg"],
    "plot": ["log.ulg", "pair"],
    "report": ["log.ulg", "-o", "out.html"],
    "verify": ["drive.json", "--values"],
    "geotag": ["camera.ulg", "--pictures", "pictures", "-o", "tagged"],
    "formats": [],
    "definitions": ["find", "std_msgs/Header"],
    "fleet ingest": ["log.ulg", "-o", "new_fleet"],
    "fleet status": ["fleet"],
    "fleet query": ["FROM pair", "fleet"],
    "fleet remove": ["fleet", "other.ulg"],
    "fleet report": ["fleet"],
    "fleet verify": ["fleet"],
    "dataset": ["log.ulg", "-o", "episodes", "--spec", "spec.toml", "--to", "hdf5"],
    "carla info": ["log.rec"],
    "carla collisions": ["log.rec"],
    "carla blocked": ["log.rec", "0.01", "1000"],
    "carla replay": ["log.rec", "--start", "99"],
    "carla actors": ["log.rec"],
    "carla write": ["poses.csv"],
    "rosbag2 metadata": ["walk.db3"],
    "ulog gps-dump": ["gps.ulg"],
}
CONTRACT = """
[topics.pair]
min_messages = 1000
[topics.absent]
required = false
max_gap = 1
"""
SPEC = """
rate = 10
[features.action]
fields = ["rate.xyz"]
max_error = "10s"
"""
RULES = """
[[rule]]
type = "rate"
to = "rates"
"""
#: Keys of a problem, which the page describes once for all commands.
PROBLEM = {"code", "offset", "size", "lost", "text"}
#: What is below these keys comes from the log.
FREE = {
    "evidence",
    "value",
    "data",
    "metadata",
    "defaults",
    "parameters",
    "rows",
    "changed",
    "dropped",
    "added",
    "created",
    "applied",
    "not_applied",
    "weather",
}


def keys(value: Any) -> Iterator[str]:
    """Yield all keys of a JSON value at any depth, except those that come from the log."""
    if isinstance(value, dict):
        yield from value
        value = [item for key, item in value.items() if key not in FREE]
    if isinstance(value, list):
        for item in value:
            yield from keys(item)


@functools.cache
def contents() -> dict[str, bytes]:
    """Return the files that ARGUMENTS name, without folders and what is made of other files."""
    return {
        "log.ulg": tiny()[:-1],
        "more.ulg": tiny() + tiny()[-30:],
        "log.ndjson": b'{"topic": "/a", "time_ns": 1, "data": {"x": 1}}',
        "log.rec": eventful().bytes()[:-1],
        "poses.csv": POSES,
        "camera.ulg": camera_log(shots(2)),
        "gps.ulg": gps_log(pieces(3)),
        "walk.db3": walked()[:-5],
        "rules.toml": RULES.encode(),
        "spec.toml": SPEC.encode(),
        "contract.toml": CONTRACT.encode(),
    }


def write_files(words: Iterable[str]) -> None:
    """Write log.ulg, and what *words* name of the files of ARGUMENTS, into the current folder."""
    named = {"log.ulg", *words}
    for name in contents().keys() & named:
        Path(name).write_bytes(contents()[name])
    if "pictures" in named:
        Path("pictures").mkdir()
        Path("pictures/a.jpg").write_bytes(PICTURE)
    if "fleet" in named:
        logreel.fleet.ingest("log.ulg", "fleet", engine=Inline())
    if "drive.json" in named:
        Path("drive.bag").write_bytes(drive(1.0))
        logreel.convert("drive.bag", "drive/", topics="/imu", manifest="drive.json")


@pytest.mark.parametrize("verb", ARGUMENTS)
def test_the_command_line_page_has_every_key(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(ARGUMENTS[verb])
    assert main([*verb.split(), *ARGUMENTS[verb], "--json"]) in (0, 3, 4)
    found = json.loads(capsys.readouterr().out)
    text = section_of("cli.md", verb)
    top = re.search(r"^Keys: `([^`]+)`", text, re.MULTILINE)
    assert top is not None
    assert set(top[1].split()) == set(found)
    problem = PROBLEM if "problems" in found else set()
    assert set(keys(found)) - problem <= words(text)


def test_every_verb_with_json_is_tried() -> None:
    found = {verb for verb in verbs() if any(p.name == "as_json" for p in command_of(verb).params)}
    # That of the viewer goes on until it is stopped; it has a test of its own.
    assert found == set(ARGUMENTS) | {"view"}
