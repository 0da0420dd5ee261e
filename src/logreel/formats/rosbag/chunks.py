"""Decompression of chunks (none, bz2, LZ4, in 2010 zlib), with a bounded size and the valid prefix of damaged data.

Bags can be encrypted by AES-CBC, with a key that is encrypted for a GnuPG user. Encrypted are the stored bytes of
chunks, and header and data of the summary's connection records: an initialisation vector of 16 bytes, then padded
cipher text. Everything else is plain, also a chunk that its recorder did not finish. GnuPG is run without a prompt:
the passphrase comes from its agent or from the environment variable that ROS uses.
"""

from __future__ import annotations

import os
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.dataclass import dataclass
from logreel.errors import MissingDependencyError, Problem, UnsupportedError
from logreel.formats.rosbag.records import MAX_HEADER, BadRecord, Record
from logreel.io.lz4_frames import unpack_lz4
from logreel.io.source import Buffer, ChunkCache, Source
from logreel.log.scan import Noted

if TYPE_CHECKING:
    from numpy.typing import NDArray

ENCRYPTOR = "rosbag/AesCbcEncryptor"
#: Encryptors in the headers of bags that are not encrypted.
PLAIN = {"", "rosbag/NoEncryptor"}
#: Environment variable with the passphrase of the user's key, as in ROS.
PASSPHRASE = "ROSBAG_GPG_PASSPHRASE"
BLOCK = 16
#: Timeout of GnuPG.
SECONDS = 30
_ALONE = ("--batch", "--no-tty", "--quiet", "--no-auto-key-retrieve", "--disable-dirmngr")
_U32 = struct.Struct("<I")


class Cipher:
    """Decrypts data of one bag with its symmetric key.

    user  GnuPG user that the key is encrypted for
    """

    def __init__(self, key: bytes, user: str) -> None:
        self._key, self.user = key, user

    def decrypt(self, secret: NDArray[np.uint8] | bytes) -> tuple[NDArray[np.uint8], str]:
        """Return the decrypted bytes and a description of the damage, empty if there is none.

        Of cut data, all whole blocks are decrypted.
        """
        from cryptography.hazmat.primitives.ciphers import Cipher as Aes
        from cryptography.hazmat.primitives.ciphers import algorithms, modes

        block_bytes = len(secret) // BLOCK * BLOCK
        if block_bytes < BLOCK:
            return np.zeros(0, np.uint8), "what is encrypted is cut"
        view = np.frombuffer(secret, np.uint8).data
        aes: Any = Aes(algorithms.AES(self._key), modes.CBC(bytes(view[:BLOCK]))).decryptor()
        data = np.frombuffer(aes.update(view[BLOCK:block_bytes]), np.uint8)
        if block_bytes < len(secret):
            return data, "what is encrypted is cut"
        n = int(data[-1]) if len(data) else 0
        if not 1 <= n <= BLOCK or (data[-n:] != n).any():
            return data, "what is encrypted is cut or damaged"
        return data[:-n], ""


def cipher_of(source: Source, head: Record) -> Cipher | None:
    """Return the Cipher of the bag with the header *head*, None if it is not encrypted.

    Raises UnsupportedError, with the reason, if the bag cannot be decrypted.
    """
    encryptor, user = head.text(b"encryptor")[:60], head.text(b"gpg_user")[:200]
    if encryptor in PLAIN:
        return None
    try:
        if encryptor != ENCRYPTOR:
            raise UnsupportedError(f"only {ENCRYPTOR} is known")
        _require_library()
        return Cipher(_symmetric_key(head.fields.get(b"encrypted_key", b"")), user)
    except (MissingDependencyError, UnsupportedError) as error:
        text = (
            f"an encrypted bag ({encryptor}, for GnuPG user {user!r}) that cannot be decrypted: {error.text}"
        )
        raise UnsupportedError(text, path=source.name) from None


def _require_library() -> None:
    try:
        import cryptography.hazmat.primitives.ciphers  # noqa: F401
    except ImportError:
        raise MissingDependencyError("cryptography", "encrypted") from None


def _symmetric_key(encrypted: bytes) -> bytes:
    """Return the key of the bag, decrypted by GnuPG; raise UnsupportedError."""
    import subprocess

    # A passphrase is the first line of the input, so that no second file descriptor is needed.
    phrase = os.environ.get(PASSPHRASE)
    how = (
        ["--pinentry-mode", "error"]
        if phrase is None
        else ["--pinentry-mode", "loopback", "--passphrase-fd", "0"]
    )
    stdin = encrypted if phrase is None else phrase.encode() + b"\n" + encrypted
    command = ["gpg", *_ALONE, *how, "--max-output", "64", "--output", "-", "--decrypt"]
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=SECONDS, check=False)
    except FileNotFoundError:
        raise UnsupportedError("this needs the program gpg (GnuPG)") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnsupportedError(f"gpg did not answer ({type(error).__name__})") from None
    if done.returncode or len(done.stdout) != BLOCK:
        said = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
        why = said[-1].removeprefix("gpg: ")[:200] if said else f"a key of {len(done.stdout)} bytes"
        hint = f"the secret key must be at hand, its passphrase in the agent or in {PASSPHRASE}"
        raise UnsupportedError(f"gpg says {why!r}; {hint}")
    return done.stdout


def decrypted_record(source: Source, pos: int, cipher: Cipher) -> tuple[Source, int]:
    """Return the decrypted record at *pos* as a Source of its own, and its end in the file; raise BadRecord."""
    out, at = b"", pos
    for _ in ("header", "data"):
        size = int.from_bytes(source.read(at, 4), "little")
        if not 2 * BLOCK <= size <= min(MAX_HEADER, source.size - at - 4) or size % BLOCK:
            raise BadRecord(f"there is no encrypted record at {pos}")
        data, wrong = cipher.decrypt(source.read(at + 4, size))
        if wrong:
            raise BadRecord(f"the record at {pos} cannot be decrypted")
        out += _U32.pack(len(data)) + data.tobytes()
        at += 4 + size
    return Source(out, source.name), at


COMPRESSIONS = ("none", "bz2", "lz4", "zlib")
_STEP = 1 << 20
#: Part of the message of zlib where memory ends, which is no damage.
_NO_MEMORY = "Error -4 "


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk: file offsets of its record and data, stored bytes, compression, decompressed bytes as stated.

    cipher  decrypts the stored bytes; None if they are not encrypted
    """

    pos: int
    data: int
    stored: int
    compression: str
    size: int
    cipher: Cipher | None = None

    @property
    def is_plain(self) -> bool:
        """True if its records are neither compressed nor encrypted."""
        return self.compression == "none" and self.cipher is None


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The decompressed content of a chunk.

    data   its bytes; the valid prefix for a damaged chunk
    wrong  description of the damage, empty if there is no damage
    used   number of stored bytes that belong to the chunk
    """

    data: Buffer
    wrong: str
    used: int


def size_limit(source: Source, chunk: Chunk) -> int:
    """Return the most bytes that *chunk* is decompressed to; 0 stated bytes are unknown ones."""
    return source.limits.unpacked(chunk.size or source.limits.chunk_bytes, chunk.stored)


def unpack(source: Source, chunk: Chunk) -> Unpacked:
    """Return the decompressed content of *chunk*, never more bytes than it states, nor than the limits allow.

    For a damaged or cut chunk this is the valid prefix: in LZ4 and bz2 all blocks before the damage.
    """
    end = chunk.data + chunk.stored
    packed = source.span(chunk.data, end)[chunk.data : end]
    if chunk.is_plain:
        return Unpacked(packed, "", len(packed))
    if chunk.cipher is not None:
        clear, wrong = chunk.cipher.decrypt(packed)
        inside = Source(clear, "")
        inside.limits = source.limits
        unpacked = unpack(inside, Chunk(chunk.pos, 0, len(clear), chunk.compression, chunk.size))
        if chunk.compression == "none" and len(clear) != chunk.size:
            wrong = wrong or f"it decrypts to {len(clear)} bytes where {chunk.size} are stated"
        return Unpacked(unpacked.data, wrong or unpacked.wrong, len(packed))
    limit = size_limit(source, chunk)
    # One byte above the limit shows that there is more, and lets the checksum at the end be read.
    data, wrong, left = {"bz2": _bz2, "lz4": unpack_lz4, "zlib": _zlib}[chunk.compression](packed, limit + 1)
    if not wrong and chunk.size and len(data) != chunk.size:
        wrong = f"it unpacks to {len(data)} bytes where {chunk.size} are stated"
        if len(data) > limit == chunk.size:
            wrong = f"it unpacks to more bytes than the {chunk.size} that are stated"
    if len(data) > limit != chunk.size:
        wrong = source.limits.exceeded(chunk.stored)
    return Unpacked(data[:limit], wrong, len(packed) - left)


def _bz2(packed: Buffer, limit: int) -> tuple[Buffer, str, int]:
    """Decompress at most *limit* bytes; return them, a description of the damage, and the number of unused bytes."""
    import bz2

    decompressor = bz2.BZ2Decompressor()
    out, wrong = bytearray(), ""
    try:
        for at in range(0, len(packed), _STEP):
            feed = packed[at : at + _STEP].tobytes()
            while len(out) < limit and not decompressor.eof:
                out += decompressor.decompress(feed, min(_STEP, limit - len(out)))
                feed = b""
                if decompressor.needs_input:
                    break
            if decompressor.eof:
                left = len(decompressor.unused_data) + max(0, len(packed) - at - _STEP)
                return np.frombuffer(out, np.uint8), "", left
        wrong = "its bz2 stream is cut" if len(out) < limit else ""
    except (OSError, EOFError, ValueError) as error:
        wrong = f"its bz2 stream is damaged: {error}"
    return np.frombuffer(out, np.uint8), wrong, 0


def _zlib(packed: Buffer, limit: int) -> tuple[Buffer, str, int]:
    """Decompress a zlib chunk, which development versions of April 2010 wrote; return the same as ``_bz2``."""
    decompressor = zlib.decompressobj()
    # Pages that are not written take no memory.
    out, have, wrong = np.empty(limit, np.uint8), 0, ""
    try:
        for at in range(0, len(packed), _STEP):
            feed = packed[at : at + _STEP].tobytes()
            while feed and have < limit and not decompressor.eof:
                data = decompressor.decompress(feed, min(_STEP, limit - have))
                out[have : have + len(data)] = np.frombuffer(data, np.uint8)
                have, feed = have + len(data), decompressor.unconsumed_tail
            if decompressor.eof:
                left = len(decompressor.unused_data) + max(0, len(packed) - at - _STEP)
                return out[:have], "", left
        wrong = "its zlib stream is cut" if have < limit else ""
    except zlib.error as error:
        if _NO_MEMORY in str(error):
            raise MemoryError(str(error)) from error
        wrong = f"its zlib stream is damaged: {error}"
    return out[:have], wrong, 0


def problem_of(chunk: Chunk, unpacked: Unpacked) -> Problem | None:
    """Return the problem of a damaged chunk; None if there is no damage."""
    if not unpacked.wrong:
        return None
    text = f"a {chunk.compression} chunk: {unpacked.wrong}"
    return Problem("chunk", chunk.pos, chunk.stored, True, text)


def cache(source: Source, chunks: list[Chunk], problems: list[Problem]) -> ChunkCache:
    """Return the cache of decompressed chunks; damage is added to *problems* when a chunk is decompressed."""

    def read(number: int) -> Buffer:
        unpacked = unpack(source, chunks[number])
        problem = problem_of(chunks[number], unpacked)
        if problem is not None:
            noted.add(problems, problem)
        return unpacked.data

    noted = Noted()

    slow = any(c.compression in ("bz2", "zlib") for c in chunks)
    is_secret = any(c.cipher for c in chunks)
    return ChunkCache(read, [size_limit(source, c) for c in chunks], slow, source.limits, is_secret)
