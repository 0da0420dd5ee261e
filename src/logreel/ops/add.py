"""Attachments and metadata added to an existing log."""

from __future__ import annotations

import mimetypes
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from logreel.errors import LogError, UsageError
from logreel.write.format_writer import FormatWriter
from logreel.write.writer import Writer, create

OCTETS = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class AddedContent:
    """What was added to a log.

    path         of the log
    size         its bytes now
    attachments  names of the attachments added
    metadata     names of the metadata added
    """

    path: str
    size: int
    attachments: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the values as plain data."""
        return asdict(self)


def add_attachments(
    path: str | os.PathLike[str], attachments: Mapping[str, bytes], media_type: str | None = None
) -> AddedContent:
    """Add attachments (content by name) to the log at *path*.

    media_type  of all of them; None: by the suffix of each name

    Raises UnsupportedError if the format cannot hold attachments, else as ``logreel.create`` with mode ``a`` does; the
    log is then unchanged.
    """

    def write(w: Writer) -> None:
        for name, data in attachments.items():
            w.attachment(name, data, media_type or mimetypes.guess_type(name)[0] or OCTETS)

    return AddedContent(os.fspath(path), _extend(path, write), attachments=tuple(attachments))


def add_metadata(path: str | os.PathLike[str], metadata: Mapping[str, Any]) -> AddedContent:
    """Add metadata (values by name) to the log at *path*; raises as ``add_attachments`` does.

    In formats that store maps of text by name, a single value becomes a map with the same name.
    """

    def write(w: Writer) -> None:
        for name, value in metadata.items():
            write_metadata(w, name, value)

    return AddedContent(os.fspath(path), _extend(path, write), metadata=tuple(metadata))


def write_metadata(writer: Writer | FormatWriter, name: str, value: Any) -> None:
    """Write one entry of metadata, as a map with the same name where the format stores maps."""
    try:
        writer.metadata(name, value)
    except UsageError:
        if isinstance(value, Mapping):
            raise
        writer.metadata(name, {name: value})


def _extend(path: str | os.PathLike[str], write: Callable[[Writer], None]) -> int:
    """Call *write* with a Writer that continues the log; return its size. After an error the log is as before."""
    if not os.path.lexists(path):
        raise LogError("there is no such log", path=os.fspath(path))
    w = create(path, mode="a")
    try:
        write(w)
    except BaseException:
        w.discard()
        raise
    w.close()
    return os.stat(path).st_size
