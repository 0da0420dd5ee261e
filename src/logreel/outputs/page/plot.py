"""Plots of fields over time: in a terminal, as pictures, and as pages that work offline."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from typing import IO, Any

import numpy as np

from logreel.dataclass import replace
from logreel.errors import LogError, MissingDependencyError, UsageError
from logreel.io.atomic_file import keep_sources
from logreel.io.output_stream import Destination, name_and_stream
from logreel.lenses.facts import LINE, XY
from logreel.log.joined_log import Openable
from logreel.log.log import Log
from logreel.log.source_files import inputs_of, refusal
from logreel.log.times import Time, duration_text, seconds_text, shift_of, utc_shift, utc_text
from logreel.log.topic_fields import fields_by_topic
from logreel.meaning.charts import FIRST, charts, field_units, first_charts, is_stamp
from logreel.meaning.curves import Curve, curves, paired, series_curve
from logreel.meaning.layouts import ViewLayout, found_charts, read_layout
from logreel.outputs.files import file_names, new_file
from logreel.outputs.page.chart_svg import (
    PAIRED,
    PAIRS,
    WIDTH,
    SvgAxis,
    SvgCurve,
    chart_svg,
    figure,
    legend,
    limits_of,
    occurring,
    pair_svg,
    picture,
    picture_legend,
    pieces_of,
    pixels_for,
    sound_parts,
    ticks,
    value_span,
)
from logreel.outputs.page.html import cell_text, packed, page, printable
from logreel.registry.open import as_open_log
from logreel.registry.registry import states_of

#: Characters of the title of a panel in the name of its file.
TITLE = 60


@dataclass(frozen=True)
class Panel:
    """Curves with one value axis, or one curve over another one.

    states        names of their numbers, if all have the same ones
    heading       name of the panel; empty: the topic
    curve_names   names of the curves; empty: their fields
    is_pair       whether the second curve is drawn over the first, not over time
    equal         of such a pair: whether both axes have the same scale
    """

    curves: tuple[Curve, ...]
    states: Mapping[int, str] = field(default_factory=dict)
    heading: str = ""
    curve_names: tuple[str, ...] = ()
    is_pair: bool = False
    equal: bool = False

    @property
    def pair(self) -> tuple[Any, Any]:
        """Both curves of a pair at the times of the first: float64[n] each, with NaN where there is no value."""
        x, y = self.curves
        return paired(x, y, PAIRS)[1:]

    def state_marks(self, values: Any, most: int) -> dict[float, str]:
        """Return up to *most* names of the states that occur among *values*, by number."""
        names = occurring(self.states, values)
        step = -(-len(names) // max(most, 1)) or 1
        return {float(number): names[number] for number in [*names][::step]}

    @property
    def names(self) -> list[str]:
        """Name of each curve, without the topic if it is that of all."""
        if self.curve_names:
            return [*self.curve_names]
        topics = {curve.topic for curve in self.curves}
        return [curve.field if len(topics) == 1 else curve.name for curve in self.curves]

    @property
    def labels(self) -> list[str]:
        """Names of the curves, with units that are not in the title."""
        shared = len({curve.unit for curve in self.curves}) == 1 and not self.is_pair
        return [
            f"{name} [{curve.unit}]" if curve.unit and not shared else name
            for name, curve in zip(self.names, self.curves, strict=True)
        ]

    @property
    def title(self) -> str:
        """The heading, or the topic if all curves share it, and the unit if all share it."""
        if self.is_pair:
            topic = f"{self.curves[0].topic}: " if self.curves[0].topic == self.curves[1].topic else ""
            return self.heading or f"{topic}{self.names[1]} over {self.names[0]}"
        topics, units = ({getattr(c, name) for c in self.curves} for name in ("topic", "unit"))
        unit = f" [{units.pop()}]" if len(units) == 1 and units != {""} else ""
        return (self.heading or (topics.pop() if len(topics) == 1 else "")) + unit


@dataclass(frozen=True, repr=False)
class Panels:
    """Curves of a log, in panels with one time axis.

    name    of the log
    panels  one for each name that was asked for
    origin  ns of the log's clock that the time axis counts from
    shift   ns from the log's clock to UTC for an axis of UTC times; None: seconds since *origin*
    begins  description of *origin*, such as ``2025-05-17T08:42:20.000Z``
    inputs  names of the files of the log, which no plot replaces
    left_out  what of a layout is not drawn, a sentence each
    """

    name: str
    panels: Sequence[Panel]
    origin: int
    shift: int | None
    begins: str
    inputs: Sequence[str] = ()
    left_out: Sequence[str] = ()

    @property
    def span(self) -> tuple[int, int]:
        """First and last time of all curves, ns of the log's clock."""
        ends = [(c.times[0], c.times[-1]) for panel in self.panels for c in panel.curves if len(c.times)]
        if not ends:
            return self.origin, self.origin
        return int(min(a for a, _ in ends)), int(max(b for _, b in ends))

    def held_to_the_end(self, curve: Curve) -> Curve:
        """Return a curve whose values hold with its last value at the end of all curves, too."""
        last = self.span[1]
        if not curve.stepped or not len(curve.times) or curve.times[-1] >= last:
            return curve
        values = np.append(curve.values, curve.values[-1])
        return replace(curve, times=np.append(curve.times, last), values=values)

    @property
    def axis(self) -> str:
        """Label of the time axis."""
        if self.shift is None:
            return f"seconds since {self.begins}"
        first = self.span[0] + self.shift
        return f"UTC, {utc_text(first, 0)[:10]}"


class Plot(Panels):
    """Curves of a log, which can be shown as text, pictures and pages; ``logreel.plot`` makes it."""

    #: Why it must not be written to a file; None: it may.
    _refusal: UsageError | None = None

    def __repr__(self) -> str:
        names = [curve.name for panel in self.panels for curve in panel.curves]
        first, last = self.span
        listed = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        return f"<logreel.Plot of {listed}: {duration_text(last - first)}>"

    def text(self, width: int = 100, height: int = 0, color: bool = False) -> str:
        """Return the plot as text of *width* columns; needs ``logreel[plot]``.

        height  lines for all panels; 0: 14 for each
        color   True: with escape sequences for colours
        """
        return text_of(self, width, height, color)

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

    def save_each(self, folder: str, *, format: str = "png", force: bool = False) -> list[str]:
        """Write each panel to a file of its own in *folder*, ``01-Attitude.png``; return their paths.

        folder  is made if there is none
        format, force  as for ``save``

        Raises UsageError for an encrypted log that was not opened with ``decrypt=True``.
        """
        renderer(format)
        os.makedirs(folder, exist_ok=True)
        titles = [f"{i:02d}-{panel.heading or panel.title}"[:TITLE] for i, panel in enumerate(self.panels, 1)]
        names = file_names((title.replace(" ", "_") for title in titles), f".{format.removeprefix('.')}")
        paths = [os.path.join(folder, name) for name in names.values()]
        for panel, path in zip(self.panels, paths, strict=True):
            self._with([panel]).save(path, force=force)
        return paths

    def _with(self, panels: Sequence[Panel]) -> Plot:
        made = replace(self, panels=panels)
        object.__setattr__(made, "_refusal", self._refusal)
        return made

    def still(self, width: int = WIDTH) -> str:
        """Return the plot as HTML: pictures (SVG) that need no script, no style sheet and no other file.

        width  of the pictures in pixels; narrower where there is less room

        Raises UsageError for an encrypted log that was not opened with ``decrypt=True``.
        """
        if self._refusal is not None:
            raise self._refusal
        return "".join(_still_html(self, panel, width) for panel in self.panels)

    def _repr_html_(self) -> str:
        return frame(self)


def renderer(name: str) -> Renderer:
    """Return the function that writes files with the suffix of *name*; raises UsageError for an unknown one."""
    suffix = os.path.splitext(name)[1].lower() or f".{name.lower().removeprefix('.')}"
    if suffix not in RENDERERS:
        raise UsageError(f"{suffix!r} is no kind of plot; there are {', '.join(RENDERERS)}")
    return RENDERERS[suffix]


def plot(
    log: Openable | Log,
    *fields: str | Iterable[str],
    start: Time | None = None,
    end: Time | None = None,
    utc: bool = False,
    layout: ViewLayout | str | os.PathLike[str] | None = None,
) -> Plot:
    """Return a Plot of fields over time.

    log         a path, or an open Log
    fields      a panel each: ``topic.field``, ``topic:field,field``, a topic with numeric fields, or a list of these;
                none: the charts that matter most of this log
    start, end  as for ``Channel.to_arrow``
    utc         axis of UTC times, for logs with a known offset to UTC
    layout      in place of *fields*: the plots of a layout file, as far as the log has them; ``left_out`` of the Plot
                says what it lacks

    Raises TopicError and NotFoundError for unknown names, UsageError for fields without numbers, for a file that is no
    layout, and for a log without anything to plot.
    """
    if layout is not None and fields:
        raise UsageError("a layout says which fields are plotted: give either")
    chosen = layout if layout is None or isinstance(layout, ViewLayout) else read_layout(layout)
    left: list[str] = []
    with as_open_log(log) as opened:
        if chosen is not None:
            panels = list(_layout_panels(opened, chosen, start, end, left))
        elif fields:
            units = field_units(opened)
            panels = [_panel_of(opened, wanted, start, end, units) for wanted in fields]
        else:
            panels = list(_first_panels(opened, start, end))
        if not panels:
            why = f" of this layout: {left[0]}" if left else ""
            raise UsageError(f"has nothing to plot{why}", path=opened.name)
        shift = shift_of(opened, utc)
        made = Plot(opened.name, panels, opened.start or 0, shift, _begins(opened), inputs_of(opened), left)
        # Its class is frozen, and has no such field.
        object.__setattr__(made, "_refusal", refusal(opened))
        return made


def _panel_of(
    log: Log,
    wanted: str | Iterable[str],
    start: Time | None,
    end: Time | None,
    units: Mapping[tuple[str, str], str],
) -> Panel:
    """Return the panel of what was asked for; *units*: of fields whose schema states none."""
    wanted = wanted if isinstance(wanted, str) else list(wanted)
    drawn = curves(log, wanted, start, end)
    if start is None and log.start is not None:
        drawn = [_from(curve, log.start) for curve in drawn]
    # A topic means what it measures; its times are drawn only if they are named.
    named = {topic for topic, chosen in fields_by_topic(log, wanted).items() if chosen is not None}
    measured = [c for c in drawn if c.topic in named or not is_stamp(c.field, c.times, c.values)]
    drawn = [
        replace(curve, unit=curve.unit or units.get((curve.topic, curve.field), ""))
        for curve in measured or drawn
    ]
    states = states_of(log)
    names = [states.get(curve.topic, {}).get(curve.field, {}) for curve in drawn]
    return Panel(tuple(drawn), names[0] if names and all(other == names[0] for other in names) else {})


def _from(curve: Curve, start: int) -> Curve:
    """Return a curve of held values from *start* (ns) on, where the last one before it holds: it can be far older."""
    older = int(np.searchsorted(curve.times, start))
    if not older or not (curve.stepped or older == len(curve.times)):
        return curve
    times = np.maximum(curve.times[older - 1 :], start)
    return replace(curve, times=times, values=curve.values[older - 1 :])


def _first_panels(log: Log, start: Time | None, end: Time | None) -> Iterator[Panel]:
    """Yield the panels of the charts of the first screen."""
    proposed = charts(log)
    # Latched values can be older than the log.
    start = log.start if start is None else start
    shown = [chart for chart in proposed[: first_charts(proposed)] if chart.kind == LINE]
    for chart in shown[:FIRST]:
        drawn = []
        for series in chart.series:
            # A damaged definition costs one curve.
            with suppress(LogError):
                curve = series_curve(log, series, start, end, PIXELS)
                if np.isfinite(curve.values).any():
                    drawn.append((curve, series.name))
        if drawn:
            yield Panel(
                tuple(c for c, _ in drawn), heading=chart.title, curve_names=tuple(n for _, n in drawn)
            )


def _layout_panels(
    log: Log, layout: ViewLayout, start: Time | None, end: Time | None, left: list[str]
) -> Iterator[Panel]:
    """Yield the panels with plots of a layout; *left* gets a sentence for all else."""
    units, states = field_units(log), states_of(log)
    start = log.start if start is None else start
    plots, lacking = found_charts(log, layout)
    left += lacking
    for chart in plots:
        drawn: list[tuple[Curve, str]] = []
        for series in chart.series:
            try:
                curve = series_curve(log, series, start, end, PAIRED if chart.kind == XY else PIXELS)
                unit = curve.unit or ("" if series.function else units.get((curve.topic, curve.field), ""))
                drawn.append((replace(curve, unit=unit), series.name))
            except LogError as error:
                left.append(f"{series.topic}.{series.field} cannot be drawn: {error.text}")
        if chart.kind == XY:
            if len(drawn) == 2:
                (x, first), (y, second) = drawn
                yield Panel(
                    (x, y), heading=chart.title, curve_names=(first, second), is_pair=True, equal=chart.equal
                )
        elif drawn:
            names = [states.get(curve.topic, {}).get(curve.field, {}) for curve, _ in drawn]
            yield Panel(
                tuple(curve for curve, _ in drawn),
                names[0] if all(other == names[0] for other in names) else {},
                chart.title,
                tuple(name for _, name in drawn),
            )


def _begins(log: Log) -> str:
    """Return what the seconds of the axis count from."""
    shift = utc_shift(log)
    if shift is None or log.start is None:
        return "the start"
    return utc_text(log.start + shift, 3)


# As text, in Braille dots.

#: Colours of the 256 of terminals that are distinct on light and dark backgrounds, and for the colour-blind.
TERMINAL_COLOURS = (32, 208, 36, 169, 178, 75, 166, 244)
#: Least size of a panel that can be read.
LEAST_WIDTH, LEAST_HEIGHT = 30, 6
HEIGHT = 14
#: Columns of the numbers at the left, and most of names of states.
NUMBERS, NAMES = 10, 18
#: Marks of an axis, about; least distance of those below the chart, in columns, and most of them.
TICKS, APART, MOST_MOMENTS = 5, 11, 9
#: Times below the chart have tenths of a second if it shows less than this (ns).
TENTHS = 60 * 10**9


def text_of(plot: Panels, width: int, height: int, color: bool) -> str:
    """Return *plot* as lines of *width* columns; see ``Plot.text``."""
    width = max(width, LEAST_WIDTH)
    each = max(height // len(plot.panels) - 1 if height else HEIGHT, LEAST_HEIGHT)
    first, last = plot.span
    lines = []
    over_time = [panel for panel in plot.panels if not panel.is_pair]
    for panel in plot.panels:
        is_last = bool(over_time) and panel is over_time[-1]
        lines += _heading(panel, width, color)
        lines += _panel(plot, panel, (first, last), width, each, color, is_last)
        if is_last:
            lines.append(plot.axis.rjust(width))
    return "\n".join(line.rstrip() for line in lines)


def _heading(panel: Panel, width: int, color: bool) -> list[str]:
    """Return the title and the names of the curves, on as many lines as they need."""
    title = printable(panel.title)
    # Of a very long name the end says most.
    lines = [title if len(title) <= width else f"…{title[1 - width :]}"] if title else []
    used = len(lines[0]) if lines else width
    if panel.is_pair:
        return [
            *lines,
            textwrap.shorten(printable(" over ".join(reversed(panel.labels))), width, placeholder="…"),
        ]
    for i, (name, curve) in enumerate(zip(map(printable, panel.labels), panel.curves, strict=True)):
        label = f"⣀⡠ {name}" if len(panel.curves) > 1 else name
        if not len(curve.times):
            label += " (no messages)"
        label = textwrap.shorten(label, width, placeholder="…") if len(label) > width else label
        label = label if len(label) <= width else f"…{label[1 - width :]}"
        text = _colored(label, i) if color else label
        if used + 2 + len(label) > width:
            lines.append(text)
            used = len(label)
        else:
            lines[-1] += f"  {text}"
            used += 2 + len(label)
    return lines


def _colored(text: str, number: int) -> str:
    return f"\x1b[38;5;{TERMINAL_COLOURS[number % len(TERMINAL_COLOURS)]}m{text}\x1b[0m"


def _panel(
    plot: Panels, panel: Panel, span: tuple[int, int], width: int, height: int, color: bool, last: bool
) -> Sequence[str]:
    try:
        import plotext
    except ImportError as error:
        raise MissingDependencyError("plotext", "plot") from error

    # The only figure of the library; its size would be limited by that of the terminal.
    figure = plotext.figure
    plotext.terminal.limit(False, False)
    figure.clear()
    figure.plot_size(width, height)
    figure.theme("colorless")
    if panel.is_pair:
        return _pair_lines(plotext, plot, panel, width, height, color)
    drawn = [_in_steps(plot, curve.reduced(2 * width).broken()) for curve in panel.curves]
    known = [curve.values[np.isfinite(curve.values)] for curve in drawn]
    values = np.concatenate(known) if known else np.empty(0)
    lo, hi = limits_of(values)
    for number, curve in enumerate(drawn):
        for seconds, numbers in _pieces(plot, curve):
            signal = figure.signal(seconds, numbers, marker=_marker(plotext, number, color))
            figure.draw(signal.lines())
    x, y = figure.ruler("x"), figure.ruler("y")
    begin, end = ((t - plot.origin) / 1e9 for t in span)
    x.lim(begin, end if end > begin else begin + 1)
    y.lim(lo, hi)
    room, marks = _value_marks(plot, panel, values, height)
    y.ticks([*marks], [_cut(text, room).rjust(room) for text in marks.values()])
    most = min(max(2, (width - room) // APART), MOST_MOMENTS)
    moments = ticks(begin, end, most, most) if last else []
    x.ticks(moments, [_moment(plot, at, span[1] - span[0]) for at in moments])
    return _built(plotext, color)


def _built(plotext: Any, color: bool) -> list[str]:
    text: str = plotext.figure.build().string()
    plain: str = text if color else plotext.uncolorize(text)
    return plain.splitlines()


def _pair_lines(plotext: Any, plot: Panels, panel: Panel, width: int, height: int, color: bool) -> list[str]:
    """Return one curve over another as lines."""
    figure, (across, up) = plotext.figure, panel.pair
    for rows in sound_parts(np.isfinite(across) & np.isfinite(up)):
        signal = figure.signal(across[rows].tolist(), up[rows].tolist(), marker=_marker(plotext, 0, color))
        figure.draw(signal.lines())
    (left, right), (low, top) = (limits_of(values[np.isfinite(values)]) for values in (across, up))
    if panel.equal:
        # A column is two dots wide, a line four dots high.
        wide, high = 2 * (width - NUMBERS), 4 * (height - 3)
        scale = max((right - left) / wide, (top - low) / high)
        left, right = (left + right - scale * wide) / 2, (left + right + scale * wide) / 2
        low, top = (low + top - scale * high) / 2, (low + top + scale * high) / 2
    x, y = figure.ruler("x"), figure.ruler("y")
    x.lim(left, right)
    y.lim(low, top)
    room, _ = _value_marks(plot, panel, up[np.isfinite(up)], height)
    below = ticks(left, right, TICKS, max(2, (width - room) // APART))
    beside = ticks(low, top, min(TICKS, height // 2))
    x.ticks(below, [f"{mark:.6g}" for mark in below])
    y.ticks(beside, [_cut(f"{mark:.6g}", room).rjust(room) for mark in beside])
    return _built(plotext, color)


def _value_marks(plot: Panels, panel: Panel, values: Any, height: int) -> tuple[int, dict[float, str]]:
    """Return the columns for texts at the value axis, the same for all panels, and these by value."""
    room = max([NUMBERS, *(min(len(name), NAMES) for other in plot.panels for name in _drawn_states(other))])
    if panel.states:
        return room, panel.state_marks(values, height // 2)
    return room, {mark: f"{mark:.6g}" for mark in ticks(*limits_of(values), min(TICKS, height // 2))}


def _drawn_states(panel: Panel) -> list[str]:
    """Return the names of the states that a panel shows."""
    if not panel.states:
        return []
    values = np.concatenate([curve.values for curve in panel.curves])
    return [*panel.state_marks(values[np.isfinite(values)], len(panel.states)).values()]


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"


def _in_steps(plot: Panels, curve: Curve) -> Curve:
    """Return a curve whose line has the steps of a held one."""
    curve = plot.held_to_the_end(curve)
    if not curve.stepped or len(curve.times) < 2:
        return curve
    times = np.repeat(curve.times, 2)[1:]
    return replace(curve, times=times, values=np.repeat(curve.values, 2)[:-1])


def _marker(plotext: Any, number: int, color: bool) -> Any:
    if not color:
        return "braille"
    return plotext.marker("braille", TERMINAL_COLOURS[number % len(TERMINAL_COLOURS)])


def _pieces(plot: Panels, curve: Any) -> Any:
    """Yield runs of points without NaN, as seconds and values."""
    for rows in sound_parts(np.isfinite(curve.values)):
        yield ((curve.times[rows] - plot.origin) / 1e9).tolist(), curve.values[rows].tolist()


def _moment(plot: Panels, seconds: float, span: int) -> str:
    if plot.shift is None:
        return f"{seconds:.6g}"
    digits = 1 if span < TENTHS else 0
    at = plot.origin + round(seconds * 1e9) + plot.shift
    return utc_text(at, digits)[11:-1] if at > 0 else seconds_text(at, digits)


# As pictures, by matplotlib.

#: Colours that the colour-blind can distinguish (Okabe and Ito), without yellow, which is hard to see on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
#: Inches: width, height of a panel over time, of another one, and of titles and the time axis; dots per inch of PNG.
_WIDTH, _PANEL, _PAIR, _MARGIN, _DPI = 11.0, 2.2, 4.4, 0.9, 110


def write_png(plot: Panels, out: IO[bytes]) -> None:
    """Write *plot* as PNG."""
    _figure(plot).savefig(out, format="png", dpi=_DPI)


def write_svg(plot: Panels, out: IO[bytes]) -> None:
    """Write *plot* as SVG, with text as text."""
    import matplotlib as mpl

    figure = _figure(plot)
    # Without the date, equal plots are equal files.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "logreel"}):
        figure.savefig(out, format="svg", metadata={"Date": None})


def write_pdf(plot: Panels, out: IO[bytes]) -> None:
    """Write *plot* as PDF."""
    _figure(plot).savefig(out, format="pdf", metadata={"CreationDate": None})


def _figure(plot: Panels) -> Any:
    try:
        from matplotlib import dates
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError("matplotlib", "plot") from error

    heights = [_PAIR if panel.is_pair else _PANEL for panel in plot.panels]
    figure = Figure(figsize=(_WIDTH, _MARGIN + sum(heights)), layout="constrained")
    figure.suptitle(_plain(os.path.basename(plot.name)), fontsize=10)
    axes = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    over_time = [ax for panel, ax in zip(plot.panels, axes, strict=True) if not panel.is_pair]
    for panel, ax in zip(plot.panels, axes, strict=True):
        if panel.is_pair:
            _draw_pair(panel, ax)
        else:
            _draw_over_time(plot, panel, ax)
        ax.set_title(_plain(panel.title), fontsize=9, loc="left")
        ax.grid(color="#dddddd", linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=8)
    for ax in over_time[:-1]:
        ax.sharex(over_time[-1])
        ax.tick_params(labelbottom=False)
    if plot.shift is not None and over_time:
        # matplotlib has no types for these.
        untyped: Any = dates
        locator = untyped.AutoDateLocator()
        over_time[-1].xaxis.set_major_locator(locator)
        over_time[-1].xaxis.set_major_formatter(untyped.ConciseDateFormatter(locator))
    if over_time:
        over_time[-1].set_xlabel(_plain(plot.axis), fontsize=8)
    return figure


def _draw_pair(panel: Panel, ax: Any) -> None:
    """Draw one curve over another: from faint to strong, a circle at the start, a square at the end."""
    across, up = panel.pair
    sound = np.flatnonzero(np.isfinite(across) & np.isfinite(up))
    for rows, strength in pieces_of(len(across)):
        ax.plot(across[rows], up[rows], color=_COLOURS[0], linewidth=1, alpha=strength)
    for row, mark, face in ((sound[:1], "o", "white"), (sound[-1:], "s", _COLOURS[0])):
        ax.plot(across[row], up[row], mark, color=_COLOURS[0], markerfacecolor=face)
    if panel.equal:
        ax.set_aspect("equal", adjustable="datalim")
    first, second = map(_plain, panel.labels)
    ax.set_xlabel(first, fontsize=8)
    ax.set_ylabel(second, fontsize=8)


def _draw_over_time(plot: Panels, panel: Panel, ax: Any) -> None:
    for number, (name, curve) in enumerate(zip(panel.labels, panel.curves, strict=True)):
        drawn = plot.held_to_the_end(curve.reduced(int(_WIDTH * _DPI)).broken())
        ax.plot(
            _moments(plot, drawn.times),
            drawn.values,
            label=_plain(name),
            color=_COLOURS[number % len(_COLOURS)],
            linewidth=1,
            drawstyle="steps-post" if curve.stepped else "default",
        )
    for gap in dict.fromkeys(gap for curve in panel.curves for gap in curve.gaps):
        # Hatched: nothing was measured there.
        low, high = _moments(plot, np.array(gap, np.int64))
        ax.axvspan(low, high, facecolor="none", edgecolor="#bbbbbb", hatch="///", linewidth=0)
    if not any(len(curve.times) for curve in panel.curves):
        ax.set_yticks([])
        ax.text(0.5, 0.5, "no messages", transform=ax.transAxes, ha="center", va="center", color="#666666")
    if panel.states:
        values = np.concatenate([curve.values for curve in panel.curves] or [np.empty(0)])
        marks = panel.state_marks(values[np.isfinite(values)], len(panel.states))
        ax.set_yticks([*marks], [_plain(name) for name in marks.values()])
    ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1), frameon=False)


def _moments(plot: Panels, times: Any) -> Any:
    if plot.shift is None:
        return (times - plot.origin) / 1e9
    return (times + plot.shift).astype("datetime64[ns]")


def _plain(text: str) -> str:
    """Return printable *text* without meaning for matplotlib, which reads ``$`` as mathematics."""
    return printable(text).replace("$", r"\$")


# As pages.

#: Number of points in a page, about; each takes 21 bytes. Few curves have more points each.
POINTS = 400_000
#: Least number of pixels for which a curve has points.
PIXELS = 2_000

_BODY = """<header><h1>{title}</h1><span>{axis}</span><span>{reduced}</span>
<button id="whole">Whole time</button></header>
<main id="panels">{figures}</main>
<footer>Drag: zoom. Double-click, or the key 0: whole time. Click a name: hide or show.</footer>
<noscript>Charts cannot be zoomed without JavaScript.</noscript>"""


def write_html(plot: Panels, out: IO[bytes]) -> None:
    """Write *plot* as a page."""
    out.write(page_of(plot).encode("utf-8", "replace"))


def frame(plot: Panels) -> str:
    """Return HTML that shows the page in a notebook."""
    height = 120 + 270 * len(plot.panels)
    return f'<iframe style="width:100%;height:{height}px;border:0" srcdoc="{escape(page_of(plot))}"></iframe>'


def page_of(plot: Panels) -> str:
    """Return *plot* as the text of a page."""
    count = sum(len(panel.curves) for panel in plot.panels)
    pixels = max(POINTS // 4 // max(count, 1), PIXELS)
    first, last = plot.span
    zero = plot.origin if plot.shift is None else -plot.shift
    data = {
        "utc": plot.shift is not None,
        "span": [(first - zero) / 1e9, (max(last, first + 1) - zero) / 1e9],
        "panels": [
            {
                "title": panel.title,
                # Curves over each other stay as they are drawn.
                "curves": [
                    _curve_data(name, curve.reduced(pixels), zero, panel.states)
                    for name, curve in zip(panel.names, panel.curves, strict=True)
                    if not panel.is_pair
                ],
            }
            for panel in plot.panels
        ],
    }
    points = max((len(curve.times) for panel in plot.panels for curve in panel.curves), default=0)
    reduced = f"extreme values of {points} messages" if points > 4 * pixels else ""
    title = escape(os.path.basename(plot.name))
    figures = "".join(_figure_html(plot, panel, pixels_for(count), zero) for panel in plot.panels)
    body = _BODY.format(title=title, axis=escape(plot.axis), reduced=reduced, figures=figures)
    return page(title, body, data, "plot.css", ["plot.js"])


def _figure_html(plot: Panels, panel: Panel, pixels: int, zero: int) -> str:
    """Return the still picture of a panel, which scripts replace by one that can be zoomed."""
    drawing = _drawing(plot, panel, pixels, zero)
    names = [] if panel.is_pair else panel.labels
    content = drawing + legend(names) if drawing else '<div class="empty">no messages</div>'
    return figure(panel.title, 2, "", content)


def _still_html(plot: Panels, panel: Panel, width: int) -> str:
    zero = plot.origin if plot.shift is None else -plot.shift
    drawing = _drawing(plot, panel, pixels_for(len(panel.curves)), zero)
    about = f"{panel.title}: {', '.join(panel.names)}"
    content = picture(drawing, about, width) if drawing else "no messages"
    return (
        f'<div style="max-width:{width}px;margin:6px 0"><b>{cell_text(panel.title, 300)}</b><br>{content}<br>'
        f"{picture_legend([] if panel.is_pair else panel.labels)}</div>"
    )


def _drawing(plot: Panels, panel: Panel, pixels: int, zero: int) -> str:
    """Return a panel as SVG; empty without messages."""
    if panel.is_pair:
        return pair_svg(*panel.pair, (panel.labels[0], panel.labels[1]), panel.equal)
    first, last = plot.span
    lines = []
    for curve in panel.curves:
        drawn = curve.reduced(pixels).broken()
        lines.append(SvgCurve((drawn.times - zero) / 1e9, drawn.values, _gaps(curve, zero), curve.stepped))
    if not any(len(line.x) for line in lines):
        return ""
    across = SvgAxis(
        (first - zero) / 1e9,
        (max(last, first + 1) - zero) / 1e9,
        lambda seconds: _moment_text(plot, seconds),
    )
    return chart_svg(lines, across, value_span(lines, states=panel.states))


def _moment_text(plot: Panels, seconds: float) -> str:
    if plot.shift is None:
        return f"{seconds:g} s"
    digits = 0 if plot.span[1] - plot.span[0] > 10**10 else 3
    at = round(seconds * 1e9)
    return utc_text(at, digits)[11:-1] if at > 0 else seconds_text(at, digits)


def _gaps(curve: Curve, zero: int) -> list[tuple[float, float]]:
    return [((lo - zero) / 1e9, (hi - zero) / 1e9) for lo, hi in curve.gaps]


def _curve_data(name: str, curve: Curve, zero: int, states: Mapping[int, str]) -> dict[str, Any]:
    drawn = curve.broken()
    names = occurring(states, drawn.values)
    return ({"states": names} if names else {}) | {
        "name": name,
        "unit": curve.unit,
        "times": packed(np.asarray((drawn.times - zero) / 1e9, "<f8")),
        "values": packed(np.asarray(drawn.values, "<f8")),
        "gaps": _gaps(curve, zero),
        "held": curve.stepped,
    }


Renderer = Callable[[Panels, IO[bytes]], None]
#: Function that writes a plot for each suffix.
RENDERERS: dict[str, Renderer] = {
    ".png": write_png,
    ".svg": write_svg,
    ".pdf": write_pdf,
    ".html": write_html,
}
