"""The query ``show_recorder_collisions``: the beginnings of collisions of two actors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.formats.carla.actors import type_name
from logreel.formats.carla.columns import Columns
from logreel.formats.carla.simulator.known_actors import KnownActors, recording_summary
from logreel.formats.carla.simulator.printing import closing, number, opening, padded
from logreel.io.arrays import I64
from logreel.registry.commands import Answer

if TYPE_CHECKING:
    from logreel.log.log import Log

#: Letter of each type of actors: as the simulator prints them, with signs as heroes and sensors as any; and distinct.
PRINTED, DISTINCT = "ovwtha", "ovwtsn"


def collisions(log: Log, type1: str = "a", type2: str = "a", correct: bool = False) -> Answer:
    """List the beginnings of collisions, as the simulator's client does.

    type1, type2  kinds of the two actors: ``a`` any, ``h`` hero, ``o`` other, ``v`` vehicle, ``w`` walker, ``t``
                  traffic light; with *correct* also ``s`` sign and ``n`` sensor
    correct       True: without the simulator's faults: signs and sensors have letters, ``h`` selects only heroes,
                  actors keep their descriptions, times are not rounded

    Raises UsageError for another letter.
    """
    letters = DISTINCT if correct else PRINTED
    for kind in (type1, type2):
        if len(kind) != 1 or kind not in letters + "ah":
            raise UsageError(
                f"kinds of actors are the letters {' '.join(sorted({*letters, *'ah'}))}, not {kind!r}"
            )
    columns = Columns(log)
    known = KnownActors(columns, correct)
    frame_row = columns.frame_rows("collisions")
    sides = [_Side(columns, known, frame_row, n, letters) for n in (1, 2)]
    fits = sides[0].fits(type1, correct) & sides[1].fits(type2, correct)
    rows = np.flatnonzero(fits)
    rows = rows[_is_beginning(frame_row[rows], sides[0].ids[rows], sides[1].ids[rows])]
    about = recording_summary(columns)
    found: dict[str, Any] = {
        "time_ns": columns.times(frame_row[rows]),
        "frame": columns("collisions", "frame")[rows],
        "collision_id": columns("collisions", "collision_id")[rows],
    }
    for n, side in enumerate(sides, 1):
        found |= {f"{name}{n}": values for name, values in side.columns(rows).items()}
    seconds = columns.elapsed[frame_row[rows]].tolist()
    codes = ["".join(pair) for pair in zip(sides[0].letters(rows), sides[1].letters(rows), strict=True)]

    def lines() -> Iterator[str]:
        yield from opening(about)
        yield f"{'Time':>8} {'Types':>6} {'Id':>6} {'Actor 1':<35} {'Id':>6} {'Actor 2':<35}"
        names = (found["id1"].tolist(), found["description1"], found["id2"].tolist(), found["description2"])
        for at, code, id1, name1, id2, name2 in zip(seconds, codes, *names, strict=True):
            time = number(at) if correct else f"{at:.0f}"
            yield f"{time:>8}   {code[0]} {code[1]}  {id1:>6} {padded(name1, 35)} {id2:>6} {padded(name2, 35)}"
        yield from closing(about, whole=bool(seconds) and not correct)

    return Answer("collisions", found, lines, about)


class _Side:
    """One of the two actors of every collision."""

    def __init__(self, columns: Columns, known: KnownActors, frame_row: I64, n: int, letters: str) -> None:
        self.ids = columns("collisions", f"actor{n}").astype(np.int64)
        self.hero: NDArray[np.bool_] = columns("collisions", f"actor{n}_is_hero").astype(bool)
        self._known, self._row = known, known.rows(self.ids, frame_row)
        self.types = known.types(self._row)
        self._table = np.array([*letters, "o"])

    def letters(self, rows: Any = slice(None)) -> list[str]:
        found: list[str] = self._table[np.minimum(self.types[rows], len(self._table) - 1)].tolist()
        return found

    def fits(self, kind: str, correct: bool) -> NDArray[np.bool_]:
        """Return bool[n]: True for actors of a kind."""
        if kind == "a":
            return np.ones(len(self.ids), bool)
        same: NDArray[np.bool_] = self._table[np.minimum(self.types, len(self._table) - 1)] == kind
        if kind == "h":
            return self.hero if correct else self.hero | same
        return same

    def columns(self, rows: I64) -> dict[str, Any]:
        return {
            "id": self.ids[rows],
            "type": [type_name(t) for t in self.types[rows].tolist()],
            "hero": self.hero[rows],
            "description": self._known.descriptions(self._row[rows]),
        }


def _is_beginning(frame_row: I64, first: I64, second: I64) -> NDArray[np.bool_]:
    """Return bool[n]: True for records of a pair that has no record in the frame before."""
    if not len(frame_row):
        return np.zeros(0, bool)
    pairs = np.unique(first << 32 | second, return_inverse=True)[1].astype(np.int64)
    key = frame_row * (int(pairs.max()) + 1) + pairs
    return ~np.isin(key - (int(pairs.max()) + 1), key)
