"""Every log into every log format: content that a format cannot hold is reported, not a usage error."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

import logreel
from logreel.lenses.text import line_fields
from support.builders.contents import SAMPLES
from support.formats import builtin_formats
from support.harness.cli_runner import Done, Run
from support.samples.bddf.builder import walk as bddf_walk

WRITABLE = sorted(f.suffixes[0] for f in builtin_formats().values() if f.create is not None)
SOURCES = {**SAMPLES, "walk.bddf": bddf_walk}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Each sample, and its conversions to MCAP: byte for byte, and for other tools."""
    folder, found = tmp_path_factory.mktemp("sources"), dict[str, list[Path]]()
    for name, make in SOURCES.items():
        path = folder / (f"sample{name}" if name.startswith(".") else name)
        path.write_bytes(make())
        found[name] = [path]
        for raw in (True, False):
            there = folder / f"{path.name}.{'raw' if raw else 'other'}.mcap"
            logreel.convert(path, there, raw=raw)
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


@pytest.mark.parametrize("target", WRITABLE)
@pytest.mark.parametrize("name", SOURCES)
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


@pytest.mark.parametrize("name", SOURCES)
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
