"""Registries: entries of one sort by name, those of logreel and those that other packages add by entry points."""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar, cast

from logreel.errors import LogError, UsageError
from logreel.io.notices import listeners, notice

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Lazy:
    """A function that is imported when it is called, or its signature is asked for.

    place  ``module:name`` of the function or class
    """

    place: str

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.load()(*args, **options)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.load())

    def load(self) -> Any:
        """Return what the place names; a place without a name is the module."""
        module, _, name = self.place.partition(":")
        owner = importlib.import_module(module)
        return getattr(owner, name) if name else owner


def lazy(place: str) -> Lazy:
    """Return a function that imports and calls ``module:name``, so that unused formats are not imported."""
    return Lazy(place)


def lazy_value(place: str) -> Callable[[], Any]:
    """Return a function that imports and returns what ``module:name`` names, or ``module`` itself."""
    return Lazy(place).load


class Registry(Generic[T]):
    """Entries of one sort by name. Those of other packages never replace an entry of logreel.

    title  word for an entry in messages
    group  group of the entry points of other packages
    own    entries of logreel by name; ``lazy("module:name")`` for one that is imported when it is asked for; or a
           function that returns them
    base   class of all entries
    key    returns the name of an entry of another package; None: the name of its entry point
    """

    def __init__(
        self,
        title: str,
        group: str,
        own: Mapping[str, T | Lazy] | Callable[[], Mapping[str, T | Lazy]],
        base: type[T] | None = None,
        key: Callable[[T], str] | None = None,
    ) -> None:
        self.title, self.group = title, group
        self._make_own, self._base, self._key = own, base, key

    @cached_property
    def _own(self) -> Mapping[str, T | Lazy]:
        return self._make_own() if callable(self._make_own) else self._make_own

    def names(self) -> list[str]:
        """Return the names of all entries, those of logreel first; of other packages, the names of entry points."""
        return list(dict.fromkeys([*self._own, *sorted(point.name for point in self._points())]))

    @cached_property
    def added_names(self) -> frozenset[str]:
        """Names of entry points of other packages; looking reads a file of each package of the environment."""
        return frozenset(point.name for point in self._points())

    def own(self) -> dict[str, T]:
        """Return the entries of logreel by name."""
        return {name: self._loaded(entry) for name, entry in self._own.items()}

    @cached_property
    def _added(self) -> dict[str, T]:
        entries: dict[str, T] = {}
        for point in self._points():
            try:
                entry = point.load()
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                # Also SystemExit: a module that is a program, too, may end it when it is imported.
                self.warn(point.name, f"it cannot be loaded: {error!r}")
                continue
            if self._base is not None and not isinstance(entry, self._base):
                self.warn(point.name, f"{point.value} is no {self._base.__name__}")
                continue
            name = point.name if self._key is None else self._key(entry)
            if name not in self._own:
                entries[name] = entry
        return entries

    def added(self) -> Mapping[str, T]:
        """Return the entries of other packages by name; broken ones are told once and left out."""
        return self._added

    def all(self) -> dict[str, T]:
        """Return all entries by name, those of logreel first; broken ones of other packages are told and left out."""
        return {**self.own(), **self.added()}

    def get(self, name: str) -> T | None:
        """Return the entry called *name*, or None; other packages are only looked at for a name that logreel lacks."""
        return self._loaded(self._own[name]) if name in self._own else self.added().get(name)

    def load(self, name: str) -> T | None:
        """Return the entry called *name*, or None; raises LogError if that of another package cannot be loaded."""
        if name in self._own:
            return self._loaded(self._own[name])
        for point in self._points():
            if point.name != name:
                continue
            try:
                return cast("T", point.load())
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                # Also SystemExit, which would end the program without a word.
                raise LogError(f"the {self.title} plug-in {name!r} cannot be loaded: {error!r}") from error
        return None

    def warn(self, name: str, why: str) -> None:
        """Tell that an entry of another package is left out: it must not prevent the use of others."""
        text = f"{self.title} plug-in {name!r} is left out: {why}"
        if listeners:
            notice(text)
        else:
            warnings.warn(text, RuntimeWarning, stacklevel=2)

    def leave_out(self, name: str, why: str) -> None:
        """Tell that the entry *name* of another package failed, and do not use it any more."""
        self.warn(name, why)
        self._added.pop(name, None)

    def forget(self) -> None:
        """Look at the entry points of other packages again when they are next needed."""
        for name in ("_added", "added_names"):
            self.__dict__.pop(name, None)

    def _points(self) -> Iterable[Any]:
        from importlib import metadata

        return metadata.entry_points(group=self.group)

    def _loaded(self, entry: T | Lazy) -> T:
        return cast("T", entry.load()) if isinstance(entry, Lazy) else entry


def check_options(owner: str, known: Collection[str], options: Iterable[str]) -> None:
    """Raise UsageError for the first of *options* that is not *known*; *owner* is what has the options."""
    for option in options:
        if option not in known:
            names = ", ".join(known) or "none at all"
            raise UsageError(f"{owner} has no option {option!r}; it has: {names}")
