"""Extracting attachments of a log to files."""

from __future__ import annotations

import os
from collections.abc import Iterable

from logreel.io.atomic_file import exists, keep_sources
from logreel.log.scan import Attachment
from logreel.outputs.file_names import attachment_names
from logreel.outputs.files import new_file


def extract(
    attachments: Iterable[Attachment],
    folder: str | os.PathLike[str],
    force: bool = False,
    all_names: Iterable[str] | None = None,
    sources: Iterable[str] = (),
) -> dict[str, str]:
    """Write each attachment to a file in *folder*; return the paths by attachment name.

    folder     created if it does not exist
    force      replace existing files
    all_names  names of all attachments of the log, so that an attachment gets the same file name when it is
               extracted alone
    sources    names of files that are never replaced: those of the log

    File names are safe for any attachment name, see ``attachment_names``. Raises LogError for an existing file.
    """
    found = list(attachments)
    names = attachment_names([a.name for a in found] if all_names is None else all_names)
    os.makedirs(folder, exist_ok=True)
    paths = {one.name: os.path.join(folder, names[one.name]) for one in found}
    sources = list(sources)
    for path in paths.values():
        keep_sources(path, sources)
        if not force and os.path.lexists(path):
            # Before anything is written.
            raise exists(path)
    written = {}
    for one in found:
        path = paths[one.name]
        with new_file(path, force) as out:
            out.write(one.read())
        written[one.name] = path
    return written
