"""Base class of metrics, with the interface of the scenario runner's class of this name."""

from __future__ import annotations

from typing import Any


class BasicMetric:
    """A metric: a subclass implements ``_create_metric``, which is called when the metric is made.

    town_map  map of the town, as ``carla.Map``
    log       the recording, as the scenario runner's ``MetricsLog``
    criteria  content of the criteria file, or None

    result  what ``_create_metric`` returned
    """

    def __init__(self, town_map: Any, log: Any, criteria: Any = None) -> None:
        self.result = self._create_metric(town_map, log, criteria)

    def _create_metric(self, town_map: Any, log: Any, criteria: Any) -> Any:
        """Compute the metric; a subclass must implement this method."""
        raise NotImplementedError(f"{type(self).__name__} has no method _create_metric")
