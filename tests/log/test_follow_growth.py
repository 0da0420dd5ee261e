"""Growing files of every format: at any size whole messages only, and each message once."""

from __future__ import annotations

import gc
import os
import random
from pathlib import Path
from weakref import ref

import pytest

import logreel
from support.builders.contents import SAMPLES
from support.harness.equal_tables import have_same_bytes
from support.harness.following import Steps, first_opened, growth, row, rows

SUFFIXES = sorted(SAMPLES)
#: Number of steps of one byte, at the start and at the end of a file.
SINGLE = int(os.environ.get("LOGREEL_GROWTH", "300"))


def tiny(folder: Path, suffix: str) -> bytes:
    """Return a log of a few kilobytes: a slice of the sample."""
    sample = folder / f"sample{suffix}"
    sample.write_bytes(SAMPLES[suffix]())
    out = folder / f"tiny{suffix}"
    with logreel.open(sample) as log:
        some = sorted(
            log.channels.values(), key=lambda ch: ch.bytes / max(len(ch), 1) if len(ch) > 2 else 1e9
        )
        topics = [ch.topic for ch in some if not ch.reserved][:3]
        end = sorted(message.time for message in log.messages(topics))[:24][-1]
    logreel.slice(sample, out, topics=topics, end=end)
    return out.read_bytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_growth_by_single_bytes_yields_each_message_once_and_whole(suffix: str, tmp_path: Path) -> None:
    data = tiny(tmp_path, suffix)
    (tmp_path / f"whole{suffix}").write_bytes(data)
    expected = rows(logreel.open(tmp_path / f"whole{suffix}").messages(order="file"))
    path = tmp_path / f"grown{suffix}"
    log = first_opened(path, data)
    found = list[tuple[str, int, bytes]]()
    # Long definitions are skipped faster than the first and the last records.
    middle = max(0, len(data) - path.stat().st_size - 2 * SINGLE) // 100
    steps = Steps(growth(path, data, [*[1] * SINGLE, *[100] * middle, *[1] * (SINGLE + 100)]))
    for message in log.follow(stop=steps):
        found.append(row(message))
        # Whole and in order at every size, not only at the end.
        assert found == expected[: len(found)], f"at {path.stat().st_size} bytes"
    assert found == expected
    assert path.read_bytes() == data
    assert rows(log.messages(order="file")) == expected
    assert steps.done >= min(SINGLE, 400)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("seed", range(2))
def test_growth_in_steps_of_any_size_yields_each_message_once(suffix: str, seed: int, tmp_path: Path) -> None:
    data = SAMPLES[suffix]()
    (tmp_path / f"whole{suffix}").write_bytes(data)
    whole = logreel.open(tmp_path / f"whole{suffix}")
    rng = random.Random(seed)
    sizes = [rng.choice((1, 100, len(data) // 50, len(data) // 10)) for _ in range(40)] + [len(data)]
    path = tmp_path / f"grown{suffix}"
    log = first_opened(path, data)
    assert rows(log.follow(stop=Steps(growth(path, data, sizes)))) == rows(whole.messages(order="file"))
    for topic, ch in whole.channels.items():
        assert len(log[topic]) == len(ch), topic
        if len(ch) and not ch.reserved:
            # As bytes, in which NaN equals NaN.
            tables = [each.to_arrow().replace_schema_metadata() for each in (log[topic], ch)]
            assert have_same_bytes(*tables), topic
    assert (log.start, log.end, dict(log.metadata)) == (whole.start, whole.end, dict(whole.metadata))
    assert log.problems == whole.problems


@pytest.mark.parametrize("suffix", [".bag", ".mcap", ".ulg"])
def test_the_source_of_a_log_that_has_grown_is_closed_without_the_garbage_collector(
    suffix: str, tmp_path: Path
) -> None:
    """Each has an open file; a process with many objects collects rarely, and for long."""
    data, path, old = SAMPLES[suffix](), tmp_path / f"grown{suffix}", []
    path.write_bytes(data[: len(data) // 2])
    with logreel.open_growing(path) as log:
        gc.collect()
        gc.disable()
        try:
            for part in range(6):
                old.append(ref(log.source))
                end = len(data) * (part + 7) // 12
                with path.open("ab") as file:
                    file.write(data[path.stat().st_size : end])
                log.refresh()
            assert sum(source() is not None for source in old) <= 1
        finally:
            gc.enable()
