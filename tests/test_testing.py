"""The test suite for formats finds faults of formats, and does not need pytest."""

from __future__ import annotations

import dataclasses
import functools
import sys
import unittest
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

from logreel.errors import DamagedError
from logreel.io.source import Source
from logreel.log.scan import Saved, Scan
from logreel.ops.rewrite.recover import recover
from logreel.ops.rewrite.slice import slice_log
from logreel.registry.format import Format
from logreel.registry.registry import formats
from logreel.testing import FormatSuite, operations
from support.formats import builtin_formats
from support.harness.cli_runner import Spawn
from support.samples.carla.builder import eventful
from support.samples.rosbag.builder import tiny

BAG = formats()["rosbag"]


def suite(fmt: Format, **more: Any) -> Any:
    return type(
        "Suite", (FormatSuite,), {"format": fmt, "samples": [tiny], "cuts": 40, "mutations": 40, **more}
    )


def scanned(source: Source, **more: Any) -> Scan:
    found = BAG.scan(source, None)
    assert found is not None
    return dataclasses.replace(found, **more)


def silent(source: Source, saved: Saved | None) -> Scan:
    if scanned(source).problems:
        source = Source.open(source.data[: source.size * 2 // 3].tobytes())
    return scanned(source, problems=[])


def fragile(source: Source, saved: Saved | None) -> Scan:
    found = scanned(source)
    if found.problems:
        raise KeyError("nobody thought of that")
    return found


def strict(source: Source, saved: Saved | None) -> Scan:
    found = scanned(source)
    if found.problems:
        raise DamagedError(found.problems[0])
    return found


@pytest.mark.parametrize(
    ("change", "test", "text"),
    [
        ({"scan": silent}, "test_cut_anywhere", "untold"),
        ({"scan": fragile}, "test_damaged_anyhow", "KeyError"),
        ({"sniff": lambda source: True}, "test_it_knows_its_own", "for its own"),
        ({"sniff": lambda source: False}, "test_it_knows_its_own", "does not recognise"),
        ({"name": "other"}, "test_recovered_from_a_cut", "not registered"),
        ({"scan": lambda source, saved: None}, "test_samples_are_sound", "no scan"),
    ],
)
def test_a_fault_of_a_format_is_found(change: dict[str, Any], test: str, text: str) -> None:
    with pytest.raises((AssertionError, unittest.SkipTest), match=text):
        getattr(suite(dataclasses.replace(BAG, **change))(), test)()


def test_a_format_may_refuse_damaged_files() -> None:
    fmt = dataclasses.replace(BAG, scan=strict)
    for test in ("test_cut_anywhere", "test_damaged_anyhow"):
        getattr(suite(fmt)(), test)()


def test_samples_are_bytes_files_or_functions(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(tiny())
    for sample in (tiny(), tiny, tmp_path / "a", str(tmp_path / "a")):
        suite(BAG, samples=[sample])().test_counts_and_times()
    with pytest.raises(AssertionError, match="no samples"):
        suite(dataclasses.replace(BAG, sample=None), samples=())().test_counts_and_times()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        (
            "slice_log",
            lambda src, dst, start=None, end=None, **more: slice_log(src, dst, start=start, **more),
        ),
        ("slice_log", lambda src, dst, topics=None, **more: slice_log(src, dst, **more)),
        ("sort_log", slice_log),
        ("merge", lambda sources, dst: slice_log(sources[0], dst)),
        ("recover", lambda src, dst: recover(src, dst) and slice_log(dst, dst, count=1, force=True)),
    ],
)
def test_a_wrong_operation_is_found(name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, name, wrong)
    # A failing sequence is enough here; searching a shorter one takes ten times as long.
    only = functools.partial(settings, phases=[Phase.generate])
    monkeypatch.setattr(operations, "settings", only)
    with pytest.raises((AssertionError, ExceptionGroup)):
        suite(BAG, sequences=400)().test_operations_in_any_order()


def test_operations_are_skipped_without_hypothesis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    monkeypatch.delitem(sys.modules, "logreel.testing.operations")
    monkeypatch.delattr("logreel.testing.operations")
    with pytest.raises(unittest.SkipTest, match="hypothesis is not installed"):
        suite(BAG)().test_operations_in_any_order()


@pytest.mark.parametrize("bases", [(FormatSuite, unittest.TestCase), (unittest.TestCase, FormatSuite)])
def test_the_suite_runs_under_unittest(bases: tuple[type, ...]) -> None:
    case: Any = type(
        "TestBag", bases, {"format": BAG, "samples": [tiny], "cuts": 5, "mutations": 5, "sequences": 2}
    )
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    assert result.wasSuccessful(), result.failures + result.errors
    assert result.testsRun == len([name for name in dir(FormatSuite) if name.startswith("test_")])
    assert [reason for _, reason in result.skipped] == []


def test_pytest_is_not_needed(spawn: Spawn) -> None:
    code = "import sys, logreel.testing; sys.exit('pytest' in sys.modules)"
    assert spawn("-c", code).returncode == 0


def test_frames_that_get_other_numbers_are_no_fault_of_a_merge() -> None:
    """The continuation of half a recording has a later frame of a number that the recording has, too."""
    machine = operations.Operations(builtin_formats()["carla"], eventful().bytes(), ["frames"], ["frames"])
    whole = machine.begin()
    half = machine.recover(whole, 0.5)
    continued = machine.append(half, 0.0, 1.0)
    merged = machine.merge(continued, whole)
    assert len(merged.due["frames"]) == len(whole.due["frames"]) + 1
    # Without a sentence about them, other numbers are a fault.
    with pytest.raises(AssertionError, match="the first difference at number 4"):
        operations._compare(merged.due, {**merged.due, "frames": [*merged.due["frames"][:4], (0, b"")]}, "it")
    machine.teardown()
