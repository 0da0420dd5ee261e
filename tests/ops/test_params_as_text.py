"""Parameters as CSV, for GNU Octave and for QGroundControl, compared with pyulog's ``ulog_params``."""

from __future__ import annotations

import contextlib
import csv
import io
import sys
from pathlib import Path

import pytest

import logreel
from logreel.formats.ulog.sample.builder import flight
from logreel.log.scan import Change, Parameter
from logreel.ops.inspect.params_text import FORMS, params_text
from support.harness.cli_runner import Run

LINES = [
    ("-f csv", "--format csv"),
    ("-f csv -i", "--format csv --only-initial"),
    ("-f csv -t", "--format csv --timestamps"),
    ("-f csv -l ;", "--format csv --separator ;"),
    ("-f octave", "--format octave"),
    ("-f octave -i", "--format octave --only-initial"),
    ("-f qgc", "--format qgc"),
]


def genuine(monkeypatch: pytest.MonkeyPatch, *args: str) -> str:
    params = pytest.importorskip("pyulog.params")
    monkeypatch.setattr(sys, "argv", ["ulog_params", "--ignore", *args])
    with contextlib.redirect_stdout(io.StringIO()) as out:
        params.main()
    return out.getvalue()


@pytest.mark.parametrize(("theirs", "ours"), LINES)
def test_the_text_is_that_of_ulog_params(
    theirs: str,
    ours: str,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "a.ulg"
    path.write_bytes(flight())
    expected = genuine(monkeypatch, *theirs.split(), str(path))
    assert expected
    done = run("params", path, *ours.split())
    assert (done.code, done.err) == (0, "")
    assert done.out == expected


@pytest.mark.parametrize("name", ["sample", "sample_log_small", "sample_logging_tagged_and_default_params"])
@pytest.mark.parametrize(("theirs", "ours"), LINES)
def test_the_text_of_real_logs_is_that_of_ulog_params(
    name: str,
    theirs: str,
    ours: str,
    run: Run,
    shared: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = shared / "data" / "ulog" / f"{name}.ulg"
    expected = genuine(monkeypatch, *theirs.split(), str(path))
    assert run("params", path, *ours.split()).out == expected


def test_hostile_names_and_texts_do_not_break_lines() -> None:
    found = [
        Parameter('a,"b\nc', "int32", 1),
        Parameter("text", "str", "two\nlines"),
        Parameter("late", "float", None, (Change(5_000, 1.5), Change(7_000, 2.5))),
        Parameter("none", "float", float("nan")),
    ]
    skipped: list[str] = []
    rows = list(csv.reader(io.StringIO(params_text(found, "csv", skipped, timestamps=True))))
    assert rows == [
        ['a,"b\nc', "1"], ["timestamp", "0"], ["text", "two\nlines"], ["timestamp", "0"],
        ["late", "1.5", "2.5"], ["timestamp", "5", "7"], ["none", "nan"], ["timestamp", "0"],
    ]  # fmt: skip
    assert skipped == []
    assert params_text(found, "octave", skipped) == (
        "# name late\n# type: matrix\n# rows: 1\n# columns: 2\n1.5 2.5 \n# name none\n# type: scalar\nnan\n"
    )
    assert len(skipped) == 2
    assert params_text(found, "qgc", skipped) == "1\t1\tlate\t1.5\t9\n"
    assert len(skipped) == 5


def test_other_notations_are_refused(run: Run, tmp_path: Path) -> None:
    for form, more in (("xml", {}), ("qgc", {"timestamps": True}), ("csv", {"delimiter": "ab"})):
        with pytest.raises(logreel.UsageError):
            params_text([], form, [], **more)
    path = tmp_path / "a.ulg"
    path.write_bytes(flight())
    for args in (
        ["--format", "xml"],
        ["--format", "csv", "--json"],
        ["--only-initial"],
        ["--format", "qgc", "--timestamps"],
    ):
        assert run("params", path, *args).code == 2
    assert FORMS == ("csv", "octave", "qgc")
