"""Decryption of bags: AES-CBC, with a key that is encrypted for a GnuPG user.

Encrypted are the stored bytes of chunks, and header and data of the summary's connection records: an initialisation
vector of 16 bytes, then padded cipher text. Everything else is plain, also a chunk that its recorder did not finish.
GnuPG is run without a prompt: the passphrase comes from its agent or from the environment variable that ROS uses.
"""

from __future__ import annotations

import os
import struct
import subprocess
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import MissingDependencyError, UnsupportedError
from logreel.formats.rosbag.records import MAX_HEADER, BadRecord, Record
from logreel.io.source import Source

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
        view = memoryview(secret)  # type: ignore[arg-type]
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
