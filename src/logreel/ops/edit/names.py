"""New topics of channels, by names and patterns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from logreel.errors import TopicError, UsageError
from logreel.log.topic_match import GROUPS, REGEX, regex_groups

_GROUP = re.compile(r"\{(\d*)\}")
_WILD = re.compile(r"\*\*?|\?|\[!?[^\]]+\]")


def new_topics(topics: Iterable[str], rename: Mapping[str, str]) -> dict[str, str]:
    """Return the new topics of those that *rename* changes.

    rename  new by old: a topic, a shell pattern (``/robot1/*``), or ``re:`` and a regular expression of RE2; in the
            new name ``{}`` is what the next wildcard or group matched, ``{1}`` the first one, ``{0}`` the whole topic.
            An existing topic is no pattern, and has precedence; else the first pattern that matches applies

    Raises TopicError for an entry that matches nothing, UsageError for invalid patterns and for topics that would
    become equal.
    """
    names = list(topics)
    found: dict[str, str] = {}
    for old, new in rename.items():
        if old in names:
            found[old] = _filled(new, [], 0, old)
    for old, new in rename.items():
        if old in names:
            continue
        (fit, total), some = _compiled(old), False
        for name in names:
            groups = None if name.startswith("~") else fit(name)
            if groups is not None:
                some = True
                if name not in found:
                    found[name] = _filled(new, groups, total, name)
        if not some:
            raise TopicError("channel to be renamed", old, names, none="the log has no channels")
    _check(names, found)
    return {old: new for old, new in found.items() if old != new}


def _check(names: list[str], found: Mapping[str, str]) -> None:
    taken: dict[str, str] = {}
    for name in names:
        new = found.get(name, name)
        if new.startswith("~") and not name.startswith("~"):
            raise UsageError(f"{name!r} cannot become {new!r}: names with ~ are reserved")
        if name.startswith("~") and new != name:
            raise UsageError(f"the reserved channel {name!r} cannot be renamed")
        if new in taken:
            text = f"{name!r} and {taken[new]!r} would both be called {new!r}"
            raise UsageError(text, hint="merge joins channels of several logs")
        taken[new] = name


def _compiled(old: str) -> tuple[Callable[[str], list[str] | None], int]:
    """Return a function that returns the texts of the groups or wildcards of *old* in a topic, and their number.

    Patterns may come from a recipe of others, so they are matched in linear time.
    """
    if old.startswith(REGEX):
        pattern = old.removeprefix(REGEX)
        # RE2 says what is wrong; Python only counts the groups.
        regex_groups(pattern, 0)
        try:
            total = re.compile(pattern).groups
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(f"{old}: not a regular expression: {error}") from None
        return regex_groups(pattern, total), total
    out, pos, count = "(?s)", 0, 0
    for wild in _WILD.finditer(old):
        word = wild[0]
        inside = (
            ".*" if word[0] == "*" else "." if word == "?" else word.replace("[!", "[^").replace("\\", r"\\")
        )
        out += re.escape(old[pos : wild.start()]) + f"({inside})"
        pos, count = wild.end(), count + 1
    try:
        return regex_groups(out + re.escape(old[pos:]), count), count
    except UsageError as error:
        raise UsageError(f"{old}: not a pattern: {error.text.rpartition(': ')[2]}") from None


def _filled(new: str, groups: list[str], total: int, topic: str) -> str:
    """Return *new* with the texts of *groups*, the first of *total*; an exact name has none."""
    count = iter(range(1, 1 + total))

    def group(one: re.Match[str]) -> str:
        number = int(one[1]) if one[1] else next(count, -1)
        if number == 0:
            return topic
        if not 0 < number <= total:
            raise UsageError(f"{new!r}: {one[0]} has no wildcard or group in the old name")
        if number > len(groups):
            raise UsageError(f"{new!r}: only the first {GROUPS} wildcards or groups can be named")
        return groups[number - 1]

    return _GROUP.sub(group, new)
