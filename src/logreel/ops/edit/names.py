"""New topics of channels, by names and patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from logreel.errors import TopicError, UsageError
from logreel.log.topic_match import REGEX

_GROUP = re.compile(r"\{(\d*)\}")
_WILD = re.compile(r"\*\*?|\?|\[!?[^\]]+\]")


def new_topics(topics: Iterable[str], rename: Mapping[str, str]) -> dict[str, str]:
    """Return the new topics of those that *rename* changes.

    rename  new by old: a topic, a shell pattern (``/robot1/*``), or ``re:`` and a regular expression; in the new name
            ``{}`` is what the next wildcard or group matched, ``{1}`` the first one, ``{0}`` the whole topic. An
            existing topic is no pattern, and has precedence; else the first pattern that matches applies

    Raises TopicError for an entry that matches nothing, UsageError for invalid patterns and for topics that would
    become equal.
    """
    names = list(topics)
    found: dict[str, str] = {}
    for old, new in rename.items():
        if old in names:
            found[old] = _filled(new, None, old)
    for old, new in rename.items():
        if old in names:
            continue
        pattern, some = _compiled(old), False
        for name in names:
            match = None if name.startswith("~") else pattern.fullmatch(name)
            if match is not None:
                some = True
                if name not in found:
                    found[name] = _filled(new, match, name)
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


def _compiled(old: str) -> re.Pattern[str]:
    """Return an expression with a group for each wildcard of *old*."""
    if old.startswith(REGEX):
        try:
            return re.compile(old.removeprefix(REGEX))
        except re.error as error:
            raise UsageError(f"{old}: not a regular expression: {error}") from None
    out, pos = "", 0
    for wild in _WILD.finditer(old):
        word = wild[0]
        inside = (
            ".*" if word[0] == "*" else "." if word == "?" else word.replace("[!", "[^").replace("\\", r"\\")
        )
        out += re.escape(old[pos : wild.start()]) + f"({inside})"
        pos = wild.end()
    try:
        return re.compile(out + re.escape(old[pos:]), re.DOTALL)
    except re.error as error:
        raise UsageError(f"{old}: not a pattern: {error}") from None


def _filled(new: str, match: re.Match[str] | None, topic: str) -> str:
    """Return *new* with the groups of *match*; None: an exact name, without groups."""
    count = iter(range(1, 1 + (match.re.groups if match is not None else 0)))

    def group(one: re.Match[str]) -> str:
        number = int(one[1]) if one[1] else next(count, -1)
        if number == 0:
            return topic
        if match is None or not 0 < number <= match.re.groups:
            raise UsageError(f"{new!r}: {one[0]} has no wildcard or group in the old name")
        return match[number] or ""

    return _GROUP.sub(group, new)
