"""Which Problems a list contains, found in constant time."""

from __future__ import annotations

from logreel.errors import Problem


class Noted:
    """Adds Problems to lists that other code extends, too; each is there once."""

    def __init__(self) -> None:
        self._known: set[Problem] = set()
        self._list: list[Problem] | None = None
        self._length = 0
        self._last: Problem | None = None

    def add(self, problems: list[Problem], problem: Problem) -> None:
        """Append *problem* unless it is in the list already."""
        if problems is not self._list or not self._is_continued(problems):
            self._known, self._list, self._length = set(), problems, 0
        # Only the new ones: with tens of thousands of problems, looking at all for each takes minutes.
        self._known.update(problems[self._length :])
        if problem not in self._known:
            self._known.add(problem)
            problems.append(problem)
        self._length, self._last = len(problems), problems[-1]

    def _is_continued(self, problems: list[Problem]) -> bool:
        """Return whether the list, as far as it is known, has not been changed."""
        return self._length <= len(problems) and problems[self._length - 1] is self._last
