"""Ray: tasks of a plan as a datasource of Ray Data, and an engine that writes datasets on a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import ray
from ray.data import Datasource, ReadTask
from ray.data.block import BlockMetadata
from ray.exceptions import RayError

from logreel.errors import UsageError
from logreel.fleet.catalogue_row import catalogue_table, merged
from logreel.fleet.cut import error_text
from logreel.fleet.jobs import TRIES, Job, Result, do_job
from logreel.fleet.plans import Plan, Task
from logreel.fleet.task_reader import TaskReader
from logreel.fleet.topic_schema import HEAD, TopicSchema, union

TOPIC = "topic"
#: Jobs under way for each processor of the cluster.
AHEAD = 2


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
        self._plan, self._logs = plan, logs
        if logs:
            self._columns, self._schema = None, catalogue_table([]).schema
            return
        schemas = plan.schemas()
        if not schemas:
            raise UsageError("no log of the plan has messages that can be decoded")
        self._columns = union(schemas.values())
        plain = [field.remove_metadata() for field in self._columns.schema]
        self._schema = pa.schema([*plain, pa.field(TOPIC, pa.string())])

    def get_name(self) -> str:
        """Return the name that plans of Ray show."""
        return "logreel"

    def estimate_inmemory_data_size(self) -> int | None:
        """Return the payload bytes of the plan."""
        return sum(task.bytes for task in self._plan)

    def supports_projection_pushdown(self) -> bool:
        """Return True for messages: only the fields that are needed are decoded."""
        return not self._logs

    def supports_predicate_pushdown(self) -> bool:
        """Return True for messages: conditions are applied where the logs are read."""
        return not self._logs

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[Any]:
        """Return a ReadTask per task of the plan, or per log; *parallelism* is not used: the plan decides."""
        names = self._get_data_columns()
        predicate = self.get_current_predicate()
        condition = None if predicate is None else predicate.to_pyarrow()
        if names == []:
            # A block without columns has no number of rows, which ``count`` asks for.
            names = [HEAD[1].name]
        wanted = self._schema if names is None else pa.schema([self._schema.field(name) for name in names])
        groups: dict[Any, list[Task]] = {}
        for n, task in enumerate(self._plan):
            groups.setdefault(task.path if self._logs else n, []).append(task)
        found = []
        for tasks in groups.values():
            size = sum(task.bytes for task in tasks)
            about = BlockMetadata(
                num_rows=None, size_bytes=size, input_files=[tasks[0].path], exec_stats=None
            )
            call = _Call(tasks, self._schema, wanted, self._columns, condition)
            found.append(ReadTask(call, about, schema=wanted, per_task_row_limit=per_task_row_limit))
        return found


class _Call:
    """Reads tasks as blocks; sent to the processes of the cluster."""

    def __init__(
        self,
        tasks: Sequence[Task],
        schema: pa.Schema,
        wanted: pa.Schema,
        columns: TopicSchema | None,
        condition: Any,
    ) -> None:
        self.tasks, self.schema, self.wanted = tasks, schema, wanted
        self.columns, self.condition = columns, condition

    def __call__(self) -> Iterator[pa.Table]:
        """Yield blocks of bounded size, one without rows if there are none."""
        if self.columns is None:
            yield self._log()
            return
        yielded = False
        for task in self.tasks:
            for block in self._blocks(task, self.columns):
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

    def _blocks(self, task: Task, columns: TopicSchema) -> Iterator[pa.Table]:
        from logreel.ops.query.prune import referenced_columns

        names = set(self.wanted.names)
        if self.condition is not None:
            names.update(referenced_columns(self.condition, self.schema, ()))
        schemas = {topic: TopicSchema(topic, columns.schema) for topic in task.topics}
        # A column is needed to count the rows.
        needed = [name for name in columns.schema.names if name in names] or [HEAD[1].name]
        reader = TaskReader(task, needed, False, schemas, self.condition)
        for batch in reader:
            topic = batch.schema.metadata[b"topic"].decode("utf-8", "replace")
            arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
            arrays[TOPIC] = pa.repeat(pa.scalar(topic, pa.string()), batch.num_rows)
            fields = [field for field in self.schema if field.name in arrays]
            table = pa.Table.from_arrays([arrays[f.name] for f in fields], schema=pa.schema(fields))
            if self.condition is not None:
                table = table.filter(self.condition)
            if table.num_rows:
                yield table.select(self.wanted.names)
        if reader.error is not None:
            # Ray tries again, or fails; a block that is silently short would be worse.
            raise reader.error


class RayEngine:
    """Does the jobs of ``ingest`` on a Ray cluster; all machines need the logs and the dataset at the same paths.

    workers  jobs at once; None: as many as the cluster has processors

    Uses the cluster that ``ray.init`` has connected to; else starts one on this machine.
    """

    name = "ray"

    def __init__(self, workers: int | None = None) -> None:
        self._owned = not ray.is_initialized()
        if self._owned:
            ray.init(num_cpus=workers, log_to_driver=False, include_dashboard=False)
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


def _do(job: Job) -> Result:
    try:
        return do_job(job)
    except Exception as error:
        return {"error": error_text(error)}
