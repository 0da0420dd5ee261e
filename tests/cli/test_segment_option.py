"""``--segment N`` of ``check``, ``merge``, ``diff`` and ``sql`` selects one of the logs in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

import logreel
from support.builders.contents import content
from support.harness.cli_runner import Run
from support.samples.ulog.builder import flight


@pytest.fixture(autouse=True)
def flash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with two flights, and each of them alone."""
    monkeypatch.chdir(tmp_path)
    flights = [flight(3.0), flight(5.0)]
    Path("flash.ulg").write_bytes(b"".join(flights))
    for number, data in enumerate(flights, 1):
        Path(f"{number}.ulg").write_bytes(data)


def test_check_of_one_segment_has_none_of_the_findings_about_the_others(run: Run) -> None:
    assert {f["code"] for f in run("check", "flash.ulg", "--json").json["findings"]} >= {"segment"}
    for number in ("1", "2"):
        found = run("check", "flash.ulg", "--segment", number, "--json").json["findings"]
        alone = run("check", f"{number}.ulg", "--json").json["findings"]
        assert [f["code"] for f in found] == [f["code"] for f in alone]


def test_merge_takes_one_segment_of_each_log(run: Run) -> None:
    assert run("merge", "flash.ulg", "--segment", "2", "-o", "out.ulg").code in (0, 3)
    assert run("merge", "2.ulg", "-o", "alone.ulg").code in (0, 3)
    assert content("out.ulg") == content("alone.ulg")


def test_diff_compares_one_segment_of_both(run: Run) -> None:
    assert run("diff", "flash.ulg", "flash.ulg", "--segment", "2").code == 0
    with logreel.open("flash.ulg", segment=2) as two, logreel.open("2.ulg") as alone:
        found = logreel.diff(two, alone, messages=True)
    assert found.same


def test_sql_reads_one_segment(run: Run) -> None:
    query = "SELECT count(*) AS n FROM vehicle_attitude"
    both = [run("sql", query, "flash.ulg", "--segment", n, "--json").json["rows"] for n in ("1", "2")]
    assert both == [run("sql", query, f"{n}.ulg", "--json").json["rows"] for n in ("1", "2")]
    assert both[0] != both[1]


@pytest.mark.parametrize(
    "line", ["check 1.ulg", "merge 1.ulg -o x.ulg", "diff 1.ulg 1.ulg", "sql SELECT\x001 1.ulg"]
)
def test_a_missing_segment_gives_exit_code_2(run: Run, line: str) -> None:
    done = run(*(word.replace("\x00", " ") for word in line.split()), "--segment", "2")
    assert (done.code, "there is no segment 2; the log has one segment" in done.err) == (2, True)
