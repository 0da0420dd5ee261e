"""The mutation generator, and the oracle on mutants."""

from __future__ import annotations

import random

import pytest

from damage.mutations import KINDS, mutate
from support.oracles import ulog as ulog_oracle
from support.samples.ulog import builder


def test_mutation_depends_on_seed_only() -> None:
    data = builder.tiny()
    assert [mutate(data, n) for n in range(50)] == [mutate(data, n) for n in range(50)]
    assert len({mutate(data, n) for n in range(400)}) > 300


def test_every_mutation_kind_changes_data() -> None:
    for damage in KINDS:
        results = set()
        for n in range(20):
            out = bytearray(builder.tiny())
            damage(out, random.Random(n))
            results.add(bytes(out))
        assert len(results - {builder.tiny()}) > 2, damage.__name__


def test_mutation_accepts_tiny_data() -> None:
    for size in range(4):
        for seed in range(200):
            mutate(bytes(size), seed)


def test_oracle_reads_mutants() -> None:
    for seed in range(600):
        data = mutate(builder.tiny(), seed)
        try:
            log = ulog_oracle.read(data)
        except ValueError:
            continue
        assert all(0 <= begin < end <= len(data) for begin, end in log.lost)
        assert all(
            row.offset + len(row.payload) <= len(data)
            for s in log.segments
            for rows in s.records.values()
            for row in rows
        )


@pytest.mark.slow
def test_oracle_reads_mutated_flights() -> None:
    data = builder.flight(1)
    for seed in range(100):
        broken = mutate(data, seed)
        if broken[:7] == ulog_oracle.MAGIC:
            ulog_oracle.read(broken)
