"""How many examples hypothesis tries: few with ``make test``, all with ``make fuzz``."""

from __future__ import annotations

import os


def examples(most: int) -> int:
    """Return an eighth of *most*, at least 50; all of them where LOGREEL_FUZZ asks for a long run."""
    return most if "LOGREEL_FUZZ" in os.environ else max(50, most // 8)


def half(most: int) -> int:
    """Return half of *most*, at least 2; all of them where LOGREEL_FUZZ asks for a long run."""
    return most if "LOGREEL_FUZZ" in os.environ else max(2, (most + 1) // 2)
