"""Logs with shifted clocks."""

from __future__ import annotations

from dataclasses import replace

from logreel.log.log import Log
from logreel.log.scan import Attachment, Parameter


def shift_clock(log: Log, shift: int) -> Log:
    """Return *log* with *shift* ns added to start and end, and to the times of parameters and attachments.

    ``utc_offset`` is reduced by *shift*; if it becomes 0, the epoch becomes ``unix``. Messages keep their times: their
    writer adds the shift.
    """
    if not shift:
        return log

    def later(time: int | None) -> int | None:
        return None if time is None else time + shift

    def parameters() -> list[Parameter]:
        return [
            replace(
                parameter,
                changes=tuple(replace(change, time=change.time + shift) for change in parameter.changes),
            )
            for parameter in log.parameters.values()
        ]

    def attachments() -> list[Attachment]:
        return [replace(attachment, time=later(attachment.time)) for attachment in log.attachments.values()]

    offset = log.utc_offset
    return log.derive(
        bounds=lambda: (later(log.start), later(log.end)),
        parameters=parameters,
        attachments=attachments,
        utc_offset=lambda: None if offset is None else offset - shift,
        epoch="unix" if offset == shift else log.epoch,
    )
