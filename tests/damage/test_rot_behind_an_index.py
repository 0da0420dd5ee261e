"""Damage that came after an index was made, between the places that it compares: no verb ends as if there were none."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path
from random import Random

import pytest

import logreel
from logreel.registry import index_cache
from logreel.registry.registry import INDEX_SUFFIX
from support.harness.cli_runner import Run
from support.samples.ulog.builder import flight

#: Verbs that copy messages, and their options.
COPYING = (
    "recover -o OUT.ulg",
    "slice -o OUT.ulg",
    "slice -S +0.5s -E -0.1s -o OUT.ulg",
    "slice -t vehicle_attitude -o OUT.ulg",
    "sort -o OUT.ulg",
    "merge -o OUT.ulg",
    "edit --rename vehicle_attitude=attitude -o OUT.ulg",
    "edit --shift 1s -o OUT.ulg",
    "migrate -o OUT.ulg",
    "convert OUT.mcap",
    "convert OUT.bag",
    "convert OUT.csv/",
    "split --every 2s -o OUT",
    "split --by-topic -o OUT",
)


#: Verbs that read messages, and their options.
READING = (
    "cat",
    "cat -t vehicle_attitude",
    "stats",
    "stats --fields",
    "text",
    "params",
    "summary",
    "du",
    "tf",
    "plot vehicle_attitude.q -o OUT.html",
    "report -o OUT.html",
    "SQL SELECT count(*), avg(timestamp) FROM vehicle_attitude",
    "SQL SELECT sum(messages) FROM logreel.channels",
)


def gaps(size: int) -> list[tuple[int, int]]:
    """Return the intervals of a log that are not compared with an index when it is opened."""
    count, step = index_cache.SAMPLES, index_cache.SAMPLE_BYTES
    ends = [(size - step) * n // (count - 1) for n in range(count)]
    return [(max(lo + step, 1 << 16), min(hi, size - (1 << 16))) for lo, hi in itertools.pairwise(ends)]


def rot(path: Path, places: int, size: int, seed: int = 1) -> None:
    """Overwrite *places* pieces of a file where an index does not compare it, as a failing disk does."""
    random, before = Random(seed), path.stat()
    data = bytearray(path.read_bytes())
    count, step = index_cache.SAMPLES, index_cache.SAMPLE_BYTES
    ends = [(len(data) - step) * n // (count - 1) for n in range(count)]
    gaps = [(max(lo + step, 1 << 16), min(hi, len(data) - (1 << 16))) for lo, hi in itertools.pairwise(ends)]
    wide = [(lo, hi) for lo, hi in gaps if hi - lo > size]
    assert len(wide) >= places
    for lo, hi in random.sample(wide, places):
        at = random.randrange(lo, hi - size)
        data[at : at + size] = random.randbytes(size)
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.fixture
def rotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log that rotted after its index was made, which is still taken for its index."""
    monkeypatch.setenv("LOGREEL_CACHE", "off")
    monkeypatch.setattr(index_cache, "SAMPLES", 16)
    path = tmp_path / "indexed" / "log.ulg"
    path.parent.mkdir()
    path.write_bytes(flight(8))
    index_cache.write(str(path))
    rot(path, 8, 1500)
    with logreel.open(path) as log:
        assert log.source.is_restored
        assert not log.problems
    return path


@pytest.mark.parametrize("line", COPYING)
def test_what_a_verb_copies_was_read_from_the_log_and_not_from_its_index(
    line: str, rotten: Path, tmp_path: Path, run: Run
) -> None:
    alone = tmp_path / "alone" / rotten.name
    alone.parent.mkdir()
    shutil.copy2(rotten, alone)
    done = []
    for path in (rotten, alone):
        verb, *options = line.replace("OUT", str(path.parent / "out")).split()
        done.append(run(verb, path, *options))
    assert done[0].code == done[1].code == 3
    names = [one.err.replace(str(alone.parent), str(rotten.parent)) for one in done]
    assert names[0].replace("'logreel check' says", "'logreel info' says") == names[1]
    assert "could not be read" in names[0]
    outputs = [sorted(path.parent.rglob("out*")) for path in (rotten, alone)]
    assert outputs[0]
    for one, other in zip(*outputs, strict=True):
        if one.is_file() and one.suffix != ".mcap":
            assert one.read_bytes() == other.read_bytes()


def test_functions_that_copy_tell_the_log_that_came_from_an_index(rotten: Path, tmp_path: Path) -> None:
    with logreel.open(rotten) as log:
        done = logreel.sort(log, tmp_path / "sorted.ulg")
        lost = [problem for problem in log.problems if problem.lost]
        assert lost
        assert done.messages < log.message_count
    with logreel.open(tmp_path / "sorted.ulg") as new:
        assert new.message_count == done.messages


@pytest.mark.parametrize("line", READING)
def test_what_a_verb_reads_by_an_index_that_is_older_than_damage_has_exit_code_3(
    line: str, rotten: Path, tmp_path: Path, run: Run
) -> None:
    if line.startswith("SQL "):
        done = run("sql", line.removeprefix("SQL "), rotten)
    else:
        verb, *options = line.replace("OUT", str(tmp_path / "out")).split()
        channels = [one for one in options if one.startswith("vehicle_attitude.")]
        done = run(verb, rotten, *channels, *(one for one in options if one not in channels))
    assert done.code == 3, done.err
    assert "could not be read, 'logreel check' says more" in done.err


def test_changed_values_of_sound_records_are_told_by_the_index(rotten: Path, run: Run) -> None:
    """A ULog has no checksums: without an index, nothing tells that a value is not what was written."""
    path = rotten.with_name("value.ulg")
    path.write_bytes(flight(8))
    index_cache.write(str(path))
    with logreel.open(path) as log:
        places = [message.offset for message in log["vehicle_attitude"][:]]
    free = [(lo, hi) for lo, hi in gaps(path.stat().st_size) if lo < hi]
    place = next(at for at in places if at and any(lo <= at < hi - 20 for lo, hi in free))
    before, data = path.stat(), bytearray(path.read_bytes())
    data[place + 12] ^= 0x40
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with logreel.open(path) as log:
        assert log.source.is_restored, "the place is one that is not compared"
        assert not log.problems
        _ = log["vehicle_attitude"]["q"]
        assert {problem.code for problem in log.problems} == {"changed"}
    assert run("cat", path, "-t", "vehicle_attitude").code == 3
    path.with_name(path.name + INDEX_SUFFIX).unlink()
    assert run("cat", path, "-t", "vehicle_attitude").code == 0
