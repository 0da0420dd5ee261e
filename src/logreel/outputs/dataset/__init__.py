"""Training data from logs: episodes with features at a fixed rate, for LeRobot, Zarr, HDF5 and Lance."""

from __future__ import annotations

from logreel.outputs.dataset.building import DatasetWritten, dataset
from logreel.outputs.dataset.spec import Spec, read_spec

__all__ = ["DatasetWritten", "Spec", "dataset", "read_spec"]
