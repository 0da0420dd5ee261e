"""Select names by names, shell patterns and regular expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from fnmatch import fnmatchcase

from logreel.errors import TopicError, UsageError

#: Prefix of a regular expression.
REGEX = "re:"


def listed(names: str | Iterable[str]) -> list[str]:
    """Return *names* as a list without repeats; a string is one name. Raises UsageError for other types."""
    if not isinstance(names, Iterable):
        raise UsageError(f"{names!r} is not a name: give strings")
    found = [names] if isinstance(names, str) else list(names)
    for name in found:
        if not isinstance(name, str):
            raise UsageError(f"{name!r} is not a name: give strings")
    return list(dict.fromkeys(found))


def match_topics(
    names: Collection[str], wanted: str | Iterable[str] | None, path: str | None = None
) -> list[str]:
    """Return the *names* that *wanted* selects, in the order of *names*; None: all that do not begin with ``~``.

    Raises TopicError for a name or pattern without match, UsageError for an invalid regular expression and for
    ``topic.field``.
    """
    if wanted is None:
        return [n for n in names if not n.startswith("~")]
    found: set[str] = set()
    for want in listed(wanted):
        fits = fitting(names, want)
        if not fits:
            if (split := topic_and_fields(names, want)) is not None:
                of = ", ".join(map(repr, split[0][:3]))
                raise UsageError(
                    f"{want!r} names fields of {of}, but only whole channels can be chosen here", path=path
                )
            raise TopicError("channel", want, names, path=path)
        found |= fits
    return [n for n in names if n in found]


def fitting(names: Collection[str], want: str) -> set[str]:
    """Return those of *names* that one name or pattern selects; raises UsageError for an invalid expression.

    An existing name selects only itself (``sensor_accel[1]`` is then no pattern). ``re:`` and a regular expression
    select the names that it matches completely; other texts are shell patterns. Only patterns that begin with ``~``
    select reserved names.
    """
    if want in names:
        return {want}
    pattern = want.removeprefix(REGEX)
    fits = _regex(pattern) if want.startswith(REGEX) else lambda name: fnmatchcase(name, want)
    return {n for n in names if (n[:1] != "~" or pattern[:1] == "~") and fits(n)}


def topic_and_fields(names: Collection[str], want: str) -> tuple[list[str], list[str]] | None:
    """Split ``topic.field`` or ``topic:field,field`` into the *names* that the topic fits, and the field paths.

    The topic is the longest beginning of *want* that is a name or a pattern that fits one. Returns None for other text
    and for regular expressions. Whether the fields exist is not checked.
    """
    if want.startswith(REGEX):
        return None
    for at in range(len(want) - 2, 0, -1):
        if want[at] in ".:" and (fits := fitting(names, want[:at])):
            rest = want[at + 1 :]
            fields = [field.strip() for field in (rest.split(",") if want[at] == ":" else [rest])]
            return [name for name in names if name in fits], [field for field in fields if field]
    return None


def _regex(pattern: str) -> Callable[[str], object]:
    try:
        return re.compile(pattern).fullmatch
    except re.error as error:
        raise UsageError(f"{REGEX}{pattern}: not a regular expression: {error}") from None
