"""Attachments of a log as files."""

from __future__ import annotations

import os
from collections.abc import Iterable

from logreel.io.atomic_file import keep_sources
from logreel.log.scan import Attachment
from logreel.outputs.files import new_file
from logreel.outputs.names import attachment_names


def extract(
    attachments: Iterable[Attachment],
    folder: str | os.PathLike[str],
    force: bool = False,
    all_names: Iterable[str] | None = None,
    source: str = "",
) -> dict[str, str]:
    """Write each attachment to a file in *folder*, which is made if need be; gives the path written by name.

    force      replace files of the same name
    all_names  names of all attachments of the log, so that one gets the same file name alone or among the
               others
    source     name of the log, which is never replaced

    The file names are safe whatever the attachments are called. Raises LogError where a file exists.
    """
    found = list(attachments)
    names = attachment_names([a.name for a in found] if all_names is None else all_names)
    os.makedirs(folder, exist_ok=True)
    paths = {one.name: os.path.join(folder, names[one.name]) for one in found}
    for path in paths.values():
        keep_sources(path, [source])
    written = {}
    for one in found:
        path = paths[one.name]
        with new_file(path, force) as out:
            out.write(one.read())
        written[one.name] = path
    return written
