"""Plots as pages: one HTML file with its data and scripts, which works offline."""

from __future__ import annotations

import base64
import html
import json
import os
from importlib.resources import files
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from logreel.outputs import vendor

if TYPE_CHECKING:
    from logreel.meaning.curves import Curve
    from logreel.outputs.plot.panels import Panels

#: Number of points in a page, about; each takes 21 bytes. Few curves have more points each.
POINTS = 400_000
#: Least number of pixels for which a curve has points.
PIXELS = 2_000

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="logreel">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{title}</h1><span>{axis}</span><span>{reduced}</span><button id="whole">Whole time</button></header>
<main id="panels"></main>
<footer>Drag: zoom. Double-click, or the key 0: whole time. Click a name: hide or show.</footer>
<noscript>This page needs JavaScript to draw.</noscript>
<script type="application/json" id="data">{data}</script>
<script>{library}</script>
<script>{script}</script>
</body>
</html>
"""


def write(plot: Panels, out: IO[bytes]) -> None:
    """Write *plot* as a page."""
    out.write(page(plot).encode("utf-8", "replace"))


def frame(plot: Panels) -> str:
    """Return HTML that shows the page in a notebook."""
    height = 120 + 270 * len(plot.panels)
    return (
        f'<iframe style="width:100%;height:{height}px;border:0" srcdoc="{html.escape(page(plot))}"></iframe>'
    )


def page(plot: Panels) -> str:
    """Return *plot* as the text of a page."""
    static = files(__package__).joinpath("static")
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
                "curves": [
                    _curve(name, curve.reduced(pixels), zero)
                    for name, curve in zip(panel.names, panel.curves, strict=True)
                ],
            }
            for panel in plot.panels
        ],
    }
    points = max((len(curve.times) for panel in plot.panels for curve in panel.curves), default=0)
    reduced = f"extreme values of {points} messages" if points > 4 * pixels else ""
    return _PAGE.format(
        title=html.escape(os.path.basename(plot.name)),
        axis=html.escape(plot.axis),
        reduced=reduced,
        style=vendor.read("uplot", "uPlot.min.css") + static.joinpath("plot.css").read_text("utf-8"),
        # Text of a log must not end the element.
        data=json.dumps(data).replace("<", "\\u003c"),
        library=vendor.read("uplot", "uPlot.iife.min.js"),
        script=static.joinpath("plot.js").read_text("utf-8"),
    )


def _curve(name: str, curve: Curve, zero: int) -> dict[str, Any]:
    return {
        "name": name,
        "unit": curve.unit,
        "times": _packed((curve.times - zero) / 1e9),
        "values": _packed(curve.values),
    }


def _packed(numbers: Any) -> str:
    return base64.b64encode(np.asarray(numbers, "<f8").tobytes()).decode()
