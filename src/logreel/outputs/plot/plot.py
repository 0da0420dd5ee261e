"""Plots: fields of a log as curves, and the ways to show them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import IO, TYPE_CHECKING, cast

from logreel.errors import UsageError
from logreel.io.atomic_file import keep_sources
from logreel.io.output_stream import Destination, name_and_stream
from logreel.log.decrypted import refusal
from logreel.log.joined_log import inputs_of
from logreel.log.times import Time, duration_text, shift_of, utc_shift, utc_text
from logreel.meaning.curves import curves
from logreel.outputs.files import new_file
from logreel.outputs.plot.panels import Panel, Panels
from logreel.registry.open_logs import as_open_log

if TYPE_CHECKING:
    from logreel.log.joined_log import Openable
    from logreel.log.log import Log

Renderer = Callable[[Panels, IO[bytes]], None]
#: Module and function for each suffix. A new kind of file is a line here.
RENDERERS = {
    ".png": ("logreel.outputs.plot.picture", "write_png"),
    ".svg": ("logreel.outputs.plot.picture", "write_svg"),
    ".pdf": ("logreel.outputs.plot.picture", "write_pdf"),
    ".html": ("logreel.outputs.plot.page", "write"),
}


class Plot(Panels):
    """Curves of a log, which can be shown as text, pictures and pages; ``logreel.plot`` makes it."""

    #: Why it must not be written to a file; None: it may.
    _refusal: UsageError | None = None

    def __repr__(self) -> str:
        names = [curve.name for panel in self.panels for curve in panel.curves]
        first, last = self.span
        some = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        return f"<logreel.Plot of {some}: {duration_text(last - first)}>"

    def text(self, width: int = 100, height: int = 0, color: bool = False) -> str:
        """Return the plot as text of *width* columns; needs ``logreel[plot]``.

        height  lines for all panels; 0: 14 for each
        color   True: with escape sequences for colours
        """
        from logreel.outputs.plot.terminal import chart

        return chart(self, width, height, color)

    def save(self, out: Destination, *, format: str | None = None, force: bool = False) -> None:
        """Write the plot to *out*: ``.png``, ``.svg`` or ``.pdf`` (needs ``logreel[plot]``), or ``.html``.

        out     path, whose suffix selects the kind of file, or a binary file object
        format  the suffix, for a file object
        force   replace an existing file

        Raises UsageError for an encrypted log that was not opened with ``decrypt=True``.
        """
        if self._refusal is not None:
            raise self._refusal
        name, stream = name_and_stream(out)
        write = renderer(format or name)
        if stream is None:
            keep_sources(name, self.inputs)
        with new_file(name, force, stream, seeks=True) as file:
            write(self, file)

    def _repr_html_(self) -> str:
        from logreel.outputs.plot.page import frame

        return frame(self)


def renderer(name: str) -> Renderer:
    """Return the function that writes files with the suffix of *name*; raises UsageError for an unknown one."""
    suffix = os.path.splitext(name)[1].lower() or f".{name.lower().removeprefix('.')}"
    if suffix not in RENDERERS:
        raise UsageError(f"{suffix!r} is no kind of plot; there are {', '.join(RENDERERS)}")
    module, function = RENDERERS[suffix]
    return cast(Renderer, getattr(import_module(module), function))


def plot(
    log: Openable | Log,
    *fields: str | Iterable[str],
    start: Time | None = None,
    end: Time | None = None,
    utc: bool = False,
) -> Plot:
    """Return a Plot of fields over time.

    log         a path, or an open Log
    fields      a panel each: ``topic.field``, ``topic:field,field``, a topic with numeric fields, or a list of these
    start, end  as for ``Channel.to_arrow``
    utc         axis of UTC times, for logs with a known offset to UTC

    Raises TopicError and NotFoundError for unknown names, UsageError for fields without numbers.
    """
    with as_open_log(log) as opened:
        if not fields:
            raise UsageError("say what to plot: topic.field", path=opened.name)
        panels = [Panel(tuple(curves(opened, wanted, start, end))) for wanted in fields]
        found = Plot(
            opened.name, panels, opened.start or 0, shift_of(opened, utc), _begins(opened), inputs_of(opened)
        )
        # Its class is frozen, and has no such field.
        object.__setattr__(found, "_refusal", refusal(opened))
        return found


def _begins(log: Log) -> str:
    """Return what the seconds of the axis count from."""
    shift = utc_shift(log)
    if shift is None or log.start is None:
        return "the start"
    return utc_text(log.start + shift, 3)
