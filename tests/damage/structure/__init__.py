"""Fields and records of files of every format, found by plain walkers that share no code with the readers."""

from __future__ import annotations

from damage.structure.bddf import bddf, reseal
from damage.structure.carla import carla
from damage.structure.koblenz import koblenz
from damage.structure.mcap import mcap
from damage.structure.model import Stated, Structure
from damage.structure.rosbag import rosbag
from damage.structure.ulog import ulog

__all__ = ["Stated", "Structure", "bddf", "carla", "koblenz", "mcap", "reseal", "rosbag", "ulog"]
