"""Many logs at once: a plan of tasks for engines that exist, and a dataset of Parquet with a catalogue."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logreel.fleet.catalogue_row import CatalogueRow
    from logreel.fleet.dataset import Dataset
    from logreel.fleet.ingesting import Ingested, ingest
    from logreel.fleet.local import LocalEngine
    from logreel.fleet.plans import Plan, Task, plan

_LAZY = {
    "plan": ("logreel.fleet.plans", "plan"),
    "Plan": ("logreel.fleet.plans", "Plan"),
    "Task": ("logreel.fleet.plans", "Task"),
    "Dataset": ("logreel.fleet.dataset", "Dataset"),
    "Ingested": ("logreel.fleet.ingesting", "Ingested"),
    "ingest": ("logreel.fleet.ingesting", "ingest"),
    "LocalEngine": ("logreel.fleet.local", "LocalEngine"),
    "CatalogueRow": ("logreel.fleet.catalogue_row", "CatalogueRow"),
}

__all__ = ["CatalogueRow", "Dataset", "Ingested", "LocalEngine", "Plan", "Task", "ingest", "plan"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'logreel.fleet' has no attribute {name!r}")
    module, attribute = _LAZY[name]
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
