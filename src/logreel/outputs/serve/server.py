"""The HTTP server on a socket."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from urllib.parse import quote

from logreel.errors import UsageError
from logreel.io.source import Definitions
from logreel.outputs.http.answer import Flows
from logreel.outputs.http.guard import Guard, Rules, is_origin
from logreel.outputs.http.server import HttpServer, valid_token
from logreel.outputs.serve.app import App
from logreel.outputs.serve.catalogue import Catalogue


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
    decrypt      True: also send slices of encrypted logs, which are not encrypted

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
        decrypt: bool = False,
    ) -> None:
        origins = tuple(allow_origins)
        for origin in origins:
            if not is_origin(origin):
                raise UsageError(f"{origin!r} is no origin: write https://tool.example.org")
        #: The token required of requests.
        self.token = valid_token(token)
        tell = tell or _discard
        self._flows = Flows()
        self._app = App(Catalogue(paths), self._flows, tell, definitions, decrypt)
        self._server = HttpServer(host, port)
        #: URL of the service, without the token.
        self.url = self._server.url
        rules = Rules.of(self.token, host, allow_hosts, origins)
        self._guard = Guard(self._app.asgi, rules, tell if log else None)

    @property
    def address(self) -> str:
        """URL of the service, with the token."""
        return f"{self.url}?token={quote(self.token, safe='')}"

    def run(self) -> None:
        """Serve until ``stop`` or a signal; Ctrl-C then raises KeyboardInterrupt."""
        try:
            self._server.run(self._guard, self._flows.stop)
        finally:
            self._app.close()

    def stop(self) -> None:
        """Abort all responses and end ``run``; can be called from any thread."""
        self._server.stop()
