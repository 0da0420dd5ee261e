"""Commands for logs of one format, from the descriptions in the format."""

from __future__ import annotations

import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.registry import registry
from logreel.registry.commands import Answer, Command, Option
from logreel.registry.format import Format
from logreel.registry.registry import COMMANDS, Registry, lazy_value
from support.builders.sample_logs import tiny
from support.harness.cli_runner import Run
from support.samples.carla.builder import Builder, eventful
from support.samples.carla.drive import drive
from support.samples.mcap.builder import tiny as mcap_tiny


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("town") / "town.log"
    path.write_bytes(drive().bytes())
    return path


def test_texts_of_the_simulator_are_printed(run: Run, town: Path) -> None:
    log, carla = logreel.open(town), logreel.carla
    for args, answer in (
        (["info"], carla.info(log)),
        (["info", "--generation", "0.9.4"], carla.info(log, release="0.9.4")),
        (["collisions"], carla.collisions(log)),
        (["collisions", "h", "v"], carla.collisions(log, "h", "v")),
        (["collisions", "v", "v", "--correct"], carla.collisions(log, "v", "v", correct=True)),
        (["blocked"], carla.blocked(log)),
        (["blocked", "2.5", "50"], carla.blocked(log, 2.5, 50)),
        (["blocked", "1", "--correct"], carla.blocked(log, 1, correct=True)),
    ):
        done = run("carla", args[0], town, *args[1:])
        assert (done.code, done.err, done.out) == (0, "", answer.text())


def test_all_packets_are_printed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    path.write_bytes(eventful().bytes())
    done = run("carla", "info", path, "--all")
    assert done.out == logreel.carla.info(logreel.open(path), show_all=True).text()
    assert "     Bone: " in done.out


def test_actors_are_listed(run: Run, town: Path) -> None:
    lines = run("carla", "actors", town).out.splitlines()
    assert lines[0].split() == ["id", "type", "start", "s", "end", "s", "parent", "description"]
    assert "   102  vehicle            0.000     24.225          vehicle.yamaha.yzf (autopilot)" in lines
    assert "   401  sensor             2.000                100  sensor.camera.rgb (dash)" in lines
    found = run("carla", "actors", town, "--json").json
    assert len(found["actors"]) == len(lines) - 1
    bike = next(a for a in found["actors"] if a["id"] == 102)
    assert (bike["role"], bike["start_ns"], bike["end_ns"], bike["parent"]) == (
        "autopilot",
        0,
        24225000361,
        None,
    )


def test_json_is_one_object(run: Run, town: Path) -> None:
    for verb, key in (("info", "events"), ("collisions", "collisions"), ("blocked", "blocked")):
        found = run("carla", verb, town, "--json").json
        assert list(found) == ["path", "version", "map", "date_unix", "frames", "duration_s", key, "problems"]
        assert found["frames"] == 595


def test_nan_and_infinity_are_json_strings(run: Run, tmp_path: Path) -> None:
    out = Builder()
    out.frame(float("nan")).add(1, 0, "x", (float("nan"), float("inf"), 0.0))
    path = tmp_path / "a.log"
    path.write_bytes(out.bytes())
    found = run("carla", "info", path, "--json").json
    assert found["events"][0]["location"] == ["NaN", "Infinity", 0.0]
    assert found["duration_s"] == "NaN"


def test_errors_of_format_commands_have_exit_codes(run: Run, town: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.log"
    cut.write_bytes(town.read_bytes()[:-100])
    other = tmp_path / "other.ulg"
    other.write_bytes(tiny())
    for args, code, words in (
        (["collisions", cut], 3, "could not be read"),
        (["collisions", other], 2, "a log of format ulog; this asks logs of format carla"),
        (["collisions", town, "x"], 2, "kinds of actors"),
        (["blocked", town, "soon"], 2, "soon"),
        (["info", town, "--generation", "2"], 2, "0.9.10"),
        (["info", tmp_path / "nothing"], 1, "no such file"),
        (["bogus"], 2, "no such command"),
        (["info"], 2, "FILE"),
    ):
        done = run("carla", *args)
        assert (done.code, len(done.err.splitlines())) == (code, 1)
        assert words in done.err


def test_help_names_the_commands(run: Run) -> None:
    assert "carla" in run("--help").out
    done = run("carla", "--help")
    found = [line.split()[1] for line in done.out.splitlines() if line[2:3].isalpha()]
    assert [name for name in found if name in ("info", "collisions", "blocked", "actors")] == [
        "info", "collisions", "blocked", "actors",
    ]  # fmt: skip
    assert "show_recorder_collisions" in run("carla", "collisions", "-h").out
    assert run("ulog").code == run("bogus").code == 2


def test_control_characters_of_a_recording_are_escaped(run: Run, tmp_path: Path) -> None:
    out = Builder(town="T\x1b[2J")
    for i in range(3):
        out.frame(i * 20.0).add(1, 1, "v\x1b]0;owned\x07", values={"role_name": "a\x9b\nb"}).position(
            1, (0.0,) * 3
        )
    path = tmp_path / "a.log"
    path.write_bytes(out.bytes())
    for verb in ("info", "collisions", "blocked", "actors"):
        done = run("carla", verb, path)
        assert done.code == 0
        assert not {"\x1b", "\x07", "\x9b"} & set(done.out + done.err)


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> str:
    """A format of another package that answers one question."""
    module = types.ModuleType("special_thermo")

    def count(log: Any, step: float, loud: bool, kind: str) -> Answer:
        rows = [int(step), int(loud)]
        return Answer("counts", {"n": rows}, lambda: iter([f"{kind} {rows}"]), {"kind": kind})

    options = (
        Option("step", kind=float, default=1.0),
        Option("loud", ("--loud", "-l"), "Cry.", bool),
        Option("kind", ("--kind",), "What.", ("a", "b"), "a"),
    )
    module.COMMANDS = (Command("count", "Count. And more.", count, options),)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "special_thermo", module)
    ulog = registry.formats()["ulog"]
    thermo = replace(
        ulog, name="ulog", api=lazy_value("special_thermo"), commands=lazy_value("special_thermo:COMMANDS")
    )
    own = {**registry.FORMATS.own(), "ulog": thermo}
    # Not the function that lists the formats: the registry has called it long ago.
    monkeypatch.setattr(registry, "FORMATS", Registry("log format", registry.GROUP, own, Format))
    return "ulog"


def test_any_format_can_have_commands(run: Run, foreign: str, tmp_path: Path) -> None:
    path = tmp_path / "tiny.ulg"
    path.write_bytes(tiny())
    assert run(foreign, "count", path).out == "a [1, 0]\n"
    assert run(foreign, "count", path, "3", "-l", "--kind", "b").out == "b [3, 1]\n"
    found = run(foreign, "count", path, "2", "--json").json
    assert found == {"path": str(path), "kind": "a", "counts": [{"n": 2}, {"n": 0}], "problems": []}
    assert "Commands for logs of one format: PX4 ULog." in run(foreign, "--help").out
    assert logreel.ulog is sys.modules["special_thermo"]


def test_packages_add_commands_to_formats_of_others(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "extra_thermo.py").write_text(
        "from logreel.plugin import Answer, Command\n"
        "COUNT = Command('count', 'Count.', lambda log: Answer('', {}, lambda: iter([str(log.message_count)])))\n"
        "INFO = Command('info', 'Taken.', lambda log: Answer('', {}, lambda: iter(['taken'])))\n"
    )
    info = tmp_path / "extra_thermo-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: extra-thermo\nVersion: 1\n")
    names = (
        "mcap.count = extra_thermo:COUNT",
        "carla.count = extra_thermo:COUNT",
        "carla.info = extra_thermo:INFO",
    )
    (info / "entry_points.txt").write_text("\n".join(("[logreel.commands]", *names)))
    monkeypatch.syspath_prepend(str(tmp_path))
    COMMANDS.forget()
    try:
        path = tmp_path / "x.mcap"
        path.write_bytes(mcap_tiny())
        assert run("mcap", "count", path).out == f"{logreel.open(path).message_count}\n"
        assert "count" in run("carla", "--help").out
        path.write_bytes(drive().bytes())
        assert "taken" not in run("carla", "info", path).out
        assert "mcap" in run("--help").out
    finally:
        COMMANDS.forget()


def test_a_command_of_a_package_that_is_missing_says_what_to_install(
    run: Run, town: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Registry, "added", lambda self: {})
    done = run("carla", "metrics", town, "--metric", "metric.py")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "comes with another package: pip install logreel-carla-metrics" in done.err


def test_formats_without_an_api_have_no_name() -> None:
    for name in ("ulog", "nothing", "_private"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
            getattr(logreel, name)
    assert sorted(logreel.carla.__all__) == logreel.carla.__all__
