"""What the viewer answers about findings: from the same place as summaries, computed beside the plots."""

from __future__ import annotations

from pathlib import Path

import logreel
from logreel.ops.inspect.incidents import incidents
from support.builders.crash import crash
from support.harness.viewing import viewing


def test_findings_are_those_of_the_log_and_do_not_wait_for_its_lock(tmp_path: Path) -> None:
    path = tmp_path / "crash.ulg"
    path.write_bytes(crash())
    with viewing(path) as page:
        # Neither keeps the other waiting.
        with page.viewer._session.log("0").open():
            answer = page.json("findings")
        assert page.json("findings") == answer
    with logreel.open(path) as log:
        expected = incidents(log)
        spans = [[[a - log.start, b - log.start] for a, b in one.spans] for one in expected.faults]
    assert [one["text"] for one in answer["faults"]] == [one.text for one in expected.faults]
    assert [one["spans"] for one in answer["faults"]] == spans
    assert answer["faults"][1]["series"][0]["field"] == "voltage_v"
    assert [one["text"] for one in answer["events"]] == [one.text for one in expected.events]
    assert [name for name, _ in answer["not_assessed"]] == [name for name, _ in expected.health.not_assessed]
    assert {"title": "Flight"}.items() <= answer["summary"][2].items()
    assert answer["sentence"] == ""


def test_findings_of_a_log_that_is_gone_are_an_error_in_words(tmp_path: Path) -> None:
    path = tmp_path / "crash.ulg"
    path.write_bytes(crash(sound=True))
    with viewing(path) as page:
        page.json("session", log=None)
        path.unlink()
        reply = page.get("findings")
        assert reply.status >= 400
        assert "error" in reply.json
