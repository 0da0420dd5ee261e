"""Parts by name: bundled ones, imported when they are asked for, and those of other packages, by entry point."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from logreel.errors import LogError, UsageError


@dataclass(frozen=True)
class Plugins:
    """The parts of one kind.

    kind   word for one of them in errors
    group  name of the group of entry points
    own    module and attribute of each bundled part, by name
    """

    kind: str
    group: str
    own: Mapping[str, tuple[str, str]]

    def names(self) -> list[str]:
        """Return the names of all parts, bundled ones first."""
        from importlib import metadata

        foreign = sorted(point.name for point in metadata.entry_points(group=self.group))
        return list(dict.fromkeys([*self.own, *foreign]))

    def load(self, name: str) -> Callable[..., Any] | None:
        """Return the class or function called *name*, or None; raises LogError if another package's fails to load."""
        if name in self.own:
            module, attribute = self.own[name]
            own: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
            return own
        from importlib import metadata

        for point in metadata.entry_points(group=self.group, name=name):
            try:
                foreign: Callable[..., Any] = point.load()
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                # Also SystemExit, which would end the program without a word.
                raise LogError(f"the {self.kind} plug-in {name!r} cannot be loaded: {error!r}") from error
            return foreign
        return None


def check_options(owner: str, known: Collection[str], given: Iterable[str]) -> None:
    """Raise UsageError for the first option in *given* that is not *known*; *owner* is what has the options."""
    for option in given:
        if option not in known:
            some = ", ".join(known) or "none at all"
            raise UsageError(f"{owner} has no option {option!r}; it has: {some}")
