"""Training data from logs: episodes with features at a fixed rate, for LeRobot, Zarr, HDF5 and Lance.

``spec`` reads what is wanted, ``planning`` finds the intervals of a log and takes values at regular times, ``building``
decodes pictures and writes what is not there yet. ``episode`` has what an episode holds, its statistics and records;
each target writes it with a ``Store``: ``lerobot``, and those in ``stores``. Called by the command line and by
programs, through ``dataset``.
"""

from __future__ import annotations

from logreel.outputs.dataset.building import DatasetWritten, dataset
from logreel.outputs.dataset.spec import Spec, read_spec

__all__ = ["DatasetWritten", "Spec", "dataset", "read_spec"]
