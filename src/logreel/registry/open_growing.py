"""Open a log whose file is still written, or does not exist yet."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import IO

from logreel.errors import LogError, UnknownFormatError
from logreel.io.append_file import ACTIVE
from logreel.io.growing_file import FileChange, GrowingFile, GrowingStream
from logreel.io.source import HEAD_BYTES, Definitions
from logreel.log.growing_log import POLL
from logreel.log.log import Log
from logreel.log.source_files import allow_decrypted
from logreel.registry.open import Rescanner, log_folder, log_of
from logreel.registry.registry import formats

#: The beginnings of all formats are shorter than this.
MAGIC_BYTES = 64


def open_growing(
    path: str | os.PathLike[str] | IO[bytes],
    *,
    format: str | None = None,
    definitions: Definitions = (),
    ros_axes: bool = False,
    segment: int | None = None,
    guard: bool = True,
    poll: float = POLL,
    stop: Event | None = None,
    waiting: Callable[[str], object] | None = None,
    decrypt: bool = False,
) -> Log | None:
    """Open a log that another process writes, for ``Log.follow`` and ``Log.refresh``; wait until it has begun.

    path     name of the complete file; while ``path.active`` is written, that file is opened. Of a folder that is a
             log it is the first file, after which the next ones are followed. Or ``-`` for standard
             input, or a binary file object such as a pipe, whose bytes are kept in a temporary file as they come
    format, definitions, ros_axes, segment, guard, decrypt  as for ``logreel.open``
    poll     seconds between two looks at the file
    stop     a threading.Event that ends waiting; then None is returned
    waiting  called once with a sentence if there is nothing to be opened yet

    Unlike a log of ``logreel.open``, it is never read twice: its first ``refresh`` reads only what is new, too.

    Raises UnknownFormatError, LogError for a folder; OSError if the file cannot be read.
    """
    name, file = _opened(path, guard)
    stop = stop or Event()
    rescanner = Rescanner(format, segment, ros_axes)
    said = False
    while not stop.is_set():
        why = "there is no such file yet" if isinstance(file, GrowingFile) else "nothing has come yet"
        # What comes meanwhile is looked at in the next turn.
        is_final = isinstance(file, GrowingStream) and file.has_ended
        if file.target is not None and file.target.is_dir():
            raise LogError("is a directory, not a log", path=name)
        if file.look() is FileChange.REPLACED:
            file.open()
        if file.is_open:
            source = file.source(name)
            source.define(definitions)
            try:
                format_name, scan = rescanner.scan(source, False, is_final)
            except UnknownFormatError as error:
                if is_final or source.size >= (MAGIC_BYTES if isinstance(file, GrowingFile) else HEAD_BYTES):
                    raise
                why = error.text
            except LogError as error:
                if is_final:
                    raise
                why = error.text
            else:
                log = log_of(source, formats()[format_name], scan)
                log.options |= {"format": format, "segment": segment, "ros_axes": ros_axes, "guard": guard}
                if decrypt:
                    allow_decrypted(log)
                log.watch(file, rescanner.scan)
                return log
        if waiting is not None and not said:
            waiting(f"waiting for {name}: {why}")
            said = True
        if isinstance(file, GrowingStream):
            file.wait(poll)
            _ = stop.wait(0)
        else:
            stop.wait(poll)
    return None


def _opened(path: str | os.PathLike[str] | IO[bytes], guard: bool) -> tuple[str, GrowingFile | GrowingStream]:
    """Return the name of what is to be opened, and the file or stream."""
    if isinstance(path, str | os.PathLike) and os.fspath(path) != "-":
        folder = log_folder(os.fspath(path))
        name = os.fspath(path) if folder is None else folder.parts[0].removesuffix(ACTIVE)
        return name, GrowingFile(Path(name).absolute(), guard)
    if isinstance(path, str | os.PathLike):
        # Not the buffered file: a thread that waits in it would hold its lock when the process ends.
        return "<stdin>", GrowingStream(getattr(sys.stdin.buffer, "raw", sys.stdin.buffer), "<stdin>")
    name = str(getattr(path, "name", "<stream>"))
    return name, GrowingStream(path, name)
