"""A part of a log that a function is asked about: channels, an interval, and conditions on messages.

Functions take its members as keyword arguments, too: ``SelectionOptions`` names them once for all.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, TypedDict, TypeVar

from logreel.dataclass import dataclass, default_values, fields, replace
from logreel.errors import UsageError
from logreel.log.times import Length, Time, duration_ns

_Function = TypeVar("_Function", bound=Callable[..., Any])


class SpanOptions(TypedDict, total=False):
    """Members of a Selection that choose channels and an interval, as keyword arguments."""

    topics: str | Iterable[str] | None
    exclude: str | Iterable[str]
    start: Time | None
    end: Time | None


class SelectionOptions(SpanOptions, total=False):
    """Members of a Selection as keyword arguments."""

    where: str | Iterable[str]
    segment: int | None
    count: int | None
    latched: str | Iterable[str]
    keep_latched: bool
    around: Around | str | None


@dataclass(frozen=True, slots=True)
class Around:
    """Windows of a log around the moments at which conditions begin to hold; overlapping ones are one window.

    conditions     one or several, each about one channel: in SQL as for ``where``, ``"battery_status.voltage_v < 14"``,
                   or ``"changed(vehicle_status.nav_state)"``. A condition begins to hold with a message that meets it,
                   if the message of its channel before does not, or there is none; a change is a value that differs
                   from the one before
    before, after  length of the window before and after such a moment, ``"10s"``, a timedelta or ns; a message at its
                   end is in the window
    debounce       a condition has to have been false for so long before it begins to hold; of changes: the value has to
                   have been the same for so long

    Raises UsageError for other lengths, and without a condition.
    """

    conditions: str | Iterable[str]
    before: Length = "10s"
    after: Length = "30s"
    debounce: Length = 0

    def __post_init__(self) -> None:
        if not isinstance(self.conditions, str):
            object.__setattr__(self, "conditions", tuple(self.conditions))
        if not self.texts or not all(text.strip() for text in self.texts):
            raise UsageError("windows need a condition that they are around")
        for name, value in zip(("before", "after", "debounce"), self.lengths, strict=True):
            if value < 0:
                raise UsageError(f"{name}: a length of time is not negative")

    @classmethod
    def of(cls, around: Self | str) -> Self:
        """Return *around*; of a text, the windows of usual length around this condition."""
        return cls(around) if isinstance(around, str) else around

    @property
    def texts(self) -> tuple[str, ...]:
        """The conditions."""
        return (self.conditions,) if isinstance(self.conditions, str) else tuple(self.conditions)

    @property
    def lengths(self) -> tuple[int, int, int]:
        """Before, after and debounce in ns."""
        return duration_ns(self.before), duration_ns(self.after), duration_ns(self.debounce)


@dataclass(frozen=True, slots=True)
class Selection:
    """What a function is asked about; by default all of a log.

    topics, exclude  names, patterns or conditions, as for ``Log.match``; None: all, with text and parameters
    start, end       half-open interval, as for ``Log.messages``
    where            conditions in SQL on fields, ``"battery_status.voltage_v < 14"``: only messages that meet them, of
                     the channels that have these fields
    segment          number of one log of a file with several; None: the log
    count            only the first *count* messages in the file
    latched          topics that count as latched, in addition to those marked in the log and those always latched
                     (``/tf_static``, ``/map``, ``/robot_description`` …); implies *keep_latched*
    keep_latched     also keep what is in force at *start*: the last message of latched topics, all static transforms,
                     parameters and actors; such messages get the time of the first one in the part
    around           only windows around the moments at which conditions begin to hold; a log of them has what is in
                     force at the start of each, as with *keep_latched*. Of *start* and *end*, the moments are between
    """

    topics: str | Iterable[str] | None = None
    exclude: str | Iterable[str] = ()
    start: Time | None = None
    end: Time | None = None
    where: str | Iterable[str] = ()
    segment: int | None = None
    count: int | None = None
    latched: str | Iterable[str] = ()
    keep_latched: bool = False
    around: Around | str | None = None

    @classmethod
    def of(cls, selection: Self | None, options: Mapping[str, Any]) -> Self:
        """Return *selection*, or if it is None the one whose members are among *options*; UsageError for both."""
        members = {name: options[name] for name in SelectionOptions.__annotations__ if name in options}
        if selection is None:
            return cls(**members)
        if members:
            raise UsageError(f"the selection says that already: leave out {', '.join(members)}")
        return selection

    @property
    def is_part(self) -> bool:
        """Whether some messages may be left out."""
        chosen = self.topics is not None or bool(self.exclude) or bool(self.where)
        return chosen or self.has_interval or self.count is not None or self.around is not None

    @property
    def has_interval(self) -> bool:
        """Whether there is a bound."""
        return self.start is not None or self.end is not None

    @property
    def keeps_latched(self) -> bool:
        """Whether messages in force at the start are wanted."""
        return self.keep_latched or bool(self.latched)

    @property
    def for_log(self) -> Self:
        """The selection of a log of its own: of windows, it has what is in force at their starts."""
        return self if self.around is None else replace(self, keep_latched=True)

    def refuse(self, verb: str, *names: str) -> None:
        """Raise UsageError if one of the members called *names*, which mean nothing to *verb*, is set."""
        for member in fields(self):
            if member.name in names and getattr(self, member.name) != member.default:
                raise UsageError(f"{verb} takes no {member.name}", hint=f"leave out {member.name}=")


def keywords(options: type, *defaults: type, others: bool = False) -> Callable[[_Function], _Function]:
    """Return a decorator that shows OPTIONS of functions with ``**options: Unpack[OPTIONS]`` in their signatures.

    options   the TypedDict of the keywords
    defaults  dataclasses with fields of these names; their defaults are shown
    others    True: the function takes other keywords, too; else it calls ``check_keywords``
    """
    usual = {
        name: value for options_class in defaults for name, value in default_values(options_class).items()
    }

    def decorate(function: _Function) -> _Function:
        signature = inspect.signature(function)
        *own, rest = signature.parameters.values()
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=usual.get(name), annotation=hint)
            for name, hint in options.__annotations__.items()
        ]
        parameters = [*own, *more, *([rest] if others else [])]
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return function

    return decorate


def check_keywords(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raise TypeError for *options* that are not in the signature of *function*, as ``keywords`` shows it."""
    for name in options.keys() - inspect.signature(function).parameters.keys():
        raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
