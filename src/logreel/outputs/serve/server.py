"""The service as a server on a socket."""

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

#: Connections at one time; more are refused with 503.
CONNECTIONS = 512
#: Seconds that connections have to end when the service does.
LEAVE = 1
#: What a token may be, so that it fits into a header and cannot be guessed.
TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,200}")
_ANY = ("0.0.0.0", "::", "")


def _silent(text: str) -> None:
    """Nobody wants to know."""


class Service:
    """Slices of the logs at and below *paths* over HTTP, read only; listens as soon as it is made.

    host, port   where to listen; port 0: any that is free
    token        that every request has to bring; None: a random one
    allow_hosts  further names by which the service may be called
    allow_origins  of pages elsewhere that may ask: ``https://tool.example.org``
    tell         called with a sentence about what happens; None: nothing is told
    log          also tell of every request
    definitions  as for ``logreel.open``; a type is that of a topic in whatever log

    Raises UsageError for a token or an origin that is none, LogError where it cannot listen, OSError for a path that
    is not there, UnknownFormatError for a file that is no log.
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
        tell = tell or _silent
        #: The token that requests have to bring.
        self.token = token or secrets.token_urlsafe(24)
        self._flows = Flows()
        self._app = App(Catalogue(paths), self._flows, tell, definitions)
        self._socket = _listen(host, port)
        name = "localhost" if host in _ANY else f"[{host}]" if ":" in host else host
        #: Where the service is, without the token.
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
            timeout_graceful_shutdown=LEAVE,
        )
        self._server = _Server(config, self._flows)

    @property
    def address(self) -> str:
        """Where the service is, with the token."""
        return f"{self.url}?token={quote(self.token, safe='')}"

    def run(self) -> None:
        """Serve until ``stop`` or a signal; Ctrl-C then raises KeyboardInterrupt."""
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._app.close()
            self._socket.close()
        # Where the shell has interrupts ignored, as in the background of a script, nothing was raised.
        if self._server.interrupted:
            raise KeyboardInterrupt

    def stop(self) -> None:
        """Break off what is being sent and end ``run``; from any thread."""
        self._server.should_exit = True


class _Server(uvicorn.Server):
    """Breaks off what is being sent when it has to end."""

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
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise LogError(f"cannot listen at {host or 'any address'}, port {port}: {why}") from None
