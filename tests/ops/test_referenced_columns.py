"""The columns that a condition uses are found, in few steps also among thousands."""

from __future__ import annotations

import functools
import operator
import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from logreel.ops.query.topic_table import referenced_columns


class Counted:
    """A schema that counts how many tables are made of its columns."""

    def __init__(self, schema: pa.Schema) -> None:
        self.names, self.tables, self._empty = schema.names, 0, schema.empty_table()

    def empty_table(self) -> Counted:
        return self

    def select(self, names: Sequence[str]) -> pa.Table:
        self.tables += 1
        return self._empty.select(names)


def schema(columns: int) -> Any:
    return Counted(pa.schema([(f"c{i}", pa.int64()) for i in range(columns)]))


@pytest.mark.parametrize("seed", range(20))
def test_the_columns_of_a_condition_are_found_in_their_order(seed: int) -> None:
    rng = random.Random(seed)
    columns = rng.randrange(1, 40)
    used = sorted(rng.sample(range(columns), rng.randrange(1, min(columns, 5) + 1)))
    given = {f"c{i}" for i in rng.sample(range(columns), rng.randrange(columns))}
    condition = functools.reduce(operator.or_, [pc.field(f"c{i}") > i for i in used])
    expected = [f"c{i}" for i in used if f"c{i}" not in given]
    assert referenced_columns(condition, schema(columns), given) == expected


def test_the_steps_do_not_grow_with_the_columns() -> None:
    wide = schema(2048)
    assert referenced_columns((pc.field("c3") > 1) & (pc.field("c2000") == 2), wide, ()) == ["c3", "c2000"]
    assert wide.tables < 60


def test_a_condition_on_a_column_that_does_not_exist_ends() -> None:
    wide = schema(2048)
    assert referenced_columns(pc.field("other") > 1, wide, ["c0"]) == wide.names[1:]
    assert wide.tables == 2
