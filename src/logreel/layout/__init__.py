"""Bytes of messages as trees of nodes, compiled to programs that decode and encode many messages at once.

``nodes`` are the parts that a definition consists of; ``layout.Layout`` is a whole message. ``decode`` and ``encode``
turn single messages into Python values and back, ``arrow`` many of them into columns. Called by everything that reads
or writes fields; knows neither logs nor definition languages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logreel.limits import FixedLimit


def fixed_limits() -> Iterator[FixedLimit]:
    """Yield the bounds of this room that no option raises."""
    from logreel.kernels import layout as layout_kernel
    from logreel.layout import nodes
    from logreel.limits import REFUSED, FixedLimit

    beyond = "the message is listed as a problem `payload`"
    yield FixedLimit("bytes of a message", nodes.MAX_SIZE, "Arrow's offsets have 32 bits", beyond)
    yield FixedLimit(
        "items without bytes",
        layout_kernel.SPARE,
        "nothing else limits their number: a message may have so many more than it has bytes",
        beyond,
    )
    yield FixedLimit("leaves of a layout", nodes.MAX_LEAVES, "nested definitions double", REFUSED)
    yield FixedLimit("depth of a layout", nodes.MAX_DEPTH, "definitions may contain each other", REFUSED)
