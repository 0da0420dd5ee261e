"""The objects below an address, and what tells whether one has changed: without reading it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from logreel.errors import UsageError
from logreel.io.remote.address import has_secrets, parse
from logreel.io.remote.object_store import RemoteObject


def check_shown(url: str) -> None:
    """Raise UsageError for an address with user, password or query: plans and catalogues contain addresses."""
    if has_secrets(url):
        raise UsageError(
            "an address in a plan or catalogue contains no query, user or password",
            path=parse(url).name,
            hint="give the credentials in the environment",
        )


def is_prefix(url: str) -> bool:
    """Return whether an address means all objects below it, as a folder does: it is a bucket, or ends with a slash."""
    address = parse(url)
    return not address.is_web and (not address.key or address.key.endswith("/"))


def objects_below(url: str) -> Iterator[str]:
    """Yield the addresses of the objects below a bucket or prefix, of which no part of the name begins with a dot."""
    remote = RemoteObject(url)
    for key in remote.keys_below():
        inside = key[len(remote.address.key) :]
        if not any(part[:1] == "." for part in inside.split("/")):
            yield f"{remote.address.root}/{key}"


def mark_of(url: str) -> tuple[int, int, str]:
    """Return size in bytes, time of change in ns, and a digest of the entity tag of an object."""
    remote = RemoteObject(url)
    remote.look()
    digest = hashlib.blake2b(remote.version.encode(), digest_size=12).hexdigest()
    return remote.size, remote.changed_ns, digest
