"""Time does not grow with the square of the number of channels, parameters, attachments, chunks or problems."""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import logreel
from harness import SANITIZED
from logreel.kernels import records


def load_bench() -> Any:
    place = Path(__file__).parents[2] / "bench" / "scaling.py"
    spec = importlib.util.spec_from_file_location("scaling", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Benchmarks import what lies beside them.
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(place.parent)
        spec.loader.exec_module(module)
    return module


SCALING = load_bench()
#: Cases and tasks of the benchmark, with the greater one of two numbers.
CASES = [
    ("ulog_parameters", "info", 6400),
    ("ulog_problems", "open", 1600),
    ("bag_connections", "check", 1600),
    ("bag_damaged_chunks", "info", 3200),
    ("mcap_attachments", "check", 6400),
    ("mcap_attachments", "recover", 6400),
    ("mcap_damaged_chunks", "info", 3200),
    ("mcap_problems", "check", 1600),
    ("bddf_problems", "open", 1600),
    ("carla_actors", "check", 3200),
]
TIMES = 16


def seconds_of(task: str, path: Path, data: bytes) -> float:
    path.write_bytes(data)
    start = time.process_time()
    SCALING.run_task(task, str(path))
    return time.process_time() - start


@pytest.mark.skipif(SANITIZED, reason="times of sanitized code say nothing")
@pytest.mark.parametrize(("name", "task", "n"), CASES)
def test_time_is_linear(name: str, task: str, n: int, tmp_path: Path) -> None:
    """Sixteen times as many take at most 48 times as long: the square would be 256 times; the best of three counts."""
    few, many = SCALING.CASES[name](n // TIMES), SCALING.CASES[name](n)
    ratios = []
    seconds_of(task, tmp_path / "log", few)
    for _ in range(3):
        short, long = (seconds_of(task, tmp_path / "log", data) for data in (few, many))
        ratios.append(long / max(short, 0.01))
        if ratios[-1] < 3 * TIMES:
            return
    pytest.fail(f"{TIMES} times as many take {min(ratios):.0f} times as long")


@pytest.mark.parametrize("name", SCALING.CASES)
def test_every_case_of_the_benchmark_is_a_log(name: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(SCALING.CASES[name](20))
    for task in SCALING.TASKS:
        SCALING.run_task(task, str(tmp_path / "log"))


def counted_items(name: str, task: str, n: int, path: Path, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return how many items the functions that look at whole columns get while *task* is done."""
    found: Counter[str] = Counter()

    def count(owner: Any, function: str, which: slice = slice(None)) -> None:
        usual: Callable[..., Any] = getattr(owner, function)

        def counting(*args: Any, **options: Any) -> Any:
            found[function] += sum(
                len(one) for one in args[which] if isinstance(one, list | np.ndarray) and np.ndim(one)
            )
            return usual(*args, **options)

        monkeypatch.setattr(owner, function, counting)

    path.write_bytes(SCALING.CASES[name](n))
    with monkeypatch.context() as monkeypatch:
        for function in ("flatnonzero", "append", "unique"):
            count(np, function)
        count(statistics, "median")
        # The headers of the channels.
        count(records, "write_records", slice(7, 8))
        SCALING.run_task(task, str(path))
    return found


@pytest.mark.parametrize("name", ["bag_chunks", "bag_connections", "bag_damaged_chunks", "mcap_channels"])
def test_recover_looks_at_each_item_a_few_times(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each chunk, or each new channel, once was a reason to look at all others."""
    few, many = (counted_items(name, "recover", n, tmp_path / "log", monkeypatch) for n in (100, 400))
    for function, items in many.items():
        assert items < 6 * few[function] + 1000, (function, few, many)


def test_messages_of_many_chunks_are_located_together(tmp_path: Path) -> None:
    class Looked(np.ndarray):
        items = 0

        def __getitem__(self, key: Any) -> Any:
            found = super().__getitem__(key)
            Looked.items += np.size(found)
            return found

    n = 200
    log = logreel.open(SCALING.CASES["bag_chunks"](n))
    builder = cast(Any, log.index._resolve).__self__
    object.__setattr__(builder._blocks, "chunk", builder._blocks.chunk.view(Looked))
    (ch,) = log.values()
    assert len(ch.to_arrow()) == 2 * n
    assert 0 < Looked.items < 20 * n


def test_losses_are_found_without_looking_at_all_blocks_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    path.write_bytes(SCALING.CASES["mcap_problems"](300))
    lists = 0
    usual = np.searchsorted

    def counted(a: Any, *args: Any, **options: Any) -> Any:
        nonlocal lists
        lists += isinstance(a, list)
        return usual(a, *args, **options)

    monkeypatch.setattr(np, "searchsorted", counted)
    found = logreel.recover(path, tmp_path / "out.mcap")
    assert len(found.lost) == 300
    assert lists < 10
