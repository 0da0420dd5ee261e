"""Layouts and columns fitted to what the definitions of another format can express, and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, UsageError
from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, Field, FixedArray, Node, Rest, Scalar, String, Struct, Time, measure
from logreel.layout.nodes import Sequence as Counted
from logreel.layout.numpy_columns import ARRAY, BYTES, DURATION, LIST, STRUCT, TIME, Column, list_column
from logreel.write.format_writer import Abilities

#: One per field; settled, so that no value is missing, and offsets begin at 0 and end with the last item.
Columns = list[Column]

#: Field of a message that holds all records of a message of many, and field of a struct around an array in an array.
RECORDS, VALUES = "records", "values"
#: End of the name of the field with the number of items of an array of fixed size.
COUNT = "_count"
#: Path of a member: names, and ``""`` for the items of an array.
Path = tuple[str, ...]
#: A fitted struct, and conversions of the columns of its members.
_FittedStruct = tuple[Struct, Callable[[Columns], Columns], Callable[[Columns], Columns]]


class MisfitError(DefinitionError):
    """A Layout is not what fitting another one gives."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A Layout fitted to a format.

    source   the Layout that was fitted
    layout   one struct of fields that the format can express
    forward  columns of the fitted Layout from those of the original, one row per message
    back     columns of the original from those of the fitted Layout
    notes    sentences about fields with other names or types
    dropped  names of the top-level fields that are left out, with the reasons
    """

    source: Layout
    layout: Layout
    forward: Callable[[Columns], Columns]
    back: Callable[[Columns], Columns]
    notes: list[str]
    dropped: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Value:
    """A node that holds another one, and conversions of its array."""

    node: Node
    forward: Callable[[Column], Column] = lambda column: column
    back: Callable[[Column], Column] = lambda column: column


def fit(
    layout: Layout,
    abilities: Abilities,
    lengths: Mapping[Path, int] | None = None,
    model: Layout | None = None,
    kept: str = "",
) -> Fitted:
    """Return *layout* fitted to a format.

    lengths  greatest length of each text and array of variable length, by path; for formats with a fixed size
    model    the Layout that the result should be: its lengths are used instead of *lengths*
    kept     field that keeps its name although it is that of the time of the message: it has the same values

    Raises DefinitionError if no field is left, MisfitError if the result would differ from *model*.
    """
    return _Fitting(abilities, lengths or {}, kept).of_messages(layout, model)


@dataclass(slots=True)
class Sizes:
    """What the messages of a channel need in a format whose messages have a fixed size, by path.

    lengths  greatest length of each text and array of variable length, in bytes or items
    cut      number of texts that contain a NUL character, at which readers of arrays of characters end
    """

    lengths: dict[Path, int] = field(default_factory=dict)
    cut: dict[Path, int] = field(default_factory=dict)

    def add(self, path: Path, length: int) -> None:
        """Note the length of one text or array, or the greatest of several; 0: there is none."""
        self.lengths[path] = max(self.lengths.get(path, 0), length)


def measured(layout: Layout, batches: Iterator[Columns]) -> Sizes:
    """Return the Sizes of all messages.

    batches  columns of the members of *layout*, one row per message
    """
    sizes = Sizes()
    for columns in batches:
        for f, column in zip(_as_one(layout).visible(), _whole_columns(layout, columns), strict=True):
            _measure(f.node, column, (f.name,), sizes)
    return sizes


def _measure(node: Node, column: Column, path: Path, sizes: Sizes) -> None:
    match node:
        case String() | Bytes() | Rest() | Counted(item=Scalar(type="uint8" | "char")):
            sizes.add(path, _longest(column))
            if isinstance(node, String) or (isinstance(node, Rest) and node.text):
                sizes.cut[path] = sizes.cut.get(path, 0) + _with_nul(column)
        case FixedArray(item=Scalar(type="char")):
            pass
        case Counted(item=item):
            sizes.add(path, _longest(column))
            _measure(item, column.item, (*path, ""), sizes)
        case FixedArray(item=item):
            _measure(item, column.item, (*path, ""), sizes)
        case Struct():
            for f, child in zip(node.visible(), column.children, strict=True):
                _measure(f.node, child, (*path, f.name), sizes)


def _longest(column: Column) -> int:
    """Return the greatest length of texts, bytes or lists."""
    return int(np.diff(column.ends).max(initial=0))


def _with_nul(column: Column) -> int:
    """Return the number of texts with a NUL character."""
    at = np.flatnonzero(column.values[: int(column.ends[-1])] == 0)
    return len(np.unique(np.searchsorted(column.ends, at, "right")))


def _as_one(layout: Layout) -> Struct:
    """Return the struct of a whole message: records of a message of many are one field."""
    if isinstance(layout.root, Struct):
        return layout.root
    return Struct((Field(RECORDS, Counted(layout.record, layout.root.width)),))


def _whole_columns(layout: Layout, columns: Columns) -> Columns:
    """Return the columns of ``_as_one(layout)`` from those of the members, lists where messages have many records."""
    if isinstance(layout.root, Struct):
        return columns
    ends = columns[0].ends
    return [list_column(ends, _structs([f.name for f in layout.record.visible()], [c.item for c in columns]))]


def _member_columns(layout: Layout, columns: Columns) -> Columns:
    """Return columns of the members of *layout* from those of ``_as_one(layout)``."""
    if isinstance(layout.root, Struct):
        return columns
    return [list_column(columns[0].ends, member) for member in columns[0].item.children]


class _Fitting:
    def __init__(self, abilities: Abilities, lengths: Mapping[Path, int], kept: str) -> None:
        self.abilities, self.lengths, self.kept = abilities, lengths, kept
        self.notes: list[str] = []
        self.dropped: dict[str, str] = {}

    def of_messages(self, layout: Layout, model: Layout | None) -> Fitted:
        root = _as_one(layout)
        model_struct = None if model is None else _as_one(model)
        fitted, forward, back = self._fitted(root) if model is None else self.struct(root, (), model_struct)
        if not fitted.fields and any(True for _ in layout.record.visible()):
            raise DefinitionError("; ".join(self.dropped.values()) or "no field is left")
        names = [f.name for f in _as_one(layout).visible()]
        stay = [i for i, name in enumerate(names) if name not in self.dropped]

        def ahead(columns: Columns) -> Columns:
            every = _whole_columns(layout, columns)
            return forward([every[i] for i in stay])

        def behind(columns: Columns) -> Columns:
            return _member_columns(layout, back(columns))

        return Fitted(layout, Layout(fitted, layout.name), ahead, behind, self.notes, self.dropped)

    def _fitted(self, root: Struct) -> _FittedStruct:
        """Return what ``struct`` does, without the fields that cannot be fitted."""
        if not self.abilities.fixed_size:
            with suppress(DefinitionError):
                return self.struct(root, (), None)
            self.notes.clear()
        return self.struct(self._possible(root), (), None)

    def _possible(self, root: Struct) -> Struct:
        """Return *root* without the fields that cannot be fitted, and the largest ones of too large messages."""
        fields, size = list(root.visible()), dict[str, int]()
        for f in fields:
            try:
                inner, _, _ = _Fitting(self.abilities, self.lengths, self.kept).struct(Struct((f,)), (), None)
                size[f.name] = (measure(inner).size or 0) if self.abilities.fixed_size else 0
            except DefinitionError as error:
                self.dropped[f.name] = f"field {f.name!r}: {error.text}"
        fields = [f for f in fields if f.name in size]
        while fields and sum(size[f.name] for f in fields) > self.abilities.largest:
            worst = max(fields, key=lambda f: size[f.name])
            fields.remove(worst)
            self.dropped[worst.name] = (
                f"field {worst.name!r} needs {size[worst.name]} bytes in every message, which has at most "
                f"{self.abilities.largest}"
            )
        return Struct(tuple(fields))

    # ------------------------------------------------------------------------------------------------ nodes

    def struct(self, struct: Struct, path: Path, model: Struct | None) -> _FittedStruct:
        """Return *struct* fitted, like *model* if there is one."""
        fields: list[Field] = []
        plan: list[tuple[_Value, bool]] = []
        models = iter([] if model is None else list(model.visible()))
        taken = (
            {self.abilities.time_name} if not path and self.abilities.time_name != self.kept else set[str]()
        )
        for f in struct.visible():
            name = self._name(f.name, taken, path)
            inner = (*path, f.name)
            like = self._like(models, model, name)
            if self.abilities.fixed_size and _has_count(f.node):
                n = self._length(inner, like)
                value = self._counted(f.node, n, inner, like)
                count = self._name(f"{name}{COUNT}", taken, path, quiet=True)
                self._like(models, model, count)
                fields += [Field(name, value.node, f.unit), Field(count, Scalar("uint32"))]
                plan.append((value, True))
            else:
                value = self._value(f.node, inner, like)
                fields.append(Field(name, value.node, f.unit))
                plan.append((value, False))
        if model is not None and next(models, None) is not None:
            raise MisfitError("it has other fields")

        def forward(columns: Columns) -> Columns:
            out: Columns = []
            for (value, counted), column in zip(plan, columns, strict=True):
                out.append(value.forward(column))
                if counted:
                    out.append(_lengths(column))
            return out

        def back(columns: Columns) -> Columns:
            them, out = iter(columns), []
            for value, counted in plan:
                column = next(them)
                out.append(_cut(value, column, next(them)) if counted else value.back(column))
            return out

        return Struct(tuple(fields)), forward, back

    def _like(self, models: Iterator[Field], model: Struct | None, name: str) -> Node | None:
        """Return the next node of the model, which must be called *name*; None without a model."""
        if model is None:
            return None
        field = next(models, None)
        if field is None or field.name != name:
            raise MisfitError(f"it has no field {name!r}")
        return field.node

    def _name(self, name: str, taken: set[str], path: Path, quiet: bool = False) -> str:
        """Return *name* as the format can have it, different from those *taken*, to which it is added."""
        legal = name if self.abilities.name.fullmatch(name) else _legal(name, self.abilities.name)
        unique, n = legal, 1
        while unique in taken:
            n += 1
            unique = f"{legal}_{n}"
        taken.add(unique)
        if unique != name and not quiet:
            where = ".".join(step for step in path if step)
            self.notes.append(f"field {f'{where}.{name}'.lstrip('.')!r} became {unique!r}")
        return unique

    def _length(self, path: Path, like: Node | None) -> int:
        if like is not None:
            if not isinstance(like, FixedArray):
                raise MisfitError("it has another type")
            return like.count
        return max(1, self.lengths.get(path, 0))

    def _value(self, node: Node, path: Path, like: Node | None) -> _Value:
        if like is not None and not _may_hold(like, node):
            raise MisfitError("it has another type")
        match node:
            case Scalar():
                return _Value(node)
            case Time():
                return self._time(node)
            case FixedArray(item=Scalar(type="char")):
                return _Value(node if self.abilities.fixed_size else String())
            case String() | Rest(text=True):
                if not self.abilities.fixed_size:
                    return _Value(String())
                return _Value(FixedArray(Scalar("char"), self._length(path, like)))
            case Bytes() | Rest() | Counted(item=Scalar(type="uint8" | "char")):
                return _Value(Bytes())
            case FixedArray(item=Scalar(type="uint8"), count=n) if _is_binary(like):
                return _Value(
                    Bytes(),
                    _to_bytes,
                    lambda column: _fixed_bytes(column, n, path),
                )
            case FixedArray(item=FixedArray(item=item, count=m), count=n) if (
                item != Scalar("char") and not self.abilities.nested_arrays and not _has_rows(like)
            ):
                return self._flat(FixedArray(item, n * m), m, path, like)
            case FixedArray(item=item, count=n):
                inner = self._item(item, path, like)
                return _Value(
                    FixedArray(inner.node, n),
                    lambda column: _arrays(inner.forward(column.item), n, len(column)),
                    lambda column: _arrays(inner.back(_exactly(column, n, path)), n, len(column)),
                )
            case Counted(item=item):
                inner = self._item(item, path, like)
                return _Value(
                    Counted(inner.node),
                    lambda column: _mapped(column, inner.forward),
                    lambda column: _mapped(column, inner.back),
                )
            case Struct():
                return self._inner_struct(node, path, like)
            case _:
                raise DefinitionError(f"nothing for {type(node).__name__}")

    def _time(self, node: Time) -> _Value:
        if self.abilities.times:
            return _Value(node)
        moment = DURATION if node.signed else TIME
        return _Value(
            Scalar("int64"),
            lambda column: replace(column, type="int64"),
            lambda column: replace(column, type=moment),
        )

    def _inner_struct(self, node: Struct, path: Path, like: Node | None) -> _Value:
        if like is not None and not isinstance(like, Struct):
            raise MisfitError("it has another type")
        fitted, forward, back = self.struct(node, path, like if isinstance(like, Struct) else None)
        if not fitted.fields:
            raise DefinitionError("it has no members")
        names, before = [f.name for f in fitted.fields], [f.name for f in node.visible()]
        return _Value(
            fitted,
            lambda column: _structs(names, forward([*column.children])),
            lambda column: _structs(before, back([*column.children])),
        )

    def _flat(self, node: FixedArray, inner: int, path: Path, like: Node | None) -> _Value:
        """Return the value of an array of arrays of fixed sizes as one array."""
        fitted = self._value(node, (*path, ""), like)
        text = f"field {'.'.join(p for p in path if p)!r}: an array of arrays became one array"
        if text not in self.notes:
            self.notes.append(text)
        return _Value(
            fitted.node,
            lambda column: fitted.forward(_arrays(column.item.item, node.count, len(column))),
            lambda column: _arrays(
                _arrays(fitted.back(column).item, inner, len(column) * (node.count // inner)),
                node.count // inner,
                len(column),
            ),
        )

    def _item(self, node: Node, path: Path, like: Node | None) -> _Value:
        """Return the value of an item of an array: an array in a struct, if the format has no arrays of arrays."""
        at = (*path, "")
        inner = like.item if isinstance(like, FixedArray | Counted) else None
        if like is not None and inner is None:
            raise MisfitError("it has another type")
        wraps = not self.abilities.nested_arrays and self._is_array(node) and not _is_binary(inner)
        if not wraps:
            return self._value(node, at, inner)
        if inner is not None and not isinstance(inner, Struct):
            raise MisfitError("it has another type")
        struct = Struct((Field(VALUES, node),))
        fitted, forward, back = self._struct_at(struct, at, inner)
        names = [f.name for f in fitted.fields]
        return _Value(
            fitted,
            lambda column: _structs(names, forward([column])),
            lambda column: back([*column.children])[0],
        )

    def _struct_at(self, struct: Struct, path: Path, model: Node | None) -> Any:
        """Return ``struct`` of a struct that was put around the array at *path*."""
        lengths = {
            (*path, VALUES, *at[len(path) :]): n for at, n in self.lengths.items() if at[: len(path)] == path
        }
        before, self.lengths = self.lengths, lengths
        try:
            return self.struct(struct, path, model if isinstance(model, Struct) else None)
        finally:
            self.lengths = before

    def _is_array(self, node: Node) -> bool:
        """Return whether the fitted *node* is an array for the format."""
        if isinstance(node, String | Rest) and (isinstance(node, String) or node.text):
            return self.abilities.fixed_size
        if isinstance(node, FixedArray) and node.item == Scalar("char"):
            return self.abilities.fixed_size
        return isinstance(node, FixedArray | Counted | Bytes | Rest)

    def _counted(self, node: Node, n: int, path: Path, like: Node | None) -> _Value:
        """Return the value of an array of variable length in one of *n* items; ``back`` converts all items."""
        match node:
            case Bytes() | Rest() | Counted(item=Scalar(type="uint8" | "char")):
                return _Value(
                    FixedArray(Scalar("uint8"), n), lambda column: _padded_bytes(column, n), _to_binary
                )
            case Counted(item=item):
                inner = self._item(item, path, like)
                return _Value(
                    FixedArray(inner.node, n),
                    lambda column: _padded(_mapped(column, inner.forward), n),
                    inner.back,
                )
        raise DefinitionError(f"nothing for {type(node).__name__}")


def _may_hold(like: Node, node: Node) -> bool:
    """Return whether *like* can be what *node* became."""
    match node:
        case Scalar():
            return isinstance(like, Scalar)
        case Time():
            return isinstance(like, Time) or like == Scalar("int64")
        case FixedArray(item=Scalar(type="char")) | String() | Rest(text=True):
            return isinstance(like, String | Rest) or (
                isinstance(like, FixedArray) and like.item == Scalar("char")
            )
        case Bytes() | Rest() | Counted(item=Scalar(type="uint8" | "char")):
            return isinstance(like, Bytes | Rest) or (
                isinstance(like, FixedArray | Counted) and like.item == Scalar("uint8")
            )
        case FixedArray(item=Scalar(type="uint8")):
            return isinstance(like, FixedArray | Counted | Bytes | Rest)
        case FixedArray() | Counted():
            return isinstance(like, FixedArray | Counted)
        case _:
            return isinstance(like, Struct)


def _has_rows(like: Node | None) -> bool:
    """Return whether *like*, what an array of arrays became, has a value for each inner array."""
    return isinstance(like, FixedArray | Counted) and (isinstance(like.item, Struct) or _is_binary(like.item))


def _is_binary(node: Node | None) -> bool:
    """Return whether values of *node* are bytes."""
    match node:
        case Bytes() | Rest(text=False) | Counted(item=Scalar(type="uint8" | "char")):
            return True
        case _:
            return False


def _has_count(node: Node) -> bool:
    """Return whether *node* is an array of variable length, other than text."""
    return isinstance(node, Bytes | Counted) or (isinstance(node, Rest) and not node.text)


def _legal(name: str, pattern: re.Pattern[str]) -> str:
    """Return *name* with ``_`` in place of what *pattern* does not accept."""
    text = re.sub(r"[^A-Za-z0-9_]", "_", name) or "_"
    for lead in ("", "_", "f", "f_"):
        if pattern.fullmatch(lead + text):
            return lead + text
    raise DefinitionError(f"no field can be called {name!r:.60}")


# ----------------------------------------------------------------------------------------------------- columns


def _structs(names: Sequence[str], members: Columns) -> Column:
    return Column(STRUCT, len(members[0]), children=tuple(members), names=tuple(names))


def _arrays(items: Column, n: int, length: int) -> Column:
    return Column(ARRAY, length, children=(items,), size=n)


def _exactly(column: Column, n: int, path: Path) -> Column:
    """Return the items of lists that all have *n*; raises UsageError if any has another number."""
    size = column.size if column.type == ARRAY else np.diff(column.ends)
    if np.any(size != n) and len(column):
        raise UsageError(f"field {'.'.join(path)!r}: an array of {n} items has another number of them")
    return column.item


def _to_bytes(column: Column) -> Column:
    """Return bytes of arrays of uint8."""
    ends = np.arange(len(column) + 1, dtype=np.int32) * column.size
    return Column(BYTES, len(column), column.item.values, ends)


def _fixed_bytes(column: Column, n: int, path: Path) -> Column:
    """Return arrays of *n* uint8 of bytes; raises UsageError if any has another length."""
    if (np.diff(column.ends) != n).any():
        raise UsageError(f"field {'.'.join(path)!r}: an array of {n} items has another number of them")
    return _arrays(_bytes_of(column.values[: n * len(column)]), n, len(column))


def _bytes_of(data: NDArray[np.uint8]) -> Column:
    return Column("uint8", len(data), data)


def _mapped(column: Column, convert: Callable[[Column], Column]) -> Column:
    """Return lists with all items converted."""
    return list_column(_ends(column), convert(column.item))


def _ends(column: Column) -> NDArray[Any]:
    """Return the offsets of lists or arrays."""
    if column.type == ARRAY:
        return np.arange(len(column) + 1, dtype=np.int32) * column.size
    return column.ends


def _lengths(column: Column) -> Column:
    """Return the length of each list or bytes as uint32."""
    return Column("uint32", len(column), np.diff(_ends(column)).astype(np.uint32))


def _padded(column: Column, n: int) -> Column:
    """Return lists as arrays of *n* items, filled up with zeros."""
    lengths, item = np.diff(column.ends), column.item
    inside = np.arange(n) < lengths[:, None]
    if item.data is not None and item.offsets is None:
        out = np.zeros((len(column), n), item.data.dtype)
        out[inside] = item.data
        return _arrays(replace(item, length=out.size, data=out.reshape(-1)), n, len(column))
    at = column.ends[:-1, None] + np.arange(n)
    return _arrays(item.take(at.reshape(-1), ~inside.reshape(-1)).settled(), n, len(column))


def _padded_bytes(column: Column, n: int) -> Column:
    out = np.zeros((len(column), n), np.uint8)
    out[np.arange(n) < np.diff(column.ends)[:, None]] = column.values[: int(column.ends[-1])]
    return _arrays(_bytes_of(out.reshape(-1)), n, len(column))


def _to_binary(column: Column) -> Column:
    """Return numbers as they are; ``_cut`` makes bytes of them."""
    return column


def _cut(value: _Value, column: Column, count: Column) -> Column:
    """Return lists, or bytes, of the first *count* items of each array."""
    size = np.minimum(count.values.astype(np.int64), column.size)
    ends = np.concatenate([[0], np.cumsum(size)]).astype(np.int32)
    inside = (np.arange(column.size) < size[:, None]).reshape(-1)
    if value.back is _to_binary:
        return Column(BYTES, len(column), column.item.values[inside], ends)
    return list_column(ends, value.back(column.item.take(np.flatnonzero(inside))))


def missing(column: Column) -> int:
    """Return the number of values that are missing in *column*, and in its members and items."""
    count = 0 if column.valid is None else int(np.count_nonzero(~column.valid))
    if column.type == LIST:
        return count + missing(column.all_items())
    # What is in a missing struct or array is missing with it.
    return count or sum(missing(child) for child in column.children)
