"""Who may ask: those who know the token, by a name of ours, from a page of ours, and to read only."""

from __future__ import annotations

import hmac
import ipaddress
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::(\d{1,5}))?")
LOCAL = ("localhost", "127.0.0.1", "::1")
METHODS = ("GET", "HEAD")
_HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    # A token in the address must not travel further.
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}


@dataclass(frozen=True, slots=True)
class Rules:
    """What is let in.

    token    that must come along
    hosts    names by which the service may be called, lower case
    origins  of pages elsewhere that may ask
    """

    token: str
    hosts: frozenset[str]
    origins: frozenset[str]

    @classmethod
    def of(cls, token: str, host: str, hosts: Iterable[str], origins: Iterable[str]) -> Rules:
        """Those for a service at *host*, which is also called *hosts*."""
        names = {_name(one.lower()) for one in (*LOCAL, host, *hosts)}
        return cls(token, frozenset(names), frozenset(one.rstrip("/") for one in origins))


def _name(host: str) -> str:
    """One spelling for each address."""
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return host.rstrip(".")


class Guard:
    """Lets requests through to *app*, or answers them with what is wrong; an application of ASGI."""

    def __init__(self, app: ASGIApp, rules: Rules, log: Callable[[str], None] | None) -> None:
        self._app, self._rules, self._log = app, rules, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = _Headers(scope["headers"])
        origin = headers.one("origin")
        extra = dict(_HEADERS)
        if origin in self._rules.origins:
            extra |= {
                "access-control-allow-origin": origin,
                "access-control-expose-headers": "Content-Disposition, Logreel-Lost, Logreel-Skipped",
                "vary": "Origin",
            }
        started, status, size = time.monotonic(), 0, 0

        async def sent(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", ()),
                    *((name.encode(), value.encode("latin-1")) for name, value in extra.items()),
                ]
            size += len(message.get("body", b""))
            await send(message)

        try:
            await (self._refusal(scope, headers, origin) or self._app)(scope, receive, sent)
        finally:
            if self._log is not None:
                client = (scope.get("client") or ("?",))[0]
                took = time.monotonic() - started
                # Without the query, which may hold the token.
                self._log(f"{client} {scope['method']} {scope['path']} {status} {size} bytes {took:.3f} s")

    def _refusal(self, scope: Scope, headers: _Headers, origin: str) -> Response | None:
        """The answer to a request that is not let through."""
        host = _HOST.fullmatch(headers.one("host"))
        if host is None or _name(host[1].lower()) not in self._rules.hosts:
            return _no(
                403,
                "this service is not known by that name in the Host header; names are allowed at its start",
            )
        ours = (f"http://{host[0]}".lower(), "")
        if headers.count("origin") > 1 or (origin.lower() not in ours and origin not in self._rules.origins):
            return _no(403, "pages of another origin may not ask, unless the service was started so")
        if scope["method"] == "OPTIONS" and origin in self._rules.origins:
            allowed = {
                "Access-Control-Allow-Methods": "GET, HEAD",
                "Access-Control-Allow-Headers": "Authorization",
            }
            return Response(status_code=204, headers=allowed)
        if scope["method"] not in METHODS:
            return _no(405, "logs are only read here: use GET or HEAD", {"Allow": "GET, HEAD"})
        if not self._knows(scope, headers):
            text = "the token is missing or wrong: send 'Authorization: Bearer TOKEN' or ?token=TOKEN"
            return _no(401, text, {"WWW-Authenticate": 'Bearer realm="logreel"'})
        return None

    def _knows(self, scope: Scope, headers: _Headers) -> bool:
        kind, _, given = headers.one("authorization").partition(" ")
        if kind.lower() != "bearer":
            query = parse_qs(scope["query_string"].decode("latin-1"))
            given = "".join(query.get("token", [])[:1])
        return hmac.compare_digest(given.strip().encode(), self._rules.token.encode())


class _Headers:
    """Headers by name; one that comes several times where it may come once is none that could be trusted."""

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self._all = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in raw]

    def count(self, name: str) -> int:
        return sum(one == name for one, _ in self._all)

    def one(self, name: str) -> str:
        found = [value for one, value in self._all if one == name]
        return found[0] if len(found) == 1 else ""


def _no(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": text}, status, headers)


def is_origin(text: str) -> bool:
    """Whether *text* is an origin as browsers write it: ``https://host:port``."""
    parts = urlsplit(text)
    return parts.scheme in ("http", "https") and bool(parts.netloc) and not parts.path.strip("/")
