"""Logs that are packed as a whole by zstd: their content as a Source."""

from __future__ import annotations

import tempfile

from logreel.errors import LogError, Problem
from logreel.io import zstd
from logreel.io.source import Source
from logreel.limits import Limits

_STEP = 1 << 20


def unpacked(source: Source, limits: Limits) -> Source:
    """Return the Source of the content of a packed one, in a temporary file.

    Of a damaged file it is the content before the damage, and ``Source.damage`` says so. Raises LogError for a content
    larger than the limits ``chunk_ratio`` and ``spool_bytes`` allow.
    """
    most = min(max(limits.small_chunk_bytes, limits.chunk_ratio * source.size), limits.spool_bytes)
    reader, wrong, size = zstd.reader(source.view), "", 0
    buffer = bytearray(_STEP)
    with tempfile.TemporaryFile(prefix="logreel-") as spool:
        try:
            while count := reader.readinto(buffer):
                size += count
                if size > most:
                    text = f"unpacks to more than {most} bytes, the limits chunk_ratio and spool_bytes"
                    raise LogError(text, path=source.name)
                spool.write(memoryview(buffer)[:count])
        except zstd.ZstdError as error:
            wrong = f"its zstd frame is damaged: {error}"
        stated = _stated(source)
        if not wrong and stated is not None and stated > size:
            wrong = f"its zstd frame is cut: it states {stated} bytes"
        spool.flush()
        content = Source.of_stream(spool.fileno(), size, source.name)
    content.address, content.limits = source.address, limits
    if wrong:
        text = f"the file was unpacked up to byte {size} only; {wrong}"
        content.damage = [Problem("packed", size, max(1, (stated or 0) - size), True, text)]
    return content


def _stated(source: Source) -> int | None:
    try:
        return zstd.stated_size(source.view)
    except zstd.ZstdError:
        return None
