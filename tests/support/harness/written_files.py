"""Which files a test writes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_WRITTEN: list[str] = []
_WATCHES: list[bool] = []


def _note(event: str, args: tuple[Any, ...]) -> None:
    """Note the names of files and folders that are opened for writing, or made."""
    if not _WATCHES:
        return
    if event == "open" and isinstance(args[0], str | bytes):
        _, mode, flags = args
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writes or (isinstance(mode, str) and set(mode) & set("wxa+")):
            _WRITTEN.append(os.path.basename(os.fsdecode(args[0])))
    elif event in ("os.mkdir", "tempfile.mkstemp", "tempfile.mkdtemp"):
        _WRITTEN.append(os.path.basename(os.fsdecode(args[0])))


@contextmanager
def written_files() -> Iterator[list[str]]:
    """Yield a list of the files and folders that are written in the block; the hook stays, as hooks do, and sleeps."""
    if not any(hook is _note for hook in _HOOKS):
        sys.addaudithook(_note)
        _HOOKS.append(_note)
    _WRITTEN.clear()
    _WATCHES.append(True)
    # A module that is imported in the block for the first time would be compiled into a file.
    compiles, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield _WRITTEN
    finally:
        sys.dont_write_bytecode = compiles
        _WATCHES.clear()


_HOOKS: list[Any] = []
