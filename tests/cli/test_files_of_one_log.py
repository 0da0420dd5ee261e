"""Several files as one log on the command line: --as-one with several names, a folder, or a pattern."""

from __future__ import annotations

from pathlib import Path

import pytest

import logreel
from support.builders.sample_logs import short_flight
from support.harness.cli_runner import Run

SECOND = 10**9
#: Verbs that read one log, with their further arguments; {out} is a new file.
ONE_LOG = [
    ("cat", "-n", "3"), ("cat", "--json", "-n", "5"), ("stats", "--json"), ("text",), ("text", "--json"),
    ("params",), ("params", "--json"), ("attachments",), ("slice", "-S", "+1s", "-o", "{out}.ulg"),
    ("sort", "-o", "{out}.ulg"), ("split", "--every", "2s", "-o", "{out}"), ("convert", "-o", "{out}.csv/"),
    ("convert", "-o", "{out}.mcap"), ("convert", "-o", "{out}.ndjson"), ("convert", "-o", "{out}.kml"),
]  # fmt: skip
#: Verbs that read many logs.
MANY_LOGS = [("info", "--json"), ("check", "--json"), ("play", "-r", "0", "--to", "null")]


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the files of a flight that is split in three, and their merge, one.ulg."""
    folder = tmp_path_factory.mktemp("flight")
    (folder / "whole.ulg").write_bytes(short_flight())
    logreel.split(folder / "whole.ulg", folder / "parts", every=int(1.5 * SECOND))
    made = sorted((folder / "parts").iterdir())
    logreel.merge(made, folder / "one.ulg")
    return {path.name: path.read_bytes() for path in (*made, folder / "one.ulg")}


@pytest.fixture
def parts(contents: dict[str, bytes], tmp_path: Path) -> list[Path]:
    """Return the files of a flight that is split in three."""
    (tmp_path / "parts").mkdir()
    paths = [tmp_path / "parts" / name for name in contents if name != "one.ulg"]
    for path in paths:
        path.write_bytes(contents[path.name])
    return paths


@pytest.fixture(scope="module")
def drives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the parts of a recording, and their merge."""
    from support.samples.carla.drive import drive

    folder = tmp_path_factory.mktemp("drives")
    (folder / "a.rec").write_bytes(drive().bytes())
    done = logreel.split(folder / "a.rec", folder / "parts", every=10 * SECOND)
    logreel.merge([one.path for one in done], folder / "merged.rec")
    return folder


def test_plot_draws_a_folder_and_a_pattern_of_parts_as_their_merge(
    run: Run, parts: list[Path], contents: dict[str, bytes], tmp_path: Path
) -> None:
    pytest.importorskip("plotext")
    (tmp_path / "one.ulg").write_bytes(contents["one.ulg"])
    with logreel.open(tmp_path / "one.ulg") as log:
        ch = max(log.match(None), key=len)
        field = f"{ch.topic}.{next(name for name in ch.fields if name != 'timestamp' and '[' not in name)}"
    drawn = [
        run("plot", name, field, "--width", "60", "--as-one")
        for name in (tmp_path / "one.ulg", parts[0].parent, f"{parts[0].parent}/*.ulg")
    ]
    assert [done.code for done in drawn] == [0, 0, 0], drawn
    assert drawn[0].out == drawn[1].out == drawn[2].out


@pytest.mark.parametrize("words", ONE_LOG, ids=" ".join)
def test_files_a_folder_and_a_pattern_give_what_their_merge_gives(
    run: Run, parts: list[Path], contents: dict[str, bytes], tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "whole").mkdir()
    merged = tmp_path / "whole" / "one.ulg"
    merged.write_bytes(contents["one.ulg"])
    given: dict[str, list[Path | str]] = {
        "merged": [merged],
        "files": [*parts],
        "folder": [parts[0].parent],
        "pattern": [f"{parts[0].parent}/*.ulg"],
    }
    found = {}
    for how, names in given.items():
        out = tmp_path / how
        done = run(words[0], *names, "--as-one", *(word.format(out=out) for word in words[1:]))
        assert done.code == 0, done.err
        made = sorted(
            p for p in tmp_path.rglob("*") if how in p.relative_to(tmp_path).parts[0] and p.is_file()
        )
        content = [p.read_bytes() for p in made if p.suffix in (".csv", ".ndjson")]
        logs = [_messages(p) for p in made if p.suffix in (".ulg", ".mcap")]
        text = "" if words[0] in ("split", "convert") else _without_path(done)
        found[how] = text, content, logs
    assert found["files"] == found["folder"] == found["pattern"]
    assert found["files"][1:] == found["merged"][1:]
    assert found["files"][0] == found["merged"][0]


def _messages(path: Path) -> list[tuple[int, str, bytes]]:
    with logreel.open(path) as log:
        return [(m.time, m.channel.topic, bytes(m.data)) for m in log.messages()]


def _without_path(done: object) -> str:
    out: str = done.out  # type: ignore[attr-defined]
    return out.partition('", ')[2] if out.startswith('{"path"') else out


@pytest.mark.parametrize("words", MANY_LOGS, ids=" ".join)
def test_as_one_makes_one_log_of_the_files_of_verbs_that_read_many(
    run: Run, parts: list[Path], words: tuple[str, ...]
) -> None:
    verb, *more = words
    each, one = run(verb, *parts, *more), run(verb, *parts, "--as-one", *more)
    assert (each.code, one.code) == (0, 0), one.err
    if "--json" in more:
        assert len(each.out.splitlines()) == len(parts)
        assert "(3 files)" in one.json["path"]
    if verb == "info":
        assert one.json["files"] == [str(part) for part in parts]
    if verb == "play":
        with logreel.open(parts) as log:
            assert f"played {log.message_count} messages" in one.err


def test_sql_over_files_as_one_has_the_rows_once(run: Run, parts: list[Path]) -> None:
    pytest.importorskip("duckdb")
    query = "SELECT count(*) AS n, count(DISTINCT log) AS logs FROM sensor_combined"
    each, one = run("sql", query, *parts, "--json"), run("sql", query, *parts, "--as-one", "--json")
    assert each.json["rows"][0]["n"] == one.json["rows"][0]["n"]
    assert (each.json["rows"][0]["logs"], one.json["rows"][0]["logs"]) == (3, 1)


def test_schema_and_diff_take_a_folder_or_a_pattern(run: Run, parts: list[Path], tmp_path: Path) -> None:
    folder = parts[0].parent
    assert run("schema", folder, "cpuload", "--as-one").out == run("schema", parts[0], "cpuload").out
    assert run("diff", folder, f"{folder}/*.ulg", "--as-one").code == 0
    refused = run("diff", folder, parts[0])
    assert refused.code == 2
    assert "one side is one log, not 3" in refused.err


def test_index_writes_one_for_each_file(run: Run, parts: list[Path]) -> None:
    assert run("index", *parts).code == 0
    made = [part.with_name(part.name + ".logreel-index") for part in parts]
    assert all(path.is_file() for path in made)
    assert run("stats", parts[0].parent).code == 0


def test_missing_files_between_the_parts_are_said_on_stderr(
    run: Run, parts: list[Path], tmp_path: Path
) -> None:
    done = run("slice", parts[0], parts[2], "--as-one", "-o", tmp_path / "out.ulg")
    assert done.code == 0
    assert "a file with the number 1 is missing between" in done.err


def test_parts_are_never_replaced_by_the_output(run: Run, parts: list[Path]) -> None:
    before = [part.read_bytes() for part in parts]
    for words in (("slice", "-o"), ("sort", "-o"), ("convert", "-o"), ("text", "-o")):
        done = run(words[0], parts[0].parent, "--as-one", words[1], parts[1], "--force")
        assert done.code == 2, words
        assert "input and output are the same file" in done.err
    assert [part.read_bytes() for part in parts] == before


def test_recover_and_following_name_the_way_for_several_files(
    run: Run, parts: list[Path], tmp_path: Path
) -> None:
    done = run("recover", *parts, "--as-one", "-o", tmp_path / "out.ulg")
    assert done.code == 2
    assert "recovered one by one" in done.err
    assert "or the folder into a new folder" in done.err
    assert run("recover", *parts, "-o", f"{tmp_path}/out/").code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [part.name for part in parts]
    assert run("cat", "-f", *parts).code == 2


@pytest.mark.parametrize(
    "words",
    [("info",), ("info", "--all"), ("actors",), ("collisions", "v", "v"), ("replay", "--delta", "0.5")],
    ids=" ".join,
)
def test_commands_of_one_format_take_several_files(run: Run, drives: Path, words: tuple[str, ...]) -> None:
    verb, *more = words
    found = [
        run("carla", verb, name, *more, "--as-one") for name in (drives / "parts", drives / "merged.rec")
    ]
    assert [one.code for one in found] == [0, 0]
    assert found[0].out == found[1].out
