"""JavaScript and style sheets of others, which pages contain; ``tools/vendor.py`` fetches them."""

from __future__ import annotations

from importlib.resources import files


def read(package: str, name: str) -> str:
    """Return the text of one file of a library."""
    return files(__name__).joinpath(package, name).read_text("utf-8")
