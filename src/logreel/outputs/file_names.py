"""Safe file names for topics and attachments, whose names in a log may be any text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

#: Stems of file names that are reserved: device names of Windows, and the manifest of a folder.
_TAKEN = frozenset(
    ["con", "prn", "aux", "nul", *(f"com{i}" for i in range(10)), *(f"lpt{i}" for i in range(10)), "manifest"]
)
#: Maximum bytes of a file name, accepted by all common file systems and archives.
MAX_BYTES = 200
_DIGEST = 10


def _clean(name: str) -> tuple[str, bool]:
    """Return *name* with only safe characters, and whether other characters were lost.

    Common names stay readable without loss: ``/imu/data`` is ``imu.data``, ``accel[1]`` is ``accel-1``.
    """
    text = re.sub(r"\[(\d+)\]", r"-\1", name.removeprefix("/").replace("/", "."))
    text = re.sub(r"^~", "_", text)
    clean = re.sub(r"[^A-Za-z0-9_.@+-]", "_", text)
    lost = clean != text
    # A leading dot hides a file, a leading dash looks like an option, a dot before the suffix is confusing.
    safe = re.sub(r"^[.-]+|\.+$", "_", clean) or "_"
    if safe.partition(".")[0].lower() in _TAKEN:
        safe = f"_{safe}"
    return safe, lost or safe not in (clean, f"_{clean}")


def _with_digest(name: str, base: str, room: int) -> str:
    """Return *base*, shortened to *room* bytes, with a digest of *name* at the end."""
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_DIGEST // 2).hexdigest()
    return f"{base[: room - _DIGEST - 1]}-{digest}"


def file_names(names: Iterable[str], suffix: str = "", taken: set[str] | None = None) -> dict[str, str]:
    """Return a safe file name with *suffix* for each of *names*.

    taken  lower-case file names that others have; the new ones are added

    Safe means: only ASCII letters, digits and ``_ . @ + -``, not hidden, no path, no device name, at most MAX_BYTES
    bytes. Different names get different file names, also without regard to case. A name that lost characters, or that
    would clash, ends with a digest of itself.
    """
    cleaned = {name: _clean(name) for name in names}
    count: dict[str, int] = {}
    for base, _ in cleaned.values():
        count[base.lower()] = count.get(base.lower(), 0) + 1
    room = MAX_BYTES - len(suffix)
    found: dict[str, str] = {}
    taken = set() if taken is None else taken
    for name, (base, lost) in cleaned.items():
        stem = base
        if lost or count[base.lower()] > 1 or len(base) > room:
            stem = _with_digest(name, base, room)
        n = 1
        while f"{stem}{suffix}".lower() in taken:
            n += 1
            stem = _with_digest(f"{name}\0{n}", base, room)
        taken.add(f"{stem}{suffix}".lower())
        found[name] = stem + suffix
    return found


def attachment_names(names: Iterable[str]) -> dict[str, str]:
    """Return file names as ``file_names`` does, with the suffix of each name kept: ``replay.txt``.

    Names with different suffixes get different file names, too, also where cleaning gives them the same suffix.
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    groups: dict[str, list[str]] = {}
    for name in names:
        match = re.search(r"\.[A-Za-z0-9]{1,10}$", name)
        groups.setdefault(match[0].lower() if match and match.start() else "", []).append(name)
    for suffix, members in groups.items():
        stems = {name[: len(name) - len(suffix)]: name for name in members}
        if len(stems) < len(members):
            stems, suffix = {name: name for name in members}, ""
        found |= {stems[stem]: file for stem, file in file_names(stems, suffix, taken).items()}
    return found
