"""What can be added to logreel, and the opening of logs with it.

``plugins.Registry`` is the registry of formats, definition languages, lenses, detectors, outputs, sinks and sources, of
logreel and of other packages. ``format.Format`` describes a log format; ``registry`` finds that of a file, ``open``
opens it, ``open_parts`` several files as one log, and ``index_cache`` keeps what was read for the next time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logreel.limits import FixedLimit


def fixed_limits() -> Iterator[FixedLimit]:
    """Yield the bounds of this room that no option raises."""
    from logreel.limits import FixedLimit
    from logreel.registry import index_cache

    yield FixedLimit(
        "bytes of an index file, in parts of its log",
        index_cache.MAX_TIMES,
        "a sparse file costs nothing to make, reading it does",
        "the index file is ignored",
    )
