"""Rows of equal duration in ``blocked`` are in the order of the simulator's hash map; names of the weather."""

from __future__ import annotations

import random

import pytest

import logreel
from logreel.formats.carla.simulator import api as carla
from logreel.formats.carla.simulator.queries import BUCKET_COUNTS, UnorderedIds
from support.samples.carla.builder import Builder


class Chain:
    """Model of the map of libstdc++: one linked list; each bucket remembers the node before its first one."""

    def __init__(self) -> None:
        self.chain: list[int] = []
        self.sizes = list(BUCKET_COUNTS)

    def insert(self, number: int) -> None:
        size = self.sizes[0]
        for at, other in enumerate(self.chain):
            if other % size == number % size:
                self.chain.insert(at, number)
                return
        self.chain.insert(0, number)

    def add(self, number: int) -> None:
        if number in self.chain:
            return
        if len(self.chain) == self.sizes[0] or self.sizes[0] == 1:
            self.sizes.pop(0)
            known, self.chain = self.chain, []
            for other in known:
                self.insert(other)
        self.insert(number)


@pytest.mark.parametrize("seed", range(20))
def test_ids_are_in_the_order_of_libstdcpp_unordered_map(seed: int) -> None:
    rng = random.Random(seed)
    fast, plain = UnorderedIds(), Chain()
    for _ in range(rng.choice((5, 13, 14, 40, 300))):
        number = rng.randrange(rng.choice((60, 500, 1 << 32)))
        if rng.random() < 0.85:
            fast.add(number)
            plain.add(number)
        else:
            fast.remove(number)
            plain.chain = [other for other in plain.chain if other != number]
    assert list(fast) == plain.chain


def test_order_equals_the_output_of_a_compiled_program() -> None:
    """Orders printed by a program compiled with g++ 12 on Linux."""
    made = UnorderedIds()
    for number in (86, 259, 100, 101, 113, 7, 8, 20, 21, 33, 34, 46, 47):
        made.add(number)
    assert list(made) == PRINTED[0]
    made.add(60)
    made.remove(100)
    assert list(made) == PRINTED[1]


def test_stays_of_equal_duration_are_in_the_order_of_the_map() -> None:
    ids = (86, 259, 100, 101, 113, 7, 8, 20, 21, 33, 34, 46, 47)
    out = Builder()
    for i in range(5):
        frame = out.frame(float(i))
        for actor in ids:
            if i == 0:
                frame.add(actor, 1, "vehicle.a")
            frame.position(actor, (1.0, 0.0, 0.0))
    answer = carla.blocked(logreel.open(out.bytes()), 1, 10)
    assert [row["id"] for row in answer.rows()] == PRINTED[0]
    assert {row["duration_s"] for row in answer.rows()} == {3.0}


def test_weather_is_printed_with_the_names_of_the_simulator() -> None:
    out = Builder("2026", date=0)
    out.frame(0.0).weather(*range(14))
    text = carla.info(logreel.open(out.bytes())).text()
    assert (
        "  Cloudiness: 0 Precipitation: 1 PrecipitationDeposits: 2 WindIntensity: 3 SunAzimuthAngle: 4 "
        "SunAltitudeAngle: 5 FogDensity: 6 FogDistance: 7 FogFalloff: 8 Wetness: 9 ScatteringIntensity: 10 "
        "MieScatteringScale: 11 RayleighScatteringScale: 12 DustStorm: 13"
    ) in text.splitlines()


PRINTED = (
    [46, 33, 20, 7, 101, 113, 100, 259, 47, 34, 21, 8, 86],
    [60, 86, 8, 21, 34, 47, 259, 113, 101, 7, 20, 33, 46],
)
