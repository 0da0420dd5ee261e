"""Every pair of formats, there and back: what a log holds is equal, or a sentence of the conversions says what differs.

A table of pairs and kinds of content. Each difference must be told by a sentence that is about it; of a difference
that nobody tells the test fails.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.errors import IncompleteOutputError, LogError
from support.builders.contents import SAMPLES
from support.formats import builtin_formats
from support.samples.bddf.builder import walk

SUFFIXES = [f.suffixes[0] for f in builtin_formats().values() if f.create is not None]
LARGEST = 700_000
LOGS: dict[str, Callable[[], bytes]] = {**SAMPLES, "walk.bddf": lambda: walk(3.0)}
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
    there, back = folder / f"there{suffix}", folder / f"back{source.suffix}"
    told = list[str]()
    for one, other in ((source, there), (there, back)):
        try:
            done = logreel.convert(one, other, force=True)
        except IncompleteOutputError:
            # Nothing is written, with a sentence for each thing that could not be.
            return
        told += [*done.skipped, *done.notes]
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


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", LOGS)
def test_what_comes_back_is_equal_or_told(name: str, suffix: str, tmp_path: Path) -> None:
    source = tmp_path / (f"source{name}" if name.startswith(".") else name)
    if source.suffix == suffix:
        pytest.skip("one format")
    source.write_bytes(LOGS[name]())
    assert list(untold(source, tmp_path, suffix)) == []


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
