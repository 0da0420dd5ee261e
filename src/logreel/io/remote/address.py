"""Addresses of remote logs: what is asked of the server, and what may be shown of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

from logreel.errors import UnsupportedError, UsageError
from logreel.io.source import ADDRESS

#: Schemes of web servers; an address is used as it is, with its query.
WEB = ("http", "https")
#: Schemes of object stores: a bucket or container, then the key as it is, which may contain any character.
STORES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss")


@dataclass(frozen=True, slots=True)
class Address:
    """The address of an object, or of all objects whose keys begin alike.

    scheme  scheme in lower case
    root    address of the store: bucket or container; of web servers the whole address
    key     key in the store; empty for web servers
    name    the address without user, password, query and fragment, which may be secret; for messages and catalogues
    """

    scheme: str
    root: str = field(repr=False)
    key: str = field(repr=False)
    name: str

    @property
    def is_web(self) -> bool:
        """Whether a web server is asked, not an object store."""
        return self.scheme in WEB


def has_secrets(url: str) -> bool:
    """Return whether an address contains what is left out of its name: user, password, query or fragment."""
    return parse(url).name != url


def parse(url: str) -> Address:
    """Return the parts of an address; raises UnsupportedError for an unknown scheme, UsageError for a wrong address."""
    found = ADDRESS.match(url)
    scheme = found[1].lower() if found else ""
    if scheme in WEB:
        return _web(url, scheme)
    if scheme not in STORES:
        text = f"logs cannot be read from {scheme}://: there are {', '.join((*STORES, *WEB))}"
        raise UnsupportedError(text, path=_without_secrets(url))
    bucket, _, key = url[len(scheme) + 3 :].partition("/")
    if "@" in bucket and not scheme.startswith("abfs"):
        raise UsageError(
            "an address of an object store contains no user or password",
            path=f"{scheme}://{bucket.rpartition('@')[2]}/{key}",
            hint="set them in the environment, such as AWS_ACCESS_KEY_ID",
        )
    if not bucket:
        raise UsageError("the address names no bucket", path=url)
    return Address(scheme, f"{scheme}://{bucket}", key, f"{scheme}://{bucket}/{key}")


def _web(url: str, scheme: str) -> Address:
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        host = None
    name = _without_secrets(url)
    if not host:
        raise UsageError("the address names no server", path=name)
    return Address(scheme, url.partition("#")[0], "", name)


def _without_secrets(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
