"""Every verb works, or says in one sentence what to install, where a library is missing."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import numpy as np
import pytest

import logreel
from logreel.cli.help import VERBS
from logreel.errors import LIBRARIES, MissingDependencyError, library, missing
from support.formats import builtin_formats, sample_log, small_log
from support.harness.without import outcomes

SUFFIXES = {
    "bddf": "bddf", "carla": "log", "koblenz": "log", "mcap": "mcap", "rosbag": "bag", "rosbag2": "db3", "ulog": "ulg",
}  # fmt: skip
#: Verbs by name with their arguments; LOG is a log, TOPIC a topic of it, SAME a new file of its format.
COMMANDS = {
    "info": "info LOG", "info --json": "info LOG --json", "summary": "summary LOG",
    "summary --json": "summary LOG --json", "health": "health LOG", "health --json": "health LOG --json",
    "cat": "cat LOG -n 20", "cat ndjson": "cat LOG --format ndjson -n 20", "cat csv": "cat LOG -t TOPIC --format csv",
    "schema": "schema LOG", "schema --json": "schema LOG --json", "params": "params LOG", "text": "text LOG",
    "notes": "notes LOG",
    "attachments": "attachments LOG", "stats": "stats LOG", "stats --fields": "stats LOG --fields",
    "du": "du LOG", "check": "check LOG", "check --learn": "check LOG --learn",
    "ci": "ci LOG --contract CONTRACT -o verdict",
    "diff": "diff LOG LOG", "compare": "compare LOG LOG", "tf": "tf LOG", "tf --json": "tf LOG --json",
    "sql": "sql QUERY LOG", "plot": "plot LOG TOPIC", "plot page": "plot LOG TOPIC -o plot.html",
    "report": "report LOG -o report.html", "view": "view nothing", "serve": "serve nothing",
    "play": "play LOG -r 1000 --to stdout -n 3", "record": "record -o SAME --from nothing",
    "slice": "slice LOG -o slice.SAME -n 5", "slice --where": "slice LOG -o where.SAME --where 1=1",
    "merge": "merge LOG LOG -o merge.mcap", "split": "split LOG --by-topic -o split",
    "sort": "sort LOG -o sort.SAME", "recover": "recover LOG -o recover.SAME",
    "edit": "edit LOG -o edit.SAME --rename TOPIC=/x",
    "migrate": "migrate LOG -o migrate.SAME --rules nothing", "add": "add LOG", "index": "index LOG",
    "geotag": "geotag LOG nothing", "verify": "verify nothing", "fleet": "fleet ingest LOG -o fleet",
    "dataset": "dataset LOG -o set --spec nothing",
    "definitions": "definitions list std_msgs/Header", "demo": "demo --help",
    "formats": "formats", "new-format": "new-format LOG", "help": "--help", "completion": "completion bash",
    **{f"convert .{suffix}": f"convert LOG out.{suffix}" for suffix in (
        "ndjson", "kml", "gpx", "geojson", "tum", "csv/", "parquet/", "arrow/", "mcap", "bag", "ulg", "bddf", "rrd",
        "jpg/", "ply/",
    )},
}  # fmt: skip
#: Those that need pyarrow, as docs/install.md says; the others give the same without it.
NEEDS_ARROW = {
    "cat csv", "sql", "slice --where", "fleet", "convert .csv/", "convert .parquet/", "convert .arrow/", "convert .rrd",
}  # fmt: skip
LIBRARIES_OF_COLUMNS = ("pyarrow", "duckdb", "pandas", "polars", "starlette", "uvicorn")


@functools.cache
def folder(tmp: Path, name: str) -> tuple[Path, dict[str, list[str]]]:
    """Return a folder with a log of a format, and the commands for it."""
    log = f"x.{SUFFIXES[name]}"
    place = tmp / name
    place.mkdir()
    (place / log).write_bytes(small_log(name))
    (place / "contract.toml").write_text("min_messages = 1\n")
    channels = logreel.open(place / log).channels.values()
    assert {ch.topic for ch in channels if len(ch)} == {
        ch.topic for ch in logreel.open(sample_log(name)).channels.values() if len(ch)
    }
    topic = max((ch for ch in channels if not ch.reserved), key=len).topic
    words = {"LOG": log, "TOPIC": topic, "QUERY": "SELECT 1", "CONTRACT": "contract.toml"}
    commands = {
        command: [
            re.sub(r"\bSAME\b", SUFFIXES[name], words.get(word, word)).replace("TOPIC=", f"{topic}=")
            for word in text.split()
        ]
        for command, text in COMMANDS.items()
    }
    return place, {c: [*words, "--force"] if c in FORCED else words for c, words in commands.items()}


#: Commands that write a file: another run finds that of the one before.
FORCED = {
    command
    for command, text in COMMANDS.items()
    if text.startswith(("convert", "index"))
    or (" -o " in text and text.split()[0] not in ("fleet", "dataset", "record"))
}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


@functools.cache
def results(logs: Path, name: str, *libraries: str) -> dict[str, tuple[int, str, str]]:
    place, commands = folder(logs, name)
    return outcomes(commands, libraries, place)


def steady(text: str) -> str:
    """Return text without measured times."""
    return re.sub(r"\d+(\.\d+)? ?(ms|s)\b", "", text)


def differs(one: tuple[int, str, str], two: tuple[int, str, str]) -> bool:
    """Return whether exit codes are different, or outputs, but for measured times."""
    return one[0] != two[0] or (one[1] != two[1] and steady(one[1]) != steady(two[1]))


def test_all_verbs_are_among_the_commands() -> None:
    verbs = {verb for group in VERBS.values() for verb in group}
    assert verbs - {text.split()[0] for text in COMMANDS.values()} == set()


@pytest.mark.parametrize(
    ("name", "libraries"),
    [
        *((name, LIBRARIES_OF_COLUMNS) for name in builtin_formats()),
        ("mcap", ("zstandard", "lz4")),
        ("bddf", ("google",)),
    ],
)
def test_no_verb_ends_as_an_internal_error(logs: Path, name: str, libraries: tuple[str, ...]) -> None:
    whole = results(logs, name)
    for command, (code, out, err) in results(logs, name, *libraries).items():
        assert "internal error" not in err, (command, err)
        if "this needs" in err:
            assert code == 1
            assert re.search(r"this needs \S+: pip install ('logreel\[\w+\]'|\S+)\n", err), (command, err)
            assert libraries[0] not in LIBRARIES_OF_COLUMNS or command in NEEDS_ARROW | {"view", "serve"}, (
                command,
                err,
            )
        elif libraries[0] in LIBRARIES_OF_COLUMNS:
            # Without a library of the core, some answers are parts of what they are with it.
            assert not differs((code, out, err), whole[command]), (command, out, whole[command])


def test_text_is_printed_without_rich(logs: Path) -> None:
    whole = results(logs, "ulog")
    for command, (_, _, err) in results(logs, "ulog", "rich", "rich_click").items():
        assert "internal error" not in err, (command, err)
        if "this needs" in err:
            assert "this needs rich" in err
    assert whole["info"][0] == 0


@pytest.mark.parametrize("module", LIBRARIES)
def test_a_missing_library_is_named_with_the_command_that_installs_it(module: str) -> None:
    package, extra = LIBRARIES[module]
    error = missing(ModuleNotFoundError(f"No module named {module!r}", name=f"{module}.inner"))
    assert error is not None
    assert package in str(error)
    wanted = f"'logreel[{extra}]'" if extra else package
    assert f"pip install {wanted}" in str(error)
    assert missing(ModuleNotFoundError("No module named 'x'", name="x")) is None


def test_library_raises_for_a_module_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert library("numpy") is np
    with pytest.raises(ModuleNotFoundError):
        library("no_such_module")
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    with pytest.raises(MissingDependencyError, match=re.escape("pip install 'logreel[sql]'")):
        library("duckdb")
