"""Build encrypted bags, and a temporary GnuPG home with one key."""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.samples.rosbag.builder import PACK, Builder, version_2_0
from support.samples.rosbag.old import Message

KEY = bytes(range(16))
USER = "somebody"


@contextmanager
def gpg_home(passphrase: str = "") -> Iterator[str]:
    """Yield a folder for GNUPGHOME with a key of USER; its path is short, since the socket of the agent is in it."""
    home = tempfile.mkdtemp(prefix="lr")
    env = {**os.environ, "GNUPGHOME": home}
    make = ["gpg", "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", passphrase]
    make += ["--quick-gen-key", f"{USER} <somebody@example.org>", "future-default", "default", "never"]
    # Without this the agent measures for half a second of CPU how often it can hash a passphrase.
    (Path(home) / "gpg-agent.conf").write_text("s2k-count 65536\n")
    try:
        subprocess.run(make, env=env, check=True, capture_output=True, timeout=60)
        yield home
    finally:
        subprocess.run(["gpgconf", "--kill", "gpg-agent"], env=env, capture_output=True, timeout=60)
        shutil.rmtree(home, ignore_errors=True)


def encrypt(data: bytes, key: bytes = KEY) -> bytes:
    """Return a 16-byte initialisation vector, then AES-CBC of *data* with padding."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    # Deterministic, so that tests are reproducible.
    start, pad = hashlib.md5(data).digest(), 16 - len(data) % 16
    aes = Cipher(algorithms.AES(key), modes.CBC(start)).encryptor()
    return start + aes.update(data + bytes([pad]) * pad) + aes.finalize()


def encrypted(
    messages: list[Message], compression: str = "none", encrypted_key: bytes = b"none", **options: object
) -> bytes:
    """Return a bag of *messages* with encrypted chunks and connections of the summary."""
    fields = (("encryptor", b"rosbag/AesCbcEncryptor"), ("gpg_user", USER.encode()))
    out = Builder(compression, extra=(*fields, ("encrypted_key", encrypted_key)), **options)  # type: ignore[arg-type]
    out.pack = lambda data: encrypt(PACK[compression](data))
    data = version_2_0(messages, out)
    (tail,) = struct.unpack_from("<Q", data, data.index(b"index_pos=") + 10)
    if not tail:
        return data
    for _ in out.connections:
        clear, end = [], tail
        for _ in ("header", "data"):
            (size,) = struct.unpack_from("<I", data, end)
            clear.append(data[end + 4 : end + 4 + size])
            end += 4 + size
        secret = b"".join(struct.pack("<I", len(s)) + s for s in map(encrypt, clear))
        data = data[:tail] + secret + data[end:]
        tail += len(secret)
    return data
