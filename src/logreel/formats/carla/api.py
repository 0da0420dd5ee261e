"""What ``logreel.carla`` offers: the simulator's queries, its replay, and its metrics, without the simulator."""

from __future__ import annotations

from logreel.formats.carla.blocked import blocked
from logreel.formats.carla.collisions import collisions
from logreel.formats.carla.info import info

__all__ = ["blocked", "collisions", "info"]
