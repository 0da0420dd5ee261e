"""Everything that is made of logs but answers: files, folders, pages, servers and live connections.

``convert`` writes any output that ``registry`` names, ``merge_formats`` one log of several; ``write`` and ``files``
write tables and files that appear complete or not at all. Each folder is a kind of output. The command line, fleets
and ``logreel`` call them; outputs do not call each other's folders.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logreel.limits import FixedLimit


def fixed_limits() -> Iterator[FixedLimit]:
    """Yield the bounds of this room that no option raises."""
    from logreel.limits import FixedLimit
    from logreel.outputs import files
    from logreel.outputs.http import routes, server, websocket_gate
    from logreel.outputs.view import limits as view_limits

    yield FixedLimit(
        "bytes of the head of a request",
        server.HEAD_BYTES,
        "a head is held until it ends",
        "the answer is 431",
    )
    yield FixedLimit(
        "seconds for the head of a request",
        server.HEAD_SECONDS,
        "half a request would hold a connection",
        "the connection is closed",
    )
    yield FixedLimit(
        "seconds in which a client reads nothing",
        server.SLOW_SECONDS,
        "an answer stays in memory until it is read",
        "the connection is closed",
    )
    yield FixedLimit(
        "connections of `serve` and `view`", server.CONNECTIONS, "each takes memory", "the answer is 503"
    )
    yield FixedLimit(
        "connections of one address",
        server.PER_CLIENT,
        "one client must not keep all others out",
        "the answer is 503",
    )
    yield FixedLimit(
        "clients of `play --to foxglove`",
        websocket_gate.CONNECTIONS,
        "each gets all messages that it subscribes to",
        "the answer is 503",
    )
    yield FixedLimit(
        "handshakes of such clients at a time",
        websocket_gate.PENDING,
        "half a handshake would hold a connection",
        "the oldest is closed",
    )
    yield FixedLimit(
        "seconds for such a handshake",
        websocket_gate.HEAD_SECONDS,
        "half a handshake would hold a connection",
        "the connection is closed",
    )
    yield FixedLimit(
        "seconds in which such a client reads nothing",
        websocket_gate.SLOW_SECONDS,
        "messages stay in memory until they are read",
        "the connection is closed",
    )
    yield FixedLimit(
        "bytes of a message of such a client",
        websocket_gate.MESSAGE_BYTES,
        "a message is held until it ends; those of the app have some kB",
        "the connection is closed",
    )
    yield FixedLimit(
        "bytes of a file name from a log", files.MAX_BYTES, "file systems allow 255", "the name is shortened"
    )
    yield FixedLimit(
        "slices that `serve` sends at a time",
        routes.MOST_STREAMS,
        "each one reads a log",
        "the answer is 503",
    )
    yield FixedLimit(
        "logs that these slices read",
        routes.MOST_STREAMED_LOGS,
        "each one is open meanwhile",
        "the answer is 503",
    )
    yield FixedLimit(
        "seconds in which nothing of a slice is taken",
        routes.PATIENCE,
        "it keeps others waiting",
        "the connection is closed",
    )
    yield FixedLimit(
        "characters of an SQL expression in `view`",
        view_limits.SQL_CHARACTERS,
        "a page sends it",
        "`UsageError`",
    )
    yield FixedLimit(
        "seconds of an SQL expression in `view`",
        view_limits.SQL_SECONDS,
        "any number of rows can be joined",
        "`UsageError`",
    )
    yield FixedLimit(
        "rows of an SQL expression in `view`", view_limits.SQL_ROWS, "they are held in memory", "`UsageError`"
    )
    yield FixedLimit(
        "memory of an SQL expression in `view`",
        view_limits.SQL_MEMORY,
        "the server has other requests",
        "`UsageError`",
    )
