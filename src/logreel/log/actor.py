"""Actors of a simulation, with their lifetime and trajectory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Actor:
    """One actor of a log.

    id           number of the actor in the log
    type         kind of actor, such as ``vehicle``
    description  model name in the simulator, such as ``vehicle.audi.tt``
    attributes   text by name
    start, end   ns at which it appears and is removed; *end* None: it exists until the end of the log
    parent       id of the actor that it is attached to, or None
    """

    id: int
    type: str
    description: str
    attributes: Mapping[str, str]
    start: int
    end: int | None
    parent: int | None
    _trajectory: Callable[[], pa.Table] = field(repr=False, compare=False)

    def trajectory(self) -> pa.Table:
        """Return a ``pyarrow.Table`` with one row per recorded position.

        Columns: time, frame, location, rotation, velocity, angular_velocity, acceleration. The metadata of each field
        contain its ``unit``, and under ``source`` whether it was recorded or computed.
        """
        return self._trajectory()
