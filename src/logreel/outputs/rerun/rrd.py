"""Logs as Rerun recordings: content of lenses as archetypes, other numbers as curves."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from logreel.errors import DefinitionError, LogError, MissingDependencyError
from logreel.lenses import Transform, lenses
from logreel.lenses.vehicle import vehicle_poses
from logreel.log.log import Log
from logreel.outputs.job import Job
from logreel.outputs.rerun.archetypes import WHOLE, senders_of
from logreel.outputs.rerun.curves import number_fields, show_numbers
from logreel.outputs.rerun.scene import Scene

if TYPE_CHECKING:
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
