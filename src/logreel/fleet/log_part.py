"""What a reader of tasks needs to know of one; the Task of a plan is this."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from logreel.fleet.source_files import Fingerprint
from logreel.registry.open import open_one_of_several

if TYPE_CHECKING:
    from logreel.log.log import Log


class LogPart(Protocol):
    """Some topics of a log in a window of time; the attributes are those of ``Task``."""

    @property
    def path(self) -> str:
        """Absolute path of the log."""

    @property
    def log(self) -> str:
        """Key of the log in a dataset; empty: it is known by its path."""

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
    def definitions(self) -> tuple[str, ...]:
        """Absolute paths of message definitions, for logs without them."""

    @property
    def types(self) -> tuple[str, ...]:
        """Types of topics, each ``TOPIC=TYPE``, for logs without them."""

    @property
    def start(self) -> int | None:
        """First time, ns of the log's clock; None: no bound."""

    @property
    def end(self) -> int | None:
        """First time that is not wanted any more."""

    @property
    def error(self) -> str:
        """Why the log cannot be read; empty if it can."""


def open_part(path: str, definitions: Sequence[str], types: Sequence[str]) -> Log:
    """Open a log of a fleet; types of topics that only other logs have are no error. Raises as ``open_log``."""
    pairs = (one.rpartition("=") for one in types)
    return open_one_of_several(path, definitions=[*definitions, {topic: kind for topic, _, kind in pairs}])
