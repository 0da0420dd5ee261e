"""Messages that a log delivers are written by each operation, or a message names what is left out.

For every format that can be written, over the logs that the package and the tests make, and over small real ones.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.errors import DamagedError, DefinitionError, IncompleteOutputError, LogError
from logreel.ops.json_values import to_json_values
from logreel.ops.record import record
from support.builders import bag_variants
from support.builders.contents import PLACES, SAMPLES
from support.samples.bddf.builder import walk as bddf_walk
from support.samples.carla.builder import eventful
from support.samples.mcap.builder import tiny as tiny_mcap
from support.samples.ulog.builder import Builder, tiny

S = 1_000_000
#: Larger logs would take too long to be written so often.
LARGEST = 1_500_000
_LINE = re.compile(r"^line (\d+)(?=:)")
#: Messages of a real log that are recorded again as lines of JSON.
LINES = 2000


def odd_ulog() -> bytes:
    """Return a ULog with every kind of record, unknown kinds, levels and magics, and times that go back."""
    made = Builder(5 * S).flags().format("a:uint64_t timestamp;float x;uint8_t[4] _padding0;")
    made.format("vec:float x;float y;").format("b:uint64_t timestamp;vec[2] v;char[6] who;bool on;")
    made.info("char[3] sys_name", "PX4").info("float[2] gains", struct.pack("<2f", 1, 0.1))
    made.info("vec where", struct.pack("<2f", 3, 4)).info("uint32_t ver_sw_release", 0x011000FF)
    made.info_multiple("char[2] parts", "ab").info_multiple("char[2] parts", "cd", True)
    made.info_multiple("uint8_t[3] blob", b"\1\2\3").parameter("float P", 1.5).parameter("int32_t N", -3)
    made.default_parameter("float P", 1.0, 3).subscribe("a", 3).subscribe("b", 0, 1)
    for step in range(60):
        time = 5 * S + (step ^ 3) * 10_000
        made.data(3, struct.pack("<Qf", time, step) + (bytes(4) if step % 2 else b""))
        if step % 4 == 1:
            made.data(0, struct.pack("<Q4f6s?", time, 1, 2, 3, step, b"me", step % 3 == 0))
        if step % 10 == 3:
            made.text(4, time, f"line {step}").tagged(6, 17, time, "täg").sync().dropout(20)
            made.raw("L", b"\x06" + struct.pack("<Q", time) + b"odd level").raw("S", b"whatever")
            made.parameter("float P", float(step)).junk(b"\x03\x00\x80abc")
    return bytes(made.bytes())


#: A log of each kind, by the suffix of its format and a name.
LOGS: dict[str, Callable[[], bytes]] = {
    **{f"{suffix} sample": make for suffix, make in SAMPLES.items()},
    ".ulg tiny": tiny,
    ".ulg odd": odd_ulog,
    ".ulg empty": lambda: bytes(Builder(7).flags().bytes()),
    ".bddf walk": lambda: bddf_walk(3.0),
    ".rec eventful": lambda: eventful().bytes(),
    ".mcap tiny": tiny_mcap,
    **{f".bag {name}": make for name, make in bag_variants.SYNTHETIC.items()},
}


def _slice(source: Path, folder: Path) -> tuple[Path, Iterable[str]]:
    out = folder / f"out{source.suffix}"
    return out, logreel.slice(source, out).skipped


def _sort(source: Path, folder: Path) -> tuple[Path, Iterable[str]]:
    out = folder / f"out{source.suffix}"
    return out, logreel.sort(source, out).skipped


def _recover(source: Path, folder: Path) -> tuple[Path, Iterable[str]]:
    out = folder / f"out{source.suffix}"
    return out, logreel.recover(source, out).skipped


def _mcap(source: Path, folder: Path) -> tuple[Path, Iterable[str]]:
    there, out = folder / "there.mcap", folder / f"out{source.suffix}"
    first = logreel.convert(source, there, raw=True).skipped
    return out, (*first, *logreel.convert(there, out).skipped)


def _record(source: Path, folder: Path) -> tuple[Path, Iterable[str]]:
    out = folder / f"out{source.suffix}"
    lines = [json.dumps({"topic": t, "time_ns": n, "data": data}) for t, n, data in _shown_of_source(source)]
    # What is left out is reported with its line number.
    reported = (
        _LINE.sub(lambda found: lines[int(found[1]) - 1], text)
        for text in record(lines, out, like=source).skipped
    )
    return out, reported


WAYS: dict[str, Callable[[Path, Path], tuple[Path, Iterable[str]]]] = {
    "slice": _slice,
    "sort": _sort,
    "recover": _recover,
    "mcap": _mcap,
    "record": _record,
}
Rows = dict[str, list[tuple[int, Any]]]


def _delivered(path: Path, as_bytes: bool) -> Rows:
    """Return times and payloads by topic, as bytes (also of reserved topics) or as shown."""
    if as_bytes:
        log = logreel.open(path)
        found: Rows = {topic: [] for topic in log.channels}
        for m in log.messages(list(found)) if found else ():
            found[m.channel.topic].append((m.time, bytes(m.data)))
        return found
    return _by_topic(_shown(path))


def _by_topic(shown: Iterable[tuple[str, int, Any]]) -> Rows:
    found: Rows = {}
    for topic, time, data in shown:
        found.setdefault(topic, []).append((time, data))
    return found


def _lost(due: list[tuple[int, Any]], found: list[tuple[int, Any]]) -> int:
    """Return the number of messages that are due and were not found; they may be in another order."""
    # As text, as 1 and 1.0 are equal.
    if (due == found and (not due or isinstance(due[0][1], bytes))) or repr(due) == repr(found):
        return 0
    one, two = (Counter((time, _text(data)) for time, data in rows) for rows in (due, found))
    return (one - two).total()


def _text(data: Any) -> Any:
    return data if isinstance(data, bytes) else json.dumps(data, sort_keys=True)


def _shown(path: Path) -> Iterator[tuple[str, int, Any]]:
    """Yield the messages as shown by ``cat``: topic, time and value, without payloads that cannot be decoded."""
    for m in itertools.islice(logreel.open(path).messages(), LINES):
        with contextlib.suppress(DamagedError, DefinitionError):
            yield m.channel.topic, m.time, to_json_values(m.decode())


# A source is written in several ways, one after another.
@lru_cache(maxsize=6)
def _shown_of_source(source: Path) -> list[tuple[str, int, Any]]:
    return list(_shown(source))


@lru_cache(maxsize=6)
def _due(source: Path, as_bytes: bool) -> Rows:
    """Return what ``_delivered`` does, of a source, which does not change."""
    return _delivered(source, True) if as_bytes else _by_topic(_shown_of_source(source))


def _unreported_losses(source: Path, way: str, folder: Path) -> list[str]:
    """Return the messages of *source* that are neither written nor reported as left out."""
    try:
        out, reported = WAYS[way](source, folder)
    except IncompleteOutputError as error:
        # Nothing was written, with a sentence for each thing that could not be.
        return [] if error.skipped else ["everything"]
    due, found = _due(source, way != "record"), _delivered(out, way != "record")
    reported = tuple(reported)
    return [
        f"{lost} of {len(rows)} messages of {topic!r}"
        for topic, rows in due.items()
        if (lost := _lost(rows, found.get(topic, []))) and not any(topic in text for text in reported)
    ]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for logs that several tests read."""
    return tmp_path_factory.mktemp("sources")


def _at(path: Path, build: Callable[[], bytes]) -> Path:
    """Write what *build* returns to *path*, if that is not done, and return it."""
    if not path.exists():
        path.parent.mkdir(parents=True)
        path.write_bytes(build())
    return path


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", LOGS)
def test_every_delivered_message_is_written_or_reported(
    name: str, way: str, sources: Path, tmp_path: Path
) -> None:
    source = _at(sources / name / f"source{name.partition(' ')[0]}", LOGS[name])
    assert _unreported_losses(source, way, tmp_path) == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("suffix", SAMPLES)
def test_messages_of_real_logs_are_written_or_reported(
    suffix: str, way: str, shared: Path, sources: Path, tmp_path: Path
) -> None:
    seen = 0
    for path in sorted((shared / "data").glob(PLACES.get(suffix, f"**/*{suffix}"))):
        if path.stat().st_size > LARGEST or seen == 6:
            continue
        folder = tmp_path / str(seen)
        folder.mkdir()
        source = _at(sources / path.relative_to(shared) / f"source{suffix}", path.read_bytes)
        try:
            logreel.open(source)
        except LogError:
            continue
        seen += 1
        assert _unreported_losses(source, way, folder) == [], path.name
