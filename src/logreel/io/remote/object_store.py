"""One object on a server: ranges of its bytes through obstore, as long as it stays the same object."""

from __future__ import annotations

import hashlib
import os
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import lru_cache
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

from logreel.errors import FileChangedError, LogError, MissingDependencyError, UnreachableError, UsageError
from logreel.io.remote.address import Address, has_secrets, parse

T = TypeVar("T")

#: Bytes of the first request, which also tells size and version of the object.
HEAD_BYTES = 64 << 10
#: Of one request: time until the server is connected, without any byte, and altogether.
CONNECT_TIME, READ_TIME, REQUEST_TIME = timedelta(seconds=10), timedelta(seconds=30), timedelta(minutes=10)
#: A request that failed for a fault of server or connection is repeated so often, and no longer than for this time.
RETRIES, RETRY_TIME = 4, timedelta(minutes=1)
#: A transfer that breaks off in the middle is repeated so often.
BODY_RETRIES = 2
_STATUS = re.compile(r"status code: (\d{3})((?: [A-Za-z'-]+)*)")
#: What asks the machine for credentials has found none in the environment.
_NO_CREDENTIALS = re.compile(
    r"//169\.254\.|//metadata\.google|/latest/(api/token|meta-data)|MissingAccount|TokenRequest"
)
_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
#: Prefix of the environment variables by scheme.
SERVICES = {
    "s3": "AWS",
    "s3a": "AWS",
    "gs": "GOOGLE",
    "az": "AZURE",
    "azure": "AZURE",
    "abfs": "AZURE",
    "abfss": "AZURE",
}
_CLIENT_OPTIONS = (
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "read_timeout",
    "timeout",
    "proxy_url",
    "proxy_excludes",
    "proxy_ca_certificate",
)
#: Variables of the environment that a client reads when it is made.
_PROXIES = [f(f"{name}_proxy") for name in ("http", "https", "all", "no") for f in (str.lower, str.upper)]
_CREDENTIALS = {
    "AWS": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true for public objects",
    "GOOGLE": "GOOGLE_APPLICATION_CREDENTIALS, or GOOGLE_SKIP_SIGNATURE=true for public objects",
    "AZURE": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN",
}


class NoRangesError(Exception):
    """The server sends whole objects only."""


class RemoteObject:
    """One object, read in ranges.

    name      its address without secrets
    size      bytes; 0 until ``head`` or ``whole`` was called
    changed_ns  time of the last change, ns since 1970; 0: the server does not say it
    version   what tells this version of the object from others: entity tag, or time of change if it has none
    requests, received  number of requests and of content bytes so far
    """

    def __init__(self, url: str) -> None:
        self.address: Address = parse(url)
        self.name = self.address.name
        self.size, self.version, self.changed_ns = 0, "", 0
        self.requests = self.received = 0
        self._match: str | None = None
        self._is_open = False
        self._lock = Lock()
        self._obstore = _import()
        self._store = self._asked(lambda: store_of(self.address))

    def head(self) -> bytes:
        """Return the first HEAD_BYTES bytes; raises NoRangesError if the server has no ranges."""
        try:
            return self._range(0, HEAD_BYTES)
        except _EmptyError:
            return b""

    def look(self) -> None:
        """Ask for size and version without reading anything; raises LogError."""

        def ask() -> None:
            self._count(self._obstore.head(self._store, self.address.key), 0)

        try:
            self._asked(ask)
        except FileChangedError:
            raise
        except LogError:
            if not self.address.is_web:
                raise
            # Some web servers answer no HEAD.
            self.head()

    def keys_below(self) -> Iterator[str]:
        """Yield the keys of all objects below this address, sorted by the server; raises LogError."""
        if self.address.is_web:
            raise UsageError("a web server has no list of its files", path=self.name, hint="name each log")
        pages = self._asked(lambda: self._obstore.list(self._store, self.address.key or None))
        while (page := self._asked(lambda: next(pages, None))) is not None:
            self.requests += 1
            yield from (one["path"] for one in page if one["size"])

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes *start* … *stop*. Raises FileChangedError if the object is another one by now."""
        data = self._range(start, stop)
        if len(data) != stop - start:
            raise LogError(f"the server sent {len(data)} of {stop - start} bytes", path=self.name)
        return data

    def whole(self) -> Iterator[bytes]:
        """Yield all bytes of the object piece by piece, from a server without ranges."""
        options: Any = {"if_match": self._match} if self._match else {}

        def ask() -> Any:
            found = self._obstore.get(self._store, self.address.key, options=options)
            self._count(found.meta, 0)
            return found

        pieces, got = iter(self._asked(ask)), 0
        while (piece := self._asked(lambda: next(pieces, None))) is not None:
            self.received += len(piece)
            got += len(piece)
            yield piece
        if got != self.size:
            raise LogError(f"the server sent {got} of {self.size} bytes", path=self.name)

    def _range(self, start: int, stop: int) -> bytes:
        options: Any = {"range": (start, stop)}
        if self._match:
            options["if_match"] = self._match

        def ask() -> bytes:
            found = self._obstore.get(self._store, self.address.key, options=options)
            data = found.bytes()
            self._count(found.meta, len(data))
            return data  # type: ignore[no-any-return]

        return self._asked(ask, BODY_RETRIES)

    def _count(self, meta: Mapping[str, Any], received: int) -> None:
        """Compare the object that answered with the first answer, and count the answer."""
        tag = meta.get("e_tag")
        version = tag or str(meta.get("last_modified") or "")
        with self._lock:
            self.requests += 1
            self.received += received
            if not self._is_open:
                self.size, self.version, self._is_open = int(meta["size"]), version, True
                if (changed := meta.get("last_modified")) is not None:
                    self.changed_ns = int(changed.timestamp()) * 10**9
                # The entity tag of a weak comparison never matches.
                self._match = tag if tag and not tag.startswith("W/") else None
        if (int(meta["size"]), version) != (self.size, self.version):
            raise self._changed()

    def _asked(self, ask: Callable[[], T], retries: int = 0) -> T:
        """Return the result of *ask*, whose errors are replaced by LogErrors without secrets."""
        while True:
            try:
                return ask()
            except (LogError, KeyboardInterrupt):
                raise
            except Exception as error:
                found = self._error_of(error)
                if retries <= 0 or not isinstance(found, _BrokenOffError):
                    # The error of the library contains the address with its query.
                    raise (found.public if isinstance(found, _BrokenOffError) else found) from None
            retries -= 1

    def _changed(self) -> FileChangedError:
        text = "the object on the server was replaced while it was open; what was read is not valid"
        return FileChangedError(text, path=self.name, hint="open it again")

    def _error_of(self, error: Exception) -> Exception:
        """Return what to raise for an error of the library, in words of our own: its words contain addresses."""
        errors = self._obstore.exceptions
        text = str(error)
        status = _STATUS.search(text)
        code = int(status[1]) if status else 0
        reason = f"{status[1]}{status[2]}" if status else ""
        if _NO_CREDENTIALS.search(text):
            return LogError("no credentials were found for it", path=self.name, hint=self._advice())
        if isinstance(error, errors.PreconditionError) or code == 412:
            return self._changed()
        if isinstance(error, FileNotFoundError) or code in (404, 410):
            if self._is_open:
                return self._changed()
            return LogError("there is no such object on the server", path=self.name)
        if isinstance(error, (errors.PermissionDeniedError, errors.UnauthenticatedError)) or code in (
            401,
            403,
        ):
            return LogError(
                f"the server refuses access ({reason or 'no permission'})",
                path=self.name,
                hint=self._advice(),
            )
        if isinstance(error, errors.NotSupportedError) and "ange" in text:
            return NoRangesError()
        if code == 416 or "Requested range was" in text or "InvalidRange" in text:
            return self._changed() if self._is_open else _EmptyError()
        if code >= 500 or code == 429:
            return UnreachableError(f"the server answers {reason}", path=self.name)
        if code:
            return LogError(f"the server answers {reason}", path=self.name)
        if "kind: Timeout" in text or "timed out" in text:
            return UnreachableError("the server does not answer in time", path=self.name)
        if "kind: Connect" in text:
            return UnreachableError("the server cannot be reached", path=self.name)
        if isinstance(error, (errors.InvalidPathError, ValueError)):
            return LogError(
                "the address cannot be used: is it complete, without empty parts?", path=self.name
            )
        if "Content-Length" in text or "ContentLength" in text:
            return LogError("the server does not say how large the object is", path=self.name)
        return _BrokenOffError(UnreachableError("the transfer broke off", path=self.name))

    def _advice(self) -> str:
        service = SERVICES.get(self.address.scheme)
        return f"set {_CREDENTIALS[service]}" if service else "a presigned address may have expired"


class _EmptyError(Exception):
    """The object has no bytes, so that no range of it exists."""


class _BrokenOffError(Exception):
    """A transfer that broke off, which may succeed if it is repeated; *public*: what to raise otherwise."""

    def __init__(self, public: LogError) -> None:
        super().__init__()
        self.public = public


def _import() -> Any:
    try:
        import obstore
        import obstore.exceptions
        import obstore.store
    except ImportError as error:
        raise MissingDependencyError("obstore", "remote") from error
    return obstore


def store_of(address: Address) -> Any:
    """Return the obstore Store of an address, configured by the environment; see docs/howto/remote.md."""
    if address.is_web:
        # With a password or a signature it is not kept longer than it is used.
        make = _web_store if address.root == address.name else _web_store.__wrapped__
        return make(address.root, os.getpid(), *map(os.environ.get, _PROXIES))
    client, service = _client_options(), SERVICES[address.scheme]
    endpoint = os.environ.get(f"{service}_ENDPOINT_URL_S3") or os.environ.get(f"{service}_ENDPOINT_URL") or ""
    if urlsplit(endpoint).hostname in _LOCAL_HOSTS:
        client["allow_http"] = True
    # The library does not read these from the environment if others are given.
    for name in _CLIENT_OPTIONS:
        value = os.environ.get(f"{service}_{name.upper()}")
        if value:
            client[name] = value.lower() in ("1", "true", "yes", "on") if name[:6] == "allow_" else value
    return _import().store.from_url(address.root, client_options=client, retry_config=_retries())


@lru_cache(16)
def _web_store(root: str, *_: object) -> Any:
    """Return the Store of an object of a web server; one takes 5 ms to make, and keeps its connections.

    It belongs to a process and the proxies that its environment names, which are the other arguments.
    """
    # The address states whether the connection is encrypted.
    client = _client_options() | {"allow_http": True}
    parts = urlsplit(root)
    login, at, host = parts.netloc.rpartition("@")
    if at:
        # Sent to no other host, if there is a redirect.
        code = b64encode(":".join(map(unquote, login.split(":", 1))).encode()).decode()
        client["default_headers"] = {"Authorization": f"Basic {code}"}
    plain = urlunsplit(parts._replace(netloc=host))
    return _import().store.HTTPStore.from_url(plain, client_options=client, retry_config=_retries())


def _client_options() -> dict[str, Any]:
    return {"connect_timeout": CONNECT_TIME, "read_timeout": READ_TIME, "timeout": REQUEST_TIME}


def _retries() -> dict[str, Any]:
    return {"max_retries": RETRIES, "retry_timeout": RETRY_TIME}


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
