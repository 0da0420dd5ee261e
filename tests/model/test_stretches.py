"""Tables of large files, which are walked stretch by stretch for all channels at once."""

from __future__ import annotations

import pytest

import logreel
from logreel.formats.carla.sample import Builder
from logreel.model import tables


def large() -> bytes:
    """Some blocks of the index, with records of several kinds here and there."""
    out = Builder("0.9.14")
    for i in range(60):
        frame = out.frame(0.05 * i).packet(101, bytes([i]) * 50_000)
        for actor in range(i % 4):
            frame.position(actor, (i, actor, 0.5)).vehicle(actor, steer=i / 100)
    return out.bytes()


@pytest.mark.parametrize("many", [64, 3])
def test_stretches_give_the_same_tables(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    data = large()
    whole = logreel.open(data).tables()
    monkeypatch.setattr(tables, "STRETCH", 600_000)
    monkeypatch.setattr(tables, "MANY", many)
    parts = logreel.open(data).tables()
    assert parts.keys() == whole.keys()
    assert parts["position"].column(0).num_chunks == (1 if many == 3 else 4)
    for topic, table in whole.items():
        assert parts[topic].equals(table), topic
        assert table.num_rows or topic not in ("position", "vehicle_control", "packet_101"), topic
