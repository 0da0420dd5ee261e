"""No verb replaces a file that it reads, named by its path, a symbolic link, or a hard link."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

import logreel
from logreel.errors import UsageError
from logreel.io.atomic_file import keep_sources
from support.builders.sample_logs import tiny
from support.harness.cli_runner import Run
from support.samples.rosbag.builder import tiny as bag

QUERY = "SELECT * FROM rate"
#: Verbs that read x.ulg and write OUT.
VERBS: dict[str, list[str]] = {
    "slice": ["slice", "x.ulg", "-o", "OUT"],
    "sort": ["sort", "x.ulg", "-o", "OUT"],
    "merge": ["merge", "other.ulg", "x.ulg", "-o", "OUT"],
    "recover": ["recover", "x.ulg", "-o", "OUT"],
    "migrate": ["migrate", "x.ulg", "-o", "OUT"],
    "convert to a log": ["convert", "x.ulg", "OUT"],
    "convert to a table": ["convert", "x.ulg", "OUT.csv", "-t", "rate"],
    "convert to lines": ["convert", "x.ulg", "OUT.ndjson"],
    "sql": ["sql", QUERY, "x.ulg", "-o", "OUT", "--format", "csv"],
    "sql of several": ["sql", QUERY, "other.ulg", "x.ulg", "-o", "OUT", "--format", "parquet"],
    "record --like": ["record", "OUT", "--from", "lines.ndjson", "--like", "x.ulg"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("x.ulg", "other.ulg"):
        Path(name).write_bytes(tiny())
    Path("lines.ndjson").write_text('{"topic": "a", "time_ns": 1, "data": {"x": 1}}\n')
    Path("symbolic.ulg").symlink_to("x.ulg")
    os.link("x.ulg", "hard.ulg")
    Path("below").mkdir()
    Path("below/link.ulg").symlink_to("../symbolic.ulg")
    return tmp_path


@pytest.mark.parametrize("out", ["x.ulg", "./below/../x.ulg", "symbolic.ulg", "hard.ulg", "below/link.ulg"])
@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_replaces_its_source(run: Run, folder: Path, verb: str, out: str) -> None:
    args = [out if arg == "OUT" else arg for arg in VERBS[verb]]
    if "OUT." in " ".join(args):
        # Only a link can have the suffix of another output.
        args = [arg.replace("OUT", "link") for arg in args]
        Path(args[2]).symlink_to(out)
    done = run(*args, "--force")
    assert done.code == 2, done.err
    assert "input and output are the same file" in done.err
    assert (folder / "x.ulg").read_bytes() == tiny()
    assert sorted(p.name for p in folder.iterdir() if p.stem != "link") == sorted(
        ["below", "hard.ulg", "lines.ndjson", "other.ulg", "symbolic.ulg", "x.ulg"]
    )


def test_record_does_not_replace_its_lines_nor_its_schemas(run: Run, folder: Path) -> None:
    lines = folder / "lines.ndjson"
    lines.rename("lines.bag")
    Path("a.bag").symlink_to("lines.bag")
    before = Path("lines.bag").read_bytes()
    for out in ("lines.bag", "a.bag"):
        done = run("record", out, "--from", "lines.bag", "--force")
        assert (done.code, Path("lines.bag").read_bytes()) == (2, before)
        assert "same file" in done.err
    Path("schema.bag").write_text("float64 x\n")
    done = run("record", "schema.bag", "--from", "lines.bag", "--schema", "a=schema.bag", "--force")
    assert (done.code, Path("schema.bag").read_text()) == (2, "float64 x\n")


def test_record_does_not_truncate_an_unfinished_recording_that_it_reads(run: Run, folder: Path) -> None:
    Path("x.bag.active").write_bytes(bag())
    done = run("record", "x.bag", "--from", "lines.ndjson", "--like", "x.bag.active", "--force")
    assert done.code == 2
    assert Path("x.bag.active").read_bytes() == bag()


def test_a_recording_from_standard_input_does_not_replace_it(spawn, folder: Path) -> None:
    Path("lines.ndjson").rename("lines.bag")
    with open("lines.bag", "rb") as lines:
        done = spawn("-m", "logreel", "record", "lines.bag", "--force", stdin=lines)
    assert done.returncode == 2, done.stderr
    with open("x.ulg", "rb") as log:
        done = spawn(
            "-m", "logreel", "sql", QUERY, "-", "-o", "x.ulg", "--format", "csv", "--force", stdin=log
        )
    assert done.returncode == 2, done.stderr
    assert Path("x.ulg").read_bytes() == tiny()


def test_attachments_do_not_replace_their_log(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    with logreel.create(path, format="mcap") as writer:
        writer.attachment("note.txt", b"hello", "text/plain")
    before = path.read_bytes()
    done = run("attachments", path, "-o", tmp_path, "--force")
    assert (done.code, path.read_bytes()) == (2, before)


def test_a_library_call_does_not_replace_its_source(folder: Path) -> None:
    with pytest.raises(UsageError, match="same file"):
        logreel.convert("x.ulg", "hard.ulg", force=True)
    with pytest.raises(UsageError, match="same file"):
        logreel.record(io.BytesIO(b""), "symbolic.ulg", like="x.ulg", force=True)
    assert Path("x.ulg").read_bytes() == tiny()


def test_names_that_are_no_files_are_no_sources(folder: Path) -> None:
    keep_sources("x.ulg", ["<bytes>", "other.ulg", "nowhere.ulg", "a\0b"])
    keep_sources("nowhere.ulg", ["x.ulg"])
    keep_sources("a\0b", ["x.ulg"])
    Path("copy.ulg").write_bytes(tiny())
    keep_sources("copy.ulg", ["x.ulg"])


@pytest.mark.parametrize("out", ["other.ulg", "x.ulg", "hard.ulg", "symbolic.ulg", "below/link.ulg"])
def test_no_function_replaces_an_input_that_it_leaves_out_as_a_duplicate(folder: Path, out: str) -> None:
    """Files with the same content count once, but each of them is an input."""
    several = ["other.ulg", "x.ulg", "hard.ulg"]
    output = logreel.open(several)
    calls = {
        "slice": lambda: logreel.slice(several, out, count=1, force=True),
        "sort": lambda: logreel.sort(several, out, force=True),
        "convert": lambda: logreel.convert(several, out, count=1, force=True),
        "merge": lambda: logreel.merge([several, "x.ulg"], out, force=True),
        "slice of an open log": lambda: logreel.slice(output, out, count=1, force=True),
        "edit": lambda: logreel.edit(several, out, rename={"rate": "speed"}, force=True),
    }
    for name, call in calls.items():
        with pytest.raises(UsageError, match=r"same file|several files"):
            call()
        assert Path(out).read_bytes() == tiny(), name


def test_a_plot_and_a_report_do_not_replace_a_log_of_several_files(folder: Path) -> None:
    several = ["other.ulg", "x.ulg"]
    for name in several:
        Path(name + ".html").symlink_to(name)
        with pytest.raises(UsageError, match="same file"):
            logreel.plot(several, "rate.xyz").save(name + ".html", force=True)
        with pytest.raises(UsageError, match="same file"):
            logreel.report(several).save(name + ".html", force=True)
        assert Path(name).read_bytes() == tiny()


def test_a_folder_that_holds_a_log_of_several_files_is_not_replaced(folder: Path) -> None:
    logreel.convert("x.ulg", "tables.csv/")
    for name in ("a.ulg", "b.ulg"):
        Path("tables.csv", name).write_bytes(tiny())
    with pytest.raises(logreel.LogError, match="holds the log itself"):
        logreel.convert(["tables.csv/a.ulg", "tables.csv/b.ulg"], "tables.csv/", force=True)
    assert Path("tables.csv/a.ulg").read_bytes() == tiny()
