"""Which names a list of names and shell patterns means."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase

from logreel.errors import TopicError


def match_topics(
    names: Collection[str], wanted: str | Iterable[str] | None, path: str | None = None
) -> list[str]:
    """The *names* that *wanted* means, in the order of *names*; None: all that do not begin with ``~``.

    A wanted name that exists is taken as it is (``sensor_accel[1]`` is no pattern then); others are shell patterns,
    which match reserved names only where they begin with ``~`` themselves. Raises TopicError for one that fits none.
    """
    if wanted is None:
        return [n for n in names if not n.startswith("~")]
    found: set[str] = set()
    for want in [wanted] if isinstance(wanted, str) else wanted:
        if want in names:
            found.add(want)
            continue
        fits = {n for n in names if fnmatchcase(n, want) and (n[:1] != "~" or want[:1] == "~")}
        if not fits:
            raise TopicError("channel", want, names, path=path)
        found |= fits
    return [n for n in names if n in found]
