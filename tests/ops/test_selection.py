"""Questions about a part of a log are answered as for the log that slice would write of it."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.errors import UsageError
from logreel.ops.edit.recipe import Recipe, RecipeOptions
from logreel.ops.rewrite.target import Target, TargetOptions
from logreel.ops.selection import Selection, SelectionOptions
from logreel.outputs.convert import Rendering, RenderingOptions
from support.harness.cli_runner import Run
from support.samples.ulog.builder import flight

S = 10**9
PARTS: list[dict[str, Any]] = [
    {"start": "10", "end": "20"},
    {"topics": "sensor_gps"},
    {"exclude": ["sensor_*", "~text"]},
    {"where": "battery_status.voltage_v < 16"},
    {"topics": ["sensor_gps", "battery_status"], "start": "+20s", "where": "battery_status.voltage_v < 16"},
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("selection") / "flight.ulg"
    path.write_bytes(flight())
    return path


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_facts_of_a_part_are_those_of_its_slice(path: Path, tmp_path: Path, part: dict[str, Any]) -> None:
    logreel.slice(path, tmp_path / "flight.ulg", **part)
    whole, cut = path, tmp_path / "flight.ulg"
    asked, answered = logreel.info(whole, **part), logreel.info(cut)
    if part.keys() - {"topics", "exclude"}:
        assert (asked.start_ns, asked.end_ns, asked.messages) == (
            answered.start_ns,
            answered.end_ns,
            answered.messages,
        )
    facts = {fact.key: fact.value for section in logreel.summary(whole, **part) for fact in section}
    expected = {fact.key: fact.value for section in logreel.summary(cut) for fact in section}
    assert {key: value for key, value in facts.items() if key != "part"} == expected
    assert logreel.du(whole, **part).size == cut.stat().st_size
    found = [(one.code, one.topic, one.text) for one in logreel.check(whole, **part).findings]
    assert found == [(one.code, one.topic, one.text) for one in logreel.check(cut).findings]


@pytest.mark.parametrize("function", [logreel.sort, logreel.recover])
def test_sort_and_recover_write_a_part_as_slice_does(path: Path, tmp_path: Path, function: Any) -> None:
    part = logreel.Selection("sensor_gps", start="10", end="20")
    done = function(path, tmp_path / "part.ulg", selection=part)
    assert done.messages == 50
    sliced = logreel.slice(path, tmp_path / "slice.ulg", topics="sensor_gps", start="10", end="20")
    assert [ch.topic for ch in done.channels] == [ch.topic for ch in sliced.channels]


def test_the_structure_of_the_whole_file_is_checked_and_its_messages_in_the_part(
    path: Path, tmp_path: Path
) -> None:
    cut = tmp_path / "cut.ulg"
    cut.write_bytes(path.read_bytes()[:-5])
    found = logreel.check(cut, start="10", end="20")
    (problem,) = logreel.open(cut).problems
    assert [(one.code, one.offset) for one in found.findings] == [(problem.code, problem.offset)]


def test_health_of_an_interval_tells_findings_in_it_and_no_end_of_the_part(path: Path) -> None:
    assert logreel.health(path, start="10", end="20").detections == logreel.health(path).detections == ()


def test_parameters_of_an_interval_begin_with_those_in_force(path: Path) -> None:
    name = "MPC_XY_CRUISE"
    assert [p.value for p in logreel.params(path, name, start="30")] == [6.5]
    (changed,) = logreel.params(path, changed=True, start="10", end="20")
    assert (changed.name, changed.value, changed.final) == (name, 5.0, 6.5)
    assert logreel.params(path, changed=True, start="20", end="30") == []


def test_what_happened_in_these_20_s_can_be_asked(run: Run, path: Path) -> None:
    done = run("summary", path, "-S", "10", "-E", "30")
    assert done.code == 0
    assert "+10 s to +30 s, 2025-05-17T08:42:30" in done.out
    assert "20.0 s" in done.out
    lines = run("text", path, "-S", "10", "-E", "30", "-x", "~text", "--json").json["lines"]
    assert len(lines) < len(run("text", path, "-S", "10", "-E", "30", "--json").json["lines"])


def test_info_of_topics_over_a_folder_shows_the_logs_that_match(run: Run, path: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.ulg").write_bytes(path.read_bytes())
    for name in ("b.bag", "c.bag"):
        with logreel.create(logs / name) as w:
            channel = w.add_channel("/scan", logreel.Schema("std_msgs/Int32", "ros1msg", "int32 data\n"))
            w.write(channel, 1_700_000_000 * S, {"data": 1})
    done = run("info", logs, "-t", "battery_status")
    assert (done.code, done.out.count("battery_status"), done.out.count("sensor_gps")) == (0, 1, 0)
    assert "a.ulg" in done.out
    assert "b.bag" not in done.out + done.err
    assert "2 of 3 logs have no such channel" in done.err
    lines = run("info", logs, "-t", "type=std_msgs/msg/Int32", "--json").out.splitlines()
    assert [[ch["topic"] for ch in json.loads(line)["channels"]] for line in lines] == [["/scan"], ["/scan"]]
    nothing = run("info", logs, "-t", "nothing")
    assert (nothing.code, nothing.out, nothing.err.count("no channel 'nothing'")) == (2, "", 1)


def test_options_are_named_as_the_members_of_selection_and_target() -> None:
    assert [*SelectionOptions.__annotations__] == [one.name for one in fields(Selection)]
    assert {*TargetOptions.__annotations__} <= {one.name for one in fields(Target)}
    assert [*RenderingOptions.__annotations__] == [one.name for one in fields(Rendering)]
    assert [*RecipeOptions.__annotations__] == [one.name for one in fields(Recipe)]


@pytest.mark.parametrize("name", ["slice", "sort", "split", "merge", "recover", "convert", "edit", "migrate"])
def test_options_are_shown_with_their_defaults_and_unknown_ones_refused(
    name: str, path: Path, tmp_path: Path
) -> None:
    function = getattr(logreel, name)
    parameters = inspect.signature(function).parameters
    assert parameters["force"].default is False
    assert {*TargetOptions.__annotations__} <= {*parameters}
    source = [path] if name == "merge" else path
    with pytest.raises(TypeError, match="unexpected keyword argument 'forse'"):
        function(source, tmp_path / "a.ulg", forse=True)
    assert not (tmp_path / "a.ulg").exists()


@pytest.mark.parametrize("name", ["slice", "sort", "recover", "convert", "merge"])
def test_a_selection_and_its_members_say_the_same(name: str, path: Path, tmp_path: Path) -> None:
    function, source = getattr(logreel, name), [path] if name == "merge" else path
    part: dict[str, Any] = {"topics": "sensor_gps", "start": "10", "end": "20"}
    function(source, tmp_path / "a.ulg", **part)
    function(source, tmp_path / "b.ulg", selection=Selection(**part))
    assert (tmp_path / "a.ulg").read_bytes() == (tmp_path / "b.ulg").read_bytes()
    with pytest.raises(UsageError, match="leave out topics"):
        function(source, tmp_path / "c.ulg", selection=Selection(), topics="sensor_gps")


def test_verbs_refuse_members_that_mean_nothing_to_them(path: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="merge takes no where"):
        logreel.merge([path], tmp_path / "a.ulg", selection=Selection(where="sensor_gps.alt > 0"))
    with pytest.raises(UsageError, match="takes no keep_latched"):
        logreel.convert(path, tmp_path / "a.csv", selection=Selection("sensor_gps", keep_latched=True))
    with pytest.raises(UsageError, match="split takes no count"):
        logreel.split(path, tmp_path, every=10**10, count=3)
