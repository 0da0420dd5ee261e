"""Sample bags: counts, times, topics and order as listed in their index file, payloads as in the plain reader."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from pathlib import Path

import pytest

import logreel
from conftest import SHARED
from support.builders.bag_rows import fast_rows, plain_rows
from support.oracles import rosbag as bag_oracle

FOLDER = SHARED / "data" / "rosbag"
if not (FOLDER / "MANIFEST.md").exists():
    pytest.skip(f"no sample bags at {FOLDER}; set LOGREEL_SHARED", allow_module_level=True)

ROWS = {
    cells[0]: cells
    for line in (FOLDER / "MANIFEST.md").read_text().splitlines()
    if len(cells := [cell.strip() for cell in line.strip("|").split("|")]) > 10 and cells[0].endswith(".bag")
}
#: Numbers of all messages of bags for which the list counts only those in complete chunks.
MORE = {
    "v20_dmg_unterminated_chunk.bag": 1402,
    "v20_dmg_cut_mid_chunk.bag": 1402,
    "v20_dmg_tail_cut.bag": 1706,
}
PROBLEMS = {
    "v20_dmg_unterminated_chunk.bag": ["index", "truncated", "unfinished"],
    "v20_dmg_cut_mid_chunk.bag": ["index", "truncated"],
    "v20_dmg_tail_cut.bag": ["index", "truncated"],
    "v20_invalid_truncated_header.bag": ["index", "truncated"],
    "v20_real_gap_before_index.bag": ["zeros"],
    "syn_v11_truncated.bag": ["truncated"],
}


@pytest.fixture(params=sorted(ROWS))
def path(request: pytest.FixtureRequest) -> Path:
    return FOLDER / str(request.param)


def _ns(cell: str) -> int | None:
    return None if cell == "-" else int(cell.replace(".", ""))


def test_counts_stamps_topics_and_order(path: Path) -> None:
    log = logreel.open(path)
    cells = ROWS[path.name]
    topics = {
        (name, kind): int(count) for name, kind, count in re.findall(r"(\S+) (\S+) (\d+)(?:;|$)", cells[8])
    }
    found: Counter[tuple[str, str]] = Counter()
    for ch in log.channels.values():
        found[ch.topic.partition("[")[0], ch.schema.name] += len(ch)
    if path.name in MORE:
        assert log.message_count == MORE[path.name]
        return
    assert log.message_count == int(cells[4])
    assert {topic: n for topic, n in found.items() if n} == topics
    assert (log.start, log.end) == (_ns(cells[5]), _ns(cells[6]))
    times = [m.time for m in log.messages(order="file")]
    assert sum(b < a for a, b in itertools.pairwise(times)) == int(cells[7])
    assert [m.time for m in log.messages()] == sorted(times)


def test_messages_are_those_of_the_plain_reader(path: Path) -> None:
    assert fast_rows(logreel.open(path)) == plain_rows(bag_oracle.read(path.read_bytes()))


def test_only_damaged_samples_have_problems(path: Path) -> None:
    log = logreel.open(path)
    fast_rows(log)
    assert sorted(p.code for p in log.problems) == PROBLEMS.get(path.name, [])


def test_without_its_index_a_bag_is_the_same(path: Path) -> None:
    data = path.read_bytes()
    if not data.startswith(b"#ROSBAG V2.0"):
        pytest.skip("has no index that is used")
    blind = bytearray(data)
    at = data.index(b"index_pos=") + 10
    blind[at : at + 8] = bytes(8)
    by_index, by_reading = logreel.open(data), logreel.open(bytes(blind))
    assert fast_rows(by_index) == fast_rows(by_reading)
    assert "index" in {p.code for p in by_reading.problems}
