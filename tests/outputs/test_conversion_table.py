"""The table of conversions in docs/howto/convert.md, compared with what conversions do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import logreel
from support.builders.contents import SAMPLES

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


def kind(source: Path, target: Path) -> str:
    """Return how the first channel with messages of *source* gets into *target*, as the page says it."""
    try:
        logreel.convert(source, target)
    except logreel.IncompleteOutputError:
        return "–"
    before, after = logreel.open(source), logreel.open(target)
    payloads = {bytes(m.data) for m in before.messages()}
    own = {ch.topic for ch in after.channels.values() if "made_of" not in ch.metadata and not ch.reserved}
    written = {bytes(m.data) for m in after.messages([*own])}
    schemas = {ch.schema.encoding for ch in before.channels.values() if not ch.reserved}
    same = written <= payloads and {after[topic].schema.encoding for topic in own} <= schemas
    return "same" if same else "encoded"


@pytest.mark.parametrize("pair", sorted(TABLE), ids="-".join)
def test_a_conversion_is_what_the_table_says(tmp_path: Path, pair: tuple[str, str]) -> None:
    one, other = pair
    source = tmp_path / f"a{one}"
    source.write_bytes(SAMPLES[one]())
    assert kind(source, tmp_path / f"b{other}") == TABLE[pair]
