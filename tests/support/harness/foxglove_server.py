"""A genuine server of the Foxglove WebSocket protocol, of foxglove-sdk."""

from __future__ import annotations

from typing import Any

import pytest

from support.harness.live_sources import wait_for

foxglove = pytest.importorskip("foxglove")


class Server:
    """A server of foxglove-sdk."""

    def __init__(self, port: int = 0, backlog: int = 1 << 16, **options: Any) -> None:
        self.context = foxglove.Context()
        self._server = foxglove.start_server(
            host="127.0.0.1", port=port, context=self.context, message_backlog_size=backlog, **options
        )
        self.port, self.url = self._server.port, f"ws://127.0.0.1:{self._server.port}"

    def channel(self, topic: str, encoding: str = "json", schema: Any = None) -> Any:
        return foxglove.Channel(topic, message_encoding=encoding, schema=schema, context=self.context)

    def stop(self) -> None:
        self._server.stop()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


def subscribed(*channels: Any) -> None:
    """Wait until channels have a subscriber."""
    wait_for(lambda: all(one.has_sinks() for one in channels))
