"""Open a log whose file is still written, or does not exist yet."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from threading import Event

from logreel.errors import LogError, UnknownFormatError
from logreel.io.growing_file import Change, GrowingFile
from logreel.io.source import Definitions
from logreel.log.growing_log import POLL
from logreel.log.log import Log
from logreel.registry.open import log_of
from logreel.registry.registry import formats
from logreel.registry.rescan import Rescanner

#: The beginnings of all formats are shorter than this.
MAGIC_BYTES = 64


def open_growing(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    definitions: Definitions = (),
    ros_axes: bool = False,
    segment: int | None = None,
    poll: float = POLL,
    stop: Event | None = None,
    waiting: Callable[[str], object] | None = None,
) -> Log | None:
    """Open a log that another process writes, for ``Log.follow`` and ``Log.refresh``; wait until it has begun.

    path     name of the complete file; while ``path.active`` is written, that file is opened
    format, definitions, ros_axes, segment  as for ``logreel.open``
    poll     seconds between two looks at the file
    stop     a threading.Event that ends waiting; then None is returned
    waiting  called once with a sentence if there is nothing to be opened yet

    Unlike a log of ``logreel.open``, it is never read twice: its first ``refresh`` reads only what is new, too.

    Raises UnknownFormatError, LogError for a folder; OSError if the file cannot be read.
    """
    name, stop = os.fspath(path), stop or Event()
    file = GrowingFile(Path(name).absolute())
    rescanner = Rescanner(format, segment, ros_axes)
    said = False
    while not stop.is_set():
        why = "there is no such file yet"
        if file.target.is_dir():
            raise LogError("is a directory, not a log", path=name)
        if file.look() is Change.REPLACED:
            file.open()
        if file.is_open:
            source = file.source(name)
            source.define(definitions)
            try:
                found, scan = rescanner.scan(source, False, False)
            except UnknownFormatError as error:
                if source.size >= MAGIC_BYTES:
                    raise
                why = error.text
            except LogError as error:
                why = error.text
            else:
                log = log_of(source, formats()[found], scan)
                log._options |= {"format": format, "segment": segment, "ros_axes": ros_axes}
                log._watch(file, rescanner.scan)
                return log
        if waiting is not None and not said:
            waiting(f"waiting for {name}: {why}")
            said = True
        stop.wait(poll)
    return None
