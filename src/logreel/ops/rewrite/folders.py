"""New logs that are folders: written as a file, divided where the format wants files of a size, and described."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from logreel.errors import LogError, UsageError
from logreel.io.new_folder import begun_folder
from logreel.log.log import Log
from logreel.log.source_files import inputs_of
from logreel.ops.rewrite.parts import Part, select_part
from logreel.ops.rewrite.target import Copied, Rewritten, Target, format_of, format_to_write
from logreel.ops.selection import Selection
from logreel.registry.format import Format
from logreel.registry.new_folder import NewFolder
from logreel.registry.open import open_log
from logreel.registry.registry import formats, log_suffixes

#: Writes parts of logs to a file.
Write = Callable[[Sequence[Part], Target], Rewritten]


def to_folder(
    parts: Sequence[Part], target: Target, write: Write, copy: Write, changed: list[str] | None
) -> Rewritten:
    """Write a log as a folder, which gets its name when all that is in it is complete.

    write    writes *parts* to a file
    copy     copies a part of that file to another one
    changed  list for a sentence about metadata that are left out, because a transform may hide what they say; None:
             nothing is changed
    """
    log = parts[0].log
    fmt = format_to_write(target.path, log, target.format) if target.foreign else format_of(log)
    named = target.path.rstrip("/" + os.sep).lower()
    of_folder, for_folder, for_files = folder_for(fmt, log)
    if of_folder is None or of_folder.new_folder is None or named.endswith(log_suffixes()):
        raise UsageError("is the name of a file: leave out the slash at the end", path=target.path)
    new, base = of_folder.new_folder(), os.path.basename(os.path.abspath(target.path))
    options = {**for_folder, **{name: target.options[name] for name in new.options if name in target.options}}
    fixed = new.inside(**options)
    metadata = _described(new, [part.log for part in parts]) if for_folder else {}
    if changed is not None and metadata:
        changed.append(f"metadata of the folder: {', '.join(metadata)}")
        metadata = {}
    names = [name for part in parts for name in inputs_of(part.log)]
    with begun_folder(target.path, target.force, names, partial(_is_only_a_log, of_folder)) as folder:
        path = os.path.join(folder, new.part(base, 0, **for_folder))
        for_file = {name: value for name, value in target.options.items() if name not in options} | {
            **for_files,
            **fixed,
        }
        inside = replace(target, path=path, force=False, format=fmt.name, options=for_file)
        if "compression" in fixed:
            inside = replace(inside, compression=None)
        try:
            done = write(parts, inside)
            files = _divided(new, inside, copy, partial(new.part, base, **for_folder), options)
            new.finish(files, metadata, **options)
        except LogError as error:
            error.path = target.path if error.path == path else error.path
            raise
        size = sum(entry.stat().st_size for entry in os.scandir(folder))
    more = (f"the log is in {len(files)} files: each begins with what is latched",) if len(files) > 1 else ()
    return replace(done, path=target.path, size=size, notes=(*done.notes, *more))


def folder_for(fmt: Format, log: Log) -> tuple[Format | None, Mapping[str, Any], Mapping[str, Any]]:
    """Return the format of folders whose files are of *fmt*, None if there is none, and ``NewFolder.holds``."""
    if fmt.new_folder is not None:
        return fmt, {}, {}
    for other in formats().values() if fmt.name == log.format else ():
        if other.create is not None and other.new_folder is not None:
            for_folder = other.new_folder().holds(log)
            if for_folder is not None:
                return other, *for_folder
    return None, {}, {}


def _described(new: NewFolder, logs: Sequence[Log]) -> dict[str, Any]:
    """Return the metadata that what describes the files gets; the first log has precedence."""
    return {
        name: log.metadata[name] for log in reversed(logs) for name in new.described if name in log.metadata
    }


def each_to_folder(opened: Log, target: Target, write: Callable[[Log, Target], Rewritten]) -> Rewritten:
    """Write each file of *opened*, a folder, by *write* as a file of a new folder; as ``to_folder``."""
    logs = opened.parts
    fmt = format_of(logs[0])
    of_folder, for_folder, for_files = folder_for(fmt, opened)
    if of_folder is None or of_folder.new_folder is None:
        raise UsageError(f"{fmt.title} has no folders: leave out the slash at the end", path=target.path)
    new, base = of_folder.new_folder(), os.path.basename(os.path.abspath(target.path))
    if chosen := [name for name in target.options if name in new.options]:
        raise UsageError(f"the files are those of the folder: leave out the option {chosen[0]!r}")
    names = [name for log in logs for name in inputs_of(log)]
    done = list[Rewritten]()
    with begun_folder(target.path, target.force, names, partial(_is_only_a_log, of_folder)) as folder:
        files = [os.path.join(folder, new.part(base, number, **for_folder)) for number in range(len(logs))]
        for log, file in zip(logs, files, strict=True):
            options = {**target.options, **for_files}
            done.append(write(log, replace(target, path=file, force=False, format=fmt.name, options=options)))
        new.finish(files, _described(new, [opened]), **for_folder)
        size = sum(entry.stat().st_size for entry in os.scandir(folder))
    counts = Counter[str]()
    for each in done:
        counts.update({channel.topic: channel.messages for channel in each.channels})
    notes = tuple(dict.fromkeys(note for each in done for note in each.notes))
    skipped = tuple(dict.fromkeys(sentence for each in done for sentence in each.skipped))
    return Rewritten(target.path, size, tuple(Copied(*item) for item in counts.items()), notes, skipped)


def _divided(
    new: NewFolder, target: Target, copy: Write, name: Callable[[int], str], options: Mapping[str, Any]
) -> list[str]:
    """Replace the file of *target* by several ones where the format wants that; return the paths of all.

    name  returns the name of a file by its number
    """
    with open_log(target.path) as log:
        cuts = new.cuts(log, **options)
    if not cuts:
        return [target.path]
    path = Path(target.path)
    undivided = path.with_name(f"undivided{path.suffix}")
    path.rename(undivided)
    files = list[str]()
    with open_log(undivided) as log:
        for number, (start, end) in enumerate(pairwise([None, *cuts, None])):
            part = select_part(log, Selection(start=start, end=end, keep_latched=True))
            files.append(str(path.with_name(name(number))))
            copy([part], replace(target, path=files[-1], progress=None, stream=None, options={}))
    undivided.unlink()
    return files


def _is_only_a_log(fmt: Format, folder: Path) -> bool:
    """Return whether all that is in *folder* is a log of the format: its parts, and what describes them."""
    names = [entry.name for entry in os.scandir(folder)]
    log = None if fmt.folder is None else fmt.folder(str(folder), names)
    return log is not None and len(names) <= len(log.parts) + 1
