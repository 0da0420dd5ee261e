"""Names from logs as text that can be shown anywhere."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return *text* with a replacement for each character that cannot be printed, such as control characters."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
