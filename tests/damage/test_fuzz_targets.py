"""The targets of fuzz/ without the fuzzer: each has a harness, and takes its seeds and some mutants of them."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from mutations import mutate

from support.formats import builtin_formats, sample_log

FUZZ = Path(__file__).parents[2] / "fuzz"
#: Mutants of each target; ``make fuzz`` sets more.
MUTANTS = int(os.environ.get("LOGREEL_FUZZ", "2000")) // 500


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fuzz_targets", FUZZ / "targets.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


targets = load()


def test_every_format_and_target_has_a_harness() -> None:
    assert {f"read_{name}" for name in builtin_formats()} <= set(targets.TARGETS)
    files = {path.stem.removeprefix("fuzz_"): path.read_text() for path in FUZZ.glob("fuzz_*.py")}
    assert set(files) == set(targets.TARGETS)
    assert all(f'targets.main("{name}")' in text for name, text in files.items())


@pytest.mark.parametrize("name", [f.name for f in builtin_formats().values()])
def test_problems_of_shortest_files_lie_inside(name: str) -> None:
    """Found by read_bddf with an empty file: a problem at byte 4."""
    sample = sample_log(name)
    for size in (*range(9), 12, 16, 19):
        for data in (sample[:size], bytes(size)):
            targets.TARGETS[f"read_{name}"][0](data)


@pytest.mark.parametrize("name", sorted(targets.TARGETS))
def test_targets_take_seeds_and_mutants(name: str) -> None:
    pytest.importorskip("duckdb" if name == "expression" else "numpy")
    found = targets.seeds(name)
    assert found
    for number in range(MUTANTS):
        targets.TARGETS[name][0](mutate(found[number % len(found)], number))
    for data in found:
        targets.TARGETS[name][0](data)
