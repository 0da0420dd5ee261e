"""Logs damaged at their fields and records: only errors of logreel may occur, in bounded time.

LOGREEL_FUZZ=N (``make fuzz``) tries N mutants of each format, spread over its samples, in parts that run side by side.
A failure names sample and seed, and a crash of a process the part. To try one or all mutants of a part again::

    python tests/damage/mutants.py --sample "bag 2.0" --seed 173 --keep mutant.bag
    for seed in $(seq 500 999); do python tests/damage/mutants.py --sample "bag 2.0" --seed $seed || break; done

``corpus/`` holds what once failed as recipes: sample, field, its number among those of its name, and its value. All are
small logs of ours.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mutants import (
    LOGS,
    SECONDS,
    TooLongError,
    attempt,
    limited,
    output,
    samples_of_formats,
    use,
)
from small_samples import SMALL

import logreel
from damage.structure.operators import OPERATORS, Operator, declared, mutate
from support.samples.ulog.builder import Builder as UlogBuilder

FUZZ = int(os.environ.get("LOGREEL_FUZZ", "0"))
#: Mutants of each format without LOGREEL_FUZZ.
FEW = 40
#: Mutants of one test, so that many processes share those of a sample.
PART = 500
CORPUS = sorted(Path(__file__).with_name("corpus").glob("*.json"))


def parts() -> Iterator[tuple[str, int, int]]:
    """Yield the sample, the first seed and the last seed of each test."""
    for samples in samples_of_formats().values():
        count = -(-(FUZZ or FEW) // len(samples))
        for sample in samples:
            for first in range(0, count, PART):
                yield sample, first, min(first + PART, count) - 1


@pytest.mark.parametrize(("sample", "first", "last"), list(parts()))
def test_structured_mutants_are_read_checked_and_recovered(
    sample: str, first: int, last: int, tmp_path: Path
) -> None:
    out = output(sample, tmp_path)
    for seed in range(first, last + 1):
        try:
            attempt(sample, seed, out)
        except (Exception, TooLongError) as error:
            raise AssertionError(f"{sample}, seed {seed}: {type(error).__name__}: {error}") from error


def test_fuzz_sets_the_mutants_of_each_format() -> None:
    counts = dict.fromkeys(samples_of_formats(), 0)
    for sample, first, last in parts():
        counts[LOGS[sample].format if sample in LOGS else "definitions"] += last - first + 1
    assert all(count >= (FUZZ or FEW) for count in counts.values())
    assert len(counts) == 7


def wait_for_ever() -> None:
    with limited():
        while True:
            pass


def test_a_mutant_that_does_not_end_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mutants.SECONDS", 0.05)
    with pytest.raises(TooLongError, match="no end after"):
        wait_for_ever()


@pytest.mark.parametrize("recipe", CORPUS, ids=lambda path: path.stem)
def test_what_once_failed_does_not_fail_again(recipe: Path, tmp_path: Path) -> None:
    how = json.loads(recipe.read_text())
    small = SMALL[how["sample"]]
    data = small.make()
    data = small.walk(data).named(how["field"])[how["number"]].with_value(data, how["value"])
    use(data, output(how["sample"], tmp_path))


#: Operators for which CARLA recordings, Koblenz logs or the small BDDF file have no place.
WITHOUT_PLACE = ("overwritten_text", "recursive_definition", "many_channels")


@pytest.mark.parametrize("sample", LOGS)
def test_every_sample_has_fields_and_records_that_operators_change(sample: str) -> None:
    """A sample that cannot be walked would be tried unchanged."""
    data = LOGS[sample].make()
    structure = LOGS[sample].walk(data)
    assert structure.records
    assert max(end for _, end, _ in structure.records) <= len(data)
    assert len({mutate(data, LOGS[sample].walk, seed) for seed in range(8)}) > 4


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda one: one.__name__)
def test_every_operator_changes_something(operator: Operator) -> None:
    for sample in ("bag 2.0", "ulog 1", "bddf", "carla", "koblenz", "mcap"):
        data = SMALL[sample].make()
        structure = SMALL[sample].walk(data)
        some = {operator(data, structure, random.Random(seed)) for seed in range(30)} - {data}
        assert some or (operator.__name__ in WITHOUT_PLACE and sample in ("carla", "koblenz", "bddf")), sample


def old_bag(count: int) -> bytes:
    """Return a bag of version 1.0 that declares *count* topics of one type."""
    data = SMALL["bag 1.0"].make()
    head = data.index(b"\n", data.index(b"\n") + 1) + 1
    return data[:head] + b"".join(b"/topic/%d\n*\n*\n" % n for n in range(count))


def ulog(count: int) -> bytes:
    """Return a ULog with *count* channels of one message each: 256 instances of each type."""
    out = UlogBuilder(1_000_000).flags()
    for n in range(-(-count // 256)):
        out.format(f"type{n}:uint64_t timestamp;float volt;")
    for n in range(count):
        out.subscribe(f"type{n // 256}", n, n % 256)
    for n in range(count):
        out.data(n, (1_000_000 + n).to_bytes(8, "little") + bytes(4))
    return out.bytes()


def declaring(sample: str) -> Callable[[int], bytes]:
    """Return a function that makes a sample with *count* more declarations of topics."""

    def make(count: int) -> bytes:
        data = SMALL[sample].make()
        return declared(data, SMALL[sample].walk(data), count, rename=True)

    return make


#: Logs with many channels; ULog and MCAP have numbers of two bytes.
CROWDED: dict[str, tuple[Callable[[int], bytes], int]] = {
    "bag 1.0": (old_bag, 100_000),
    "bag 2.0": (declaring("bag 2.0"), 100_000),
    "mcap": (declaring("mcap"), 65_500),
    "ulog": (ulog, 65_535),
}


@pytest.mark.parametrize("kind", CROWDED)
def test_many_channels_cost_no_more_than_their_bytes(kind: str) -> None:
    """Each declared channel costs less than 0.5 ms to open and check; LOGREEL_FUZZ tries the greatest numbers."""
    make, most = CROWDED[kind]
    count = most if FUZZ else 4_000
    data = make(count)
    begin = time.process_time()
    log = logreel.open(data)
    assert len(log.channels) >= count
    logreel.check(log)
    assert time.process_time() - begin < SECONDS + count * 0.0005
