"""Messages that ``messages()`` delivers of a damaged MCAP are written by recover, slice, sort and convert."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from mutations import mutate
from test_mcap_damage import short

import logreel
from logreel.errors import LogError
from logreel.formats.mcap import index_builder
from support.samples.mcap.builder import Builder

CASES = int(os.environ.get("LOGREEL_FUZZ", "30"))
BASES = {
    "zstd": short(Builder("zstd", chunk_bytes=120)),
    "plain": short(Builder("", chunk_bytes=120)),
    "loose": short(Builder(None)),
    "no sums": short(Builder("zstd", chunk_bytes=120, sums=False)),
    "plain, no sums": short(Builder("", chunk_bytes=120, sums=False)),
    "no summary": short(Builder("", chunk_bytes=120, summary=False, sums=False)),
}
Rows = Counter[tuple[str, int, bytes]]


@pytest.fixture(autouse=True, params=["small", "large"])
def _size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "large":
        monkeypatch.setattr(index_builder, "SMALL", 0)
        monkeypatch.setattr(index_builder, "UNCOUNTED", 0)


def rows(log: logreel.Log) -> Rows:
    return Counter((m.channel.topic, m.time, bytes(m.data)) for m in log.messages())


def check_recovery(data: bytes, folder: Path, what: object) -> None:
    """Check that recover and other commands write all messages of a damaged file; recovery gives a valid file."""
    try:
        log = logreel.open(data)
    except LogError:
        return
    due, out = rows(log), folder / "x.mcap"
    logreel.recover(log, out, force=True)
    sound = logreel.open(out)
    assert due <= rows(sound), what
    assert not sound.problems, what
    if due:
        logreel.slice(log, out, force=True)
        assert rows(logreel.open(out)) == due, what


@pytest.mark.parametrize("base", BASES)
def test_recover_writes_what_every_truncated_file_delivers(base: str, tmp_path: Path) -> None:
    data = BASES[base]
    for cut in range(8, len(data), max(1, 1000 // CASES)):
        check_recovery(data[:cut], tmp_path, cut)


@pytest.mark.parametrize("base", BASES)
def test_recover_writes_what_every_mutant_delivers(base: str, tmp_path: Path) -> None:
    for seed in range(CASES):
        check_recovery(mutate(BASES[base], seed), tmp_path, seed)


@pytest.mark.parametrize("base", BASES)
def test_other_verbs_write_all_that_mutants_deliver(base: str, tmp_path: Path) -> None:
    for seed in range(0, CASES, 5):
        try:
            log = logreel.open(mutate(BASES[base], seed))
        except LogError:
            continue
        due, out = rows(log), tmp_path / "x.mcap"
        if not due:
            continue
        logreel.sort(log, out, force=True)
        assert rows(logreel.open(out)) == due, seed
        logreel.convert(log, out, raw=True, force=True)
        assert rows(logreel.open(out)) == due, seed
