"""Recovery of damaged bags: every message that reading delivers is in the new bag."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import logreel
from logreel.testing.mutations import mutate
from support.harness.examples import half
from support.samples.rosbag.builder import Builder, few, tiny, version_2_0
from support.samples.rosbag.old import version_1_2

CASES = half(60)
BASES = {
    **{version: tiny(version) for version in ("0", "1.0", "1.1", "1.2", "2.0")},
    "1.2 indexed": version_1_2(few()),
    "2.0 lz4": version_2_0(few(), Builder("lz4", chunk_bytes=400, padded=80)),
    "2.0 bz2": version_2_0(few(), Builder("bz2", chunk_bytes=400, padded=80)),
}


def _rows(log: logreel.Log) -> Counter[tuple[str, int, bytes]]:
    """Return the messages by topic, without the number of its definition."""
    return Counter(
        (str(m.channel.metadata.get("topic", m.channel.topic)), m.time, bytes(m.data)) for m in log.messages()
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"std_msgs/String", b"std_msgs\x81String"),
        (b"std_msgs/String", b"std_msgs String"),
        (b"md5sum=992ce8a1687cec8c8bd883ec73ca41d1", b"md5sum=992ce8a1687cec8c8bd883ec73ca41d\xff"),
        (b"992ce8a1", b"992CE8A1"),
        (b"topic=/chatter", b"topic=/chat\x07er"),
    ],
)
def test_damaged_connection_loses_no_message(old: bytes, new: bytes, tmp_path: Path) -> None:
    data = tiny("2.0")
    assert old in data
    log = logreel.open(data.replace(old, new))
    due = _rows(log)
    done = logreel.recover(log, tmp_path / "out.bag")
    assert not done.skipped
    assert any("kept as the log has it" in note for note in done.notes)
    with logreel.open(tmp_path / "out.bag") as found:
        assert _rows(found) == due
        assert [ch.schema.name for ch in found.channels.values()] == [
            ch.schema.name for ch in log.channels.values()
        ]


@pytest.mark.parametrize("base", BASES)
def test_recover_writes_every_message_that_reading_delivers(base: str, tmp_path: Path) -> None:
    out, tried = tmp_path / "out.bag", 0
    for seed in range(CASES):
        broken = mutate(BASES[base], seed)
        try:
            log = logreel.open(broken)
            due = _rows(log)
        except logreel.LogError:
            continue
        if not due:
            continue
        tried += 1
        # Negative times, which old bags may have, are the one thing that a new bag cannot hold.
        held = Counter({row: n for row, n in due.items() if 0 <= row[1] < 10**9 << 32})
        done = logreel.recover(log, out, force=True)
        with logreel.open(out) as found:
            assert _rows(found) == held, seed
        assert (held == due) or done.skipped, seed
    assert tried > CASES // 6


def test_invalid_name_from_the_user_is_refused(tmp_path: Path) -> None:
    with pytest.raises(logreel.UsageError, match="printable"):
        logreel.merge(
            [tiny("2.0")], tmp_path / "x.bag", rename={next(iter(logreel.open(tiny("2.0")))): "\x07"}
        )
