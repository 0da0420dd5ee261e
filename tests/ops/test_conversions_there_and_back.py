"""Every pair of formats, there and back: what a log holds is equal, or a sentence of the conversions says what differs.

A table of pairs and kinds of content. Each difference must be told by a sentence that is about it; of a difference
that nobody tells the test fails. What a format cannot hold is reported, not a usage error.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.errors import IncompleteOutputError, LogError
from logreel.lenses.text import line_fields
from support.builders.contents import SAMPLES
from support.formats import builtin_formats
from support.harness.cli_runner import Done, Run
from support.harness.equal_tables import assert_restored
from support.samples.bddf.builder import walk

SUFFIXES = [f.suffixes[0] for f in builtin_formats().values() if f.create is not None]
LARGEST = 700_000
LOGS: dict[str, Callable[[], bytes]] = {**SAMPLES, "walk.bddf": lambda: walk(3.0)}
#: Samples of these have their fields and times after a conversion to another of them and back.
FULL = {".ulg", ".bag", ".bddf", ".vel", ".mcap"}
#: What the sentences about differences of each kind of content say.
ABOUT = {
    "times": "rounded|times outside|cannot hold their times",
    "text": "level|source|tag|no such fields|rounded|left out|cannot be converted back",
    # Some follow from messages.
    "metadata": "metadata|left out",
    "parameters": "parameter",
    "attachments": "attachment",
    "bounds": "rounded|left out|times outside",
}


def content(log: logreel.Log) -> dict[tuple[str, str], Any]:
    """Return what a log holds, by kind of content and name; without facts of the file."""
    facts = {*builtin_formats()[log.format].file_facts, log.format}
    facts |= {name for name in log.metadata if name in ("mcap", "sha1", "index_entries", "end_mark")}
    found: dict[tuple[str, str], Any] = {}
    for topic, ch in log.channels.items():
        found["channel", topic] = (ch.schema.name, ch.schema.encoding, ch.schema.text.strip())
        found["times", topic] = sorted(ch.times.tolist())
        found["messages", topic] = [(m.time, bytes(m.data)) for m in log.messages([topic])]
    found |= {("metadata", name): repr(one) for name, one in log.metadata.items() if name not in facts}
    found |= {("parameters", name): repr(one) for name, one in log.parameters.items()}
    found |= {("attachments", name): one.read() for name, one in log.attachments.items()}
    found["text", ""] = sorted((line.time, line.level or -1, line.source, line.text) for line in log.text)
    found["bounds", ""] = log.epoch, log.utc_offset, log.start, log.end
    return found


#: What sources hold, by their bytes: each is converted to every other format.
_SOURCES: dict[bytes, dict[tuple[str, str], Any]] = {}


def content_of_source(source: Path) -> dict[tuple[str, str], Any]:
    key = hashlib.sha256(source.read_bytes()).digest()
    if key not in _SOURCES:
        _SOURCES[key] = content(logreel.open(source))
    return _SOURCES[key]


def untold(source: Path, folder: Path, suffix: str) -> Iterator[str]:
    """Convert *source* to the format of *suffix* and back; yield the differences that no sentence is about."""
    there = folder / f"there{suffix}"
    try:
        done = logreel.convert(source, there, force=True)
    except IncompleteOutputError:
        # Nothing is written, with a sentence for each thing that could not be.
        return
    yield from untold_back(source, there, [*done.skipped, *done.notes], folder / f"back{source.suffix}")


def untold_back(
    source: Path, there: Path, said: list[str], back: Path, restored: bool = False
) -> Iterator[str]:
    """Convert *there*, which is *source* in another format, back; yield the differences that no sentence is about.

    said      the sentences about the conversion of *source*
    restored  compare the times and fields of all channels, too
    """
    try:
        done = logreel.convert(there, back, force=True)
    except IncompleteOutputError:
        return
    told = [*said, *done.skipped, *done.notes]
    if restored:
        assert_restored(source, back, told)
    before, after = content_of_source(source), content(logreel.open(back))
    for key in sorted(before.keys() | after.keys()):
        if not _is_equal(key[0], before.get(key), after.get(key)) and not _is_told(
            key, told, before.get(key), after.get(key)
        ):
            yield f"{key}: {str(before.get(key))[:200]} -> {str(after.get(key))[:200]}"


def _is_equal(kind: str, before: Any, after: Any) -> bool:
    """Return whether content is equal: messages of one time may come in another order."""
    both = kind == "messages" and before is not None and after is not None
    return bool(before == after or (both and Counter(before) == Counter(after)))


def _is_told(key: tuple[str, str], told: list[str], before: Any, after: Any) -> bool:
    kind, name = key
    if (
        kind == "channel"
        and before is not None
        and after is not None
        and before[:2] == after[:2]
        and not before[2]
    ):
        # A definition that the log did not have is added.
        return True
    if kind in ABOUT and any(re.search(ABOUT[kind], text) for text in told):
        return True
    if kind == "messages" and before is not None and after is not None:
        # Where only times differ, these are told.
        if Counter(data for _, data in before) == Counter(data for _, data in after):
            return True
        if any("rounded" in text for text in told):
            return True
    # A channel that got another name, or a new definition, is named.
    return any(repr(name) in text for text in told)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Each sample, and its conversions to MCAP, where they differ: byte for byte, and for other tools."""
    folder, found = tmp_path_factory.mktemp("sources"), dict[str, list[Path]]()
    for name, make in LOGS.items():
        path = folder / (f"sample{name}" if name.startswith(".") else name)
        path.write_bytes(make())
        found[name] = [path]
        for raw in (True, False):
            there = folder / f"{path.name}.{'raw' if raw else 'other'}.mcap"
            logreel.convert(path, there, raw=raw)
            if there.read_bytes() not in [one.read_bytes() for one in found[name]]:
                found[name].append(there)
    return found


@pytest.fixture(scope="module")
def results() -> dict[Path, Done]:
    """What the verb answered, by the file that it was to write; for several tests."""
    return {}


def converted(path: Path, target: str, run: Run, results: dict[Path, Done]) -> tuple[Path, Done]:
    """Convert a source to the format of the suffix *target*, if that is not done; return the path and the result."""
    out = path.with_name(f"{path.name}.out{target}")
    if out not in results:
        results[out] = run("convert", path, out, "--json")
    return out, results[out]


@cache
def source_log(path: Path) -> logreel.Log:
    """Open a source, which is converted to every format."""
    return logreel.open(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", LOGS)
def test_what_comes_back_is_equal_or_told(
    sources: dict[str, list[Path]],
    results: dict[Path, Done],
    run: Run,
    name: str,
    suffix: str,
    tmp_path: Path,
) -> None:
    source = sources[name][0]
    if source.suffix == suffix:
        pytest.skip("one format")
    there, done = converted(source, suffix, run, results)
    if done.code == 1:
        # Nothing is written, with a sentence for each thing that could not be.
        return
    told, back = [*done.json["skipped"], *done.json["notes"]], tmp_path / f"back{source.suffix}"
    assert list(untold_back(source, there, told, back, {name, suffix} <= FULL)) == []


@pytest.mark.parametrize("target", SUFFIXES)
@pytest.mark.parametrize("name", LOGS)
def test_content_that_a_format_cannot_hold_is_reported(
    sources: dict[str, list[Path]], results: dict[Path, Done], run: Run, name: str, target: str
) -> None:
    for path in sources[name]:
        out, done = converted(path, target, run, results)
        log = source_log(path)
        assert done.code in (0, 1, 3), (path, done.err)
        if done.code == 1:
            assert "can hold none of the" in done.err
            assert not out.exists()
            continue
        skipped = json.loads(done.out)["skipped"]
        assert done.code == (3 if skipped else 0)
        there = logreel.open(out)
        names = new_names(json.loads(done.out)["notes"])
        # Channels of text become the text channel, whatever its name.
        lines = [len(ch) for ch in there.channels.values() if line_fields(ch) is not None]
        for ch in log.channels.values():
            # What was made of a channel is made again, and what only a reader makes is no message.
            if not len(ch) or "made_of" in ch.metadata or any(repr(ch.topic) in text for text in skipped):
                continue
            name = names.get(ch.topic, ch.topic)
            if name in there or line_fields(ch) is None:
                assert len(there[name]) == len(ch), (path, ch.topic)
            else:
                assert len(ch) in lines


@pytest.mark.parametrize("name", LOGS)
def test_facts_of_a_file_are_never_a_loss(
    sources: dict[str, list[Path]], results: dict[Path, Done], run: Run, name: str
) -> None:
    path = sources[name][0]
    log = source_log(path)
    facts = set(builtin_formats()[log.format].file_facts)
    assert facts <= {"mcap"} or facts & log.metadata.keys()
    for source in sources[name]:
        for target in (".bag", ".vel", ".ulg", ".bddf", ".mcap"):
            out, done = converted(source, target, run, results)
            assert done.code in (0, 3), done.err
            named = [text for text in json.loads(done.out)["skipped"] if text.startswith("metadata")]
            assert not any(repr(fact) in text for text in named for fact in facts), named
            if target != ".mcap" and not out.name.endswith(path.suffix):
                there = logreel.open(out)
                assert not facts - set(builtin_formats()[there.format].file_facts) & there.metadata.keys()


def new_names(notes: list[str]) -> dict[str, str]:
    """Return the new topics of channels by topic, from the notes about them."""
    return dict(re.findall(r"'([^']+)' is '([^']+)'", " ".join(notes)))


def test_carla_holds_only_packets_of_carla(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.ulg").write_bytes(SAMPLES[".ulg"]())
    done = run("convert", tmp_path / "a.ulg", tmp_path / "a.rec")
    assert done.code == 1
    assert "a CARLA recording can hold none of the" in done.err
    assert not (tmp_path / "a.rec").exists()


#: The table of conversions, compared with what conversions do.
PAGE = Path(__file__).parents[2] / "docs" / "howto" / "convert.md"
HEAD = re.compile(r"^\| from, to \|(.*)\|\n\|[-|]+\|\n((?:\| `.*\n)+)", re.MULTILINE)


def table() -> dict[tuple[str, str], str]:
    """Return what the page says, by suffixes from and to."""
    found = HEAD.search(PAGE.read_text())
    assert found is not None
    targets = re.findall(r"`([^`]+)`", found[1])
    cells = {}
    for line in found[2].splitlines():
        source, *words = (cell.strip(" `") for cell in line.strip("|").split("|"))
        assert len(words) == len(targets)
        cells |= {(source, target): word for target, word in zip(targets, words, strict=True)}
    return cells


TABLE = table()


def test_the_table_has_every_pair() -> None:
    assert set(TABLE) == {(one, other) for one in SAMPLES for other in SAMPLES}


@cache
def payloads(path: Path) -> set[bytes]:
    return {bytes(m.data) for m in source_log(path).messages()}


def kind(source: Path, there: Path, done: Done) -> str:
    """Return how the first channel with messages of *source* gets *there*, as the page says it."""
    if done.code == 1:
        assert not there.exists()
        return "–"
    before, after = source_log(source), logreel.open(there)
    own = {ch.topic for ch in after.channels.values() if "made_of" not in ch.metadata and not ch.reserved}
    written = {bytes(m.data) for m in after.messages([*own])}
    schemas = {ch.schema.encoding for ch in before.channels.values() if not ch.reserved}
    same = written <= payloads(source) and {after[topic].schema.encoding for topic in own} <= schemas
    return "same" if same else "encoded"


@pytest.mark.parametrize("pair", sorted(TABLE), ids="-".join)
def test_a_conversion_is_what_the_table_says(
    sources: dict[str, list[Path]], results: dict[Path, Done], run: Run, pair: tuple[str, str]
) -> None:
    source = sources[pair[0]][0]
    assert kind(source, *converted(source, pair[1], run, results)) == TABLE[pair]


@cache
def suffix_of_sound_log(path: Path) -> str:
    """Return the suffix of the format of a log; empty for one that is large or not sound."""
    if path.suffix not in (".ulg", ".bag", ".bddf", ".log") or path.stat().st_size > LARGEST:
        return ""
    try:
        log = logreel.open(path)
    except LogError:
        return ""
    return "" if log.problems else builtin_formats()[log.format].suffixes[0]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("folder", ["ulog", "rosbag", "bddf", "carla", "koblenz"])
def test_what_comes_back_of_real_logs_is_equal_or_told(
    folder: str, suffix: str, shared: Path, tmp_path: Path
) -> None:
    seen = 0
    for path in sorted((shared / "data" / folder).glob("*.*")):
        own = suffix_of_sound_log(path)
        if not own or own == suffix:
            continue
        source = tmp_path / f"{path.stem}{own}"
        source.write_bytes(path.read_bytes())
        seen += 1
        assert list(untold(source, tmp_path, suffix)) == [], path.name
    if not seen:
        pytest.skip("no sound samples of another format beside the repository (LOGREEL_SHARED)")
