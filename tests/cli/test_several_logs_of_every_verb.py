"""What each verb does with one log, several, a folder, parts of a recording, and files that are no sound logs.

The answers are the table of docs/howto/several-logs.md.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

import logreel
from support.harness.cli_runner import Run
from support.samples.rosbag.builder import drive
from support.samples.ulog.builder import flight

PAGE = Path(__file__).parents[2] / "docs/howto/several-logs.md"
UUID = b"000600000000393438353132510400270031"
OFFER = "parts of one recording: --as-one"
TABLE = "each: table"


class Verb(NamedTuple):
    """A verb, and its further words: {topic} and {field} are of the log, {out} is a new name in the current folder."""

    name: str
    words: tuple[str, ...] = ()
    as_one: bool = True


VERBS = [
    Verb("info"), Verb("summary"), Verb("health"), Verb("cat", ("-t", "{topic}", "-n", "2")),
    Verb("schema", ("{topic}",)), Verb("params"), Verb("text", ("-n", "2")), Verb("attachments"), Verb("stats"),
    Verb("du"), Verb("check"), Verb("tf"), Verb("sql", ("SELECT log, count(*) AS n FROM \"{topic}\" GROUP BY log",)),
    Verb("plot", ("{field}", "--width", "60")), Verb("report", ("-o", "{out}/")),
    Verb("play", ("-r", "0", "--to", "null")),
    Verb("convert", ("-t", "{topic}", "-o", "{out}.csv")), Verb("convert", ("-o", "{out}.mcap/")),
    Verb("slice", ("-n", "2", "-o", "{out}/")), Verb("merge", ("-o", "{out}{suffix}"), False),
    Verb("split", ("--every", "1s", "-o", "{out}")),
    Verb("sort", ("-o", "{out}/")), Verb("recover", ("-o", "{out}/")), Verb("edit", ("--shift", "1s", "-o", "{out}/")),
    Verb("migrate", ("-o", "{out}/")), Verb("index", (), False),
]  # fmt: skip
#: What was asked before in a folder: two tests ask for the same.
ASKED: dict[tuple[object, ...], tuple[str, str]] = {}
INPUTS = ("one file", "three flights", "three parts", "folder", "empty folder", "cut", "foreign")


def of_vehicle(data: bytes, number: int) -> bytes:
    """Return a flight of another vehicle."""
    assert data.count(UUID) == 1
    return data.replace(UUID, UUID[:-1] + b"%d" % number)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the inputs: flights of three vehicles, a bag in three parts, and files that are no logs."""
    root = tmp_path_factory.mktemp("logs")
    day = root / "2021-05-22"
    day.mkdir()
    for number, name in enumerate(("19_36_57", "19_41_57", "20_01_02"), 1):
        (day / f"{name}.ulg").write_bytes(of_vehicle(flight(1.0, seed=number), number))
    (root / "drive.bag").write_bytes(drive(3.0))
    with logreel.open(root / "drive.bag") as log:
        length = -(-(log.duration or 0) // 3) + 1
        logreel.split(log, root / "parts", every=length, name="drive_{index}")
    (root / "empty").mkdir()
    (root / "cut.ulg").write_bytes(flight(1.0)[:-30_000])
    (root / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0" + bytes(64))
    return root


def files_of(folder: Path, kind: str) -> list[str]:
    """Return the words on the command line for one of INPUTS."""
    return {
        "one file": ["2021-05-22/19_36_57.ulg"],
        "three flights": [f"2021-05-22/{name}.ulg" for name in ("19_36_57", "19_41_57", "20_01_02")],
        "three parts": sorted(str(path.relative_to(folder)) for path in (folder / "parts").iterdir()),
        "folder": ["2021-05-22"],
        "empty folder": ["empty"],
        "cut": ["cut.ulg"],
        "foreign": ["photo.jpg", "2021-05-22/19_36_57.ulg"],
    }[kind]


def ask(run: Run, folder: Path, verb: Verb, kind: str, *more: str) -> tuple[str, str]:
    """Return what a verb does with one of INPUTS, in a few words, and what it says on stderr."""
    key = (folder, verb, kind, more)
    if key not in ASKED:
        ASKED[key] = _ask(run, folder, verb, kind, *more)
    return ASKED[key]


def _ask(run: Run, folder: Path, verb: Verb, kind: str, *more: str) -> tuple[str, str]:
    bag = kind == "three parts"
    names = {"topic": "/imu" if bag else "battery_status", "out": "out", "suffix": ".bag" if bag else ".ulg"}
    names["field"] = "/imu.linear_acceleration.z" if bag else "battery_status.voltage_v"
    words = [word.format(**names) for word in verb.words]
    before = set(folder.iterdir())
    files = files_of(folder, kind)
    words = [*words, *files] if verb.name == "sql" else [*files, *words]
    done = run(verb.name, *words, *more)
    made = [path for path in folder.iterdir() if path not in before]
    outputs = [path for new in made if new.is_dir() for path in new.iterdir()]
    table = next((new for new in made if new.suffix == ".csv"), None)
    text = done.out if table is None else table.read_text()
    logs = [
        path
        for path in expanded(folder, files)
        if path in text or Path(path).stem in {p.stem for p in outputs}
    ]
    if "(3 files)" in text:
        logs = logs[:1]
    logs += [str(path) for path in folder.rglob("*.logreel-index") if verb.name == "index"]
    for path in {*made, *folder.rglob("*.logreel-index")}:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if done.code == 2:
        return "refused", done.err
    if done.code not in (0, 3, 4):
        return f"error {done.code}", done.err
    how = "one log"
    if len(logs) > 1:
        how = TABLE if table is not None or verb.name == "sql" else "each"
    told = f"{how}, {done.code}" if done.code else how
    return (f"{told}, offered" if OFFER in done.err else told), done.err


def expanded(folder: Path, files: list[str]) -> list[str]:
    return [
        str(path.relative_to(folder))
        for name in files
        for path in (sorted((folder / name).iterdir()) if (folder / name).is_dir() else [folder / name])
    ]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: " ".join([verb.name, *verb.words[-1:]]))
def test_three_flights_are_three_logs_and_three_parts_one_with_as_one(
    run: Run, folder: Path, verb: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    row = line(run, folder, verb)
    printed = [
        found
        for found in PAGE.read_text(encoding="utf-8").splitlines()
        if found.startswith(row[: row.index("|", 2)])
    ]
    assert printed == [row], f"the table of {PAGE.name} is not what happens:\n{row}"
    flights, parts = row.split(" | ")[2:4]
    if verb.name in ("play", "merge"):
        # They are for all logs together, by time.
        return
    assert flights in ("each", TABLE)
    assert parts == f"{flights}, offered" or verb.name == "index"


def line(run: Run, folder: Path, verb: Verb) -> str:
    """Return the line of a verb in the table."""
    out = verb.words[-1].format(out="OUT", suffix=".ulg") if "-o" in verb.words else ""
    cells = [
        f"`{verb.name}{' -o ' + out if out else ''}`",
        *(ask(run, folder, verb, kind)[0] for kind in INPUTS),
    ]
    for kind in ("three flights", "three parts"):
        cells.append(ask(run, folder, verb, kind, "--as-one")[0] if verb.as_one else "–")
    return f"| {' | '.join(cells)} |"


def test_as_one_names_what_tells_that_flights_are_different_recordings(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for verb in VERBS:
        if verb.as_one:
            told, error = ask(run, folder, verb, "three flights", "--as-one")
            assert told == "refused", verb
            assert "different recordings: sys_uuid is" in error, verb
            assert "2021-05-22/19_36_57.ulg" in error
            assert "--anyway" in error
            assert ask(run, folder, verb, "three flights", "--as-one", "--anyway")[0] != "error 1", verb


def test_flights_are_never_offered_as_parts_and_parts_of_a_bag_are(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert OFFER not in run("stats", "2021-05-22").err
    assert f"drive_0.bag … parts/drive_2.bag look like 3 {OFFER}" in run("stats", "parts").err
    assert OFFER not in run("stats", "parts", "--as-one").err
    # The names that rosbag gives its files by default are those of different recordings.
    dated = folder / "dated"
    dated.mkdir()
    for number, path in enumerate(sorted((folder / "parts").iterdir())):
        shutil.copy(path, dated / f"2010-08-26-15-26-1{number}.bag")
    assert OFFER not in run("stats", "dated").err
    shutil.rmtree(dated)
