"""Whatever happened to a log, every verb ends with a code and a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_runner import Run
from damage.mutations import mutate
from sample_logs import short_flight, tiny

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
def test_damage_never_surprises(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
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
            not line.startswith("logreel: wrote") and "parameters" not in line
            for line in done.err.splitlines()
        )
        assert "\x1b" not in done.out + done.err
