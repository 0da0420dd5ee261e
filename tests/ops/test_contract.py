"""Contracts: requirements on a log in a TOML file or a mapping."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

import logreel
from support.builders.planted import MS, SECOND, rows, steady, ulog
from support.formats import sample_log
from support.harness.cli_runner import Run
from support.samples.ulog.builder import Builder

SOUND = ulog(steady())


def broken(contract: dict[str, Any], data: bytes = SOUND) -> list[tuple[str, str | None, int]]:
    """Return code, topic and count of each violation of the contract."""
    found = logreel.check(data, contract=contract).findings
    told = [f for f in found if f.code.startswith("contract-")]
    assert all(f.severity == "error" for f in told)
    return [(f.code.removeprefix("contract-"), f.topic, f.count) for f in told]


def of_topic(**rules: Any) -> list[tuple[str, str | None, int]]:
    return broken({"topics": {"a": rules}})


def test_a_log_that_meets_its_contract_has_no_findings() -> None:
    kept = {
        "format": ["rosbag", "ulog"],
        "min_messages": 900,
        "min_duration": "2s",
        "max_duration": 3.5,
        "forbidden": ["debug_*", "x"],
        "topics": {
            "a": {
                "type": "a",
                "encoding": "ulog",
                "min_messages": 300,
                "min_rate": 99,
                "max_rate": 101.0,
                "max_gap": 0.02,
                "fields": ["value", "other"],
                "values": {"value": {"min": 0, "max": 299, "nan": False}},
            },
            "[bc]": {"min_rate": 99},
            "absent": {"required": False, "min_rate": 1000},
        },
    }
    assert broken(kept) == []
    assert broken({}) == []


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        ({"format": "rosbag"}, "format"),
        ({"min_messages": 901}, "messages"),
        ({"min_duration": 60}, "duration"),
        ({"max_duration": "100ms"}, "duration"),
        ({"topics": {"absent": {}}}, "topic"),
        ({"topics": {"absent*": {"min_rate": 1}}}, "topic"),
    ],
)
def test_each_broken_rule_of_the_log_is_a_finding(rules: dict[str, Any], code: str) -> None:
    assert broken(rules) == [(code, None, 1)]


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        ({"type": "b"}, "type"),
        ({"type": ["b", "c"]}, "type"),
        ({"encoding": "ros1msg"}, "encoding"),
        ({"min_messages": 301}, "messages"),
        ({"min_rate": 101}, "rate"),
        ({"max_rate": 99.5}, "rate"),
        ({"fields": "speed"}, "field"),
        ({"values": {"speed": {"min": 0}}}, "field"),
        ({"values": {"value": {"min": 1}}}, "value"),
        ({"values": {"other": {"max": -1}}}, "value"),
    ],
)
def test_each_broken_rule_of_a_topic_is_a_finding(rules: dict[str, Any], code: str) -> None:
    assert of_topic(**rules) == [(code, "a", 1)]


def test_a_pattern_holds_for_every_topic_that_it_fits() -> None:
    assert broken({"topics": {"[ab]": {"min_rate": 200}}}) == [("rate", "a", 1), ("rate", "b", 1)]


def test_forbidden_topics_with_messages_are_findings() -> None:
    assert broken({"forbidden": "b"}) == [("forbidden", "b", 300)]


def test_gaps_before_the_first_and_after_the_last_message_count() -> None:
    dead = [row for row in steady() if row[0] != "b" or 100 <= row[2] < 150 or 160 <= row[2] < 200]
    data = ulog(dead)
    found = list(logreel.check(data, contract={"topics": {"b": {"max_gap": "50ms"}}}).findings)
    (one,) = [f for f in found if f.code == "contract-gap"]
    assert one.count == 3
    assert one.time_ns == 5 * SECOND * 1000
    assert "silent for 1.0 s and 2 times more, at most 50 ms are allowed" in one.text


def test_a_topic_with_one_message_breaks_min_rate() -> None:
    data = ulog([*steady(), *rows("once", [6 * SECOND])])
    assert broken({"topics": {"once": {"min_rate": 1}}}, data) == [("rate", "once", 1)]


def test_nan_breaks_only_the_rule_nan() -> None:
    out = Builder(start_us=SECOND).flags().format("f:uint64_t timestamp;float[2] x;").subscribe("f", 0)
    for n in range(5):
        out.data(0, struct.pack("<Qff", SECOND + n * MS, n, float("nan") if n == 2 else 1.0))
    log = out.bytes()
    assert broken({"topics": {"f": {"values": {"x": {"max": 4}}}}}, log) == []
    assert broken({"topics": {"f": {"values": {"x": {"nan": False}}}}}, log) == [("value", "f", 1)]
    assert broken({"topics": {"f": {"values": {"x": {"max": 3}}}}}, log) == [("value", "f", 1)]


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"min_mesages": 3}, "no key 'min_mesages'; nearest: min_messages"),
        ({"xyz": 3}, "there are: format"),
        ({"topic": {}}, "no key 'topic'; nearest: topics"),
        ({"topics": {"a": {"rate": 3}}}, "no key 'rate' of 'a'; nearest: m"),
        ({"topics": {"a": 3}}, "'a' of the contract is a table"),
        ({"topics": []}, "'topics' of the contract is a table"),
        ({"topics": {"a": {"required": 1}}}, "true or false"),
        ({"topics": {"a": {"min_rate": "fast"}}}, "is a number, not 'fast'"),
        ({"topics": {"a": {"min_rate": True}}}, "is a number"),
        ({"topics": {"a": {"max_gap": "soon"}}}, "cannot read the length of time 'soon'"),
        ({"topics": {"a": {"fields": [1]}}}, "text or a list of texts"),
        ({"topics": {"a": {"values": {"x": {"mim": 1}}}}}, "no key 'mim' of 'x'; nearest: min"),
    ],
)
def test_wrong_contracts_are_refused(rules: dict[str, Any], words: str) -> None:
    with pytest.raises(logreel.UsageError) as caught:
        logreel.check(SOUND, contract=rules)
    assert words in str(caught.value)


def test_contracts_on_the_command_line(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.ulg").write_bytes(SOUND)
    Path("good.toml").write_text('[topics.a]\nmin_rate = 50\nmax_gap = "20ms"\n')
    Path("bad.toml").write_text('forbidden = ["c"]\n[topics.a]\nmin_rate = 500\n')
    Path("typo.toml").write_text("[topics.a]\nmin_rat = 5\n")
    Path("no.toml").write_text("[topics")
    assert run("check", "log.ulg", "--contract", "good.toml").out == "log.ulg: sound\n"
    done = run("check", "log.ulg", "--contract", "bad.toml")
    assert done.code == 4
    assert sorted(line.split(": ")[2] for line in done.out.splitlines()) == [
        "contract-forbidden",
        "contract-rate",
    ]
    for name, code, words in (
        ("typo.toml", 2, "typo.toml: the contract has no key 'min_rat' of 'a'; nearest: min_rate"),
        ("no.toml", 2, "no.toml: the contract is no TOML"),
        ("absent.toml", 1, "absent.toml: no such file"),
    ):
        done = run("check", "log.ulg", "--contract", name)
        assert (done.code, done.out) == (code, "")
        assert words in done.err
    assert logreel.check("log.ulg", contract=Path("bad.toml")).worse("error")


def faults(**rules: Any) -> list[str]:
    """Return the violations of a contract about faults, for a log whose camera and clock cannot be assessed."""
    return [
        f.text
        for f in logreel.check(SILENT, contract={"health": rules}).findings
        if f.code == "contract-health"
    ]


def silent_channel() -> bytes:
    """Return a log whose channel ``b`` ends 5 s before ``a``, which is a note, for it is no sensor."""
    every = steady(800)
    end = every[-1][1] - 5 * SECOND
    return ulog([row for row in every if row[0] != "b" or row[1] < end])


SILENT = silent_channel()


def test_required_detectors_must_assess_the_log_and_find_nothing() -> None:
    assert faults(require=["gaps", "rate-drop"]) == []
    assert faults(require="frozen-camera") == [
        "frozen-camera is required, but not assessed: no camera has enough pictures"
    ]
    assert faults(require=["silent-sensor"]) == []
    (found,) = faults(require=["silent-sensor"], fail_on="note")
    assert found.startswith("silent-sensor: b is silent")
    assert found.endswith("(note; no finding is allowed)")


def test_forbidden_detectors_must_find_nothing_but_may_be_not_assessed() -> None:
    assert faults(forbid=["frozen-camera", "gaps", "brown-out"]) == []
    assert len(faults(forbid=["*-sensor"])) == 1


def test_limits_set_the_severity_of_a_detector() -> None:
    assert faults(limits={"silent-sensor": "warn"}) == []
    assert len(faults(limits={"silent-sensor": "note"})) == 1
    assert len(faults(limits={"*": "warn", "silent-*": "note"})) == 1
    assert faults(require=["silent-sensor"], fail_on="note", limits={"silent-sensor": "warn"}) == []


def test_a_detector_of_another_format_is_not_assessed() -> None:
    contract = {"health": {"require": ["rc-loss"], "forbid": ["motor-loss"]}}
    bag = sample_log("rosbag")
    found = [f.text for f in logreel.check(bag, contract=contract).findings if f.code == "contract-health"]
    assert found == ["rc-loss is required, but not assessed: it is for logs of the format ulog"]


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"require": ["gap"]}, "require of 'health' of the contract: no detector 'gap'; nearest: gaps"),
        ({"forbid": ["zzz*"]}, "no detector 'zzz\\*'; there are: .*silent-sensor.*vibration"),
        ({"limits": {"vibrations": "warn"}}, "nearest: vibration"),
        (
            {"limits": {"gaps": "bad"}},
            "gaps in limits of 'health' of the contract is one of error, warn, note",
        ),
        ({"fail_on": 3}, "fail_on of 'health' of the contract is one of"),
        ({"requires": []}, "no key 'requires' of 'health'; nearest: require"),
        ({"require": [1]}, "a text or a list of texts"),
    ],
)
def test_wrong_rules_about_faults_are_refused(rules: dict[str, Any], words: str) -> None:
    with pytest.raises(logreel.UsageError, match=words):
        logreel.check(SILENT, contract={"health": rules})
