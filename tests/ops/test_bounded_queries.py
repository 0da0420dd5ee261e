"""Queries with limits of time, and whose client has gone."""

from __future__ import annotations

import threading

import pytest

import logreel
from logreel.errors import UsageError
from logreel.ops.query.sql import Bounds, answer
from support.samples.ulog.builder import tiny

pytest.importorskip("duckdb")
ENDLESS = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range = -1"


def no_check() -> None:
    """Go on."""


def test_a_query_ends_when_its_time_is_over() -> None:
    with (
        logreel.open(tiny()) as log,
        pytest.raises(UsageError, match="longer than"),
        answer(ENDLESS, [log], bounds=Bounds(0.2, "512MB", no_check)) as (_, batches),
    ):
        list(batches)


def test_a_query_ends_when_its_check_raises() -> None:
    class GoneError(Exception):
        """The client has gone."""

    def gone() -> None:
        raise GoneError

    with (
        logreel.open(tiny()) as log,
        pytest.raises(GoneError),
        answer(ENDLESS, [log], bounds=Bounds(300, "512MB", gone)) as (_, batches),
    ):
        list(batches)
    assert not [one for one in threading.enumerate() if one.name == "logreel-sql-bounds"]


def test_a_query_within_its_limits_is_answered() -> None:
    with (
        logreel.open(tiny()) as log,
        answer("SELECT 1 AS one", [log], bounds=Bounds(300, "512MB", no_check)) as (_, batches),
    ):
        assert [batch.to_pydict() for batch in batches] == [{"one": [1]}]
