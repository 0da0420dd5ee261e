"""Data classes that are cheap to define: those of ``dataclasses``, made without compiling their methods.

``dataclasses`` compiles the text of six methods for each frozen class, 0.6 ms, and a command that shows one log defines
sixty classes and makes a few objects of half of them. Here, comparing, hashing, showing and the guard against
assignments are closures, and ``__init__`` is that of ``dataclasses`` from the ninth object of a class on. Everything
else is as there, and type checkers see the functions of there: ``fields``, ``replace``, ``asdict`` and ``is_dataclass``
of ``dataclasses`` take these classes, ``inspect.signature`` finds the parameters. Only what logreel uses is supported.
"""

from __future__ import annotations

from operator import attrgetter
from types import MethodType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import asdict as asdict
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import fields as fields
    from dataclasses import replace as replace

#: Stands for a value that is not there.
_NONE: Any = type("_NONE", (), {"__slots__": ()})()
#: Objects of a class for which a compiled ``__init__`` is not worth its cost.
_FEW = 8
#: Set from __init__ also where the class is frozen.
_SET = object.__setattr__


class _Field:
    """What ``field`` was told, and the name and annotation in the class."""

    __slots__ = ("annotation", "compare", "factory", "init", "metadata", "name", "repr", "value")

    def __init__(
        self, value: Any, factory: Any, init: bool, repr: bool, compare: bool, metadata: Any
    ) -> None:
        self.value, self.factory, self.metadata = value, factory, metadata
        self.init, self.repr, self.compare = init, repr, compare
        self.name = self.annotation = ""

    def standard(self) -> Any:
        """Return it as ``dataclasses.field`` makes it."""
        import dataclasses

        values = {"default": self.value, "default_factory": self.factory}
        return dataclasses.field(
            init=self.init,
            repr=self.repr,
            compare=self.compare,
            metadata=self.metadata,
            **{name: value for name, value in values.items() if value is not _NONE},
        )


def _field(
    *,
    default: Any = _NONE,
    default_factory: Any = _NONE,
    init: bool = True,
    repr: bool = True,
    compare: bool = True,
    metadata: Any = None,
) -> Any:
    """Return a field of a class, as ``dataclasses.field`` does."""
    return _Field(default, default_factory, init, repr, compare, metadata)


class _Standard:
    """An attribute of the class that ``dataclasses`` makes of the same fields, when it is asked for."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any) -> Any:
        return getattr(_standard(owner), self.name)


class _Init:
    """``__init__`` of a class: sets few objects by itself, then has that of ``dataclasses`` take its place."""

    def __init__(self, owner: Any) -> None:
        self.owner, self.calls = owner, 0
        self.known = {each.name for each in owner.__logreel_fields__ if each.init}
        self.names = [each.name for each in owner.__logreel_fields__ if each.init]

    def __get__(self, instance: Any, owner: Any) -> Any:
        self.calls += 1
        if instance is not None and self.calls <= _FEW:
            return MethodType(self.set, instance)
        made = _standard(self.owner).__init__
        made.__qualname__ = f"{self.owner.__qualname__}.__init__"
        self.owner.__init__ = made
        return made if instance is None else MethodType(made, instance)

    def set(self, instance: Any, /, *args: Any, **values: Any) -> None:
        """Set the fields of *instance*; wrong arguments are left to the other ``__init__``, which names them."""
        taken = dict(zip(self.names, args, strict=False)) | values
        if len(taken) < len(args) + len(values) or not self.known.issuperset(taken):
            self.owner.__init__(instance, *args, **values)
            return
        for each in self.owner.__logreel_fields__:
            value = taken.get(each.name, each.value)
            if value is _NONE and each.factory is not _NONE:
                value = each.factory()
            if value is not _NONE:
                _SET(instance, each.name, value)
            elif each.init:
                self.owner.__init__(instance, *args, **values)
                return
        if hasattr(instance, "__post_init__"):
            instance.__post_init__()


def _standard(owner: Any) -> Any:
    """Return the class that ``dataclasses`` makes of the fields of *owner*; its methods work for objects of *owner*."""
    base = next(base for base in owner.__mro__ if "__logreel_fields__" in base.__dict__)
    made = base.__dict__.get("__logreel_standard__")
    if made is None:
        import dataclasses

        namespace: dict[str, Any] = {each.name: each.standard() for each in base.__logreel_fields__}
        namespace["__annotations__"] = {each.name: each.annotation for each in base.__logreel_fields__}
        namespace |= {
            "__module__": base.__module__,
            "__qualname__": base.__qualname__,
            "__doc__": base.__doc__,
        }
        if hasattr(base, "__post_init__"):
            namespace["__post_init__"] = base.__post_init__
        plain = type(base.__name__, (), namespace)
        made = dataclasses.dataclass(frozen=base.__logreel_frozen__, eq=False, repr=False)(plain)
        base.__logreel_standard__ = made
    return made


def _dataclass(
    cls: Any = None,
    /,
    *,
    init: bool = True,
    repr: bool = True,
    eq: bool = True,
    frozen: bool = False,
    slots: bool = False,
) -> Any:
    """Make a data class, as ``dataclasses.dataclass`` does."""
    if cls is None:
        return lambda cls: _dataclass(cls, init=init, repr=repr, eq=eq, frozen=frozen, slots=slots)
    fields = {
        each.name: each for base in cls.__mro__[:0:-1] for each in base.__dict__.get("__logreel_fields__", ())
    }
    for name, annotation in cls.__annotations__.items():
        if str(annotation).removeprefix("typing.").startswith("ClassVar"):
            continue
        default = cls.__dict__.get(name, _NONE)
        each = fields[name] = default if isinstance(default, _Field) else _field(default=default)
        each.name, each.annotation = name, annotation
        if each is default and each.value is not _NONE:
            setattr(cls, name, each.value)
        elif each is default:
            delattr(cls, name)
    if slots:
        cls = _with_slots(cls, fields)
    cls.__logreel_fields__ = tuple(fields.values())
    cls.__logreel_frozen__ = frozen
    cls.__dataclass_fields__ = _Standard("__dataclass_fields__")
    cls.__dataclass_params__ = _Standard("__dataclass_params__")
    namespace = cls.__dict__
    if "__match_args__" not in namespace:
        # Not by an assignment, which mypy refuses for this name.
        setattr(cls, "__match_args__", tuple(name for name, each in fields.items() if each.init))  # noqa: B010
    if init:
        cls.__init__ = _Init(cls)
    if repr and "__repr__" not in namespace:
        cls.__repr__ = _repr_of([name for name, each in fields.items() if each.repr])
    if eq:
        _compare(cls, [name for name, each in fields.items() if each.compare], frozen)
    if frozen:
        _freeze(cls, fields, slots)
    return cls


def _with_slots(cls: Any, fields: dict[str, _Field]) -> Any:
    """Return the class with a slot for each field that no base has one for."""
    inherited = {name for base in cls.__mro__[1:] for name in getattr(base, "__slots__", ())}
    namespace = {name: value for name, value in cls.__dict__.items() if name not in fields}
    namespace["__slots__"] = tuple(name for name in fields if name not in inherited)
    for name in ("__dict__", "__weakref__"):
        namespace.pop(name, None)
    made = type(cls)(cls.__name__, cls.__bases__, namespace)
    made.__qualname__ = cls.__qualname__
    return made


def _repr_of(names: list[str]) -> Callable[[Any], str]:
    from reprlib import recursive_repr

    @recursive_repr()
    def __repr__(self: Any) -> str:  # noqa: N807
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


def _compare(cls: Any, names: list[str], frozen: bool) -> None:
    """Add ``__eq__`` and ``__hash__`` that take the fields as a tuple."""
    # Two names at least, for which it gives a tuple.
    values = attrgetter(*names, "__class__", "__class__")
    hashed = cls.__dict__.get("__hash__", _NONE)

    def __eq__(self: Any, other: Any) -> Any:  # noqa: N807
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(values(self)[:-2])

    own = "__eq__" in cls.__dict__
    if not own:
        cls.__eq__ = __eq__
    if hashed is _NONE or (hashed is None and own):
        cls.__hash__ = __hash__ if frozen else None


def _freeze(cls: Any, fields: dict[str, _Field], slots: bool) -> None:
    """Refuse assignments to the fields, and to anything else of an object of this class."""

    def refuse(self: Any, name: str, what: str) -> None:
        if type(self) is cls or name in fields:
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"cannot {what} field {name!r}")

    def __setattr__(self: Any, name: str, value: Any) -> None:  # noqa: N807
        refuse(self, name, "assign to")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        refuse(self, name, "delete")
        super(cls, self).__delattr__(name)

    cls.__setattr__, cls.__delattr__ = __setattr__, __delattr__
    if slots and "__getstate__" not in cls.__dict__:
        cls.__getstate__, cls.__setstate__ = _state, _set_state


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in self.__logreel_fields__]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(self.__logreel_fields__, state, strict=True):
        _SET(self, each.name, value)


def default_values(cls: Any) -> dict[str, Any]:
    """Return the defaults of the fields of a data class by name, without those that have none."""
    if "__logreel_fields__" in cls.__dict__:
        own = [(each.name, each.value, each.factory) for each in cls.__logreel_fields__]
        none = _NONE
    else:
        import dataclasses

        own = [(each.name, each.default, each.default_factory) for each in dataclasses.fields(cls)]
        none = dataclasses.MISSING
    values = {name: value if factory is none else factory() for name, value, factory in own}
    return {name: value for name, value in values.items() if value is not none}


def _fields(of: Any) -> Any:
    """Return the fields of a data class or of an object of one, as ``dataclasses.fields`` does."""
    import dataclasses

    return dataclasses.fields(of)


def _asdict(of: Any) -> dict[str, Any]:
    """Return the fields of an object, and of those in it, as ``dataclasses.asdict`` does."""
    import dataclasses

    return dataclasses.asdict(of)


def _replace(of: Any, /, **changes: Any) -> Any:
    """Return an object with changed fields, as ``dataclasses.replace`` does."""
    import dataclasses

    return dataclasses.replace(of, **changes)


if not TYPE_CHECKING:
    asdict, dataclass, field, fields, replace = _asdict, _dataclass, _field, _fields, _replace
