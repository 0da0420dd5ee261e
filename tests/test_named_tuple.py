"""Named tuples of logreel are those of ``typing``, and its patterns those of ``re``."""

from __future__ import annotations

import copy
import inspect
import pickle
import typing
from typing import Any, NamedTuple

import pytest

from logreel.dataclass import NamedTuple as Own
from logreel.dataclass import lazy_pattern


class Theirs(NamedTuple):
    """A point."""

    x: int
    y: float | None = None
    z: tuple[int, ...] = ()

    @property
    def twice(self) -> int:
        """Return x + x."""
        return self.x * 2

    @classmethod
    def at(cls, x: int) -> Any:
        """Return a point."""
        return cls(x)


class Ours(Own):
    """A point."""

    x: int
    y: float | None = None
    z: tuple[int, ...] = ()

    @property
    def twice(self) -> int:
        """Return x + x."""
        return self.x * 2

    @classmethod
    def at(cls, x: int) -> Any:
        """Return a point."""
        return cls(x)


def test_a_named_tuple_is_that_of_typing() -> None:
    ours, theirs = Ours(1, z=(2,)), Theirs(1, z=(2,))
    assert tuple(ours) == tuple(theirs) == (1, None, (2,))
    assert repr(ours).removeprefix("Ours") == repr(theirs).removeprefix("Theirs")
    assert ours.twice == 2
    assert Ours.at(3) == (3, None, ())
    assert ours._replace(x=4)._asdict() == {"x": 4, "y": None, "z": (2,)}
    assert Ours._fields == Theirs._fields == Ours.__match_args__
    assert Ours._field_defaults == Theirs._field_defaults
    assert Ours.__doc__ == "A point."
    assert Ours.__module__ == __name__
    assert Ours.__qualname__ == "Ours"
    assert issubclass(Ours, tuple)
    assert not hasattr(ours, "__dict__")
    assert pickle.loads(pickle.dumps(ours)) == ours == copy.copy(ours)  # noqa: S301 - made here
    assert typing.get_type_hints(Ours) == typing.get_type_hints(Theirs)
    assert list(inspect.signature(Ours).parameters) == list(inspect.signature(Theirs).parameters)
    for wrong in (lambda: Ours(), lambda: Ours(1, none=2)):  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            wrong()


def test_a_named_tuple_stays_the_same_when_it_is_compiled() -> None:
    class Place(Own):
        x: int
        y: int = 2

    for n in range(300):
        assert Place(n) == Place(n, y=2) == Place(x=n) == Place._make([n, 2]) == (n, 2)
        with pytest.raises(TypeError, match="x"):
            Place()  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="x"):
            Place(1, x=1)  # type: ignore[misc]
        with pytest.raises(TypeError, match=r"3 positional|from 2 to 3"):
            Place(1, 2, 3)  # type: ignore[call-arg]
    assert list(inspect.signature(Place).parameters) == ["x", "y"]
    with pytest.raises(TypeError):
        Place._make([1])
    with pytest.raises(ValueError, match="z"):
        Place(1)._replace(z=1)  # type: ignore[call-arg]


def test_a_pattern_is_compiled_when_it_is_used() -> None:
    pattern = lazy_pattern(r"(?i:a(\d+))")
    assert pattern.fullmatch("A12")[1] == "12"  # type: ignore[index]
    assert pattern.match("b") is None
    assert pattern.pattern == r"(?i:a(\d+))"
    assert lazy_pattern(rb"[a-z]+").findall(b"ab 1 c") == [b"ab", b"c"]
