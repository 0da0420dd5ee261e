"""Verify the checksum at the end of a file."""

from __future__ import annotations

import hashlib

from logreel.errors import Finding
from logreel.formats.bddf import descriptors
from logreel.formats.bddf.descriptors import FileDescriptor
from logreel.formats.bddf.records import DIGEST_AT, END_BYTES, MAGIC, read_descriptor, read_end_block
from logreel.io.source import Source
from logreel.schemas.protobuf.wire import BadWire

#: Bytes hashed per call: large enough to make the calls cheap, small enough not to map the whole file at once.
STEP = 8 << 20


def verify(source: Source) -> list[Finding]:
    """Return a finding ``checksum`` if it is wrong (error) or missing (note), else none. Reads the whole file."""
    ending = read_end_block(source, source.size - END_BYTES)
    if ending is None:
        return [Finding("checksum", "note", source.size, 0, "no checksum: the file has no end block")]
    at = source.size - DIGEST_AT
    try:
        kind, content = read_descriptor(source, len(MAGIC), source.size)
        file = FileDescriptor.parse(content) if kind == descriptors.FILE else FileDescriptor()
    except BadWire:
        file = FileDescriptor()
    if file.checksum == descriptors.CHECKSUM_NONE:
        return [Finding("checksum", "note", at, 0, "no checksum: the file was written without one")]
    found = digest(source, at)
    if found == ending.digest:
        return []
    text = f"the checksum is wrong: {found.hex()}, and the file says {ending.digest.hex()}"
    return [Finding("checksum", "error", at, len(ending.digest), text)]


def digest(source: Source, end: int) -> bytes:
    """Return the SHA-1 of the bytes before *end*."""
    sha = hashlib.sha1(usedforsecurity=False)
    for lo in range(0, end, STEP):
        sha.update(source.view[lo : min(lo + STEP, end)])
    return sha.digest()
