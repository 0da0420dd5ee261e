"""Data classes, named tuples and patterns that are cheap to define: nothing is compiled before it is used.

``dataclasses`` compiles the text of six methods for each frozen class, 0.6 ms, and a command that shows one log defines
sixty classes and makes a few objects of half of them. Here, comparing, hashing, showing and the guard against
assignments are closures, and ``__init__`` is that of ``dataclasses`` when a class has had some hundred objects.
Everything else is as there, and type checkers see the functions of there: ``fields``, ``replace``, ``asdict`` and
``is_dataclass`` of ``dataclasses`` take these classes, ``inspect.signature`` finds the parameters. Only what logreel
uses is supported.

``typing.NamedTuple`` compiles the text of every annotation, 30 µs each, ``namedtuple`` a function, and
``re.compile`` takes 0.2 to 1 ms.
"""

from __future__ import annotations

from collections import _tuplegetter, namedtuple  # type: ignore[attr-defined]
from operator import attrgetter
from types import MethodType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import re
    from dataclasses import asdict as asdict
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import fields as fields
    from dataclasses import replace as replace
    from typing import NamedTuple as NamedTuple

    lazy_pattern = re.compile

#: Stands for a value that is not there.
_NONE: Any = type("_NONE", (), {"__slots__": ()})()
#: Objects of a class for which a compiled ``__init__`` is not worth its cost: it saves 3 µs of each, and takes 600.
_FEW = 250
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

    owner: Any
    is_checked: bool

    def __init__(self, fields: tuple[_Field, ...]) -> None:
        self.calls, self.fields = 0, fields
        self.names = tuple(each.name for each in fields if each.init)
        self.values = tuple(each.value for each in fields)
        # After so many arguments all others have plain defaults; more than there are where a field is none.
        self.least = len(self.names) + 1
        if len(self.names) == len(fields):
            self.least = max((at + 1 for at, value in enumerate(self.values) if value is _NONE), default=0)

    def begin(self, owner: Any) -> None:
        """Be that of a class."""
        self.owner, self.is_checked = owner, hasattr(owner, "__post_init__")

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
        names, count = self.names, len(args)
        if self.least <= count <= len(names) and not values:
            for name, value in zip(names, args + self.values[count:], strict=True):
                _SET(instance, name, value)
        elif not self._set_some(instance, args, values):
            self.owner.__init__(instance, *args, **values)
            return
        if self.is_checked:
            instance.__post_init__()

    def _set_some(self, instance: Any, args: tuple[Any, ...], values: dict[str, Any]) -> bool:
        """Set the fields, some of which have their defaults; return False where the arguments are wrong."""
        taken = dict(zip(self.names, args, strict=False)) | values
        if len(taken) < len(args) + len(values) or not taken.keys() <= set(self.names):
            return False
        for each in self.fields:
            value = taken.get(each.name, each.value)
            if value is _NONE and each.factory is not _NONE:
                value = each.factory()
            if value is not _NONE:
                _SET(instance, each.name, value)
            elif each.init:
                return False
        return True


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
    inherited = cls.__dict__
    added: dict[str, Any] = {
        "__logreel_fields__": tuple(fields.values()),
        "__logreel_frozen__": frozen,
        "__dataclass_fields__": _Standard("__dataclass_fields__"),
        "__dataclass_params__": _Standard("__dataclass_params__"),
    }
    if "__match_args__" not in inherited:
        added["__match_args__"] = tuple(name for name, each in fields.items() if each.init)
    if init:
        added["__init__"] = start = _Init(added["__logreel_fields__"])
    if repr and "__repr__" not in inherited:
        added["__repr__"] = _repr
    if eq:
        added |= _compare(inherited, [name for name, each in fields.items() if each.compare], frozen)
    if frozen:
        made: list[Any] = []
        added |= _freeze(inherited, made, fields, slots)
    if slots:
        cls = _with_slots(cls, fields, added)
    else:
        for name, value in added.items():
            setattr(cls, name, value)
    if init:
        start.begin(cls)
    if frozen:
        made.append(cls)
    return cls


def _with_slots(cls: Any, fields: dict[str, _Field], added: dict[str, Any]) -> Any:
    """Return the class with a slot for each field that no base has one for, and what was *added* to it."""
    inherited = {name for base in cls.__mro__[1:] for name in getattr(base, "__slots__", ())}
    namespace = {name: value for name, value in cls.__dict__.items() if name not in fields} | added
    namespace["__slots__"] = tuple(name for name in fields if name not in inherited)
    for name in ("__dict__", "__weakref__"):
        namespace.pop(name, None)
    made = type(cls)(cls.__name__, cls.__bases__, namespace)
    made.__qualname__ = cls.__qualname__
    return made


#: Objects that are shown now, by identity and thread: one inside itself is shown as "...".
_shown: set[tuple[int, int]] = set()


def _repr(self: Any) -> str:
    from _thread import get_ident

    key = id(self), get_ident()
    if key in _shown:
        return "..."
    _shown.add(key)
    try:
        names = (each.name for each in self.__logreel_fields__ if each.repr)
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"
    finally:
        _shown.discard(key)


def _compare(namespace: Any, names: list[str], frozen: bool) -> dict[str, Any]:
    """Return ``__eq__`` and ``__hash__`` that take the fields as a tuple, unless a class has its own."""
    # Two names at least, for which it gives a tuple.
    values = attrgetter(*names, "__class__", "__class__")
    hashed = namespace.get("__hash__", _NONE)

    def __eq__(self: Any, other: Any) -> Any:  # noqa: N807
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(values(self)[:-2])

    added: dict[str, Any] = {}
    own = "__eq__" in namespace
    if not own:
        added["__eq__"] = __eq__
    if hashed is _NONE or (hashed is None and own):
        added["__hash__"] = __hash__ if frozen else None
    return added


def _freeze(namespace: Any, made: list[Any], fields: dict[str, _Field], slots: bool) -> dict[str, Any]:
    """Return what refuses assignments to the fields, and to anything else of an object of the class in *made*."""

    def refuse(self: Any, name: str, what: str) -> None:
        if type(self) is made[0] or name in fields:
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"cannot {what} field {name!r}")

    def __setattr__(self: Any, name: str, value: Any) -> None:  # noqa: N807
        refuse(self, name, "assign to")
        super(made[0], self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        refuse(self, name, "delete")
        super(made[0], self).__delattr__(name)

    added: dict[str, Any] = {"__setattr__": __setattr__, "__delattr__": __delattr__}
    if slots and "__getstate__" not in namespace:
        added |= {"__getstate__": _state, "__setstate__": _set_state}
    return added


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


#: Types of values that are as they are in a copy.
_ATOMS = frozenset({str, int, float, bool, bytes, type(None)})


def _asdict(of: Any) -> dict[str, Any]:
    """Return the fields of an object, and of those in it, as ``dataclasses.asdict`` does."""
    own = type(of).__dict__.get("__logreel_fields__")
    if own is not None:
        values = {each.name: getattr(of, each.name) for each in own}
        # Nothing of it has to be copied, as in thousands of problems.
        if _ATOMS.issuperset(map(type, values.values())):
            return values
    import dataclasses

    return dataclasses.asdict(of)


def _replace(of: Any, /, **changes: Any) -> Any:
    """Return an object with changed fields, as ``dataclasses.replace`` does."""
    own = type(of).__dict__.get("__logreel_fields__")
    if own is None or not all(each.init for each in own):
        import dataclasses

        return dataclasses.replace(of, **changes)
    return type(of)(
        **{each.name: getattr(of, each.name) for each in own if each.name not in changes}, **changes
    )


#: As functions of any arguments: type checkers want names that they can read.
_new_class, _new_tuple, _named = cast("tuple[Any, Any, Any]", (type.__new__, tuple.__new__, namedtuple))


class _Tuple(tuple):  # type: ignore[type-arg]
    """What all named tuples have: ``namedtuple`` compiles and defines it once more for each of them."""

    __slots__ = ()
    # Without annotations, which would be fields of all of them.
    _fields = cast("tuple[str, ...]", ())

    @classmethod
    def _make(cls, iterable: Any) -> Any:
        values = tuple(iterable)
        if len(values) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(values)}")
        return _new_tuple(cls, values)

    def _replace(self, /, **changes: Any) -> Any:
        made = self._make(map(changes.pop, self._fields, self))
        if changes:
            raise ValueError(f"Got unexpected field names: {list(changes)!r}")
        return made

    __replace__ = _replace

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self) -> str:
        values = zip(self._fields, self, strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in values)})"

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)


class _New:
    """``__new__`` of a named tuple: makes few objects by itself, then has that of ``namedtuple`` take its place."""

    calls = 0

    def __init__(self, names: tuple[str, ...], defaults: dict[str, Any]) -> None:
        self.names, self.defaults = names, defaults

    def begin(self, owner: Any) -> None:
        """Be that of a class."""
        self.owner = owner

    def __get__(self, instance: Any, owner: Any) -> Any:
        self.calls += 1
        if self.calls <= _FEW:
            return self.make
        self.owner.__new__ = staticmethod(made := self.compiled())
        return made

    def make(self, cls: Any, /, *args: Any, **values: Any) -> Any:
        """Make an object; wrong arguments are left to the other ``__new__``, which names them."""
        if values or len(args) != len(self.names):
            taken = dict(zip(self.names, args, strict=False)) | values
            filled = self.defaults | taken
            if len(taken) != len(args) + len(values) or len(filled) != len(self.names):
                return self.compiled()(cls, *args, **values)
            args = tuple(filled[name] for name in self.names)
        return _new_tuple(cls, args)

    def compiled(self) -> Any:
        """Return ``__new__`` of the named tuple with these fields."""
        made = _named(self.owner.__name__, self.names, defaults=self.defaults.values()).__new__
        made.__annotations__ = self.owner.__annotations__
        return made


class _Signature(_New):
    """``__signature__`` of a named tuple, for those who ask how it is called."""

    def __get__(self, instance: Any, owner: Any) -> Any:
        import inspect

        return inspect.signature(MethodType(self.compiled(), owner))


class _TupleMaker(type):
    """Makes a named tuple in place of a class with a base."""

    def __new__(cls, name: str, bases: tuple[Any, ...], namespace: dict[str, Any]) -> Any:
        if not bases:
            return _new_class(cls, name, bases, namespace)
        names = tuple(namespace.get("__annotations__", ()))
        defaults = {field: namespace[field] for field in names if field in namespace}
        new, signature = _New(names, defaults), _Signature(names, defaults)
        members = {"__slots__": (), "__new__": new, "__signature__": signature, "__match_args__": names}
        members |= {"_fields": names, "_field_defaults": defaults}
        members |= {field: _tuplegetter(at, "") for at, field in enumerate(names)}
        made: Any = type(name, (_Tuple,), namespace | members)
        new.begin(made)
        signature.begin(made)
        return made


class _NamedTuple(metaclass=_TupleMaker):
    """Base of a class whose annotated names are the fields of a named tuple, as ``typing.NamedTuple``."""


class _Pattern:
    """Stands for ``re.compile(text, flags)``."""

    def __init__(self, text: Any, flags: int = 0) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        import re

        value = getattr(re.compile(self._text, self._flags), name)
        # From now on it is found without this method.
        setattr(self, name, value)
        return value


if not TYPE_CHECKING:
    NamedTuple, lazy_pattern = _NamedTuple, _Pattern
    asdict, dataclass, field, fields, replace = _asdict, _dataclass, _field, _fields, _replace
