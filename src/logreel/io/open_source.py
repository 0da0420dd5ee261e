"""Open what a caller names as a log: a local Source, or a RemoteSource for an address."""

from __future__ import annotations

import os

from logreel.io.remote.address import is_url
from logreel.io.source import Readable, Source
from logreel.limits import Limits


def open_source(what: Readable | Source, guard: bool = True, limits: Limits | None = None) -> Source:
    """Return a Source of *what*: what ``Source.open`` takes, or an address such as ``s3://bucket/key``.

    limits  of a remote log; None: those of the environment

    Raises LogError for an address that cannot be read, MissingDependencyError without obstore.
    """
    text = os.fspath(what) if isinstance(what, (str, os.PathLike)) else None
    if not is_url(text):
        return Source.open(what, guard)
    # Only for addresses, since it loads obstore.
    from logreel.io.remote.remote_source import RemoteSource

    return RemoteSource(str(text), limits)
