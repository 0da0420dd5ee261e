"""Results and exit codes of ``logreel.check`` and the verb."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import logreel
from logreel.errors import SEVERITIES, Problem
from support.builders.planted import ulog
from support.builders.sample_logs import damaged, tiny
from support.harness.cli_runner import Run
from support.samples.bddf.builder import T0, Builder

KEYS = ["code", "severity", "offset", "size", "text", "topic", "time_ns", "count"]


def notes() -> bytes:
    """A log with a checksum."""
    out = Builder()
    out.data(out.messages("say", "text/plain", "line"), T0, b"a line")
    return out.bytes()


def test_a_sound_log_has_no_findings() -> None:
    assert logreel.check(notes()).findings == ()
    (one,) = logreel.check(tiny()).findings
    assert (one.code, one.severity, one.topic) == ("dropout", "note", "~dropout")


def test_problems_are_findings_in_file_order() -> None:
    log = logreel.open(damaged())
    assert log.problems
    # The recorder of the sample pauses before the place where it is cut.
    found = [f for f in logreel.check(log).findings if f.offset is not None and f.code != "gap"]
    assert [(f.code, f.offset, f.size, f.text) for f in found] == [
        (p.code, p.offset, p.size, p.text) for p in log.problems
    ]
    assert [f.severity for f in found] == ["error" if p.lost else "warn" for p in log.problems]


def test_severities_are_ordered() -> None:
    for lost, severity in ((True, "error"), (False, "warn")):
        finding = logreel.Finding.of(Problem("code", 1, 2, lost, "text"))
        assert finding.severity == severity
        assert [finding.at_least(s) for s in SEVERITIES] == [lost, True, True]  # type: ignore[arg-type]


def test_a_checksum_is_compared(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good").write_bytes(notes())
    Path("bad").write_bytes(notes().replace(b"a line", b"a lime"))
    assert run("info", "bad").code == 0
    done = run("check", "good", "bad")
    assert (done.code, done.err) == (4, "")
    good, bad = done.out.splitlines()
    assert good == "good: sound"
    assert bad.startswith("bad: error: checksum: the checksum is wrong")
    assert run("check", "good").code == 0
    one = run("check", "bad", "--json").json
    assert list(one) == ["path", "format", "findings"]
    assert [list(f) for f in one["findings"]] == [KEYS]
    lines = run("check", "good", "bad", "--json").out.splitlines()
    assert [json.loads(line)["path"] for line in lines] == ["good", "bad"]


def test_fail_on_sets_the_severity_of_exit_code_4(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Without an end block there is a warning, and nothing to compare a checksum with, which is a note.
    Path("killed").write_bytes(notes()[:-40])
    found = run("check", "killed", "--json").json["findings"]
    assert sorted(f["severity"] for f in found) == ["note", "warn"]
    for severity, code in (("error", 0), ("warn", 4), ("note", 4)):
        assert run("check", "killed", "--fail-on", severity).code == code


def test_findings_of_many_channels_are_collapsed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    late = [(f"t{n}", 5_000_000 + k * 1000 - n, k) for n in range(30) for k in (0, 2, 1, 3)]
    Path("log.ulg").write_bytes(ulog(late))
    lines = run("check", "log.ulg").out.splitlines()
    assert len(lines) == 22
    assert lines[0] == "log.ulg: sound"
    assert lines[-1] == "log.ulg: and 10 more of out-of-order; --json has them all"
    assert len(run("check", "log.ulg", "--json").json["findings"]) == 30


def test_a_file_that_is_no_log_does_not_stop_the_others(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good").write_bytes(notes())
    done = run("check", "absent", "good")
    assert (done.code, done.out) == (3, "good: sound\n")
    assert "absent" in done.err
