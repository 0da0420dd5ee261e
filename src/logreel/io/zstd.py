"""zstd frames: by the standard library where it has them (Python 3.14), else by ``zstandard``.

A Python that was compiled on a machine without zstd's headers lacks them, as it lacks lzma or bz2 without theirs.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, BinaryIO, cast

#: Bytes of a file that are packed at once.
_PIECE = 1 << 20

if sys.version_info >= (3, 14) and find_spec("_zstd"):
    from compression import zstd

    ZstdError: type[Exception] = zstd.ZstdError
    _LONGEST_HEAD = 18

    def stated_size(data: memoryview) -> int | None:
        """Return the number of bytes that the first frame of *data* says to unpack to; None if it does not say."""
        return zstd.get_frame_info(data[:_LONGEST_HEAD]).decompressed_size

    def unpack(data: memoryview) -> bytes:
        """Return the content of the first frame of *data*."""
        frame = zstd.ZstdDecompressor()
        content = frame.decompress(data)
        if not frame.eof:
            raise ZstdError("the frame is not complete")
        return content

    def reader(data: memoryview) -> Any:
        """Return a readable stream of the content of all frames of *data*."""
        return _Reader(data)

    def compressor(level: int) -> Callable[[Any], bytes]:
        """Return a function that packs bytes to a frame, for use by one thread."""
        return lambda data: zstd.compress(data, level)

    def pack_file(file: BinaryIO, out: BinaryIO, level: int) -> None:
        """Write the content of *file* to *out* as one frame, which states its size."""
        packer = zstd.ZstdCompressor(level)
        packer.set_pledged_input_size(os.fstat(file.fileno()).st_size)
        while data := file.read(_PIECE):
            out.write(packer.compress(data))
        out.write(packer.flush())

    class _Reader(io.RawIOBase):
        """Reads frame after frame; the end of the data inside of a frame is the end of the stream."""

        def __init__(self, data: memoryview) -> None:
            self._left: Any = data
            self._frame = zstd.ZstdDecompressor()

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            while True:
                if self._frame.eof:
                    self._left, self._frame = self._frame.unused_data, zstd.ZstdDecompressor()
                if self._frame.needs_input and not len(self._left):
                    return 0
                data, self._left = (self._left, b"") if self._frame.needs_input else (b"", self._left)
                part = self._frame.decompress(data, max_length=len(buffer))
                if part:
                    buffer[: len(part)] = part
                    return len(part)

else:
    import threading

    import zstandard

    ZstdError = zstandard.ZstdError
    _OF_THREAD = threading.local()

    def stated_size(data: memoryview) -> int | None:
        """Return the number of bytes that the first frame of *data* says to unpack to; None if it does not say."""
        size = zstandard.frame_content_size(data)
        return None if size < 0 else size

    def unpack(data: memoryview) -> bytes:
        """Return the content of the first frame of *data*."""
        try:
            unpacker = _OF_THREAD.unpacker
        except AttributeError:
            # It takes longer to make than to unpack a small message with.
            unpacker = _OF_THREAD.unpacker = zstandard.ZstdDecompressor()
        return cast("bytes", unpacker.decompress(data))

    def reader(data: memoryview) -> Any:
        """Return a readable stream of the content of all frames of *data*."""
        return zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)

    def compressor(level: int) -> Callable[[Any], bytes]:
        """Return a function that packs bytes to a frame, for use by one thread."""
        return zstandard.ZstdCompressor(level=level).compress

    def pack_file(file: BinaryIO, out: BinaryIO, level: int) -> None:
        """Write the content of *file* to *out* as one frame, which states its size."""
        size = os.fstat(file.fileno()).st_size
        zstandard.ZstdCompressor(level=level).copy_stream(file, out, size)
