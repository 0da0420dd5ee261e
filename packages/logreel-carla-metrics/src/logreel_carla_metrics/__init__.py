"""Run metrics of CARLA's scenario runner on recordings that logreel reads, without the simulator.

``run_metric`` executes the file of a user and passes it the recording (``runner_log``) and a map (``town_map``, read by
``opendrive``). Where the package ``carla`` is not installed, ``values`` stands in for it. ``command`` adds the command
``logreel carla metrics``. Of logreel, only what its public modules offer is used.
"""

from __future__ import annotations

from logreel_carla_metrics.run import BasicMetric, run_metric

__all__ = ["BasicMetric", "run_metric"]
