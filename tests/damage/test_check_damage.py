"""Damage makes ``check`` and ``diff`` find something or refuse, never crash or hang."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import pytest
from mutations import mutate

import logreel
from logreel.errors import SEVERITIES, LogError
from support.samples.bddf.builder import T0
from support.samples.bddf.builder import Builder as Bddf
from support.samples.carla.builder import eventful
from support.samples.koblenz.builder import Builder as Koblenz
from support.samples.rosbag import builder as rosbag
from support.samples.ulog import builder as ulog

CASES = int(os.environ.get("LOGREEL_FUZZ", "0")) // 50 or 15
CONTRACT = {
    "min_messages": 10,
    "forbidden": "x*",
    "topics": {"*": {"min_rate": 1, "max_gap": "1s", "values": {"value": {"min": 0}}}},
}


def bddf() -> bytes:
    out = Bddf()
    text, speed = out.messages("say", "text/plain", "line"), out.pods({"name": "speed"}, "float32")
    for n in range(30):
        out.data(text, T0 + n * 10**8, b"line %d" % n).values(speed, T0 + n * 10**8, "float32", [n, n + 1])
    return out.bytes()


def koblenz() -> bytes:
    out = Koblenz()
    for n in range(30):
        out.obd(n * 100.0, n, 1000, 0.5).gps(n * 100.0 + 1)
    return out.bytes()


SAMPLES = {
    "ulog": ulog.tiny,
    "rosbag": rosbag.tiny,
    "rosbag 1.2": lambda: rosbag.tiny("1.2"),
    "rosbag lz4": lambda: rosbag.drive(0.3, "lz4", chunk_bytes=9000),
    "bddf": bddf,
    "carla": lambda: eventful().bytes(),
    "koblenz": koblenz,
}


def look(data: bytes, sound: logreel.Log) -> None:
    with suppress(LogError):
        log = logreel.open(data)
        found = logreel.check(log, contract=CONTRACT)
        for one in found.findings:
            assert one.severity in SEVERITIES
            assert one.text
            assert one.count >= 1
            assert one.offset is None or 0 <= one.offset <= len(data), one
        assert found.as_dict()["findings"] == [one.as_dict() for one in found.findings]
        differences = logreel.diff(log, sound, fields=True, messages=True)
        assert differences.as_dict()["same"] == differences.same
        for ch in differences.channels:
            if ch.compared is not None:
                c = ch.compared
                assert (c.equal + c.changed + c.only_a) <= ch.messages[0]
                assert (c.equal + c.changed + c.only_b) == ch.messages[1]


@pytest.mark.parametrize("name", SAMPLES)
def test_check_and_diff_of_mutated_logs(name: str) -> None:
    data = SAMPLES[name]()
    sound = logreel.open(data)
    assert not logreel.check(data).worse("error")
    look(data, sound)
    for seed in range(CASES):
        begin = time.process_time()
        look(mutate(data, seed), sound)
        assert time.process_time() - begin < 30, seed


@pytest.mark.parametrize("name", SAMPLES)
def test_check_and_diff_of_cut_logs(name: str) -> None:
    data = SAMPLES[name]()
    sound = logreel.open(data)
    for size in range(1, len(data), max(1, len(data) // 8)):
        look(data[:size], sound)


def test_check_and_diff_of_damaged_samples(shared: Path) -> None:
    """Valid logs have no errors; other findings are few."""
    seen = 0
    for path in sorted((shared / "data").rglob("*")):
        if path.suffix not in (".ulg", ".bag", ".bddf", ".log") or path.stat().st_size > 2_000_000:
            continue
        log = logreel.open(path)
        found = logreel.check(log)
        lost = [p for p in log.problems if p.lost]
        errors = [f for f in found.worse("error") if f.code != "checksum"]
        assert bool(errors) == bool(lost), path
        assert len(found.findings) <= 8, path
        seen += 1
    assert seen > 50
