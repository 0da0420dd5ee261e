"""Access control: host name, origin, method and token of every request.

Starlette's ``CORSMiddleware`` answers preflight requests and adds the CORS headers. Its ``TrustedHostMiddleware`` is
not used: it believes the first of several Host headers, knows one spelling of an address only, answers in plain text
with 400, and in older releases cuts IPv6 addresses at their first colon.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from logreel.dataclass import dataclass

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::(\d{1,5}))?")
LOCAL = ("localhost", "127.0.0.1", "::1")
METHODS = ("GET", "HEAD")
#: Headers of answers that a page of another origin may read.
EXPOSED = ("Content-Disposition", "Logreel-Lost", "Logreel-Skipped")
_HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    # A token in the address must not reach other sites.
    "referrer-policy": "no-referrer",
}
#: Content-Security-Policy of answers that are no pages.
NO_PAGE = "default-src 'none'; frame-ancestors 'none'"


@dataclass(frozen=True, slots=True)
class Rules:
    """Which requests are accepted.

    token    required of every request
    hosts    accepted names in the Host header, lower case
    origins  accepted origins of pages that are not part of the service
    private  all paths that begin so need the token
    in_query  whether the token may also be the parameter ``token`` of the address
    policy   Content-Security-Policy of all answers
    """

    token: str
    hosts: frozenset[str]
    origins: frozenset[str]
    private: str = "/"
    in_query: bool = True
    policy: str = NO_PAGE

    @classmethod
    def of(
        cls, token: str, host: str, hosts: Iterable[str], origins: Iterable[str] = (), **others: Any
    ) -> Rules:
        """Return the rules of a service that listens at *host* and has the further names *hosts*; *others*: fields."""
        names = {_normal_name(name.lower()) for name in (*LOCAL, host, *hosts)}
        return cls(token, frozenset(names), frozenset(map(_normal_origin, origins)), **others)

    def wrong_sender(self, headers: Headers) -> str:
        """Return what is wrong with the Host or Origin header of a request; empty if it is accepted."""
        host = _HOST.fullmatch(headers.only("host"))
        if host is None or _normal_name(host[1].lower()) not in self.hosts:
            return "this service is not known by that name in the Host header; names are allowed at its start"
        origin = headers.only("origin")
        own = (f"http://{host[0]}".lower(), "")
        if headers.count("origin") > 1 or (origin.lower() not in own and origin not in self.origins):
            return "pages of another origin may not ask, unless the service was started so"
        return ""

    def has_token(self, headers: Headers, query: bytes) -> bool:
        """Return whether a request has the token, in its headers or in the query of its address."""
        scheme, _, token = headers.only("authorization").partition(" ")
        if scheme.lower() != "bearer":
            if not self.in_query or headers.count("authorization"):
                return False
            tokens = parse_qs(query.decode("latin-1")).get("token", [])
            token = tokens[0] if len(tokens) == 1 else ""
        return hmac.compare_digest(token.strip().encode(), self.token.encode())


def _normal_name(host: str) -> str:
    """Return *host* with one spelling per IP address and without a final dot."""
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return host.rstrip(".")


def _normal_origin(origin: str) -> str:
    """Return *origin* without a final slash; ``file://`` is complete as it is."""
    return origin if origin.endswith("://") else origin.rstrip("/")


class Guard:
    """ASGI application that passes accepted requests on to *app* and answers all others with an error.

    log  called with a line for each request; None: no log
    """

    def __init__(self, app: ASGIApp, rules: Rules, log: Callable[[str], None] | None) -> None:
        self._rules, self._log = rules, log
        self._app = CORSMiddleware(
            TokenGuard(app, rules),
            allow_origins=tuple(rules.origins),
            allow_methods=METHODS,
            allow_headers=("Authorization",),
            expose_headers=EXPOSED,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        started, status, size = time.monotonic(), 0, 0
        headers = {**_HEADERS, "content-security-policy": self._rules.policy}

        async def send_counted(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", ()),
                    *((name.encode(), value.encode("latin-1")) for name, value in headers.items()),
                ]
            size += len(message.get("body", b""))
            await send(message)

        try:
            await (self._refusal(scope) or self._app)(scope, receive, send_counted)
        finally:
            if self._log is not None:
                client = (scope.get("client") or ("?",))[0]
                took = time.monotonic() - started
                # Without the query, which may hold the token.
                self._log(f"{client} {scope['method']} {scope['path']} {status} {size} bytes {took:.3f} s")

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request with a Host or Origin header that is not accepted, else None."""
        why = self._rules.wrong_sender(Headers(scope["headers"]))
        return _error(403, why) if why else None


class TokenGuard:
    """ASGI application that passes requests to read with the right token on to *app*, and refuses all others."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app, self._rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await (self._refusal(scope) or self._app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request with another method or without the token, else None."""
        if scope["method"] not in METHODS:
            return _error(405, "logs are only read here: use GET or HEAD", {"Allow": "GET, HEAD"})
        if scope["path"].startswith(self._rules.private) and not self._rules.has_token(
            Headers(scope["headers"]), scope["query_string"]
        ):
            text = "the token is missing or wrong: send 'Authorization: Bearer TOKEN'"
            text += " or ?token=TOKEN" if self._rules.in_query else ""
            return _error(401, text, {"WWW-Authenticate": 'Bearer realm="logreel"'})
        return None


class Headers:
    """Headers of a request by lower-case name; a header that is repeated counts as missing."""

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self._all = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in raw]

    def count(self, name: str) -> int:
        """Return the number of headers with this name."""
        return sum(other == name for other, _ in self._all)

    def only(self, name: str) -> str:
        """Return the value of a header that is sent exactly once, else the empty string."""
        values = [value for other, value in self._all if other == name]
        return values[0] if len(values) == 1 else ""


def _error(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": text}, status, headers)


def is_origin(text: str) -> bool:
    """Return whether *text* is an origin as browsers send it: ``https://host:port``."""
    parts = urlsplit(text)
    return parts.scheme in ("http", "https") and bool(parts.netloc) and not parts.path.strip("/")
