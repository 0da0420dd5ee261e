"""The HTTP server on a socket, and its access control: host name, origin, method and token of every request.

Connections have limits of time and number, so that nobody can occupy all of them.

Starlette's ``CORSMiddleware`` answers preflight requests and adds the CORS headers. Its ``TrustedHostMiddleware`` is
not used: it believes the first of several Host headers, knows one spelling of an address only, answers in plain text
with 400, and in older releases cuts IPv6 addresses at their first colon.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
import secrets
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any, Self, TypedDict
from urllib.parse import parse_qs, urlsplit

import h11
import uvicorn
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from logreel.errors import LogError, UsageError

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
    posted   private paths that end so also take POST
    """

    token: str
    hosts: frozenset[str]
    origins: frozenset[str]
    private: str = "/"
    in_query: bool = True
    policy: str = NO_PAGE
    posted: tuple[str, ...] = ()

    def takes(self, method: str, path: str) -> bool:
        """Return whether requests of a method are answered at a path."""
        is_posted = path.startswith(self.private) and path.endswith(self.posted)
        return method in METHODS or (method == "POST" and is_posted)

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
    """ASGI application that passes requests with the right token on to *app*, and refuses all others."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app, self._rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await (self._refusal(scope) or self._app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request with another method or without the token, else None."""
        if not self._rules.takes(scope["method"], scope["path"]):
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


#: Seconds in which the head of a request, and what follows it, must be complete.
HEAD_SECONDS = 10.0
#: Seconds after which a client is dropped that takes nothing of an answer.
SLOW_SECONDS = 60.0
#: Number of connections of one address; a further one takes the place of the oldest that has sent no whole request.
PER_CLIENT = 128
#: Most bytes of the head of a request, its empty line included.
HEAD_BYTES = 16 << 10
_REFUSAL = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_END = re.compile(rb"\n\r?\n")
#: Open connections by address of the client, for each server.
_counts: dict[int, Counter[str]] = {}
#: Those that have not sent their first whole request, in the order in which they came, by server and address.
_waiting: dict[tuple[int, str], dict[LimitedConnection, None]] = {}


class LimitedConnection(H11Protocol):
    """A connection that is closed when its client is too slow, or has too many others, unfinished ones first."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._head: asyncio.TimerHandle | None = None
        self._slow: asyncio.TimerHandle | None = None
        self._address = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request; refuse a connection beyond those that a client may have."""
        super().connection_made(transport)
        # The set of all connections of a server is the same object for each of them.
        counts = _counts.setdefault(id(self.connections), Counter())
        self._address = self.client[0] if self.client else ""
        counts[self._address] += 1
        key = id(self.connections), self._address
        if counts[self._address] > PER_CLIENT:
            oldest = next(iter(_waiting.get(key, ())), None)
            if oldest is None:
                transport.write(_REFUSAL)
                transport.close()
                return
            oldest.has_asked()
            oldest.give_up()
        _waiting.setdefault(key, {})[self] = None
        self._head = self.loop.call_later(HEAD_SECONDS, self.give_up)

    def data_received(self, data: bytes) -> None:
        """Handle bytes of a request, whose first ones start the time for all of it."""
        super().data_received(data)
        is_idle = self.cycle is None or self.cycle.response_complete
        if not is_idle:
            self.has_asked()
        if not is_idle and self.conn.their_state is not h11.SEND_BODY:
            _cancelled(self._head)
            self._head = None
        elif self._head is None and self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._head = self.loop.call_later(HEAD_SECONDS, self.give_up)

    def handle_events(self) -> None:
        """Handle what was received; refuse a head of more than HEAD_BYTES, which h11 accepts if it arrives at once."""
        if self.conn.their_state is h11.IDLE:
            waiting = self.conn.trailing_data[0]
            if len(waiting) > HEAD_BYTES and _END.search(waiting, 0, HEAD_BYTES) is None:
                self.transport.write(_TOO_LARGE)
                self.transport.close()
                return
        super().handle_events()

    def on_response_complete(self) -> None:
        """Wait for the next request; the time for it begins with its first byte."""
        if self.conn.their_state is not h11.SEND_BODY:
            _cancelled(self._head)
            self._head = None
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Wait for the client to take what was sent."""
        super().pause_writing()
        _cancelled(self._slow)
        self._slow = self.loop.call_later(SLOW_SECONDS, self.give_up)

    def resume_writing(self) -> None:
        """Go on sending."""
        _cancelled(self._slow)
        self._slow = None
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count the connection no longer."""
        _cancelled(self._head)
        _cancelled(self._slow)
        key = id(self.connections)
        self.has_asked()
        super().connection_lost(exc)
        counts = _counts.get(key, Counter())
        counts[self._address] -= 1
        if counts[self._address] <= 0:
            del counts[self._address]
        if not counts:
            _counts.pop(key, None)

    def has_asked(self) -> None:
        """Note that its first request is here, or never will be."""
        key = id(self.connections), self._address
        others = _waiting.get(key, {})
        others.pop(self, None)
        if not others:
            _waiting.pop(key, None)

    def give_up(self) -> None:
        """Close the connection at once."""
        self.transport.abort()


def _cancelled(timer: asyncio.TimerHandle | None) -> None:
    """Cancel a timer if there is one."""
    if timer is not None:
        timer.cancel()


#: Maximum number of connections; more are refused with 503.
CONNECTIONS = 512
#: Seconds that connections have to finish when the service stops.
SHUTDOWN = 1
#: Valid tokens: fit into a header, and are hard to guess.
TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,200}")
_ANY = ("0.0.0.0", "::", "")


def valid_token(token: str | None) -> str:
    """Return *token*, or a random one for None; raises UsageError for an invalid one."""
    if token is not None and not TOKEN.fullmatch(token):
        raise UsageError("a token has 16 to 200 letters, digits and characters of -._~+/=")
    return token or secrets.token_urlsafe(24)


class EndpointOptions(TypedDict, total=False):
    """Members of an Endpoint as keyword arguments; see there."""

    host: str
    port: int
    token: str | None
    allow_hosts: Iterable[str]
    log: bool


class OpenEndpointOptions(EndpointOptions, total=False):
    """The same, of a service that pages of other origins may use."""

    allow_origins: Iterable[str]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server listens, and who may ask it.

    host, port   address to listen at; port 0: any free port
    token        required of requests; None: a random one
    allow_hosts  further host names accepted in requests
    log          also report every request
    allow_origins  accepted origins of web pages: ``https://tool.example.org``

    """

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    allow_hosts: Iterable[str] = ()
    log: bool = False
    allow_origins: Iterable[str] = ()

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Return the Endpoint with these members and a token.

        Raises UsageError for an invalid token or origin.
        """
        hosts, origins = tuple(options.get("allow_hosts", ())), tuple(options.get("allow_origins", ()))
        for origin in origins:
            if not is_origin(origin):
                raise UsageError(f"{origin!r} is no origin: write https://tool.example.org")
        endpoint = cls(**options)
        token = valid_token(endpoint.token)
        return replace(endpoint, token=token, allow_hosts=hosts, allow_origins=origins)

    def listen(self) -> HttpServer:
        """Return a server that listens here; raises LogError if it cannot."""
        return HttpServer(self.host, self.port)

    def guarded(self, app: ASGIApp, tell: Callable[[str], None], **rules: Any) -> Guard:
        """Return *app* behind the checks of Host, Origin and token; *rules*: further members of ``Rules``."""
        checks = Rules.of(self.token or "", self.host, self.allow_hosts, self.allow_origins, **rules)
        return Guard(app, checks, tell if self.log else None)


class HttpServer:
    """A socket that listens as soon as it is created, and the server that answers an application's requests on it.

    host, port  address to listen at; port 0: any free port

    url   URL of the server
    port  port that it listens at

    Raises LogError if it cannot listen.
    """

    def __init__(self, host: str, port: int) -> None:
        self._socket = listen(host, port)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://{named(host)}:{self.port}/"
        self._server: _Server | None = None
        self._stopped = False

    def run(self, app: ASGIApp, on_shutdown: Callable[[], None], *, signals: bool = True) -> None:
        """Answer requests until ``stop`` or a signal; Ctrl-C then raises KeyboardInterrupt.

        on_shutdown  called when it begins to shut down, to end answers that would go on
        signals      False: run in a thread, where signals are left to the main thread
        """
        config = uvicorn.Config(
            app,
            http=LimitedConnection,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=SHUTDOWN,
        )
        server = self._server = _Server(config, on_shutdown)
        server.should_exit = self._stopped
        try:
            server.run(sockets=[self._socket])
        finally:
            self._socket.close()
        # Nothing was raised if the shell ignores interrupts, as in the background of a script.
        if signals and server.interrupted:
            raise KeyboardInterrupt

    def stop(self) -> None:
        """End ``run``; can be called from any thread, also before ``run``."""
        self._stopped = True
        if self._server is not None:
            self._server.should_exit = True

    def close(self) -> None:
        """Stop, and close the socket of a server that was never run."""
        self.stop()
        if self._server is None:
            self._socket.close()


class _Server(uvicorn.Server):
    """Calls a function at shutdown."""

    def __init__(self, config: uvicorn.Config, on_shutdown: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_shutdown = on_shutdown
        self.interrupted = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.interrupted = sig == signal.SIGINT
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_shutdown()
        await super().shutdown(sockets)


def named(host: str) -> str:
    """Return the name in the URL of a server that listens at *host*."""
    return "localhost" if host in _ANY else f"[{host}]" if ":" in host else host


def free_or_any(host: str, port: int) -> int:
    """Return *port* if nobody listens there, else 0, which means any free port."""
    try:
        listen(host, port).close()
    except LogError:
        return 0
    return port


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address; port 0: any free port. Raises LogError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise LogError(f"cannot listen at {host or 'any address'}, port {port}: {why}") from None
