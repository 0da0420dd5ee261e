"""The index of some messages of a log: ``PartIndex``."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.index.block_table import Blocks, Separate
from logreel.index.channel_index import (
    ChannelRules,
    ComputedValues,
    ConstantValues,
    FieldAt,
    IndexAccess,
    Rule,
    StoredValues,
    SyntheticMessages,
)
from logreel.index.gather import Rows
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.source import Buffer


class PartIndex(MessageIndex):
    """The messages at some rows of each channel of another index, which are addressed where they are.

    whole  index of all messages, of one file
    rows   rows by channel number; channels without rows have no messages
    """

    def __init__(self, whole: MessageIndex, rows: Mapping[int, Rows]) -> None:
        self._whole = whole
        nothing = slice(0, 0)
        #: Rows in the whole log by channel number.
        self.rows = {number: rows.get(number, nothing) for number in range(len(whole.rules))}
        #: int64[n], ascending: indexes of the messages among the entries of the block table of the whole log.
        self.entries = np.zeros(0, np.int64)
        self._pending = np.zeros(0, np.bool_)
        #: Numbers that the reader of the whole log keeps for each entry of its block table, and those of this one.
        self._stored: dict[int, tuple[NDArray[Any], NDArray[Any]]] = {}
        table = whole.table
        super().__init__(
            whole.chunks,
            self._blocks(table) if isinstance(table, Blocks) else self._separate(table),
            [],
            self._selected_synthetic,
            self._resolve_whole if whole.resolves_lazily else None,
            whole.sizes_are_cheap,
        )
        self.rules = [self._rules(number) for number in range(len(whole.rules))]

    def rows_in_whole(self, channel: int) -> I64:
        """Return int64[n]: the row in the whole log of each message of a channel."""
        rows = self.rows[channel]
        return np.arange(rows.start, rows.stop, dtype=np.int64) if isinstance(rows, slice) else rows

    def _blocks(self, table: Blocks) -> Blocks:
        """Return the block table of the part; entries stay in the block that they are in."""
        is_selected = np.zeros(len(table.entry), np.bool_)
        for number, rows in self.rows.items():
            if self._whole.rules[number].is_synthetic or len(self.rows_in_whole(number)) == 0:
                continue
            is_selected[table.rows(number)[1][rows]] = True
        self.entries = np.flatnonzero(is_selected)
        self._pending = np.ones(len(table.base), np.bool_)
        part = table.only(self.entries)
        self._stored[id(table.entry)] = table.entry, part.entry
        return part

    def _separate(self, table: Separate) -> Separate:
        def load(channel: int) -> I64:
            if self._whole.rules[channel].is_synthetic:
                return np.zeros(0, np.int64)
            return self._whole.starts(channel)[self.rows[channel]]

        return Separate(load, len(self._whole.rules), max(1, len(table.base)) * Separate.BLOCK)

    def _taken(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return those of the numbers for all entries that are for entries of the part."""
        if id(values) not in self._stored:
            self._stored[id(values)] = values, values[self.entries]
        return self._stored[id(values)][1]

    def _rules(self, number: int) -> ChannelRules:
        rules = copy(self._whole.rules[number])
        if rules.is_synthetic:
            rules.synthetic = len(self.rows_in_whole(number))
            return rules
        rules.time = self._rule(rules.time, _TimesInWhole(self._whole, self))
        rules.size = self._rule(rules.size, rules.size)
        rules.side_columns = {
            name: self._rule(rule, _SideColumnInWhole(self._whole, self, name))
            for name, rule in rules.side_columns.items()
        }
        return rules

    def _rule(self, rule: Rule, other: Rule) -> Rule:
        """Return the rule of the part; *other* where numbers do not follow from the places of messages alone."""
        if isinstance(rule, StoredValues):
            return StoredValues(self._taken(rule.stored))
        if isinstance(rule, ComputedValues):
            return ComputedValues(rule.get)
        return rule if isinstance(rule, (FieldAt, ConstantValues)) else other

    def _resolve_whole(self, blocks: I64) -> None:
        """Resolve blocks of the whole log, and take the numbers of their entries from there."""
        self._whole.resolve(blocks)
        table = self.table
        if not isinstance(table, Blocks):
            return
        for block in blocks[self._pending[blocks]].tolist():
            run = slice(int(table.start[block, 0]), int(table.start[block, -1]))
            for values, own in self._stored.values():
                own[run] = values[self.entries[run]]
            self._pending[block] = False

    def _selected_synthetic(self) -> tuple[Buffer, dict[int, SyntheticMessages]]:
        messages = dict[int, SyntheticMessages]()
        for number, rows in self.rows.items():
            every = self._whole.synthetic(number)
            if every is not None:
                place = None if every.place is None else every.place[rows]
                messages[number] = SyntheticMessages(
                    every.offset[rows], every.size[rows], every.time[rows], place
                )
        return self._whole.chunks.synthetic, messages


class _TimesInWhole(Rule):
    """Times that the index of the whole log gives."""

    needs_all = True

    def __init__(self, whole: MessageIndex, part: PartIndex) -> None:
        self._whole, self._part = whole, part

    def values(self, index: IndexAccess, channel: int, rows: I64 | None = None) -> I64:
        """Return the times of all messages of the part, or of those at *rows*."""
        times = self._whole.times_of(channel, self._part.rows_in_whole(channel))
        return times if rows is None else times[rows]


class _SideColumnInWhole(Rule):
    """A side column that the index of the whole log gives."""

    def __init__(self, whole: MessageIndex, part: PartIndex, name: str) -> None:
        self._whole, self._part, self._name = whole, part, name

    def values(self, index: IndexAccess, channel: int, rows: I64 | None = None) -> I64:
        """Return the numbers of all messages of the part, or of those at *rows*."""
        every = self._whole.side_column(channel, self._name)
        if every is None:
            return np.zeros(index.count(channel) if rows is None else len(rows), np.int64)
        numbers = every[self._part.rows_in_whole(channel)]
        return numbers if rows is None else numbers[rows]
