"""The description of logs that are folders, for formats that write them; not loaded with the formats."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from logreel.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class NewFolder:
    """How a new log becomes a folder: files with its messages, and what describes them.

    part     returns the name of a file: ``part(name of the folder, number from 0, **options)``; without options, or
             with those of *holds*, the name under which it is written
    finish   writes what lies beside the files, when these are complete: ``finish(paths, metadata, **options)``, with
             *described* of the log; returns the paths of the files, which may have other names then
    options  names of options of the folder, which those of ``Format.create`` are not
    inside   returns options of ``Format.create`` for the files: ``inside(**options)``; raises UsageError for values
             that they cannot have
    cuts     returns the times at which further files begin, ns: ``cuts(log, **options)``; empty: there is one file
    holds    returns the options of folders whose files are of another format, that of a log, and those of
             ``Format.create`` for these files: ``holds(log)``; None: no folder has the log as it is
    described  names of metadata that such files do not have, but what lies beside them
    """

    part: Callable[..., str]
    finish: Callable[..., Sequence[str]]
    options: Collection[str] = ()
    inside: Callable[..., Mapping[str, Any]] = lambda **options: {}
    cuts: Callable[..., Sequence[int]] = lambda log, **options: ()
    holds: Callable[..., tuple[Mapping[str, Any], Mapping[str, Any]] | None] = lambda log: None
    described: Collection[str] = ()
