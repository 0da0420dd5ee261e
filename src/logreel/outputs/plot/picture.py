"""Plots as pictures, drawn by matplotlib."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, Any

from logreel.errors import MissingDependencyError
from logreel.outputs.plot.printable import printable

if TYPE_CHECKING:
    from logreel.outputs.plot.panels import Panels

#: Colours that the colour-blind can distinguish (Okabe and Ito), without yellow, which is hard to see on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
#: Size in inches: width, height of a panel, and of titles and the time axis; dots per inch of PNG.
WIDTH, PANEL, MARGIN, DPI = 11.0, 2.2, 0.9, 110


def write_png(plot: Panels, out: IO[bytes]) -> None:
    """Write *plot* as PNG."""
    _figure(plot).savefig(out, format="png", dpi=DPI)


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

    figure = Figure(figsize=(WIDTH, MARGIN + PANEL * len(plot.panels)), layout="constrained")
    figure.suptitle(_plain(os.path.basename(plot.name)), fontsize=10)
    axes = figure.subplots(len(plot.panels), 1, sharex=True, squeeze=False)[:, 0]
    pixels = int(WIDTH * DPI)
    for panel, ax in zip(plot.panels, axes, strict=True):
        for number, (name, curve) in enumerate(zip(panel.names, panel.curves, strict=True)):
            drawn = curve.reduced(pixels)
            color = COLORS[number % len(COLORS)]
            ax.plot(_moments(plot, drawn.times), drawn.values, label=_plain(name), color=color, linewidth=1)
        if not any(len(curve.times) for curve in panel.curves):
            ax.set_yticks([])
            ax.text(
                0.5, 0.5, "no messages", transform=ax.transAxes, ha="center", va="center", color="#666666"
            )
        ax.set_title(_plain(panel.title), fontsize=9, loc="left")
        ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
        ax.grid(color="#dddddd", linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=8)
    if plot.shift is not None:
        # matplotlib has no types for these.
        untyped: Any = dates
        locator = untyped.AutoDateLocator()
        axes[-1].xaxis.set_major_locator(locator)
        axes[-1].xaxis.set_major_formatter(untyped.ConciseDateFormatter(locator))
    axes[-1].set_xlabel(_plain(plot.axis), fontsize=8)
    return figure


def _moments(plot: Panels, times: Any) -> Any:
    if plot.shift is None:
        return (times - plot.origin) / 1e9
    return (times + plot.shift).astype("datetime64[ns]")


def _plain(text: str) -> str:
    """Return printable *text* without meaning for matplotlib, which reads ``$`` as mathematics."""
    return printable(text).replace("$", r"\$")
