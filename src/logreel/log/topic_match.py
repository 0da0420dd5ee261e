"""Select channels by names, shell patterns, regular expressions, and conditions on what they say of themselves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from logreel.dataclass import NamedTuple, lazy_pattern
from logreel.errors import TopicError, UsageError
from logreel.log.scan import ALIASES, TOPIC, TYPE

#: Prefix of a regular expression.
REGEX = "re:"
#: Number of groups of a regular expression whose text is known: RE2 names them by one digit.
GROUPS = 9
#: ``key=value``; a key has no characters of patterns, so that these still select names with ``=``.
_CONDITION = lazy_pattern(r"(?s:([^=,*?\[\]]+)=(.*))")
#: A comma that is followed by another condition.
_AND = lazy_pattern(r",(?=[^=,*?\[\]]+=)")


class Described(Protocol):
    """The part of a Channel that conditions need."""

    @property
    def facts(self) -> Mapping[str, Collection[str]]: ...


#: Names; only where they are those of channels, conditions can select them.
Names = Collection[str] | Mapping[str, Described]


class Condition(NamedTuple):
    """One ``key=value``; *value* is a text, a shell pattern, or ``re:`` and a regular expression."""

    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


def listed(names: str | Iterable[str]) -> list[str]:
    """Return *names* as a list without repeats; a string is one name. Raises UsageError for other types."""
    if not isinstance(names, Iterable):
        raise UsageError(f"{names!r} is not a name: give strings")
    found = [names] if isinstance(names, str) else list(names)
    for name in found:
        if not isinstance(name, str):
            raise UsageError(f"{name!r} is not a name: give strings")
    return list(dict.fromkeys(found))


def match_topics(names: Names, wanted: str | Iterable[str] | None, path: str | None = None) -> list[str]:
    """Return the *names* that *wanted* selects, in the order of *names*; None: all that do not begin with ``~``.

    Raises TopicError for a name, pattern or condition without match, UsageError for an invalid regular expression and
    for ``topic.field``.
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
                    f"{want!r} names fields of {of}, but only whole channels can be chosen here",
                    path=path,
                    hint="cat, align, plot, stats, and convert to tables or .ndjson take fields",
                )
            raise no_match(names, want, path)
        found |= fits
    return [n for n in names if n in found]


def match_in_each(
    logs: Sequence[Mapping[str, Described]], wanted: str | Iterable[str], path: str | None = None
) -> list[set[str]]:
    """Return what *wanted* selects of the channels of each log; each text has to select something in one of them.

    Raises as ``match_topics`` does for all channels together.
    """
    found: list[set[str]] = [set() for _ in logs]
    everything: dict[str, Described] = {}
    for one in logs:
        everything |= {name: ch for name, ch in one.items() if name not in everything}
    for want in listed(wanted):
        fits = [fitting(one, want) for one in logs]
        if want in everything:
            # An existing name is no pattern in the other logs either.
            fits = [{want} & one.keys() for one in logs]
        if not any(fits):
            match_topics(everything, [want], path)
        for some, more in zip(found, fits, strict=True):
            some |= more
    return found


def fitting(names: Names, want: str) -> set[str]:
    """Return those of *names* that one name, pattern or condition selects; raises UsageError for an invalid expression.

    An existing name selects only itself (``sensor_accel[1]`` is then no pattern). ``key=value`` selects the channels
    that say so of themselves, see ``Facts``; several conditions are joined by commas. ``re:`` and a regular expression
    select the names that it matches completely; other texts are shell patterns. Only patterns that begin with ``~``
    select reserved names, also as ``topic=~…``.
    """
    if want in names:
        return {want}
    if isinstance(names, Mapping) and (asked := conditions(want)) and _keys(names).issuperset(dict(asked)):
        return channels_with(names, asked)
    fits = _test(want)
    return {n for n in names if (n[:1] != "~" or _is_reserved(want)) and fits(n)}


def conditions(want: str) -> list[Condition]:
    """Return the conditions of ``key=value,key=value``; empty for other text."""
    if want.startswith(REGEX) or "=" not in want or not _CONDITION.match(want):
        return []
    parts = [one.partition("=") for one in _AND.split(want)]
    return [Condition(key.strip(), value) for key, _, value in parts]


def is_pattern(want: str) -> bool:
    """Return whether a text is a pattern, a regular expression or a condition, if no name is like this."""
    return want.startswith(REGEX) or bool(conditions(want)) or not {*"*?["}.isdisjoint(want)


def check_pattern(want: str) -> None:
    """Raise UsageError for an invalid regular expression in a name, pattern or condition."""
    for value in [value for _, value in conditions(want)] or [want]:
        _test(value)


def no_match(names: Names, want: str, path: str | None = None) -> TopicError:
    """Return the error for *want*, which selects none of *names*: it lists names, keys or values that there are."""
    asked = conditions(want) if isinstance(names, Mapping) else []
    if not asked or not isinstance(names, Mapping) or not names:
        return TopicError("channel", want, names, path=path)
    return no_such_channel(names, asked, path)


def no_such_channel(
    names: Mapping[str, Described], asked: list[Condition], path: str | None = None
) -> TopicError:
    """Return the error for conditions that hold for none of *names* together: it lists keys or values that exist."""
    for one in asked:
        if one.key not in (keys := _keys(names)):
            return TopicError("key", one.key, sorted(keys), path=path)
    # The first condition after which no channel is left, among the channels for which those before it hold.
    count = next(n for n in range(1, len(asked) + 1) if not channels_with(names, asked[:n]))
    key, value = asked[count - 1]
    left = channels_with(names, asked[: count - 1])
    values = dict.fromkeys(text for name in names if name in left for text in names[name].facts.get(key, ()))
    those = "".join(f" {one} and" for one in asked[: count - 1])
    return TopicError(f"channel with{those} {key}", value, values, path=path, none=f"none states its {key}")


def _keys(names: Mapping[str, Described]) -> set[str]:
    return {key for ch in names.values() for key in (*ch.facts, *ALIASES)}


def channels_with(names: Mapping[str, Described], asked: list[Condition]) -> set[str]:
    """Return the names of the channels for which all conditions hold; raises UsageError for an invalid expression."""
    found = {n for n in names if n[:1] != "~" or any(k == TOPIC and _is_reserved(v) for k, v in asked)}
    for key, value in asked:
        values = {name: _spellings(key, names[name].facts.get(key, ())) for name in found}
        # As for names: an existing value is no pattern.
        is_value = any(value in some for some in values.values())
        fits = value.__eq__ if is_value else _test(value)
        found = {name for name, some in values.items() if any(map(fits, some))}
    return found


def _spellings(key: str, values: Collection[str]) -> Collection[str]:
    """Return *values* of a key; a type of ROS in both spellings: ``pkg/Name`` of ROS 1, ``pkg/msg/Name`` of ROS 2."""
    if key != TYPE:
        return values
    parts = (value.split("/") for value in values)
    others = (
        "/".join(p[::2]) if len(p) == 3 and p[1] == "msg" else "/msg/".join(p)
        for p in parts
        if 2 <= len(p) <= 3
    )
    return {**dict.fromkeys(values), **dict.fromkeys(others)}


def _is_reserved(want: str) -> bool:
    return want.removeprefix(REGEX)[:1] == "~"


def _test(want: str) -> Callable[[str], object]:
    """Return a function that tests a text by a shell pattern, or by ``re:`` and a regular expression."""
    if want.startswith(REGEX):
        return _regex(want.removeprefix(REGEX))
    from fnmatch import fnmatchcase

    return lambda text: fnmatchcase(text, want)


def topic_and_fields(names: Names, want: str) -> tuple[list[str], list[str]] | None:
    """Split ``topic.field`` or ``topic:field,field`` into the *names* that the topic fits, and the field paths.

    The topic is the longest beginning of *want* that is a name or a pattern that fits one; callers first try all of
    *want* as a name, so that topics may have dots and colons. Conditions can have fields
    only after a colon, since values such as types have dots. Returns None for other text and for regular expressions.
    Whether the fields exist is not checked.
    """
    if want.startswith(REGEX):
        return None
    # Of conditions, what has a further condition after it belongs to the value.
    value = want.rfind("=") if isinstance(names, Mapping) and conditions(want) else None
    for at in range(len(want) - 2, 0, -1):
        if want[at] not in ".:":
            continue
        if value is not None and want[:at] not in names and (want[at] == "." or at < value):
            continue
        if fits := fitting(names, want[:at]):
            rest = want[at + 1 :]
            fields = [field.strip() for field in (rest.split(",") if want[at] == ":" else [rest])]
            return [name for name in names if name in fits], [field for field in fields if field]
    return None


def regex_groups(pattern: str, count: int) -> Callable[[str], list[str] | None]:
    """Return a function that fits a regular expression of RE2's syntax to a whole text, and returns its groups.

    count  number of groups of *pattern*; the first GROUPS are returned, as "" where a group did not match

    The function returns None for a text that does not fit. Raises UsageError for an invalid expression.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    fits = _regex(pattern)

    def groups(text: str) -> list[str] | None:
        if not fits(text):
            return None
        value = pa.scalar(text.encode("utf-8", "replace").decode(), pa.string())
        whole = rf"\A(?:{pattern})\z"
        return [
            pc.replace_substring_regex(value, pattern=whole, replacement=rf"\{n}").as_py()
            for n in range(1, min(count, GROUPS) + 1)
        ]

    return groups


def _regex(pattern: str) -> Callable[[str], object]:
    """Return a function that tests whether a regular expression of RE2's syntax fits a whole text.

    RE2 takes time in proportion to the text for any expression; that of Python can take years for 30 characters.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    def fits(text: str, expression: str = rf"\A(?:{pattern})\z") -> bool:
        # Names from damaged logs may have characters that UTF-8 does not have.
        value = pa.scalar(text.encode("utf-8", "replace").decode(), pa.string())
        return bool(pc.match_substring_regex(value, pattern=expression).as_py())

    try:
        # Alone, so that parentheses in it cannot close those around it.
        fits("", pattern)
        fits("")
    except (pa.ArrowException, UnicodeError) as error:
        why = str(error).rpartition(": ")[2] if isinstance(error, pa.ArrowException) else str(error)
        raise UsageError(f"{REGEX}{pattern}: not a regular expression: {why}") from None
    return fits
