"""Specifications of training data: which episodes, which features, at which rate, with which error in time."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from fractions import Fraction
from pathlib import Path
from typing import Any

from logreel.errors import UsageError
from logreel.log.times import duration_ns
from logreel.ops.query.align import Alignment
from logreel.ops.toml_lines import line_of

#: Largest specification.
MAX_BYTES = 1 << 20
#: How a value is taken from the messages around a time.
METHODS = ("nearest", "previous", "linear")
#: What happens to frames whose error in time is too large.
BEYOND = ("split", "drop", "fail")
RULES = ("log", "where", "band", "list")
DTYPES = ("float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool")
#: Columns that every dataset has, and words that the targets use.
RESERVED = {
    "timestamp",
    "frame_index",
    "episode_index",
    "index",
    "task_index",
    "task",
    "next",
    "meta",
    "data",
}
#: Most elements of a vector.
MAX_ELEMENTS = 4096
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*")
#: A range of items, as in ``position[0:6]``.
_RANGE = re.compile(r"(.*)\[(\d{1,4}):(\d{1,4})\](.*)")


@dataclass(frozen=True, slots=True)
class Feature:
    """One column of the training data: a vector of fields, or pictures.

    fields     ``topic.field`` of each element; an array is one element per item
    pictures   topic of the pictures; empty for a vector
    names      names of the elements; empty: the fields
    dtype      NumPy type of the elements
    method     ``nearest``, ``previous`` or ``linear``
    max_error  ns, largest distance in time between a frame and the message that it is taken from
    offset     ns that are added to the time of a frame, to take a value that is later
    size       width and height that pictures are scaled to; None: as they are
    """

    name: str
    fields: tuple[str, ...] = ()
    pictures: str = ""
    names: tuple[str, ...] = ()
    dtype: str = "float32"
    method: str = "nearest"
    max_error: int = 0
    offset: int = 0
    size: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """One entry of a list of episodes: which logs (pattern of the file name), from when to when, and its task."""

    log: str
    start: str | int | None = None
    end: str | int | None = None
    task: str | None = None

    def is_for(self, name: str) -> bool:
        """Return whether the entry is about the log at the path *name*."""
        return fnmatchcase(os.path.basename(name), self.log) or fnmatchcase(name, self.log)


@dataclass(frozen=True, slots=True)
class Episodes:
    """The rule for episodes.

    rule        ``log``: the whole log; ``where``: intervals in which conditions are true; ``band``: intervals of a kind
                that the format knows, such as ``armed``; ``list``: as listed
    start, end  times in the log between which episodes lie
    min_length  ns; shorter episodes are left out
    """

    rule: str = "log"
    where: tuple[str, ...] = ()
    band: str = ""
    listed: tuple[Listed, ...] = ()
    start: str | int | None = None
    end: str | int | None = None
    min_length: int = 0


@dataclass(frozen=True, slots=True)
class Video:
    """How videos are encoded: H.264 with this quality (0 best, 51 worst) and a key frame every *gop* frames."""

    crf: int = 23
    gop: int = 2


@dataclass(frozen=True)
class Spec:
    """What training data consist of; ``read_spec`` reads it from a file.

    rate    frames per second
    task    what is done in the episodes, in words
    robot   type of the robot, or empty
    beyond  what happens where the error in time is larger than the bound of a feature: ``split`` the episode there,
            ``drop`` the frames, or leave the whole episode out (``fail``)
    """

    rate: Fraction
    features: tuple[Feature, ...]
    episodes: Episodes = field(default_factory=Episodes)
    task: str = ""
    robot: str = ""
    beyond: str = "split"
    video: Video = field(default_factory=Video)


def read_spec(what: str | os.PathLike[str] | Mapping[str, Any] | Spec) -> Spec:
    """Return the specification in a TOML file, or in a mapping with the same keys.

    Raises UsageError, with the line of a file, for what is no TOML, and for unknown, missing or wrong keys.
    """
    if isinstance(what, Spec):
        return what
    if isinstance(what, Mapping):
        try:
            return _Reader(dict(what)).spec()
        except _KeyError as error:
            raise UsageError(error.text) from None
    name = os.fspath(what)
    if Path(name).stat().st_size > MAX_BYTES:
        raise UsageError(f"a specification of more than {MAX_BYTES >> 20} MiB", path=name)
    try:
        text = Path(name).read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"no valid TOML: {error}", path=name) from None
    try:
        return _Reader(table, _time_in_file).spec()
    except _KeyError as error:
        raise UsageError(f"line {line_of(text, error.keys)}: {error.text}", path=name) from None


class _KeyError(UsageError):
    """A wrong value at the path *keys*."""

    def __init__(self, keys: tuple[str, ...], text: str) -> None:
        super().__init__(f"{'.'.join(keys) or 'the specification'}: {text}")
        self.keys = keys


class _Table:
    """One table of a specification; every key is taken once, and what is left is unknown."""

    def __init__(self, keys: tuple[str, ...], value: Any) -> None:
        self.keys = keys
        if not isinstance(value, Mapping):
            raise _KeyError(keys, f"expected a table, not {value!r:.60}")
        self.rest: dict[str, Any] = {str(key): item for key, item in value.items()}
        self.known: list[str] = []

    def take(self, key: str, usual: Any, check: Callable[[Any], Any]) -> Any:
        """Return the checked value of *key*, or *usual* if it is missing."""
        self.known.append(key)
        if key not in self.rest:
            return usual
        try:
            return check(self.rest.pop(key))
        except _KeyError:
            raise
        except UsageError as error:
            raise _KeyError((*self.keys, key), error.text) from None

    def done(self) -> None:
        """Raise an error for a key that is not known."""
        for key in self.rest:
            from difflib import get_close_matches

            near = get_close_matches(key, self.known, 1)
            more = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(self.known))}"
            raise _KeyError((*self.keys, key), f"no such key; {more}")


class _Reader:
    """Reads the tables of a specification; *time* checks a time."""

    def __init__(self, table: dict[str, Any], time: Callable[[Any], str | int] | None = None) -> None:
        self.top = _Table((), table)
        self.time = time or _time

    def spec(self) -> Spec:
        top = self.top
        rate = top.take("rate", None, _rate)
        if rate is None:
            raise _KeyError((), 'needs a rate, such as rate = "30Hz"')
        task, robot = top.take("task", "", _text), top.take("robot", "", _text)
        sync = _Table(("sync",), top.take("sync", {}, _any))
        method = sync.take("method", "nearest", _one_of(METHODS))
        max_error = sync.take("max_error", None, _length)
        beyond = sync.take("beyond", "split", _one_of(BEYOND))
        sync.done()
        episodes = self.episodes()
        video = _Table(("video",), top.take("video", {}, _any))
        coding = Video(video.take("crf", 23, _number(0, 51)), video.take("gop", 2, _number(1, 1000)))
        video.done()
        tables = _Table(("features",), top.take("features", {}, _any))
        features = tuple(self.feature(name, entry, method, max_error) for name, entry in tables.rest.items())
        top.done()
        if not features:
            raise _KeyError(("features",), 'needs a feature at least, such as [features."observation.state"]')
        for entry in features:
            for other in features:
                if other.name.startswith(f"{entry.name}."):
                    raise _KeyError(("features", other.name), f"{entry.name!r} is a feature already")
        return Spec(rate, features, episodes, task, robot, beyond, coding)

    def episodes(self) -> Episodes:
        table = _Table(("episodes",), self.top.take("episodes", {}, _any))
        where = table.take("where", (), _texts)
        band = table.take("band", "", _text)
        listed = tuple(self.entry(entry) for entry in table.take("list", [], _list))
        rules = [name for name, value in (("where", where), ("band", band), ("list", listed)) if value]
        rule = table.take("rule", rules[0] if rules else "log", _one_of(RULES))
        if rules != ([] if rule == "log" else [rule]):
            names = " and ".join(rules) or "none of them"
            raise _KeyError(("episodes",), f"the rule {rule!r} does not go with it, there is {names}")
        chosen = Episodes(
            rule,
            where,
            band,
            listed,
            table.take("start", None, self.time),
            table.take("end", None, self.time),
            table.take("min_length", 0, _length),
        )
        table.done()
        return chosen

    def entry(self, value: Any) -> Listed:
        table = _Table(("episodes", "list"), value)
        listed = Listed(
            table.take("log", "*", _text),
            table.take("start", None, self.time),
            table.take("end", None, self.time),
            table.take("task", None, _text),
        )
        table.done()
        return listed

    def feature(self, name: str, value: Any, method: str, max_error: int | None) -> Feature:
        keys = ("features", name)
        if not _NAME.fullmatch(name):
            raise _KeyError(keys, "a name consists of letters, digits and _, in parts with dots between them")
        if name.partition(".")[0] in RESERVED:
            raise _KeyError(keys, f"this name is used already; not possible: {', '.join(sorted(RESERVED))}")
        table = _Table(keys, value)
        topic = table.take("topic", "", _text)
        fields, pictures = table.take("fields", (), _texts), table.take("pictures", "", _text)
        size = table.take("size", None, _size)
        names = table.take("names", (), _texts)
        dtype = table.take("dtype", "float32", _one_of(DTYPES))
        own_method = table.take("method", None, _one_of(METHODS))
        bound = table.take("max_error", max_error, _length)
        offset = table.take("offset", 0, _signed_length)
        table.done()
        if bool(fields) == bool(pictures):
            raise _KeyError(keys, "needs either fields or pictures")
        if bound is None:
            raise _KeyError(keys, 'needs max_error, here or in [sync]: max_error = "50ms"')
        if pictures:
            if names or topic:
                raise _KeyError(keys, "pictures have neither names nor topic: write pictures = TOPIC")
            if own_method == "linear":
                raise _KeyError((*keys, "method"), "pictures are not interpolated: nearest or previous")
            chosen = own_method or ("nearest" if method == "linear" else method)
            return Feature(name, (), pictures, (), "uint8", chosen, bound, offset, size)
        if size:
            raise _KeyError((*keys, "size"), "only pictures have a size")
        paths = tuple(f"{topic}.{item}" if topic else item for text in fields for item in _items(keys, text))
        if len(paths) > MAX_ELEMENTS:
            raise _KeyError((*keys, "fields"), f"more than {MAX_ELEMENTS} elements")
        return Feature(name, paths, "", names, dtype, own_method or method, bound, offset)


def _items(keys: tuple[str, ...], text: str) -> list[str]:
    """Return the paths that ``a[0:3].b`` stands for."""
    match = _RANGE.fullmatch(text)
    if match is None:
        return [text]
    first, last = int(match[2]), int(match[3])
    if last <= first:
        raise _KeyError((*keys, "fields"), f"there are no items in {text!r}")
    return [f"{match[1]}[{i}]{match[4]}" for i in range(first, last)]


def _any(value: Any) -> Any:
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"expected a text, not {value!r:.60}")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) and text for text in texts):
        raise UsageError(f"expected a list of texts, not {value!r:.60}")
    return tuple(texts)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise UsageError(f"expected a list of tables, not {value!r:.60}")
    return value


def _one_of(words: tuple[str, ...]) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in words:
            raise UsageError(f"{value!r:.40} is not possible: {', '.join(words)}")
        return str(value)

    return check


def _number(least: int, most: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise UsageError(f"expected a whole number from {least} to {most}, not {value!r:.40}")
        return value

    return check


def _rate(value: Any) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UsageError(f'expected a rate such as "30Hz", not {value!r:.40}')
    return Alignment(rate=value).hertz


def _signed_length(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise UsageError(f'expected a length of time such as "50ms", not {value!r:.40}')
    return duration_ns(value)


def _length(value: Any) -> int:
    length = _signed_length(value)
    if length < 0:
        raise UsageError(f"{value!r} is less than nothing")
    return length


def _time(value: Any) -> str | int:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise UsageError(f'expected a time such as "+2s" or "2024-05-01T12:00:00Z", not {value!r:.40}')
    return value


def _time_in_file(value: Any) -> str | int:
    """Return a time as text: numbers in a file mean what they mean on the command line."""
    return str(_time(value)) if not isinstance(value, float) else f"{value:.9f}"


def _size(value: Any) -> tuple[int, int]:
    good = isinstance(value, list | tuple) and len(value) == 2
    if not good or not all(isinstance(n, int) and 2 <= n <= 8192 and n % 2 == 0 for n in value):
        raise UsageError(f"expected width and height as even numbers, such as [320, 240], not {value!r:.40}")
    return value[0], value[1]
