"""The HTTP server on a socket."""

from __future__ import annotations

import re
import secrets
import signal
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from logreel.errors import LogError, UsageError
from logreel.outputs.http.connection import LimitedConnection

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


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address; port 0: any free port. Raises LogError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise LogError(f"cannot listen at {host or 'any address'}, port {port}: {why}") from None
