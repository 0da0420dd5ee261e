"""Text that a spreadsheet would run as a formula, and the same text as it is safe in CSV."""

from __future__ import annotations

import re

#: Beginnings of text that spreadsheets take for a formula or a mark, and numbers, which are none. Also for RE2.
FORMULA = "^[=+\\-@'\t\r\n\uff1d\uff0b\uff0d\uff20]"
NUMBER = r"^[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?$"


def safe_text(text: str) -> str:
    """Return *text*, with ``'`` in front if it begins as a formula does.

    Formulas begin with ``=``, ``+``, ``-``, ``@``, also in full width, tab and line breaks; and ``'``, so that removing
    one from the front of each text restores all. Numbers as text stay as they are.
    """
    return f"'{text}" if re.match(FORMULA, text) and not re.match(NUMBER, text) else text
