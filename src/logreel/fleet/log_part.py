"""What a reader of tasks needs to know of one; the Task of a plan is this."""

from __future__ import annotations

from typing import Protocol

from logreel.fleet.source_files import Fingerprint


class LogPart(Protocol):
    """Some topics of a log in a window of time; the attributes are those of ``Task``."""

    @property
    def path(self) -> str:
        """Absolute path of the log."""

    @property
    def fingerprint(self) -> Fingerprint | None:
        """Fingerprint of the file as it has to be; None: not known."""

    @property
    def topics(self) -> tuple[str, ...]:
        """Names of channels."""

    @property
    def fields(self) -> tuple[str, ...] | None:
        """Paths of fields; None: all."""

    @property
    def start(self) -> int | None:
        """First time, ns of the log's clock; None: no bound."""

    @property
    def end(self) -> int | None:
        """First time that is not wanted any more."""

    @property
    def error(self) -> str:
        """Why the log cannot be read; empty if it can."""
