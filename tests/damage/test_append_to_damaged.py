"""Appending to logs whose damage is not noticed when they are opened: refused, or nothing of the old log is lost."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

import logreel
from support.formats import builtin_formats, sample_log

NAMES = sorted(name for name, fmt in builtin_formats().items() if fmt.append is not None)
#: Number of messages that are appended.
APPENDED = 5


def messages(path: Path, folder: Path) -> Counter[tuple[str, int, bytes]]:
    """Return all messages that can be recovered from a file."""
    copy = folder / f"recovered{path.suffix}"
    logreel.recover(path, copy, force=True)
    with logreel.open(copy) as log:
        rules = log.index.rules
        return Counter(
            (m.channel.topic, m.time, bytes(m.data))
            for m in log.messages(order="file")
            # Frames of CARLA are numbered again in a recovered recording.
            if rules[m.channel.number].synthetic is None and m.channel.schema.name != "frames"
        )


def append(path: Path) -> Counter[tuple[str, int, bytes]]:
    """Append copies of the last messages of a channel, later; return them."""
    with logreel.open(path) as log:
        rules = log.index.rules
        live = [
            ch
            for ch in log.channels.values()
            if not ch.reserved
            and len(ch)
            and rules[ch.number].synthetic is None
            and ch.schema.name != "frames"
        ]
        ch = max(live, key=len)
        payload, end, topic, schema = bytes(list(ch)[-1].data), log.end or 0, ch.topic, ch.schema
    written = Counter[tuple[str, int, bytes]]()
    with logreel.create(path, mode="a") as w:
        number = w.add_channel(topic, schema)
        for n in range(1, APPENDED + 1):
            time = end + n * 10**9
            w.write(number, time, payload)
            written[topic, time, payload] += 1
    return written


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", NAMES)
def test_garbage_in_a_log_hides_no_message_of_it_after_appending(
    name: str, seed: int, tmp_path: Path
) -> None:
    fmt = builtin_formats()[name]
    data = bytearray(sample_log(fmt.name))
    dice = random.Random(f"{name} {seed}")
    size = dice.choice([1, 20, 500])
    place = dice.randrange(len(data) // 10, len(data) * 9 // 10)
    data[place : place + size] = dice.randbytes(size)
    path = tmp_path / f"x{fmt.suffixes[0]}"
    path.write_bytes(data)
    before = messages(path, tmp_path)
    written = None
    with suppress(logreel.LogError, logreel.UsageError):
        written = append(path)
    if written is None:
        # Refused: the file is as it was.
        assert path.read_bytes() == data
        return
    after = messages(path, tmp_path)
    assert not before - after
    found = after - before
    # Formats may store times relative to another message, or in their payloads.
    assert found.total() == APPENDED
    assert {topic for topic, _, _ in found} == {topic for topic, _, _ in written}
