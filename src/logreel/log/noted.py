"""Which Problems a list contains, found in constant time."""

from __future__ import annotations

from logreel.errors import Problem


class Noted:
    """Adds Problems to lists that other code extends, too; each is there once."""

    def __init__(self) -> None:
        self._known: set[Problem] = set()
        self._list: list[Problem] | None = None
        self._length = 0

    def add(self, problems: list[Problem], problem: Problem) -> None:
        """Append *problem* unless it is in the list already."""
        if problems is not self._list or len(problems) != self._length:
            # With tens of thousands of problems, comparing each with all others takes minutes.
            self._known, self._list = set(problems), problems
        if problem not in self._known:
            self._known.add(problem)
            problems.append(problem)
        self._length = len(problems)
