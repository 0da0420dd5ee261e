"""Every verb ends with an exit code and a sentence for logs with random damage."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from damage.mutations import mutate
from support.builders.sample_logs import short_flight, tiny
from support.harness.cli_runner import Run
from support.samples.mcap.builder import START, Builder

VERBS = [
    ["info"],
    ["cat"],
    ["cat", "--format", "ndjson", "-S", "-1s"],
    ["schema"],
    ["params", "--json"],
    ["text"],
    ["stats", "--fields"],
    ["attachments", "-o", "a", "--force"],
    ["convert", "x.csv/", "--force"],
    ["convert", "x.parquet/", "--force"],
    ["convert", "x.ndjson", "--force"],
]


@pytest.mark.parametrize("seed", range(24))
def test_verbs_report_random_damage_without_internal_errors(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.chdir(tmp_path)
    data = mutate(short_flight() if seed % 4 == 0 else tiny(), seed)
    (tmp_path / "log").write_bytes(data)
    for verb, *options in VERBS:
        done = run(verb, "log", *options)
        # 2: a time that counts from the end of a log of which nothing is left
        allowed = (0, 1, 2, 3, 5) if "-S" in options else (0, 1, 3, 5)
        assert done.code in allowed, (verb, done.err)
        assert "internal error" not in done.err
        assert bool(done.code) == any(
            not line.startswith(("logreel: wrote", "logreel: log: interval: ")) and "parameters" not in line
            for line in done.err.splitlines()
        )
        assert "\x1b" not in done.out + done.err


@pytest.mark.parametrize(("bad", "due"), [(3, "3 messages"), (1, "one message")])
def test_messages_that_cannot_be_decoded_are_counted(run: Run, tmp_path: Path, bad: int, due: str) -> None:
    out = Builder().schema(1, "a/msg/B", "ros2msg", b"string s\n").channel(1, 1, "/a", "cdr")
    for k in range(5):
        out.message(1, START + k, b"\0\1\0\0" + struct.pack("<I", 200 if k < bad else 2) + b"a\0", k)
    (tmp_path / "x.mcap").write_bytes(out.bytes())
    for verb in (
        ["convert", tmp_path / "x.mcap", tmp_path / "x.csv/"],
        ["stats", "--fields", tmp_path / "x.mcap"],
    ):
        done = run(*verb)
        assert done.code == 3
        assert f"{due} could not be decoded, 'logreel check' says more" in done.err
        assert "0 bytes" not in done.err
