"""The HTTP server on a socket."""

from __future__ import annotations

import os
import re
import secrets
import signal
import socket
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from urllib.parse import quote

import uvicorn

from logreel.errors import LogError, UsageError
from logreel.io.source import Definitions
from logreel.outputs.serve.answer import Flows
from logreel.outputs.serve.app import App
from logreel.outputs.serve.catalogue import Catalogue
from logreel.outputs.serve.guard import Guard, Rules, is_origin

#: Maximum number of connections; more are refused with 503.
CONNECTIONS = 512
#: Seconds that connections have to finish when the service stops.
SHUTDOWN = 1
#: Valid tokens: fit into a header, and are hard to guess.
TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,200}")
_ANY = ("0.0.0.0", "::", "")


def _discard(text: str) -> None:
    """Discard *text*."""


class Service:
    """Serves the logs at and below *paths* and slices of them over HTTP, read-only; listens when created.

    host, port   address to listen at; port 0: any free port
    token        required of every request; None: a random one
    allow_hosts  further host names accepted in requests
    allow_origins  accepted origins of web pages: ``https://tool.example.org``
    tell         called with sentences about events; None: not reported
    log          True: also report every request
    definitions  as for ``logreel.open``; types are for topics of any of the logs

    Raises UsageError for an invalid token or origin, LogError if it cannot listen, OSError for a missing path,
    UnknownFormatError for a file that is no log.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        allow_hosts: Iterable[str] = (),
        allow_origins: Iterable[str] = (),
        tell: Callable[[str], None] | None = None,
        log: bool = False,
        definitions: Definitions = (),
    ) -> None:
        origins = tuple(allow_origins)
        for origin in origins:
            if not is_origin(origin):
                raise UsageError(f"{origin!r} is no origin: write https://tool.example.org")
        if token is not None and not TOKEN.fullmatch(token):
            raise UsageError("a token has 16 to 200 letters, digits and characters of -._~+/=")
        tell = tell or _discard
        #: The token required of requests.
        self.token = token or secrets.token_urlsafe(24)
        self._flows = Flows()
        self._app = App(Catalogue(paths), self._flows, tell, definitions)
        self._socket = _listen(host, port)
        name = "localhost" if host in _ANY else f"[{host}]" if ":" in host else host
        #: URL of the service, without the token.
        self.url = f"http://{name}:{self._socket.getsockname()[1]}/"
        rules = Rules.of(self.token, host, allow_hosts, origins)
        guard = Guard(self._app.asgi, rules, tell if log else None)
        config = uvicorn.Config(
            guard,
            http="h11",
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
        self._server = _Server(config, self._flows)

    @property
    def address(self) -> str:
        """URL of the service, with the token."""
        return f"{self.url}?token={quote(self.token, safe='')}"

    def run(self) -> None:
        """Serve until ``stop`` or a signal; Ctrl-C then raises KeyboardInterrupt."""
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._app.close()
            self._socket.close()
        # Nothing was raised if the shell ignores interrupts, as in the background of a script.
        if self._server.interrupted:
            raise KeyboardInterrupt

    def stop(self) -> None:
        """Abort all responses and end ``run``; can be called from any thread."""
        self._server.should_exit = True


class _Server(uvicorn.Server):
    """Aborts all responses at shutdown."""

    def __init__(self, config: uvicorn.Config, flows: Flows) -> None:
        super().__init__(config)
        self._flows = flows
        self.interrupted = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.interrupted = sig == signal.SIGINT
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._flows.stop()
        await super().shutdown(sockets)


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raises LogError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise LogError(f"cannot listen at {host or 'any address'}, port {port}: {why}") from None
