"""Help of the verbs: examples that run, and text that is readable at any width."""

from __future__ import annotations

import functools
import os
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

import logreel
import logreel.cli
from logreel.cli.app import logreel as group
from logreel.cli.help import verb
from logreel.meaning.notes import Note
from logreel.registry.commands import Example
from support.builders.ulog_camera import PICTURE, camera_log, shots
from support.builders.ulog_gps import gps_log, pieces
from support.harness.cli_runner import Run, Spawn
from support.harness.faults import Inline
from support.samples.bddf.builder import walk as bddf_walk
from support.samples.carla.builder import eventful
from support.samples.carla.trajectories import POSES, osi_trace
from support.samples.mcap.walk import walk as mcap_walk
from support.samples.rosbag.builder import drive
from support.samples.rosbag2.builder import walked
from support.samples.ulog.builder import flight
from test_reference import RULES, command_of, section_of, verbs

WIDTHS = (60, 80, 100)
#: Verbs whose examples are only parsed, and why.
PARSED = {
    "view": "serves until it is stopped",
    "serve": "serves until it is stopped",
    "play": "takes as long as the log, or needs a receiver",
    "carla replay": "one of the examples needs a receiver",
    "record": "one of the examples needs a ROS system",
    "fleet": "starts processes; those of its commands",
    "fleet ingest": "starts processes; tests/fleet runs it",
    "demo": "tests/cli/test_launcher.py runs it",
}
#: Exit codes of examples other than 0.
CODES = {
    "check": {0, 4},
    "ci": {0, 4},
    "compare": {0, 4},
    "health": {0, 4},
    "diff": {4},
    "recover": {0, 3},
    "dataset": {0, 3},
}


@functools.cache
def samples() -> dict[str, bytes]:
    """Return the files that the examples name."""
    bag, short, small, walk = drive(7.0), drive(2.0), flight(2.0), walked()
    return {
        "flight.ulg": flight(21.0),
        "first.ulg": small,
        "second.ulg": flight(2.0, seed=2),
        "camera.ulg": camera_log(shots(2)),
        "gps.ulg": gps_log(pieces(3)),
        "drive.bag": bag,
        "old.bag": short,
        "broken.bag": bag[: len(bag) // 2],
        "walk.mcap": mcap_walk(),
        "walk.db3": walk,
        "drive/drive_0.db3": walk,
        "walk.bddf": bddf_walk(4.0),
        "town.log": eventful().bytes(),
        "town_gt.osi.mcap": osi_trace(),
        "poses.csv": POSES,
        "logs/flight.ulg": small,
        "logs/drive.bag": short,
        "pictures/a.jpg": PICTURE,
        "pictures/b.jpg": PICTURE,
        "messages.ndjson": b'{"topic": "/a", "time_ns": 1, "data": {"x": 1}}\n',
        "rules.toml": RULES.encode(),
        "lane.toml": b'rate = "10Hz"\n[features.action]\nfields = ["/cmd_vel.linear.x"]\nmax_error = "1s"\n',
        "hover.toml": b'rate = "10Hz"\n[features.action]\nfields = ["vehicle_attitude.q"]\nmax_error = "1s"\n',
        "notes.txt": b"cold morning\n",
        "c.toml": b"min_messages = 1\n",
        "battery.json": b'{"panels": [{"kind": "plot", "series": [{"means": "battery voltage"}]}]}',
    }


@pytest.fixture
def folder(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder of the test, with the samples that the examples of its verb name."""
    # What is ingested or converted before the examples of fleets and of verify run.
    named = " ".join(["logs", *(line for line, _ in examples(verb))])
    for name, data in samples().items():
        if Path(name).parts[0] in named:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def examples(verb: str) -> tuple[Any, ...]:
    return tuple(Example(*pair) for pair in getattr(command_of(verb), "examples", ()))


def words_of(line: str) -> list[str]:
    """Return the arguments of an example, without a redirection or a pipe at its end."""
    return shlex.split(re.split(r" (?:\||>>?) ", line)[0])[1:]


@pytest.mark.parametrize("verb", verbs())
def test_every_verb_has_two_examples_that_begin_with_it(verb: str) -> None:
    found = examples(verb)
    assert len(found) >= 2, f"logreel {verb}: add examples to its @verb(examples=…), see logreel/cli/help.py"
    for line, text in found:
        assert line.startswith(f"logreel {verb}")
        assert len(line) <= 76, "wider than a terminal of 80 columns with a frame"
        assert text
        assert text[-1] != "."
    assert len({one.line for one in found}) == len(found)


@pytest.mark.parametrize("verb", [verb for verb in verbs() if verb not in PARSED])
def test_examples_run(verb: str, folder: Path, run: Run) -> None:
    if verb.startswith("fleet "):
        logreel.fleet.ingest("logs", "fleet", engine=Inline())
    if verb == "notes":
        listed = logreel.notes("flight.ulg")
        listed.put(Note(0, title="Boot", id="8e23dd0a7c1e"))
        listed.save()
    if verb == "verify":
        logreel.convert("logs/drive.bag", "ros2/", topics="/imu", manifest="drive.json")
    for line, _ in examples(verb):
        done = run(*words_of(line))
        if "pip install 'logreel[" in done.err:
            pytest.skip(done.err.strip())
        assert done.code in CODES.get(verb, {0}), f"{line}\n{done.err}"
        assert done.out or done.err


@pytest.mark.parametrize("verb", PARSED)
def test_examples_that_do_not_end_are_parsed(verb: str, folder: Path) -> None:
    for line, _ in examples(verb):
        # The group is the parent, whose settings, such as -h, a command keeps after its first use.
        parent = group.make_context("logreel", words_of(line))
        words = words_of(line)[len(verb.split()) :]
        with command_of(verb).make_context(verb, words, parent=parent) as context:
            named = [context.params.get(name) or () for name in ("file", "files")]
        for name in [name for one in named for name in ([one] if isinstance(one, str) else one)]:
            assert Path(name).exists(), line


@pytest.mark.parametrize("verb", verbs())
def test_the_command_line_page_shows_the_examples(verb: str) -> None:
    wanted = "```text\n" + "\n".join(f"{one.line}\n    {one.text}" for one in examples(verb)) + "\n```\n"
    assert wanted in section_of("cli.md", verb), f"docs/cli.md, `{verb}`, lacks this:\n{wanted}"


def helps() -> dict[str, click.Command]:
    return {"": group, **{name: command_of(name) for name in (*verbs(), "carla", "ulog")}}


@pytest.mark.parametrize("width", WIDTHS)
def test_help_is_readable_at_any_width(width: int, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for name, command in helps().items():
        shown = run(*name.split(), "--help").out
        lines = shown.splitlines()
        assert max(map(len, lines)) <= width, name
        found = set(re.sub(r"[│╭╮╰╯─\\]", " ", shown).split())
        texts = [command.help or "", *(p.help or "" for p in command.params if isinstance(p, click.Option))]
        texts += [text for one in getattr(command, "examples", ()) for text in one]
        missing = {word for text in texts for word in text.split()} - found
        assert not missing, f"logreel {name} --help breaks these words at {width} columns"
        options = {flag for p in command.params if isinstance(p, click.Option) for flag in p.opts}
        assert options <= set(re.split(r"[\s,│]+", shown)), name


def test_narrow_help_has_no_narrow_column(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for name, command in helps().items():
        shown = run(*name.split(), "--help").out
        plain = " ".join(shown.split())
        for option in command.params:
            if isinstance(option, click.Option):
                # All of the text is in one column, in its order.
                assert " ".join((option.help or "").split()) in plain, (name, option.name)
                lines = [line for line in shown.splitlines() if line.startswith("      ")]
                assert all(len(line) - len(line.lstrip()) <= 6 for line in lines), name


def test_help_is_one_column_where_two_would_break_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(metavar: str) -> click.Command:
        @verb(examples={"logreel x": "nothing"})
        @click.option(
            "--name", metavar=metavar, help="A /a/name/that/is/not/short/at/all/and/has/no/space here."
        )
        def x(name: str) -> int:
            return 0

        return x

    monkeypatch.setenv("COLUMNS", "80")
    shown = {
        metavar: made(metavar).make_context("x", [], parent=group.make_context("logreel", ["x"])).get_help()
        for metavar in ("NAME", "[" + "|".join("abcdefghijklmnopq") + "]")
    }
    assert ["│" in text for text in shown.values()] == [True, False]
    assert all("/a/name/that/is/not/short/at/all/and/has/no/space" in text for text in shown.values())


def test_lines_of_examples_are_continued_as_a_shell_takes_them(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    for name in ("sql", "convert", "merge"):
        shown = run(name, "--help").out.partition("Examples:\n")[2]
        joined = shown.replace("\\\n", "")
        lines = [shlex.split(line) for line in joined.splitlines() if line.startswith("  logreel ")]
        assert lines == [shlex.split(one.line) for one in examples(name)]
        assert os.linesep + "    " in shown


def test_narrow_help_loads_no_rich(spawn: Any) -> None:
    script = (
        "import os, sys; os.environ['COLUMNS'] = '60'; from logreel.cli import main; main(['cat', '--help'])\n"
        "sys.exit('rich.console' in sys.modules or 'numpy' in sys.modules)"
    )
    assert spawn("-c", script).returncode == 0


def test_the_general_help_loads_no_commands_of_formats(spawn: Any) -> None:
    script = (
        "import sys; from logreel.cli import main; main(['--help'])\n"
        "sys.exit('logreel.formats.carla.simulator.commands' in sys.modules)"
    )
    done = spawn("-c", script)
    assert done.returncode == 0
    assert b"carla" in done.stdout


def test_the_pages_of_help_are_current(spawn: Spawn) -> None:
    done = spawn(Path(__file__).parents[2] / "tools/lay_out_help.py", "--check", imported=True)
    assert done.stderr == b""


#: Runs a command line on a terminal of its own, whose columns come first; prints what it shows.
ON_TERMINAL = """
import fcntl, os, pty, struct, sys, termios
columns, *command = sys.argv[1:]
process, terminal = pty.fork()
if not process:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 30, int(columns), 0, 0))
    os.execv(sys.executable, [sys.executable, *command])
try:
    while data := os.read(terminal, 65536):
        sys.stdout.buffer.write(data)
except OSError:
    pass
"""
SLOW = "import sys, logreel.cli as c; c.help_page = lambda args: None; c.main(sys.argv[1:])"
FAST = "import sys, logreel.cli as c; c.main(sys.argv[1:]); assert 'click' not in sys.modules"


@pytest.mark.parametrize("words", ["--help", "", "info -h", "fleet ingest --help", "carla blocked --help"])
@pytest.mark.parametrize("width", [80, 110, 170])
def test_pages_are_what_would_be_laid_out(
    spawn: Spawn, run: Run, monkeypatch: pytest.MonkeyPatch, words: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    page = spawn("-c", FAST, *words.split(), check=True).stdout
    monkeypatch.setattr(logreel.cli, "help_page", lambda args: None)
    assert page == run(*words.split()).out.encode()


@pytest.mark.parametrize("width", [80, 120])
def test_pages_have_the_colours_of_a_terminal(
    spawn: Spawn, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    shown = [
        spawn("-c", ON_TERMINAL, str(width), "-c", code, "cat", "--help").stdout for code in (FAST, SLOW)
    ]
    assert shown[0] == shown[1]
    assert b"\x1b[1;36m--topic" in shown[0]


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        ("info --help", {"COLUMNS": "95"}),
        ("info --help", {"COLUMNS": "60"}),
        ("info --help", {"FORCE_COLOR": "1"}),
        ("info --help", {"PYTHONIOENCODING": "latin-1"}),
        ("info flight.ulg --help", {}),
        ("fleet.ingest --help", {}),
        ("../help/logreel --help", {}),
        ("bogus --help", {}),
    ],
)
def test_other_help_is_laid_out_when_it_is_asked_for(
    spawn: Spawn, run: Run, monkeypatch: pytest.MonkeyPatch, words: str, variables: dict[str, str]
) -> None:
    for name, value in ({"COLUMNS": "80"} | variables).items():
        monkeypatch.setenv(name, value)
    shown = spawn("-c", FAST, *words.split())
    if "PYTHONIOENCODING" in variables:
        laid_out = spawn("-c", SLOW, *words.split()).stdout
    else:
        monkeypatch.setattr(logreel.cli, "help_page", lambda args: None)
        laid_out = run(*words.split()).out.encode()
    assert shown.stdout == laid_out
    assert b"AssertionError" in shown.stderr


def test_commands_of_other_packages_are_in_the_help(
    spawn: Spawn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    info = tmp_path / "other-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[logreel.commands]\nulog.more = other:COMMAND\n")
    add = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); "
    monkeypatch.setenv("COLUMNS", "80")
    done = spawn("-c", add + FAST, "ulog", "--help")
    assert b"plug-in 'ulog.more' is left out" in done.stderr
    assert spawn("-c", add + FAST, "carla", "blocked", "--help").stdout
    # The page of all verbs shows the formats with commands, which are the same.
    assert b"AssertionError" not in spawn("-c", add + FAST, "--help").stderr
    (info / "entry_points.txt").write_text("[logreel.formats]\nother = other:FORMAT\n")
    assert b"AssertionError" in spawn("-c", add + FAST, "--help").stderr
    # A format that adds no command is asked, and costs neither NumPy nor what lays out help.
    (tmp_path / "other.py").write_text(
        "from logreel.plugin import Format\n"
        "FORMAT = Format(name='other', title='Other', suffixes=('.other',), versions='1', sniff=bool, scan=bool)\n"
    )
    light = "; assert 'numpy' not in sys.modules"
    assert b"Error" not in spawn("-c", add + FAST + light, "--help").stderr
