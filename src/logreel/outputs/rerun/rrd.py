"""Logs as Rerun recordings: content of lenses as archetypes, other numbers as curves."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from logreel.errors import DefinitionError, LogError, MissingDependencyError
from logreel.io.arrays import F64
from logreel.layout.arrow_arrays import as_fixed_list, as_struct
from logreel.layout.nodes import FixedArray, Node, Scalar, Struct
from logreel.lenses import Transform, lenses
from logreel.lenses.base import times_of
from logreel.lenses.vehicle import vehicle_poses
from logreel.log.log import Log
from logreel.log.tables import DENSE, as_numpy, batches
from logreel.ops.query.record_batches import rows_per_batch
from logreel.outputs.job import Job
from logreel.outputs.rerun.archetypes import WHOLE, senders_of
from logreel.outputs.rerun.scene import Scene

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.log.log import Channel


@dataclass(frozen=True, slots=True)
class Place:
    """Identity of a recording in a viewer: application and recording id, and a prefix of all entity paths."""

    application: str = "logreel"
    recording: str | None = None
    prefix: str = ""


def write(out: IO[bytes], job: Job) -> None:
    """Write all channels of *job* as a recording with the timelines ``time`` and ``count``.

    Positions, poses, transforms, pictures, clouds, scans, log lines and actors become archetypes of Rerun; numeric
    fields of fixed size become curves. Needs ``logreel[rerun]``.
    """
    record(job, Place(), lambda recording: recording.save(out.name))


def stream(log: Log, place: Place) -> list[str]:
    """Write a whole log to standard output; return a sentence for each thing that could not be sent."""
    job = Job(log, [ch for ch in log.channels.values() if not ch.reserved or len(ch)])
    record(job, place, lambda recording: recording.stdout())
    return job.skipped


def record(job: Job, place: Place, sink: Callable[[Any], None]) -> None:
    """Send *job* to a RecordingStream, which *sink* connects to its destination."""
    recording = recording_of(place)
    sink(recording)
    try:
        recording.send_recording_name(os.path.basename(job.log.name))
        scene = Scene(recording, job, place.prefix, has_frames(job))
        for ch in job.channels:
            send_channel(scene, ch)
    finally:
        recording.disconnect()
    if job.skipped and not job.rows:
        raise LogError(f"nothing could be written: {job.skipped[0]}", path=job.log.name)


def recording_of(place: Place) -> Any:
    """Return a RecordingStream without destination; raises MissingDependencyError without ``logreel[rerun]``."""
    try:
        import rerun
    except ImportError as error:
        raise MissingDependencyError("rerun-sdk", "rerun") from error
    name = place.recording or str(uuid.uuid4())
    return rerun.RecordingStream(place.application, recording_id=name, send_properties=False)


def send_channel(scene: Scene, ch: Channel) -> None:
    """Send the messages of *ch*; report skipped ones to *scene.job*."""
    job, before = scene.job, scene.job.done
    try:
        senders = senders_of(ch)
        fields = [] if any(send in WHOLE for send, _ in senders) else number_fields(ch)
        rows = max((send(scene, ch, lens) for send, lens in senders), default=0)
        if fields:
            rows = max(rows, show_numbers(scene, ch, fields))
    except DefinitionError as error:
        job.skipped.append(f"channel {ch.topic!r} was left out: {error.text}")
    else:
        if rows:
            job.rows[ch.topic] = rows
        if not senders and not fields and len(ch):
            job.notes.append(f"channel {ch.topic!r} holds nothing that Rerun shows")
    job.advance(max(0, before + len(ch) - job.done))
    scene.flush()


def has_frames(job: Job) -> bool:
    """Return whether any channel has transforms between named frames."""
    named = any(isinstance(lens, Transform) and lens.child for ch in job.channels for lens in lenses(ch))
    return named or bool(vehicle_poses(job.log))


#: Maximum length of arrays that become curves.
_MOST = 64


def number_fields(ch: Channel) -> list[str]:
    """Return the fields of *ch* with numbers, also in structs and arrays of fixed size."""
    return [f.name for f in ch.layout.record.visible() if _has_numbers(f.node)]


def show_numbers(scene: Scene, ch: Channel, fields: list[str]) -> int:
    """Send the numbers of these *fields*; return the number of rows."""
    import rerun

    done = 0
    for batch in batches(ch, rows_per_batch(ch), fields, scene.job.start, scene.job.end, DENSE):
        times = times_of(batch)
        for name, column in zip(fields, batch.columns[1:], strict=True):
            for path, values in _curves((name,), column):
                scene.send(scene.path(ch, *path), times, done, rerun.Scalars.columns(scalars=values))
        done += len(batch)
        scene.job.advance(len(batch))
        scene.flush()
    return done


def _has_numbers(node: Node) -> bool:
    if isinstance(node, Struct):
        return any(_has_numbers(f.node) for f in node.visible())
    if isinstance(node, FixedArray):
        return node.count <= _MOST and _has_numbers(node.item)
    return isinstance(node, Scalar) and node.type != "char"


def _curves(path: tuple[str, ...], array: pa.Array[Any]) -> Iterator[tuple[tuple[str, ...], F64]]:
    """Yield path and values of all numbers in *array*: float64[n] or [n, k]."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_struct(kind):
        for i, child in enumerate(as_struct(array).flatten()):
            yield from _curves((*path, kind.field(i).name), child)
    elif pa.types.is_fixed_size_list(kind) and kind.list_size <= _MOST:
        if _is_number(kind.value_type):
            yield path, _values(as_fixed_list(array).flatten()).reshape(len(array), kind.list_size)
        else:
            for i in range(kind.list_size):
                yield from _curves((*path[:-1], f"{path[-1]}[{i}]"), pc.list_element(array, i))
    elif _is_number(kind):
        yield path, _values(array)


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _values(array: pa.Array[Any]) -> F64:
    # Signalling NaNs cause warnings.
    with np.errstate(invalid="ignore"):
        return as_numpy(array).astype(np.float64)
