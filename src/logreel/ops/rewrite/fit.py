"""Layouts and columns fitted to what the definitions of another format can express, and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, UsageError
from logreel.layout.arrow_arrays import as_fixed_list, as_list, as_struct, buffer_of, row_numbers, values_of
from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, Field, FixedArray, Node, Rest, Scalar, String, Struct, Time, measure
from logreel.layout.nodes import Sequence as Counted
from logreel.log.tables import as_numpy
from logreel.write.format_writer import Abilities

if TYPE_CHECKING:
    import pyarrow as pa

    Array = pa.Array[Any]
    Arrays = list[Array]

#: Field of a message that holds all records of a message of many, and field of a struct around an array in an array.
RECORDS, VALUES = "records", "values"
#: End of the name of the field with the number of items of an array of fixed size.
COUNT = "_count"
#: Path of a member: names, and ``""`` for the items of an array.
Path = tuple[str, ...]


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
    forward: Callable[[Arrays], Arrays]
    back: Callable[[Arrays], Arrays]
    notes: list[str]
    dropped: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Value:
    """A node that holds another one, and conversions of its array."""

    node: Node
    forward: Callable[[Array], Array] = lambda array: array
    back: Callable[[Array], Array] = lambda array: array


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

    def add(self, path: Path, length: int | None) -> None:
        """Note the length of one text or array, or the greatest of several; None: there is none."""
        self.lengths[path] = max(self.lengths.get(path, 0), length or 0)


def measured(layout: Layout, batches: Iterator[Arrays]) -> Sizes:
    """Return the Sizes of all messages.

    batches  columns of the members of *layout*, one row per message
    """
    sizes = Sizes()
    for arrays in batches:
        for f, array in zip(_as_one(layout).visible(), _whole_columns(layout, arrays), strict=True):
            _measure(f.node, array, (f.name,), sizes)
    return sizes


def _measure(node: Node, array: Array, path: Path, sizes: Sizes) -> None:
    import pyarrow.compute as pc

    match node:
        case String() | Bytes() | Rest() | Counted(item=Scalar(type="uint8" | "char")):
            sizes.add(path, pc.max(pc.binary_length(cast("Any", array))).as_py())
            if isinstance(node, String) or (isinstance(node, Rest) and node.text):
                cut = pc.sum(pc.match_substring(cast("Any", array), "\0")).as_py() or 0
                sizes.cut[path] = sizes.cut.get(path, 0) + cut
        case FixedArray(item=Scalar(type="char")):
            pass
        case Counted(item=item):
            sizes.add(path, pc.max(pc.list_value_length(array)).as_py())
            _measure(item, as_list(array).flatten(), (*path, ""), sizes)
        case FixedArray(item=item):
            _measure(item, as_fixed_list(array).flatten(), (*path, ""), sizes)
        case Struct():
            for f, child in zip(node.visible(), as_struct(array).flatten(), strict=True):
                _measure(f.node, child, (*path, f.name), sizes)


def _as_one(layout: Layout) -> Struct:
    """Return the struct of a whole message: records of a message of many are one field."""
    if isinstance(layout.root, Struct):
        return layout.root
    return Struct((Field(RECORDS, Counted(layout.record, layout.root.width)),))


def _whole_columns(layout: Layout, arrays: Arrays) -> Arrays:
    """Return the columns of ``_as_one(layout)`` from those of the members, lists where messages have many records."""
    import pyarrow as pa

    if isinstance(layout.root, Struct):
        return arrays
    offsets = _offsets(arrays[0])
    inner = [as_list(array).flatten() for array in arrays]
    struct = pa.StructArray.from_arrays(inner, [f.name for f in layout.record.visible()])
    return [_list(struct, offsets - offsets[0])]


def _member_columns(layout: Layout, arrays: Arrays) -> Arrays:
    """Return columns of the members of *layout* from those of ``_as_one(layout)``."""
    if isinstance(layout.root, Struct):
        return arrays
    offsets = _offsets(arrays[0])
    first, last = int(offsets[0]), int(offsets[-1])
    inner = as_struct(as_list(arrays[0]).values.slice(first, last - first)).flatten()
    return [_list(column, offsets - first) for column in inner]


class _Fitting:
    def __init__(self, abilities: Abilities, lengths: Mapping[Path, int], kept: str) -> None:
        self.abilities, self.lengths, self.kept = abilities, lengths, kept
        self.notes: list[str] = []
        self.dropped: dict[str, str] = {}

    def of_messages(self, layout: Layout, model: Layout | None) -> Fitted:
        root = _as_one(layout)
        model_struct = None if model is None else _as_one(model)
        if model is None:
            root = self._possible(root)
        fitted, forward, back = self.struct(root, (), model_struct)
        if not fitted.fields and any(True for _ in layout.record.visible()):
            raise DefinitionError("; ".join(self.dropped.values()) or "no field is left")
        names = [f.name for f in _as_one(layout).visible()]
        stay = [i for i, name in enumerate(names) if name not in self.dropped]

        def ahead(arrays: Arrays) -> Arrays:
            every = _whole_columns(layout, arrays)
            return forward([every[i] for i in stay])

        def behind(arrays: Arrays) -> Arrays:
            return _member_columns(layout, back(arrays))

        return Fitted(layout, Layout(fitted, layout.name), ahead, behind, self.notes, self.dropped)

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

    def struct(
        self, struct: Struct, path: Path, model: Struct | None
    ) -> tuple[Struct, Callable[[Arrays], Arrays], Callable[[Arrays], Arrays]]:
        """Return the fitted struct, and conversions of the columns of its members."""
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

        def forward(arrays: Arrays) -> Arrays:
            out: Arrays = []
            for (value, counted), array in zip(plan, arrays, strict=True):
                out.append(value.forward(array))
                if counted:
                    out.append(_lengths(array))
            return out

        def back(arrays: Arrays) -> Arrays:
            them, out = iter(arrays), []
            for value, counted in plan:
                array = next(them)
                out.append(_cut(value, array, next(them)) if counted else value.back(array))
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
                    lambda array: _to_bytes(array, n),
                    lambda array: _fixed_bytes(array, n, path),
                )
            case FixedArray(item=FixedArray(item=item, count=m), count=n) if (
                item != Scalar("char") and not self.abilities.nested_arrays and not _has_rows(like)
            ):
                return self._flat(FixedArray(item, n * m), m, path, like)
            case FixedArray(item=item, count=n):
                inner = self._item(item, path, like)
                return _Value(
                    FixedArray(inner.node, n),
                    lambda array: _fixed_list(inner.forward(as_fixed_list(array).flatten()), n),
                    lambda array: _fixed_list(inner.back(_exactly(array, n, path)), n),
                )
            case Counted(item=item):
                inner = self._item(item, path, like)
                return _Value(
                    Counted(inner.node),
                    lambda array: _mapped(array, inner.forward),
                    lambda array: _mapped(array, inner.back),
                )
            case Struct():
                return self._inner_struct(node, path, like)
            case _:
                raise DefinitionError(f"nothing for {type(node).__name__}")

    def _time(self, node: Time) -> _Value:
        import pyarrow as pa

        if self.abilities.times:
            return _Value(node)
        time_type = pa.duration("ns") if node.signed else pa.timestamp("ns")
        return _Value(
            Scalar("int64"),
            lambda array: array.cast(pa.int64()),
            lambda array: array.cast(pa.int64()).cast(time_type),
        )

    def _inner_struct(self, node: Struct, path: Path, like: Node | None) -> _Value:
        import pyarrow as pa

        if like is not None and not isinstance(like, Struct):
            raise MisfitError("it has another type")
        fitted, forward, back = self.struct(node, path, like if isinstance(like, Struct) else None)
        if not fitted.fields:
            raise DefinitionError("it has no members")
        names, before = [f.name for f in fitted.fields], [f.name for f in node.visible()]
        return _Value(
            fitted,
            lambda array: pa.StructArray.from_arrays(forward(as_struct(array).flatten()), names),
            lambda array: pa.StructArray.from_arrays(back(as_struct(array).flatten()), before),
        )

    def _flat(self, node: FixedArray, inner: int, path: Path, like: Node | None) -> _Value:
        """Return the value of an array of arrays of fixed sizes as one array."""
        fitted = self._value(node, (*path, ""), like)
        text = f"field {'.'.join(p for p in path if p)!r}: an array of arrays became one array"
        if text not in self.notes:
            self.notes.append(text)
        return _Value(
            fitted.node,
            lambda array: fitted.forward(
                _fixed_list(as_fixed_list(as_fixed_list(array).flatten()).flatten(), node.count)
            ),
            lambda array: _fixed_list(
                _fixed_list(as_fixed_list(fitted.back(array)).flatten(), inner), node.count // inner
            ),
        )

    def _item(self, node: Node, path: Path, like: Node | None) -> _Value:
        """Return the value of an item of an array: an array in a struct, if the format has no arrays of arrays."""
        import pyarrow as pa

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
            lambda array: pa.StructArray.from_arrays(forward([array]), names),
            lambda array: back(as_struct(array).flatten())[0],
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
                    FixedArray(Scalar("uint8"), n), lambda array: _padded_bytes(array, n), _to_binary
                )
            case Counted(item=item):
                inner = self._item(item, path, like)
                return _Value(
                    FixedArray(inner.node, n),
                    lambda array: _padded(_mapped(array, inner.forward), inner.node, n),
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


# ------------------------------------------------------------------------------------------------------ arrays


def _offsets(array: Array) -> NDArray[np.int32]:
    data = array.buffers()[1]
    if data is None or not data.size:
        return np.zeros(len(array) + 1, np.int32)
    return values_of(data, np.int32, len(array) + 1, 4 * array.offset)


def _list(values: Array, offsets: NDArray[np.int32]) -> Array:
    from logreel.layout.arrow_from_buffers import list_array

    return list_array(np.ascontiguousarray(offsets, np.int32), values)


def _fixed_list(values: Array, n: int) -> Array:
    import pyarrow as pa

    return pa.Array.from_buffers(pa.list_(values.type, n), len(values) // n, [None], 0, children=[values])


def _exactly(array: Array, n: int, path: Path) -> Array:
    """Return the items of lists that all have *n*; raises UsageError if any has another number."""
    items = as_fixed_list(array).flatten()
    sizes = np.full(len(array), n) if hasattr(array.type, "list_size") else np.diff(_offsets(array))
    if len(items) != n * len(array) or (sizes != n).any():
        raise UsageError(f"field {'.'.join(path)!r}: an array of {n} items has another number of them")
    return items


def _to_bytes(array: Array, n: int) -> Array:
    """Return bytes of lists of *n* uint8."""
    import pyarrow as pa

    offsets = np.arange(len(array) + 1, dtype=np.int32) * n
    data = np.ascontiguousarray(as_numpy(as_fixed_list(array).flatten()), np.uint8)
    return pa.Array.from_buffers(pa.binary(), len(array), [None, buffer_of(offsets), buffer_of(data)], 0)


def _fixed_bytes(array: Array, n: int, path: Path) -> Array:
    """Return lists of *n* uint8 of bytes; raises UsageError if any has another length."""
    import pyarrow as pa

    offsets, data = _offsets(array), array.buffers()[2]
    if (np.diff(offsets) != n).any():
        raise UsageError(f"field {'.'.join(path)!r}: an array of {n} items has another number of them")
    items = np.zeros(0, np.uint8) if data is None or not data.size else values_of(data, np.uint8)
    first, last = int(offsets[0]), int(offsets[-1])
    return _fixed_list(pa.array(items[first:last]), n)


def _mapped(array: Array, convert: Callable[[Array], Array]) -> Array:
    """Return lists with all items converted."""
    offsets = _offsets(array)
    first, last = int(offsets[0]), int(offsets[-1])
    return _list(convert(as_list(array).values.slice(first, last - first)), offsets - first)


def _lengths(array: Array) -> Array:
    """Return the length of each list or bytes as uint32."""
    import pyarrow as pa

    return pa.array(np.diff(_offsets(array)).astype(np.uint32))


def _padded(array: Array, node: Node, n: int) -> Array:
    """Return lists as lists of *n* items, filled up with zeros."""
    offsets = _offsets(array).astype(np.int64)
    at = offsets[:-1, None] + np.arange(n)
    absent = np.arange(n) >= np.diff(offsets)[:, None]
    values = as_list(array).values
    if not len(values):
        return _fixed_list(zeros(node, len(array) * n), n)
    at[absent] = 0
    taken = values.take(row_numbers(at.ravel(), absent.ravel()))
    return _fixed_list(without_nulls(node, taken), n)


def _padded_bytes(array: Array, n: int) -> Array:
    import pyarrow as pa

    offsets = _offsets(array)
    out = np.zeros((len(array), n), np.uint8)
    data = array.buffers()[2]
    if data is not None and data.size:
        out[np.arange(n) < np.diff(offsets)[:, None]] = values_of(data, np.uint8)[offsets[0] : offsets[-1]]
    return _fixed_list(pa.array(out.ravel()), n)


def _to_binary(array: Array) -> Array:
    """Return numbers as they are; ``_cut`` makes bytes of them."""
    return array


def _cut(value: _Value, array: Array, count: Array) -> Array:
    """Return lists, or bytes, of the first *count* items of each list of fixed size."""
    import pyarrow as pa

    fixed = as_fixed_list(array)
    n, size = fixed.type.list_size, np.minimum(np.asarray(count, np.int64), fixed.type.list_size)
    offsets = np.concatenate([[0], np.cumsum(size)]).astype(np.int32)
    keep = (np.arange(n) < size[:, None]).ravel()
    items = fixed.flatten()
    if value.back is _to_binary:
        data = np.asarray(items, np.uint8)[keep]
        buffers = [None, buffer_of(offsets), buffer_of(np.ascontiguousarray(data))]
        return pa.Array.from_buffers(pa.binary(), len(size), buffers, 0)
    return _list(value.back(items.filter(pa.array(keep))), offsets)


def zeros(node: Node, n: int) -> Array:
    """Return *n* values of *node* that are zero or empty."""
    import pyarrow as pa

    from logreel.layout.arrow_from_buffers import arrow_type

    return without_nulls(node, cast("Array", pa.nulls(n, cast("Any", arrow_type(node)))))


def without_nulls(node: Node, array: Array) -> Array:
    """Return *array*, of type ``arrow_type(node)``, with zero or empty values in place of nulls, also inside."""
    import pyarrow as pa
    import pyarrow.compute as pc

    match node:
        case Struct():
            inner = [
                without_nulls(f.node, child)
                for f, child in zip(node.visible(), as_struct(array).flatten(), strict=True)
            ]
            return pa.StructArray.from_arrays(inner, [f.name for f in node.visible()])
        case FixedArray(item=Scalar(type="char")) | String() | Bytes() | Rest():
            return (
                array.fill_null("" if pa.types.is_string(array.type) else b"") if array.null_count else array
            )
        case Counted(item=Scalar(type="uint8" | "char")):
            return array.fill_null(b"") if array.null_count else array
        case FixedArray(item=item, count=n):
            return _fixed_list(without_nulls(item, _fixed_items(array, n)), n)
        case Counted(item=item):
            size = np.asarray(cast("Any", pc.list_value_length(array)).fill_null(0), np.int64)
            offsets = np.concatenate([[0], np.cumsum(size)]).astype(np.int32)
            return _list(without_nulls(item, as_list(array).flatten()), offsets)
        case Time():
            return array.cast(pa.int64()).fill_null(0).cast(array.type) if array.null_count else array
        case _:
            zero = False if pa.types.is_boolean(array.type) else 0
            return cast("Any", array).fill_null(zero) if array.null_count else array


def _fixed_items(array: Array, n: int) -> Array:
    """Return the items of all lists of fixed size, nulls for those of a null."""
    fixed = as_fixed_list(array)
    if not array.null_count:
        return fixed.flatten()
    at = np.arange(len(array) * n, dtype=np.int64) + array.offset * n
    absent = np.repeat(as_numpy(array.is_null()), n)
    return fixed.values.take(row_numbers(at, absent))


def missing(array: Array) -> int:
    """Return the number of nulls in *array*, and in its members and items."""
    import pyarrow as pa

    count = array.null_count
    if pa.types.is_struct(array.type):
        count += sum(missing(child) for child in as_struct(array).flatten()) if not count else 0
    elif pa.types.is_list(array.type):
        count += missing(as_list(array).flatten())
    elif pa.types.is_fixed_size_list(array.type) and not count:
        count += missing(as_fixed_list(array).flatten())
    return count
