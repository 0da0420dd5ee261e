"""Continuation of a recording: its frames stay, and numbers, durations and times go on after the last one."""

from __future__ import annotations

from logreel.errors import LogError, UsageError
from logreel.formats.carla.clock import Frames
from logreel.formats.carla.records import HEAD
from logreel.formats.carla.scan_builder import ScanBuilder
from logreel.formats.carla.writer import CarlaWriter, LastFrame
from logreel.io.append_file import Appender
from logreel.log.log import Log

#: Ns between frames where the recording does not say.
USUAL = 50_000_000


def append(
    out: Appender,
    log: Log,
    *,
    version: int | None = None,
    map: str | None = None,
    date: int | None = None,
    engine: str | None = None,
    wheel_bytes: int = 48,
    shift: int | None = None,
) -> CarlaWriter:
    """Return the writer that continues *log*; it ends the last frame only when a new one begins.

    version, map, date, engine  must be those of the recording; None: these
    wheel_bytes                 as for a new recording
    shift                       ns added to all times; None: 0, but if the first message is before the last frame, so
                                many that it follows this frame

    Raises LogError for a recording with damage of any kind: only its recovery finds what it contains.
    """
    state: ScanBuilder = log.format_state
    if log.problems:
        raise LogError(
            log.problems[0].text,
            path=log.name,
            hint="make a complete recording of it by logreel.recover, and append to that",
        )
    header, metadata = state.found.header, log.metadata
    own = {
        "version": header.version,
        "map": header.map,
        "date": metadata.get("date_unix", 0),
        "engine": metadata["engine"],
    }
    for (name, due), stated in zip(own.items(), (version, map, date, engine), strict=True):
        if stated not in (None, due):
            raise UsageError(f"{name} {stated!r}; the recording has {due!r}", path=log.name)
    if shift is not None and not CarlaWriter.earliest <= shift <= CarlaWriter.latest:
        raise UsageError(
            f"shift {shift} ns; times of a recording are {CarlaWriter.earliest} to {CarlaWriter.latest}"
        )
    writer = CarlaWriter(out, **own, wheel_bytes=wheel_bytes)
    # The end of the last frame is written again, after packets that still belong to it.
    has_end = len(state.found.ends) and int(state.found.ends[-1]) == state.source.size - HEAD
    out.keep_old(state.source.size - HEAD * bool(has_end))
    writer.go_on(_last_frame(state.frames), _frame_time(state.frames), shift)
    writer.are_checked = True
    writer.continue_channels(log)
    writer.are_checked = False
    return writer


def _last_frame(frames: Frames) -> LastFrame | None:
    """Return the last frame of a recording, None if it has no frames."""
    if not len(frames.time):
        return None
    number, time = int(frames.number[-1]), int(frames.time[-1])
    # Its duration is written when the next frame begins, as the simulator does.
    return LastFrame(number, number, time, float(frames.elapsed[-1]), True, int(frames.start[-1]))


def _frame_time(frames: Frames) -> int:
    """Return the ns from the last frame to the next one: its duration, else that of the frame before, else 50 ms."""
    usual = [seconds for seconds in frames.duration[-2:].tolist() if seconds > 0]
    return round(usual[-1] * 1e9) if usual else USUAL
