"""The viewer: a server on this machine for the pages of a browser."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Mapping, Sequence
from html import escape
from threading import Thread
from typing import TYPE_CHECKING, Any, Self, Unpack
from urllib.parse import quote

from logreel.errors import UsageError
from logreel.meaning.layouts import checked_layout
from logreel.ops.selection import check_keywords, keywords
from logreel.outputs.http.server import LOCAL, Endpoint, EndpointOptions
from logreel.outputs.view.app import app_of, routes
from logreel.outputs.view.limits import LOGS
from logreel.outputs.view.session import Session
from logreel.outputs.view.start import prepare
from logreel.registry.open import is_pattern, several_logs

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable
    from logreel.log.log import Log


#: What the page may load: its own files, and pictures that it made from answers.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
)
#: Pages that may show the viewer in a frame: none, or notebooks on this machine.
NO_FRAME, NOTEBOOK = "'none'", "http://localhost:* http://127.0.0.1:*"
#: Height of the frame in a notebook, in pixels.
HEIGHT = 720


def _discard(text: str) -> None:
    """Discard *text*."""


class Viewer:
    """Shows logs to a browser on this machine; listens when created.

    logs         paths, anything else that ``logreel.open`` takes, and open Logs; each is one log of the viewer
    follow       watch the files for growth
    layout       a layout as JSON data, such as the page saves; None: plots that fit the log
    tiles        path of a PMTiles file, or address of map tiles; None: the map without tiles
    meshes       folder with the meshes that descriptions of robots name; None: robots without meshes
    in_notebook  let pages of this machine show the viewer in a frame
    tell         called with sentences about errors of the viewer itself; None: not reported
    definitions  as for ``logreel.open``
    decrypt      True: the page can also save parts of encrypted logs, as files that are not encrypted, and show them to
                 other machines than that of the viewer
    options      members of ``Endpoint``: host, port, token, allow_hosts (needed for a host other than this
                 machine), and log to report every request

    Raises UsageError for an invalid token, host or layout and without a log, OSError for a missing file, LogError
    if it cannot listen.
    """

    @keywords(EndpointOptions, Endpoint)
    def __init__(
        self,
        logs: Sequence[Openable | Log],
        *,
        follow: bool = False,
        layout: Mapping[str, Any] | None = None,
        tiles: str | None = None,
        meshes: str | None = None,
        in_notebook: bool = False,
        tell: Callable[[str], None] | None = None,
        definitions: Definitions = (),
        decrypt: bool = False,
        **options: Unpack[EndpointOptions],
    ) -> None:
        check_keywords(Viewer.__init__, options)
        if not logs:
            raise UsageError("a viewer needs a log to show")
        if layout is not None:
            checked_layout(layout)
        endpoint = Endpoint.of(options)
        if meshes is not None and not os.path.isdir(meshes):
            raise UsageError("is no folder of meshes", path=meshes)
        if not endpoint.allow_hosts and not _is_local(endpoint.host):
            raise UsageError(
                f"{endpoint.host!r} is not this machine alone: name the hosts as which others reach it (allow_hosts)"
            )
        sources = [source for recording in logs for source in _sources(recording, follow)]
        #: The token required of requests about the logs.
        self.token = endpoint.token or ""
        tell = tell or _discard
        self._server = endpoint.listen()
        #: URL of the viewer, without the token.
        self.url = self._server.url
        self._session = Session(
            sources,
            follow=follow,
            layout=layout,
            tiles=tiles,
            meshes=meshes,
            definitions=definitions,
            decrypt=decrypt,
            leaves=not _is_local(endpoint.host),
            tell=tell,
            prepare=prepare,
        )
        self._app = app_of(self._session, tell)
        policy = POLICY + (NOTEBOOK if in_notebook else NO_FRAME)
        posted = tuple(route.path.rpartition("}")[2] for route in routes() if route.body_bytes)
        self._guard = endpoint.guarded(
            self._app, tell, private="/api/", in_query=False, policy=policy, posted=posted
        )
        self._thread: Thread | None = None

    @property
    def address(self) -> str:
        """URL of the viewer with the token behind ``#``, which browsers do not send to servers."""
        return f"{self.url}#token={quote(self.token, safe='')}"

    def run(self, *, signals: bool = True) -> None:
        """Serve until ``close`` or a signal; Ctrl-C then raises KeyboardInterrupt.

        signals  False: run in a thread, where signals are left to the main thread
        """
        try:
            self._server.run(self._guard, self._session.close, signals=signals)
        finally:
            self._session.close()
            self._app.close()

    def start(self) -> Self:
        """Serve in a thread; return the viewer itself."""
        if self._thread is None:
            self._thread = Thread(
                target=self.run, kwargs={"signals": False}, name="logreel-view-server", daemon=True
            )
            self._thread.start()
        return self

    def close(self) -> None:
        """Stop serving; can be called from any thread."""
        self._server.close()
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<logreel.Viewer at {self.url}>"

    def _repr_html_(self) -> str:
        """Return a frame with the viewer, for notebooks."""
        address = escape(self.address, quote=True)
        return (
            f'<iframe src="{address}" width="100%" height="{HEIGHT}" style="border:0" '
            'allow="fullscreen"></iframe>'
        )


def _sources(item: Openable | Log, follow: bool) -> list[Any]:
    """Return the logs that one argument means: those of a list or pattern, and all in and below a folder.

    Raises OSError for a missing file, UsageError for a folder without logs or with too many.
    """
    if isinstance(item, (list, tuple)):
        return [source for part in item for source in _sources(part, follow)]
    if not isinstance(item, (str, os.PathLike)):
        return [item]
    path = os.fspath(item)
    if isinstance(path, str) and is_pattern(path):
        return [*several_logs(path)]
    if not os.path.isdir(path):
        if not follow:
            os.stat(path)
        return [path]
    # Folders are few: not imported for files.
    from logreel.outputs.serve.catalogue import LogCatalogue

    paths = [os.fspath(entry.path) for entry in LogCatalogue([path]).list()]
    if not paths:
        raise UsageError("has no log", path=path)
    if len(paths) > LOGS:
        raise UsageError(f"has {len(paths)} logs: name up to {LOGS} of them", path=path)
    return paths


def _is_local(host: str) -> bool:
    try:
        return host in LOCAL or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def view(*logs: Openable | Log, **options: Any) -> Viewer:
    """Return a Viewer of *logs*, which serves in a thread until it is closed; options are those of Viewer.

    Notebooks show it as a frame; elsewhere, open its ``address`` in a browser.
    """
    return Viewer(logs, **{"in_notebook": True, **options}).start()
