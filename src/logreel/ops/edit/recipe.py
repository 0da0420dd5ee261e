"""Recipes: what an edit changes, from keyword arguments or a TOML file."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from logreel.dataclass import dataclass, field, fields, replace
from logreel.errors import UsageError
from logreel.log.times import Length, duration_ns
from logreel.ops.toml_lines import line_of

#: Largest recipe file.
MAX_BYTES = 1 << 20
#: What can be redacted, with the ways to do so; the first is the usual one.
REDACTIONS: Mapping[str, tuple[str, ...]] = {
    "position": ("move", "remove", "drop"),
    "place": ("move", "remove", "drop"),
    "identity": ("replace",),
    "time": ("shift",),
    "images": ("blank", "drop"),
    "text": ("blank", "drop"),
}
#: All that can be redacted; positions are places.
ALL = "all"
#: Which times a shift or a scale changes.
CLOCKS = ("both", "log", "header")
#: Ways to set one time to the other.
RESTAMPS = ("header=log", "log=header")
#: Latitude, longitude in degrees and altitude in metres that positions move to: 1.6 km from 0, 0, since programs take
#: positions at exactly 0, 0 as unknown.
NEUTRAL = (0.01, 0.01, 0.0)

Names = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FileToAttach:
    """A file to be attached; *name* and *media_type*: empty for those of the path."""

    path: str
    name: str = ""
    media_type: str = ""


class RecipeOptions(TypedDict, total=False):
    """Members of a Recipe as callers give them, as keyword arguments; None: not given."""

    rename: Names | None
    frame: Names | None
    drop_topic: str | Iterable[str] | None
    zero: str | Iterable[str] | None
    shift: Any
    scale: float | None
    clock: str | None
    restamp: str | None
    set: Mapping[str, Any] | None
    unset: str | Iterable[str] | None
    attach: Any
    redact: str | Iterable[str] | Names | None
    origin: Sequence[float] | str | None


@dataclass(frozen=True, slots=True)
class Recipe:
    """What an edit changes; the fields are named as the options of ``logreel edit``.

    rename      new topics by old ones; patterns are described at ``new_topics``
    frame       new frame ids by old ones
    drop_topic  names or patterns of channels to leave out
    zero        fields to set to zero or empty: ``topic.field`` or ``topic:field,field``
    shift       ns to add to times
    scale       factor for times after the start
    clock       times that *shift* and *scale* change: ``both``, ``log`` or ``header``
    restamp     ``header=log``, ``log=header``, or empty
    set         metadata by name; ``TOPIC:NAME`` is metadata of a channel
    unset       names of metadata to remove
    attach      files to attach
    redact      way to redact (``REDACTIONS``) by what is redacted
    origin      latitude, longitude and altitude that positions move to
    """

    rename: Names = field(default_factory=dict)
    frame: Names = field(default_factory=dict)
    drop_topic: tuple[str, ...] = ()
    zero: tuple[str, ...] = ()
    shift: int = 0
    scale: float = 1.0
    clock: Literal["both", "log", "header"] = "both"
    restamp: str = ""
    set: Mapping[str, Any] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    attach: tuple[FileToAttach, ...] = ()
    redact: Names = field(default_factory=dict)
    origin: tuple[float, float, float] = NEUTRAL

    def __post_init__(self) -> None:
        if self.restamp and (self.scale != 1 or self.shift):
            raise UsageError("restamp sets one time to the other: it goes with neither shift nor scale")

    def __bool__(self) -> bool:
        return self != Recipe(clock=self.clock, origin=self.origin)

    @classmethod
    def of(cls, **options: Any) -> Recipe:
        """Return the recipe of keyword arguments as ``edit`` takes them; None means not given.

        Raises UsageError for unknown names and values that do not fit.
        """
        known = {option.name for option in fields(cls)}
        checked: dict[str, Any] = {}
        for key, value in options.items():
            if key not in known:
                raise UsageError(
                    f"{key!r} is no edit; there are: {', '.join(_spelled(k) for k in sorted(known))}"
                )
            if value is not None:
                checked[key] = _CHECKS[key](_spelled(key), value)
        return cls(**checked)

    def with_more(self, other: Recipe) -> Recipe:
        """Return the recipe with what *other* adds; of single values, that of *other* has precedence if it has any."""
        usual, merged = Recipe(), dict[str, Any]()
        for option in fields(self):
            present, more = getattr(self, option.name), getattr(other, option.name)
            if isinstance(present, Mapping):
                merged[option.name] = {**present, **more}
            elif isinstance(present, tuple) and option.name != "origin":
                merged[option.name] = (*present, *more)
            elif more != getattr(usual, option.name):
                merged[option.name] = more
        return replace(self, **merged)


def read_recipe(path: str | os.PathLike[str]) -> Recipe:
    """Return the recipe of a TOML file; paths of attachments in it are relative to its folder.

    Raises UsageError, with the line where it can be known, for a file that is no TOML, and for unknown or wrong keys.
    """
    name = os.fspath(path)
    if Path(path).stat().st_size > MAX_BYTES:
        raise UsageError(f"a recipe of more than {MAX_BYTES >> 20} MiB", path=name)
    try:
        text = Path(path).read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"no valid TOML: {error}", path=name) from None
    options: dict[str, Any] = {}
    for key, value in table.items():
        plain = key.replace("-", "_")
        try:
            options |= {plain: value}
            Recipe.of(**{plain: value})
        except UsageError as error:
            raise UsageError(f"line {line_of(text, [key])}: {error.text}", path=name) from None
    folder = Path(path).parent
    try:
        made = Recipe.of(**options)
    except UsageError as error:
        raise UsageError(error.text, path=name) from None
    return replace(made, attach=tuple(replace(a, path=os.fspath(folder / a.path)) for a in made.attach))


def _spelled(key: str) -> str:
    return key.replace("_", "-")


def _pairs(key: str, value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(
        isinstance(old, str) and isinstance(new, str) and old and new for old, new in value.items()
    ):
        raise UsageError(f"{key}: expected a table of old and new names, not {value!r:.60}")
    return dict(value)


def _texts(key: str, value: Any) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, Iterable) or isinstance(texts, Mapping | bytes):
        raise UsageError(f"{key}: expected a list of texts, not {value!r:.60}")
    result = tuple(texts)
    if not all(isinstance(text, str) and text for text in result):
        raise UsageError(f"{key}: expected a list of texts, not {value!r:.60}")
    return result


def _length(key: str, value: Any) -> int:
    if isinstance(value, bool | float):
        raise UsageError(f"{key}: expected a length of time such as 2s or -250ms, not {value!r}")
    length: Length = value
    return duration_ns(length)


def _factor(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1e-6 <= value <= 1e6:
        raise UsageError(f"{key}: expected a factor between 0.000001 and 1000000, not {value!r:.40}")
    return float(value)


def _one_of(*words: str) -> Any:
    def check(key: str, value: Any) -> str:
        if value not in words:
            raise UsageError(f"{key}: expected {' or '.join(words)}, not {value!r:.40}")
        return str(value)

    return check


def _metadata(key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) and name for name in value):
        raise UsageError(f"{key}: expected a table of names and values, not {value!r:.60}")
    return dict(value)


def _attached(key: str, value: Any) -> tuple[FileToAttach, ...]:
    files = [value] if isinstance(value, str | Mapping | FileToAttach | os.PathLike) else value
    if not isinstance(files, Iterable):
        raise UsageError(f"{key}: expected files, not {value!r:.60}")
    attached = []
    for entry in files:
        if isinstance(entry, str | os.PathLike):
            entry = FileToAttach(os.fspath(entry))
        elif isinstance(entry, Mapping):
            unknown = set(entry) - {"path", "name", "type"}
            if unknown or not isinstance(entry.get("path"), str):
                raise UsageError(
                    f"{key}: expected path, and optionally name and type, not {dict(entry)!r:.80}"
                )
            entry = FileToAttach(entry["path"], str(entry.get("name", "")), str(entry.get("type", "")))
        if not isinstance(entry, FileToAttach):
            raise UsageError(f"{key}: expected files, not {entry!r:.60}")
        attached.append(entry)
    return tuple(attached)


def _redactions(key: str, value: Any) -> dict[str, str]:
    """Return ways by what is redacted, from a table or from texts such as ``position`` and ``position=remove``."""
    if isinstance(value, Mapping):
        pairs = [(str(what), str(how)) for what, how in value.items()]
    else:
        each = [spec.strip() for text in _texts(key, value) for spec in text.split(",")]
        pairs = [(spec.partition("=")[0], spec.partition("=")[2]) for spec in each if spec]
    redactions: dict[str, str] = {}
    for what, how in pairs:
        if what == ALL and not how:
            redactions = {
                **{content: ways[0] for content, ways in REDACTIONS.items() if content != "position"},
                **redactions,
            }
            continue
        if what not in REDACTIONS:
            raise UsageError(
                f"{key}: {what!r} cannot be redacted; there are: {', '.join((*REDACTIONS, ALL))}"
            )
        ways = REDACTIONS[what]
        if how and how not in ways:
            raise UsageError(f"{key}: {what} can be redacted by {' or '.join(ways)}, not by {how!r}")
        redactions[what] = how or ways[0]
    return redactions


def _place(key: str, value: Any) -> tuple[float, float, float]:
    parts: Sequence[Any] = value.split(",") if isinstance(value, str) else value
    try:
        numbers = [float(part) for part in parts]
    except (TypeError, ValueError):
        numbers = []
    numbers += [0.0] * (len(numbers) == 2)
    if len(numbers) != 3 or not (abs(numbers[0]) <= 89 and abs(numbers[1]) <= 180 and abs(numbers[2]) < 1e5):
        raise UsageError(f"{key}: expected latitude, longitude and optionally altitude, not {value!r:.60}")
    return numbers[0], numbers[1], numbers[2]


_CHECKS: Mapping[str, Any] = {
    "rename": _pairs,
    "frame": _pairs,
    "drop_topic": _texts,
    "zero": _texts,
    "shift": _length,
    "scale": _factor,
    "clock": _one_of(*CLOCKS),
    "restamp": _one_of(*RESTAMPS),
    "set": _metadata,
    "unset": _texts,
    "attach": _attached,
    "redact": _redactions,
    "origin": _place,
}
