"""Data classes of logreel are those of the standard library, whatever is asked of them."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from typing import Any, ClassVar

import pytest

from logreel import dataclass as own

CALLS = [
    ((1,), {}),
    ((1, "x"), {}),
    ((1,), {"b": "y", "c": [3]}),
    ((), {"a": 1, "b": "x"}),
    ((), {}),
    ((1, "x", [], 4, 5), {}),
    ((1,), {"a": 2}),
    ((1,), {"none": 2}),
]


def plain() -> type:
    class Row:
        """A row."""

        a: int
        b: str = "x"
        c: list[int] = own.field(default_factory=list)
        d: int = own.field(default=3, repr=False, compare=False, metadata={"unit": "m"})
        e: ClassVar[int] = 7

        def twice(self) -> int:
            return self.a * 2

    return Row


def checked() -> type:
    class Row:
        """A row whose values are looked at."""

        a: int
        b: str = own.field(init=False, default="made")

        def __post_init__(self) -> None:
            object.__setattr__(self, "b", f"made of {self.a}")

        def __repr__(self) -> str:
            return f"<{self.a}>"

        def __hash__(self) -> int:
            return 5

    return Row


OPTIONS: list[dict[str, bool]] = [
    {},
    {"slots": True},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "eq": False},
    {"frozen": True, "repr": False},
    {"eq": False, "slots": True},
]


def both(make: Any, options: dict[str, bool]) -> tuple[type, type]:
    """Return the same class made here and by the standard library."""
    theirs = make()
    for name, value in list(vars(theirs).items()):
        if hasattr(value, "standard"):
            setattr(theirs, name, value.standard())
    return own.dataclass(make(), **options), dataclasses.dataclass(theirs, **options)


def outcome(function: Any) -> Any:
    """Return what a call gives, or its error."""
    try:
        return function()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("make", [plain, checked])
@pytest.mark.parametrize("used", [0, 20, 260])
def test_classes_are_those_of_the_standard_library(make: Any, options: dict[str, bool], used: int) -> None:
    ours, theirs = both(make, options)
    for _ in range(used):
        ours(1)
    for args, values in CALLS:
        one, other = (outcome(lambda c=c: c(*args, **values)) for c in (ours, theirs))  # noqa: B023
        assert repr(one) == repr(other) or " at 0x" in repr(one)
        assert isinstance(one, tuple) == isinstance(other, tuple)
        if isinstance(one, tuple):
            continue
        assert [getattr(one, f.name) for f in dataclasses.fields(one)] == [
            getattr(other, f.name) for f in dataclasses.fields(other)
        ]
        for ask in (
            lambda x: x == copy.copy(x),
            lambda x: x == copy.deepcopy(x),
            lambda x: x == 1,
            hash,
            dataclasses.asdict,
            lambda x: dataclasses.asdict(own.replace(x, a=9)),
            lambda x: setattr(x, "a", 3),
            lambda x: setattr(x, "none", 3),
            lambda x: delattr(x, "a"),
            lambda x: x.a,
            lambda x: hasattr(x, "__dict__"),
        ):
            mine, his = outcome(lambda a=ask: a(one)), outcome(lambda a=ask: a(other))  # noqa: B023
            if ask is hash and options.get("eq") is False and make is plain:
                continue
            # With slots, the standard library tells of a wrong use of super() where a new name is refused.
            assert mine == his or (isinstance(his, tuple) and "super(type, obj)" in his[1])
    for name in ("__doc__", "__qualname__", "__match_args__", "__module__"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    described = [
        [
            (f.name, f.type, f.default, f.init, f.repr, f.compare, dict(f.metadata))
            for f in dataclasses.fields(c)
        ]
        for c in (ours, theirs)
    ]
    assert described[0] == described[1]
    assert dataclasses.is_dataclass(ours)
    assert [f.name for f in own.fields(ours(*[1]))] == [f.name for f in dataclasses.fields(theirs)]


@own.dataclass(frozen=True, slots=True)
class Base:
    """A class that others extend."""

    a: int
    b: tuple[int, ...] = ()


@own.dataclass(frozen=True, slots=True)
class Derived(Base):
    """Its field comes last, and a default of the base is replaced."""

    b: tuple[int, ...] = (1,)
    c: float = 0.5


class Plain(Derived):
    """A class that is no data class by itself."""

    def __init__(self, a: int) -> None:
        super().__init__(a, c=2.0)


def test_classes_extend_classes_and_are_pickled() -> None:
    assert repr(Derived(1)) == "Derived(a=1, b=(1,), c=0.5)"
    assert Derived.__slots__ == ("c",)
    assert Base(1) != Derived(1)
    assert Plain(3) == Plain(3) != Plain(4)
    assert repr(Plain(3)) == "Plain(a=3, b=(1,), c=2.0)"
    for value in (Base(1), Derived(2, (3,)), Plain(4)):
        copied = pickle.loads(pickle.dumps(value))  # noqa: S301 - made one line above
        assert copied == value == copy.copy(value)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'a'"):
        Derived(1).a = 2
    assert {Base(1): "x"}[Base(1)] == "x"
    assert own.asdict(Derived(1)) == {"a": 1, "b": (1,), "c": 0.5}


def test_a_data_class_of_the_standard_library_extends_one_of_logreel() -> None:
    @dataclasses.dataclass(frozen=True)
    class Other(Base):
        d: str = "d"

    assert Other(1, (2,)) == Other(1, (2,), "d")
    assert [f.name for f in dataclasses.fields(Other)] == ["a", "b", "d"]
    with pytest.raises(TypeError, match="cannot inherit non-frozen"):
        dataclasses.dataclass(type("Loose", (Base,), {}))


def test_an_object_that_holds_itself_is_shown() -> None:
    @own.dataclass
    class Node:
        """A node."""

        next: Any = None

    node = Node()
    node.next = node
    assert repr(node).endswith("Node(next=...)")
