"""Creation of the writer of a bag, by version."""

from __future__ import annotations

from logreel.errors import UsageError
from logreel.formats.rosbag.writer_v1 import BagV11Writer, BagV12Writer
from logreel.formats.rosbag.writer_v2 import BagV20Writer
from logreel.io.append_file import Appender
from logreel.write.format_writer import FormatWriter


def create(
    out: Appender,
    *,
    version: str = "2.0",
    compression: str = "none",
    chunk_bytes: int | None = None,
    indexed: bool = True,
) -> FormatWriter:
    """Return the writer of a bag.

    version      ``2.0``, or ``1.2`` or ``1.1`` for old tools
    compression  version 2.0: of its chunks, ``none``, ``bz2`` or ``lz4``, as ROS reads them
    chunk_bytes  version 2.0: a chunk is closed by the message with which it becomes larger, and when the file is
                 flushed; None: as in the log that is copied, else 768 KiB
    indexed      version 1.2: True: with a file header and an index
    """
    if version == "2.0":
        return BagV20Writer(out, compression, chunk_bytes)
    if compression != "none":
        raise UsageError(f"compression {compression!r}: a bag of version {version} has none")
    if version == "1.2":
        return BagV12Writer(out, indexed)
    if version == "1.1":
        return BagV11Writer(out)
    raise UsageError(f"version {version!r}; bags are written as 2.0, 1.2 or 1.1")
