"""Reports: everything that a person should see of a log first, as one page that works offline."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from logreel.dataclass import dataclass, field
from logreel.errors import UsageError
from logreel.io.atomic_file import keep_sources
from logreel.io.output_stream import Destination, name_and_stream
from logreel.log.decrypted import decrypted_notes
from logreel.log.joined_log import inputs_of
from logreel.log.scan import Brief
from logreel.log.times import Time, interval, shift_of
from logreel.meaning.charts import bands, charts
from logreel.ops.inspect.summary import summary
from logreel.ops.inspect.text import lines_between
from logreel.outputs.files import new_file
from logreel.outputs.page.sections import PageClock, Told, findings, panels_of, report_page
from logreel.outputs.page.track import find_tracks
from logreel.registry.open import as_open_log

if TYPE_CHECKING:
    from logreel.log.joined_log import Openable
    from logreel.log.log import Log


@dataclass(frozen=True, repr=False)
class Report(Brief):
    """A page about a log; ``logreel.report`` makes it.

    name      of the log
    html      the whole page, which needs no other file and no network
    findings  what a reader should know first, worst first
    charts    titles of the charts that the page has
    inputs    names of the files of the log, which ``save`` does not replace
    """

    name: str
    html: str
    findings: tuple[Told, ...]
    charts: tuple[str, ...]
    inputs: Sequence[str] = field(default=(), repr=False)

    def __repr__(self) -> str:
        size = f"{len(self.html) / 1e6:.1f} MB"
        return f"<logreel.Report of {self.name!r}: {len(self.charts)} charts, {len(self.findings)} findings, {size}>"

    def save(self, out: Destination, *, force: bool = False) -> None:
        """Write the page to *out*: a path that ends in ``.html``, or a binary file object.

        force  replace an existing file
        """
        name, stream = name_and_stream(out)
        if stream is None:
            if os.path.splitext(name)[1].lower() not in (".html", ".htm"):
                raise UsageError(f"a report is a page: name it .html, not {name!r}")
            keep_sources(name, self.inputs)
        with new_file(name, force, stream) as file:
            file.write(self.html.encode("utf-8", "replace"))

    def _repr_html_(self) -> str:
        shown = html.escape(self.html, True)
        return f'<iframe style="width:100%;height:720px;border:0" srcdoc="{shown}"></iframe>'


def report(
    log: Openable | Log,
    *,
    start: Time | None = None,
    end: Time | None = None,
    utc: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Return a Report: summary, findings, track, charts, text, parameters, topics and problems of a log.

    log         a path, or an open Log
    start, end  as for ``Channel.to_arrow``; topics, parameters and problems are always those of the whole log
    utc         UTC times, for logs with a known offset to UTC
    progress    called with the charts that are done, and their number

    The page has less than 8 MB for any log. Raises UsageError for an interval outside of the log, for an encrypted log
    that was not opened with ``decrypt=True``, and with *utc* for a log whose offset to UTC is unknown.
    """
    with as_open_log(log) as opened:
        decrypted_notes(opened)
        lo, hi = interval(opened, start, end)
        shift = shift_of(opened, utc)
        first, last = opened.start or 0, opened.end or 0
        zero = first if shift is None else -shift
        clock = PageClock(zero, first if lo is None else lo, last if hi is None else hi)
        proposed = charts(opened)
        spans = [band for band in bands(opened) if band.start < clock.last and band.end > clock.first]
        lines = list(lines_between(opened, None, lo, hi, repeated=False))
        panels = panels_of(opened, proposed, clock, lo, hi, progress)
        about = summary(opened)
        told = findings(opened, about, spans, lines)
        tracks = find_tracks(opened, proposed, lo, hi)
        text = report_page(
            opened,
            clock,
            shift,
            about,
            told,
            spans,
            lines,
            panels,
            tracks,
            part=lo is not None or hi is not None,
        )
        return Report(
            opened.name, text, tuple(told), tuple(panel["title"] for panel in panels), inputs_of(opened)
        )
