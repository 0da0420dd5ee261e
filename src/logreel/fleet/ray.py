"""Ray: tasks of a plan as a datasource of Ray Data, and an engine that writes datasets on a cluster."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from logreel.errors import LogError, MissingDependencyError, UsageError
from logreel.fleet.catalogue_row import catalogue_table, merged
from logreel.fleet.jobs import TRIES, Job, Result, do_job
from logreel.fleet.plan_table import ArrowCondition, PlanTable
from logreel.fleet.plans import Plan, Task
from logreel.fleet.source_files import error_text
from logreel.fleet.topic_schema import TIME_NS

try:
    import ray
    from ray.data import Datasource, ReadTask
    from ray.data.block import BlockMetadata
    from ray.exceptions import RayError
except ImportError as error:
    raise MissingDependencyError("ray", "ray") from error

#: Jobs under way for each processor of the cluster.
AHEAD = 2
#: Seconds for a cluster to accept a connection.
WAIT = 10.0


def datasource(plan: Plan, *, rows: str = "messages") -> LogDatasource:
    """Return a plan as a datasource: ``ray.data.read_datasource(datasource(plan))``.

    rows  ``messages``: a row per message, with the columns of ``Task.read``, those of all topics together, and
          ``topic``. ``logs``: a row per log, that of the catalogue, for which all messages of the plan are read

    Columns that are selected, and conditions of filters, are applied where the logs are read: only the fields that are
    needed are decoded, and only messages whose ``time_ns`` can meet the conditions. Opens each log once to know the
    columns. Raises UsageError for other *rows*, and for messages of a plan of which no log can be decoded.
    """
    if rows not in ("messages", "logs"):
        raise UsageError(f"rows are 'messages' or 'logs', not {rows!r}")
    return LogDatasource(plan, rows == "logs")


class LogDatasource(Datasource):  # type: ignore[misc]
    """A plan as a datasource of Ray Data; from ``datasource``."""

    def __init__(self, plan: Plan, logs: bool) -> None:
        super().__init__()
        self._projection_map: dict[str, str] | None = None
        self._plan, self._table = plan, None if logs else PlanTable(plan)
        self._schema = catalogue_table([]).schema if self._table is None else self._table.schema

    def get_name(self) -> str:
        """Return the name that plans of Ray show."""
        return "logreel"

    def estimate_inmemory_data_size(self) -> int | None:
        """Return the payload bytes of the plan."""
        return sum(task.bytes for task in self._plan)

    def supports_projection_pushdown(self) -> bool:
        """Return True for messages: only the fields that are needed are decoded."""
        return self._table is not None

    def supports_predicate_pushdown(self) -> bool:
        """Return True for messages: conditions are applied where the logs are read."""
        return self._table is not None

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[Any]:
        """Return a ReadTask per task of the plan, or per log; *parallelism* is not used: the plan decides."""
        names = self._get_data_columns()
        predicate = self.get_current_predicate()
        condition = None
        if predicate is not None and self._table is not None:
            condition = ArrowCondition(predicate.to_pyarrow(), self._table.schema)
        if names == []:
            # A block without columns has no number of rows, which ``count`` asks for.
            names = [TIME_NS]
        wanted = self._schema if names is None else pa.schema([self._schema.field(name) for name in names])
        groups: dict[Any, list[Task]] = {}
        for n, task in enumerate(self._plan):
            groups.setdefault(task.path if self._table is None else n, []).append(task)
        read_tasks = []
        for tasks in groups.values():
            size = sum(task.bytes for task in tasks)
            about = BlockMetadata(
                num_rows=None, size_bytes=size, input_files=[tasks[0].path], exec_stats=None
            )
            call = _Call(tasks, self._table, wanted, condition)
            read_tasks.append(ReadTask(call, about, schema=wanted, per_task_row_limit=per_task_row_limit))
        return read_tasks


class _Call:
    """Reads tasks as blocks; sent to the processes of the cluster."""

    def __init__(
        self, tasks: Sequence[Task], table: PlanTable | None, wanted: pa.Schema, condition: Any
    ) -> None:
        # The other tasks of the plan stay where they are.
        self.tasks, self.table = tasks, None if table is None else table.without_tasks()
        self.wanted, self.condition = wanted, condition

    def __call__(self) -> Iterator[pa.Table]:
        """Yield blocks of bounded size, one without rows if there are none."""
        if self.table is None:
            yield self._log()
            return
        yielded = False
        for task in self.tasks:
            for block in self.table.read(task, self.wanted.names, self.condition):
                yielded = True
                yield block
        if not yielded:
            yield self.wanted.empty_table()

    def _log(self) -> pa.Table:
        rows = []
        for task in self.tasks:
            reader = task.read()
            for _ in reader:
                pass
            rows.append(reader.row)
        return catalogue_table([merged(rows)])


class RayEngine:
    """Does the jobs of ``ingest`` on a Ray cluster; all machines need the logs and the dataset at the same paths.

    workers  jobs at once; None: as many as the cluster has processors

    Uses the cluster that ``ray.init`` has connected to, that ``RAY_ADDRESS`` names, or that runs on this machine; else
    starts one on this machine. Raises LogError if there is no cluster at that address.
    """

    name = "ray"

    def __init__(self, workers: int | None = None) -> None:
        self._owned = not ray.is_initialized()
        if self._owned:
            _connect(workers)
        self.workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Result]]:
        """Yield each job with its result, in order of completion; see ``LocalEngine.run``."""
        do = ray.remote(max_retries=TRIES - 1)(_do)
        source, under_way = iter(jobs), dict[Any, Job]()
        try:
            while True:
                while len(under_way) < self.workers * AHEAD and (job := next(source, None)) is not None:
                    under_way[do.remote(job)] = job
                if not under_way:
                    return
                (done,), _ = ray.wait(list(under_way), num_returns=1)
                job = under_way.pop(done)
                try:
                    result = ray.get(done)
                except RayError as error:
                    result = {"error": f"its process died {TRIES} times: {type(error).__name__}"}
                yield job, result
        finally:
            for reference in under_way:
                ray.cancel(reference, force=True)

    def close(self) -> None:
        """Stop the cluster if this engine has started it."""
        if self._owned:
            ray.shutdown()


def _connect(workers: int | None) -> None:
    """Connect to the cluster that there is, else start one with that many processors."""
    address = os.environ.get("RAY_ADDRESS", "")
    host, _, port = address.rpartition(":")
    if "/" not in address and port.isdigit():
        # Ray itself waits for minutes.
        try:
            socket.create_connection((host.strip("[]"), int(port)), WAIT).close()
        except OSError as error:
            raise LogError(f"no cluster of Ray answers at {address}: {error_text(error)}") from error
    options = {"log_to_driver": False, "include_dashboard": False}
    try:
        try:
            ray.init(num_cpus=workers, **options)
        except ValueError:
            # A cluster that exists has the number of processors that it has.
            ray.init(**options)
    except (ConnectionError, ValueError, RuntimeError, RayError) as error:
        raise LogError(f"no cluster of Ray can be reached: {error}") from error


def _do(job: Job) -> Result:
    try:
        return do_job(job)
    except Exception as error:
        return {"error": error_text(error)}
