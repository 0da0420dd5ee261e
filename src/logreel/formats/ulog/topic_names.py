"""Names of topics as a ULog can hold them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection

from logreel.log import joined_channels

_TOPIC = re.compile(r"(.*?)(\[\d{1,3}\])?(@\d+)?", re.DOTALL)
UNFIT = re.compile(r"[^A-Za-z0-9_\-/]")


def free_name(topic: str, taken: Collection[str]) -> str:
    """Return a name with letters, digits, ``_ - /`` only; instances of a topic share its definition."""
    if topic.startswith("~"):
        return joined_channels.free_name(topic, taken)
    found = _TOPIC.fullmatch(topic)
    base, instance, log = found.groups("") if found else (topic, "", "")
    # The suffix of a later segment becomes part of the name.
    base = UNFIT.sub("-", base + log)
    names = itertools.chain([base], (f"{base}-{n}" for n in itertools.count(2)))
    return next(name + instance for name in names if name + instance not in taken)
