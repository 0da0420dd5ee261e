"""``MessageIndex.of`` takes messages in file order, and gives each its own time, size and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logreel.errors import LogError, UsageError
from logreel.index.block_table import Blocks
from logreel.io.source import Chunks, Source
from logreel.plugin import ChannelRules, MessageIndex, StoredValues
from support.harness.examples import examples

#: Channel, bytes, time, publish time and sequence of each message.
MESSAGES = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.integers(0, 30),
        st.integers(-(1 << 63), (1 << 63) - 1),
        st.integers(0, 1 << 62),
        st.integers(0, 1 << 32),
    ),
    max_size=60,
)


def columns(messages: list[tuple[int, ...]]) -> tuple[list[int], dict[str, Any], bytes]:
    """Return offsets, the further columns by name, and the file of messages one after another."""
    names = ("channel", "size", "time", "publish_time", "sequence")
    given = {name: [one[i] for one in messages] for i, name in enumerate(names)}
    sizes = np.array(given["size"], np.int64)
    data = bytes(i % 251 for i in range(int(sizes.sum())))
    return (np.cumsum(sizes) - sizes).tolist(), given, data


@given(MESSAGES)
@settings(max_examples=examples(200), deadline=None)
def test_each_message_gets_its_own_numbers_in_any_interleaving(messages: list[tuple[int, ...]]) -> None:
    offset, given, data = columns(messages)
    arrays = {name: np.array(values, np.int64) for name, values in given.items()}
    index = MessageIndex.of(
        Source(data, "x"),
        arrays["channel"],
        np.array(offset, np.int64),
        arrays["size"],
        arrays["time"],
        channels=5,
        publish_time=arrays["publish_time"],
        sequence=arrays["sequence"],
    )
    for channel in range(5):
        mine = [i for i, one in enumerate(messages) if one[0] == channel]
        assert index.count(channel) == len(mine)
        assert index.offsets(channel).tolist() == [offset[i] for i in mine]
        assert index.sizes(channel).tolist() == [given["size"][i] for i in mine]
        assert index.times(channel).tolist() == [given["time"][i] for i in mine]
        for name in ("publish_time", "sequence"):
            found = index.rules[channel].side_columns[name].values(index, channel)
            assert found.tolist() == [given[name][i] for i in mine]
    every = index.select(order="file")
    assert sorted(zip(every.offset.tolist(), every.time.tolist(), strict=True)) == sorted(
        zip(offset, given["time"], strict=True)
    )


def test_messages_far_apart_keep_their_numbers(tmp_path: Any) -> None:
    path = tmp_path / "x"
    with path.open("wb") as file:
        file.truncate(7 << 30)
    offset = [0, 1, 3 << 30, (3 << 30) + 1, 6 << 30, (6 << 30) + 5]
    index = MessageIndex.of(Source.open(path), [1, 0, 1, 0, 0, 1], offset, 1, [10, 20, 30, 40, 50, 60])
    assert index.times(0).tolist() == [20, 40, 50]
    assert index.times(1).tolist() == [10, 30, 60]
    assert index.offsets(1).tolist() == [0, 3 << 30, (6 << 30) + 5]


GOOD: dict[str, Any] = {"channel": [0, 1], "offset": [0, 4], "size": [4, 4], "time": [1, 2]}


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        ({"time": [1]}, UsageError, "time has 1 values where there are 2 offsets"),
        ({"channel": [[0, 1]]}, UsageError, "channel has 1x2 values"),
        ({"time": 5}, UsageError, "time has one values"),
        ({"time": [0.5, 1.5]}, UsageError, "time has values of type float64: whole numbers are due"),
        ({"time": [True, False]}, UsageError, "type bool"),
        ({"time": np.array([1, 1 << 63], np.uint64)}, UsageError, "time has 9223372036854775808"),
        ({"channel": [0, -1]}, UsageError, "message 1 is of channel -1"),
        ({"channel": [0, 2], "channels": 2}, UsageError, "message 1 is of channel 2: .* from 0 to 1"),
        ({"offset": [4, 0]}, UsageError, "message 1 is at byte 0, after one at byte 4"),
        ({"offset": [-1, 0]}, LogError, "message 0 is said to have 4 bytes at byte -1"),
        ({"offset": [0, 5]}, LogError, "message 1 is said to have 4 bytes at byte 5 of a file of 8 bytes"),
        ({"offset": [0, 9], "size": [0, 0]}, LogError, "message 1 is said to have 0 bytes at byte 9"),
        ({"size": [4, -1]}, LogError, "-1 bytes"),
        ({"size": [4, (1 << 63) - 1]}, LogError, "of a file of 8 bytes"),
        ({"publish_time": [1]}, UsageError, "publish_time has 1 values"),
        ({"sequence": ["a", "b"]}, UsageError, "sequence has values of type"),
    ],
)
def test_impossible_messages_are_refused(wrong: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        MessageIndex.of(Source(bytes(8), "x"), **{**GOOD, **wrong})


def test_a_log_without_messages_can_have_channels() -> None:
    index = MessageIndex.of(Source(b"", "x"), [], [], [], [], channels=3)
    assert index.counts.tolist() == [0, 0, 0]
    assert len(MessageIndex.of(Source(b"", "x"), [], [], [], [])) == 0


def test_stored_values_of_another_number_than_messages_are_refused() -> None:
    blocks = Blocks.of(np.array([0, 4]), np.array([0, 1]), 2)
    rules = ChannelRules(StoredValues(np.array([1, 2, 3])), 4)
    with pytest.raises(UsageError, match="keep 3 times, one for each of the 2 messages of all channels"):
        MessageIndex(Chunks(Source(bytes(8), "x")), blocks, [rules] * 2)
