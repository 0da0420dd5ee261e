"""Many logs at once: a plan of tasks for engines that exist, and a dataset of Parquet with a catalogue.

``plans`` divides logs into tasks, ``task_reader`` reads one, ``ingesting`` has them written by ``jobs`` on an engine
(``local`` with ``worker``, ``ray``) into a ``dataset``. ``upkeep`` reports, verifies and removes, ``sql`` queries.
``plan_table``, ``daft`` and ``ray`` let engines read plans themselves. Users and ``cli`` call what is named here.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logreel.fleet.catalogue_row import CatalogueRow
    from logreel.fleet.dataset import Dataset
    from logreel.fleet.ingesting import Ingested, ingest
    from logreel.fleet.local import LocalEngine
    from logreel.fleet.plan_table import PlanTable, scan_polars
    from logreel.fleet.plans import Plan, Task, plan
    from logreel.fleet.sql import query
    from logreel.fleet.upkeep import FleetReport, Removed, Status, Verified, remove, report, status, verify

#: No module of this package has one of these names: importing it would put it in the place of the function.
_LAZY = {
    "CatalogueRow": "logreel.fleet.catalogue_row",
    "Dataset": "logreel.fleet.dataset",
    "FleetReport": "logreel.fleet.upkeep",
    "Ingested": "logreel.fleet.ingesting",
    "LocalEngine": "logreel.fleet.local",
    "Plan": "logreel.fleet.plans",
    "PlanTable": "logreel.fleet.plan_table",
    "Removed": "logreel.fleet.upkeep",
    "Status": "logreel.fleet.upkeep",
    "Task": "logreel.fleet.plans",
    "Verified": "logreel.fleet.upkeep",
    "ingest": "logreel.fleet.ingesting",
    "plan": "logreel.fleet.plans",
    "query": "logreel.fleet.sql",
    "remove": "logreel.fleet.upkeep",
    "report": "logreel.fleet.upkeep",
    "scan_polars": "logreel.fleet.plan_table",
    "status": "logreel.fleet.upkeep",
    "verify": "logreel.fleet.upkeep",
}
#: Modules that need an engine, as attributes: ``logreel.fleet.ray.datasource`` works after ``import logreel``.
_ENGINES = ("daft", "ray")

__all__ = [
    "CatalogueRow",
    "Dataset",
    "FleetReport",
    "Ingested",
    "LocalEngine",
    "Plan",
    "PlanTable",
    "Removed",
    "Status",
    "Task",
    "Verified",
    "ingest",
    "plan",
    "query",
    "remove",
    "report",
    "scan_polars",
    "status",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _ENGINES:
        return importlib.import_module(f"logreel.fleet.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module 'logreel.fleet' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
