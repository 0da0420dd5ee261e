"""Who takes part in a log of a simulator: actors, their life and their way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Actor:
    """One actor of a log.

    type         what it is, e.g. ``vehicle``
    description  what the simulator calls its model, e.g. ``vehicle.audi.tt``
    attributes   by name, as text
    start, end   ns of the first moment and of its removal; *end* None: it is there to the end of the log
    parent       the actor that it is attached to, or None
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
        """A ``pyarrow.Table`` with a row for each recorded position.

        Columns: time, frame, location, rotation, velocity, angular_velocity, acceleration. The metadata of each field
        tells its ``unit``, and under ``source`` whether it was recorded or worked out.
        """
        return self._trajectory()
