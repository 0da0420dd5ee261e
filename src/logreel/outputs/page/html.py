"""Pages: HTML with data, style and scripts of their own, which load nothing; and text of logs in them."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from logreel._version import __version__
from logreel.outputs import vendor

#: A module of the viewer whose functions the scripts use, too; they are no modules.
SHARED = Path(__file__).parents[1] / "view/static/hatch.js"
#: The longest text of a cell.
LONGEST = 400

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="logreel {version}">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
<script type="application/json" id="data">{data}</script>
<script>{library}</script>
<script>{script}</script>
</body>
</html>
"""


def page(
    title: str, body: str, data: Any, style: str, scripts: Sequence[str], *, pictures: bool = False
) -> str:
    """Return the text of a page that draws *data* with uPlot.

    title, body  HTML
    data         what JSON can hold; the scripts find it in the element ``data``
    style        name of a style sheet, which follows those of charts
    scripts      names of scripts, which run in this order
    pictures     whether the body holds pictures, as data of its own
    """
    static = files(__package__).joinpath("static")
    sheets = (static.joinpath(name).read_text("utf-8") for name in ("chart.css", style))
    css = vendor.read("uplot", "uPlot.min.css") + "".join(sheets)
    library = vendor.read("uplot", "uPlot.iife.min.js")
    script = "".join(static.joinpath(name).read_text("utf-8") for name in scripts)
    script += SHARED.read_text("utf-8").replace("\nexport function", "\nfunction")
    return _PAGE.format(
        version=__version__,
        policy=escape(_policy(pictures, css, library, script), True),
        title=title,
        style=css,
        body=body,
        # Text of a log must not end the element.
        data=json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
        library=library,
        script=script,
    )


def _policy(pictures: bool, style: str, *scripts: str) -> str:
    """Return a Content-Security-Policy that allows this style, these scripts, pictures in the page, and no request."""

    def digest(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    allowed = " ".join(map(digest, scripts))
    images = "img-src data:; " if pictures else ""
    return (
        f"default-src 'none'; script-src {allowed}; style-src {digest(style)}; {images}"
        "base-uri 'none'; form-action 'none'"
    )


def packed(array: Any) -> str:
    """Return the bytes of an array in base64."""
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def printable(text: str) -> str:
    """Return *text* with a replacement for each character that cannot be printed, such as control characters."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def cell_text(value: object, longest: int = LONGEST) -> str:
    """Return *value* as escaped text for HTML, on one line and of bounded length."""
    text = " ".join(str(value).split())
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    return escape(printable(text), True)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Return a table of cells that are HTML; *right*: columns of numbers."""
    style = [' class="n"' if i in right else "" for i in range(len(head))]
    titles = "".join(f'<th scope="col"{s}>{escape(h)}</th>' for h, s in zip(head, style, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{s}>{c}</td>" for c, s in zip(row, style, strict=True)) + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>'
