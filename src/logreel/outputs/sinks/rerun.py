"""Sink for Rerun: sends the content of ``convert x.rrd`` to a viewer during the replay."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from logreel.errors import LogError
from logreel.io.atomic_file import keep_sources
from logreel.log.source_files import inputs_of
from logreel.ops.query.record_batches import merge_intervals
from logreel.ops.replay import Sink
from logreel.outputs.registry import Job
from logreel.outputs.rerun import Entities, RerunTarget, has_frames, recording_of, send_channel

if TYPE_CHECKING:
    from logreel.io.arrays import I64
    from logreel.log.log import Channel, Message
    from logreel.ops.replay import PlayerControls, Run

#: Seconds between two batches to the viewer.
EVERY = 0.1


class Rerun(Sink):
    """Sends logs to the Rerun viewer as ``convert x.rrd`` would write them.

    url   URL of a running viewer; empty: start one
    save  path of a file to write instead

    The viewer keeps data, so intervals that are played again are not sent again.
    """

    batches = True
    follows = True

    def __init__(self, url: str = "", save: str = "") -> None:
        self._recording = recording_of(RerunTarget())
        self._url, self._save = url, save
        self._parts: list[_LogEntities] = []
        #: ns up to which messages were sent, and played; the messages between are sent next.
        self._sent = self._played = 0
        self._covered: list[tuple[int, int]] = []
        self._due = 0.0
        #: Of a growing log: times of the messages that are sent next, and the end of what was sent, by channel.
        self._pending: dict[Channel, tuple[int, int]] = {}
        self._sent_of: dict[Channel, int] = {}

    def open(self, player: PlayerControls) -> None:
        """Connect to the viewer, or start one."""
        if self._save:
            keep_sources(self._save, [name for log in player.logs for name in inputs_of(log)])
        self._player = player
        self._sent = self._played = player.end_time + 1 if player.rate < 0 else player.start_time
        try:
            if self._save:
                self._recording.save(self._save)
            elif self._url:
                self._recording.connect_grpc(self._url)
            else:
                self._recording.spawn()
        except Exception as error:
            raise LogError(f"Rerun cannot be reached: {error}") from error
        self._recording.send_recording_name(os.path.basename(player.logs[0].name))
        self.add_channels(player.channels)

    def add_channels(self, channels: Sequence[Channel]) -> None:
        """Prepare the entities of channels."""
        player = self._player
        for log in player.logs:
            channels_of_log = [ch for ch in channels if ch.log is log]
            if channels_of_log:
                clock = (
                    player.utc_offset is not None,
                    player.shift(channels_of_log[0]) + (player.utc_offset or 0),
                )
                job = Job(log, channels_of_log)
                self._parts.append(
                    _LogEntities(self._recording, job, clock, player.shift(channels_of_log[0]))
                )

    def message(self, message: Message) -> None:
        """Note a message of a growing log, which is sent soon; ignore messages of /clock."""
        if not self._player.grows:
            return
        ch, at = message.channel, message.time
        sent = self._sent_of.get(ch)
        if sent is not None and at < sent:
            # Its time was sent already, with other messages.
            self._send_channel(ch, at, at + 1)
            return
        first, last = self._pending.get(ch, (at, at))
        self._pending[ch] = min(first, at), max(last, at)
        if time.monotonic() >= self._due:
            self._send_pending()

    def _send_pending(self) -> None:
        """Send what was played of a growing log."""
        pending, self._pending = self._pending, {}
        for ch, (first, last) in pending.items():
            self._send_channel(ch, first, last + 1)
            self._sent_of[ch] = last + 1
        self._due = time.monotonic() + EVERY

    def _send_channel(self, ch: Channel, start: int, end: int) -> None:
        for part in self._parts:
            if ch in part.job.channels:
                part.send_between(start, end, [ch])

    def batch(self, run: Run) -> None:
        """Record the position, and send played messages every EVERY seconds."""
        first, last = int(run.time[0]), int(run.time[-1])
        if self._player.backwards:
            self._reach(last, last + 1)
            return
        if first < self._sent:
            # A time before the start of the replay: an implausible stamp.
            self._send(first, self._sent)
        self._reach(last + 1, last)

    def in_force(self, run: Run) -> None:
        """Send the latched messages at a position, with their original times."""
        for message in run.messages():
            shown = message.time, message.time + 1
            for part in self._parts:
                if message.channel.log is part.job.log:
                    for span in self._unsent(*shown):
                        part.send_between(*span, [message.channel])

    def moved(self, time: int) -> None:
        """Send what was played, and continue at the new position."""
        self.flush()
        self._sent = self._played = time + 1 if self._player.backwards else time

    def flush(self) -> None:
        """Send everything that was played."""
        if self._player.grows:
            self._send_pending()
            return
        self._send_up_to(self._played)

    def close(self) -> None:
        """Send the rest and disconnect; the viewer stays open."""
        try:
            self.flush()
        finally:
            self._recording.disconnect()
        for part in self._parts:
            self.skipped += dict.fromkeys(part.job.skipped)

    def _reach(self, played: int, end: int) -> None:
        """Record the position *played*; all messages up to *end* were played."""
        self._played = played
        if time.monotonic() >= self._due:
            self._send_up_to(end)
            self._due = time.monotonic() + EVERY

    def _send_up_to(self, place: int) -> None:
        self._send(min(self._sent, place), max(self._sent, place))
        self._sent = place

    def _send(self, start: int, end: int) -> None:
        for first, last in self._unsent(start, end):
            for part in self._parts:
                part.send_between(first, last, part.job.channels)
            self._covered.append((first, last))
        self._covered = merge_intervals(sorted(self._covered))

    def _unsent(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the intervals between *start* and *end* (ns) that were not sent yet."""
        for first, last in self._covered:
            if first >= end:
                break
            if start < first:
                yield start, first
            start = max(start, last)
        if start < end:
            yield start, end


class _LogEntities(Entities):
    """The Entities of one log, with row numbers that continue from one interval to the next."""

    def __init__(self, recording: Any, job: Job, clock: tuple[bool, int], shift: int) -> None:
        super().__init__(recording, job, "", has_frames(job), clock)
        self._shifted = shift
        self._rows: Counter[str] = Counter()
        self._before: Counter[str] = Counter()

    def send_between(self, start: int, end: int, channels: Iterable[Channel]) -> None:
        """Send the messages of *channels* with start <= time < end (ns of the replay)."""
        self.job.start, self.job.end = start - self._shifted, end - self._shifted
        self._before = self._rows.copy()
        for ch in channels:
            send_channel(self, ch)

    def send(self, path: str, times: I64, first: int, columns: Iterable[Any]) -> None:
        """Send rows of one entity, see Entities; *first* counts from the start of this interval."""
        first += self._before[path]
        super().send(path, times, first, columns)
        self._rows[path] = first + len(times)

    def fix(self, path: str, archetype: Any) -> None:
        """Do nothing: static content such as the line of a track is not known during a replay."""
