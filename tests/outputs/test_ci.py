"""Verdicts for programs that show test results: JUnit XML, SARIF, the summary in Markdown, and the page."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import logreel
from logreel.meaning.charts import charts, first_charts
from support.builders.planted import MS, SECOND, Row, steady, ulog
from support.harness.cli_runner import Run

CONTRACT = """
min_duration = "2s"

[topics.a]
max_gap = "100ms"
window = 1
min_rate = 90
[topics.a.values.value]
min = 0
max = 400
[topics.b]
fields = ["value", "other"]
[topics."log?c"]
required = false
min_rate = 1
[topics.gone]
min_rate = 5
"""
#: 300 messages of three topics in 3 s.
GOOD = [*steady(), ("gone", 5 * SECOND, 0), *(("gone", 5 * SECOND + n * 100 * MS, n) for n in range(1, 30))]


def bad() -> list[Row]:
    """Return rows of which ``a`` is silent for 0.5 s, and has a value of 900 at 2 s; ``gone`` is missing."""
    rows = [row for row in steady() if not (row[0] == "a" and 100 <= row[2] < 150)]
    return [(name, time, 900 if name == "a" and value == 200 else value) for name, time, value in rows]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder of the test: a good run, a bad one, a damaged file, and a contract."""
    monkeypatch.chdir(tmp_path)
    Path("good.ulg").write_bytes(ulog(sorted(GOOD, key=lambda row: row[1])))
    Path("bad <&>.ulg").write_bytes(ulog(bad()))
    Path("torn.ulg").write_bytes(b"ULog\x01\x12\x35")
    Path("c.toml").write_text(CONTRACT)
    return tmp_path


def suites(xml: str) -> dict[str, dict[str, str]]:
    """Return the outcome of each case, by the names of its suite and its own; the counts of the suites must agree."""
    root = ET.fromstring(xml)
    told: dict[str, dict[str, str]] = {}
    totals = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    words = {"failure": "failures", "error": "errors", "skipped": "skipped"}
    for suite in root:
        counts = dict.fromkeys(totals, 0)
        for case in suite:
            inner = [part.tag for part in case]
            told.setdefault(suite.attrib["name"], {})[case.attrib["name"]] = inner[0] if inner else "passed"
            counts["tests"] += 1
            for tag in inner:
                counts[words[tag]] += 1
        assert {name: int(suite.attrib[name]) for name in counts} == counts
        totals = {name: totals[name] + counts[name] for name in totals}
    assert {name: int(root.attrib[name]) for name in totals} == totals
    return told


def test_junit_has_a_case_for_each_line_of_the_contract(runs: Path) -> None:
    result = logreel.ci(["good.ulg", "bad <&>.ulg", "torn.ulg"], "c.toml")
    told = suites(result.junit)
    kept = {
        "the log is sound": "passed", "min_duration": "passed", "topics.a.required": "passed",
        "topics.a.max_gap": "passed", "topics.a.min_rate": "passed", "topics.a.values.value.min": "passed",
        "topics.a.values.value.max": "passed", "topics.b.required": "passed", "topics.b.fields": "passed",
        'topics."log?c".min_rate': "skipped", "topics.gone.required": "passed", "topics.gone.min_rate": "passed",
    }  # fmt: skip
    assert told["good.ulg"] == kept
    assert told["bad <&>.ulg"] == kept | {
        "topics.a.max_gap": "failure", "topics.a.min_rate": "failure", "topics.a.values.value.max": "failure",
        "topics.gone.required": "failure", "topics.gone.min_rate": "skipped",
        "the log is sound": told["bad <&>.ulg"]["the log is sound"],
    }  # fmt: skip
    assert told["torn.ulg"] == {"opens": "error"}
    assert result.failed


def test_what_breaks_the_contract_names_its_line_and_comes_by_its_onset(runs: Path) -> None:
    (run,) = logreel.ci("bad <&>.ulg", "c.toml").runs
    onsets = [(finding.rule, run.seconds(finding.time_ns)) for finding in run.broken]
    assert [rule for rule, _ in onsets] == [
        "topics.a.max_gap", "topics.a.min_rate", "topics.a.values.value.max", "topics.gone.required",
    ]  # fmt: skip
    assert [at for _, at in onsets] == pytest.approx([0.99, 0.99, 2.0, None], abs=0.011)


def required_by_sarif(sarif: dict[str, Any]) -> None:
    """Assert what the schema of SARIF 2.1.0 requires of the members that are used."""
    assert sarif["version"] == "2.1.0"
    (run,) = sarif["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert run["tool"]["driver"]["name"]
    assert len(set(rules)) == len(rules)
    assert all(isinstance(one["executionSuccessful"], bool) for one in run["invocations"])
    notes = [note for one in run["invocations"] for note in one["toolExecutionNotifications"]]
    for told in [*run["results"], *notes]:
        assert told["message"]["text"]
        assert told["level"] in ("error", "warning", "note", "none")
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        for place in [*result["locations"], *result.get("relatedLocations", ())]:
            uri = place["physicalLocation"]["artifactLocation"]["uri"]
            assert re.fullmatch(r"[A-Za-z0-9_.~/%:-]+", uri), uri
            region = place["physicalLocation"].get("region", {})
            assert all(isinstance(number, int) and number >= 0 for number in region.values())
            assert region.get("startLine", 1) >= 1


def test_sarif_has_path_time_and_the_line_of_the_contract(runs: Path) -> None:
    sarif = json.loads(logreel.ci(["good.ulg", "bad <&>.ulg", "torn.ulg"], "c.toml").sarif)
    required_by_sarif(sarif)
    (run,) = sarif["runs"]
    found = {result["ruleId"]: result for result in run["results"] if result["ruleId"].startswith("topics")}
    gap = found["topics.a.max_gap"]
    assert gap["properties"]["time_s"] == pytest.approx(0.99, abs=0.011)
    assert gap["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "bad%20%3C%26%3E.ulg"
    line = gap["relatedLocations"][0]["physicalLocation"]["region"]["startLine"]
    assert CONTRACT.splitlines()[line - 1] == 'max_gap = "100ms"'
    assert run["invocations"][0]["executionSuccessful"] is False


def test_the_summary_has_the_worst_run_first_and_never_more_than_60_lines(runs: Path) -> None:
    text = logreel.ci(["good.ulg", "bad <&>.ulg"], "c.toml").markdown
    assert text.index("bad &lt;&amp;&gt;.ulg") < text.index("good.ulg")
    assert text.index("silent for") < text.index("goes up to 900")
    assert "Not assessed" in text
    for n in range(40):
        Path(f"x{n}.ulg").write_bytes(Path("bad <&>.ulg").read_bytes())
    wide = {"topics": {f"t{n}": {"min_rate": 1} for n in range(100)}}
    long = logreel.ci("x*.ulg", wide).markdown
    assert len(long.splitlines()) <= 60
    assert "40 of 40 runs failed" in long
    assert "more runs" in long


def test_the_page_shows_the_failing_run_beside_the_baseline(runs: Path) -> None:
    page = logreel.ci(["good.ulg", "bad <&>.ulg"], "c.toml", baseline="good.ulg").page
    evidence, _, both = page.partition("The run beside the baseline")
    assert evidence.count('<svg class="still"') == 2
    assert evidence.count(">baseline<") == 2
    # The plots that the viewer shows first, each with a curve of both runs, and the statistics of all fields.
    plots, _, fields = both.partition("<details>")
    assert plots.count('<svg class="still"') == first_charts(charts(logreel.open("bad <&>.ulg"))) > 0
    assert plots.count(">baseline") == plots.count(">this run") == plots.count("</figure>")
    # A value of 900, where the baseline has 299 at most.
    assert re.search(r"<td>a\.value</td>.*?<td class=\"n\">900</td><td class=\"n\">299</td>", fields)
    assert "Time between messages of a [s]" in page
    assert "a.value" in page
    assert "bad &lt;&amp;&gt;.ulg" in page
    assert "<&>" not in page.partition("<script")[0]
    assert "http://" not in page.replace("http://www.w3.org", "")
    alone = logreel.ci("good.ulg", "c.toml").page
    assert "<svg" not in alone.partition("<script")[0]


def test_the_verb_writes_four_files_and_has_the_exit_codes_of_check(runs: Path, run: Run) -> None:
    words = ("--contract", "c.toml", "-o", "out")
    done = run("ci", "good.ulg", "bad <&>.ulg", *words, "--baseline", "good.ulg")
    assert done.code == 4
    assert "good.ulg: passed" in done.out
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "junit.xml", "report.html", "results.sarif", "summary.md",
    ]  # fmt: skip
    assert run("ci", "good.ulg", *words).code == 2
    assert run("ci", "good.ulg", *words, "--force").code == 0
    told = json.loads(run("ci", "bad <&>.ulg", *words, "--force", "--json").out)
    assert told["lines"] == {"kept": 5, "broken": 4, "not_assessed": 2}
    assert run("ci", "torn.ulg", "bad <&>.ulg", *words, "--force").code == 3
    assert suites(Path("out/junit.xml").read_text())["torn.ulg"] == {"opens": "error"}


def test_a_split_recording_is_one_run_with_drawings(runs: Path, run: Run) -> None:
    logreel.split("bad <&>.ulg", "parts", every=20 * SECOND)
    parts = sorted(str(path) for path in Path("parts").iterdir())
    assert len(parts) > 1
    words = ("--contract", "c.toml", "--baseline", "good.ulg", "-o", "out")
    code, _, _ = run("ci", *parts, "--as-one", *words)
    assert code == 4
    page = Path("out/report.html").read_text()
    assert "Cannot be drawn" not in page
    whole = logreel.ci(["bad <&>.ulg"], "c.toml", baseline="good.ulg").page
    assert page.count('<svg class="still"') == whole.count('<svg class="still"') > 2
    sarif = json.loads(Path("out/results.sarif").read_text())["runs"][0]
    places = {
        str(one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]) for one in sarif["results"]
    }
    assert {Path(unquote(place)) for place in places} == {Path(parts[0])}
    # No output may replace a part.
    Path("parts/junit.xml").write_bytes(Path(parts[-1]).read_bytes())
    again = [*parts[:-1], "parts/junit.xml"]
    code, _, err = run("ci", *again, "--as-one", *words[:-1], "parts", "--force")
    assert code == 2, err


def test_a_contract_that_cannot_be_read_and_no_run_are_errors(runs: Path) -> None:
    with pytest.raises(logreel.UsageError, match="no key"):
        logreel.ci("good.ulg", {"nonsense": 1})
    with pytest.raises(logreel.UsageError, match="no run"):
        logreel.ci([], {})
