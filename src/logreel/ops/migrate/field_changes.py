"""Changes of fields: other names and places, types, units, values; for one message, or for many as columns.

What cannot be done by columns raises NotColumnsError, also for single values that do not fit; messages are then
migrated one by one, which either works or gives the reason.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, UsageError
from logreel.layout.nodes import Node, Struct
from logreel.layout.numpy_columns import ARRAY, LIST, STRUCT, Column, from_values
from logreel.ops.migrate.types import (
    REAL_NUMBERS,
    TIMES,
    WHOLE_NUMBERS,
    Columns,
    ColumnUpdate,
    FieldType,
    Implicit,
    Nested,
    NestedColumns,
    NotColumnsError,
    RuleError,
    TypeVersion,
    Update,
    Values,
    as_text,
    implicit,
    listed,
)

#: Whole numbers of at most 32 bits, whose products with factors below 2**31 fit 64 bits.
_SMALL = {"int8", "uint8", "int16", "uint16", "int32", "uint32"}
_FACTOR = 1 << 30


def node_of(version: TypeVersion, path: Sequence[str]) -> Node:
    """Return the node of a field below structs that are no arrays."""
    node: Node = version.layout.root
    for name in path:
        if not isinstance(node, Struct):
            raise NotColumnsError
        node = next(f.node for f in node.visible() if f.name == name)
    return node


def constant_column(value: Any, node: Node, count: int) -> Column:
    """Return *count* times the same value; *node*: of the field, with texts as text."""
    try:
        single = from_values(node, [value])
    except (ValueError, OverflowError, TypeError, AttributeError):
        raise NotColumnsError from None
    if not _is_same(single.to_pylist()[0], value):
        raise NotColumnsError
    return single.take(np.zeros(count, np.int64))


def _is_same(made: Any, value: Any) -> bool:
    """Return whether *value* is what a column of the type of its field *made* of it, and was not changed to fit."""
    match made:
        case float():
            # Real numbers of 32 bits are rounded.
            return type(value) in (int, float)
        case dict():
            return isinstance(value, Mapping) and all(_is_same(made[name], value.get(name)) for name in made)
        case list():
            return len(made) == len(value) and all(map(_is_same, made, value))
        case str() | bytes():
            return isinstance(value, str | bytes)
        case _:
            return type(value) is type(made) and bool(value == made)


def implicit_columns(rule_update: Implicit, nested: NestedColumns) -> ColumnUpdate:
    """Return the update of columns without a rule."""
    changes: dict[str, Callable[[Column], Column]] = {}
    for name, before, field_type in rule_update.nested:
        if before.nested is None or field_type.nested is None:
            raise NotColumnsError
        update = nested.convert_columns(before.nested, field_type.nested)
        if update is not None:
            changes[name] = part_update(field_type, update)
    names = list(rule_update.new.fields)

    def apply(columns: Columns, count: int) -> Columns:
        return {name: changes[name](columns[name]) if name in changes else columns[name] for name in names}

    return apply


def part_update(field_type: FieldType, update: ColumnUpdate) -> Callable[[Column], Column]:
    """Return the update of a column of parts of messages, or of arrays of these."""

    def of_structs(column: Column) -> Column:
        return struct_column(update(dict(zip(column.names, column.children, strict=True)), len(column)))

    return over_items(field_type, of_structs)


def struct_column(members: Columns) -> Column:
    """Return structs of these members."""
    if not members:
        raise NotColumnsError
    first = next(iter(members.values()))
    return Column(STRUCT, len(first), children=tuple(members.values()), names=tuple(members))


def over_items(field_type: FieldType, change: Callable[[Column], Column]) -> Callable[[Column], Column]:
    """Return *change* for columns of *field_type*: of its values, or of the items of its arrays."""
    if not field_type.array:
        return change

    def of_items(column: Column) -> Column:
        if column.type not in (LIST, ARRAY) or (column.offsets is not None and column.ends[0]):
            raise NotColumnsError
        return replace(column, children=(change(column.all_items()),))

    return of_items


def member(columns: Columns, path: Sequence[str]) -> Column:
    """Return the column at *path*, below structs that are no arrays."""
    column = columns[path[0]]
    for name in path[1:]:
        if column.type != STRUCT:
            raise NotColumnsError
        column = column.member(name)
    return column


def number_update(
    old: FieldType, new: FieldType, scale: float, offset: float, clamp: bool, low: int, high: int
) -> Callable[[Column], Column]:
    """Return the update of a column of numbers; *low*, *high*: range of a new whole number."""
    if "bool" in (old.base, new.base) or new.is_bytes != old.is_bytes or old.is_bytes:
        raise NotColumnsError
    is_whole, was_whole = new.base not in REAL_NUMBERS, old.base not in REAL_NUMBERS
    exact = was_whole and isinstance(scale, int) and isinstance(offset, int)
    changes = scale != 1 or offset != 0
    if (exact and changes and (old.base not in _SMALL or max(abs(scale), abs(offset)) > _FACTOR)) or (
        is_whole and not exact and "64" in new.base
    ):
        raise NotColumnsError
    target = np.dtype(new.base)

    def change(column: Column) -> Column:
        values = column.values
        if changes:
            # Numbers are scaled as Python does: as whole ones, or as real ones of 64 bits.
            values = values.astype(np.int64 if exact else np.float64) * scale + offset
        if is_whole:
            return _numbers(_whole(values, clamp, low, high).astype(target))
        if not np.isfinite(values).all():
            return _numbers(values.astype(target))
        with np.errstate(over="ignore"):
            made = values.astype(target)
        if not np.isfinite(made).all():
            raise NotColumnsError
        return _numbers(made)

    return over_items(new, change)


def _numbers(values: NDArray[Any]) -> Column:
    return Column(values.dtype.name, len(values), values)


def _whole(values: NDArray[Any], clamp: bool, low: int, high: int) -> NDArray[Any]:
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            raise NotColumnsError
        values = np.rint(values)
    if clamp:
        clipped: NDArray[Any] = np.clip(values, max(low, _least(values)), min(high, _most(values)))
        return clipped
    if len(values) and not (low <= values.min().item() and values.max().item() <= high):
        raise NotColumnsError
    return values


def _least(values: NDArray[Any]) -> float:
    return np.finfo(values.dtype).min if values.dtype.kind == "f" else int(np.iinfo(values.dtype).min)


def _most(values: NDArray[Any]) -> float:
    return np.finfo(values.dtype).max if values.dtype.kind == "f" else int(np.iinfo(values.dtype).max)


def is_struct_path(version: TypeVersion, path: Sequence[str]) -> bool:
    """Return whether *path* is below structs that are no arrays."""
    at: TypeVersion | None = version
    for n, name in enumerate(path):
        field_type = None if at is None else at.fields.get(name)
        if field_type is None or (field_type.array and n + 1 < len(path)):
            return False
        at = field_type.nested
    return True


#: Name and index of each part of a path; None: no index.
FieldPath = list[tuple[str, int | None]]
_PART = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[(\d{1,9})\])?")
_RANGES = {"byte": (-128, 127), "char": (0, 255)}
for _bits in (8, 16, 32, 64):
    _RANGES[f"int{_bits}"] = (-(1 << (_bits - 1)), (1 << (_bits - 1)) - 1)
    _RANGES[f"uint{_bits}"] = (0, (1 << _bits) - 1)
_RANGES["time"], _RANGES["duration"] = (0, (1 << 32) * 10**9 - 1), (-(1 << 31) * 10**9, (1 << 31) * 10**9 - 1)

#: Reads a value from the messages around it, outermost first.
Read = Callable[[list[Values]], Any]


class MissingSourceError(UsageError):
    """A field that a rule needs and the old message does not have."""


def parse_path(text: str) -> FieldPath:
    """Return the parts of a path such as ``pose.position.x`` or ``q[2]``; raises UsageError for an invalid one."""
    steps: FieldPath = []
    for part in text.split("."):
        match = _PART.fullmatch(part)
        if match is None:
            raise UsageError(f"{text!r:.80} is no path of a field")
        steps.append((match[1], int(match[2]) if match[2] else None))
    return steps


@dataclass(frozen=True, slots=True, eq=False)
class FieldChange:
    """How one new field gets its value.

    name           path of the new field
    source         path of the old field; None: it is *value*
    type_name      new type as in a definition; empty: that of the source
    scale, offset  new value = old value · scale + offset
    values         new value by old value; others stay
    clamp          True: values out of range become the nearest one; False: the message is left out
    unit           unit of the new field, None: unknown, or that of the source
    """

    name: str
    source: FieldPath | None
    value: Any = None
    type_name: str = ""
    scale: float = 1
    offset: float = 0
    values: Mapping[str, Any] | None = None
    clamp: bool = False
    unit: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the value stays as it is."""
        return self.scale == 1 and self.offset == 0 and not self.values


class Mapped:
    """The update of *old* to *new* by changes of fields; fields that no change names are taken over by name.

    remove  old fields that have no place in the new type

    Raises MissingSourceError for a change of a field that *old* does not have, DefinitionError for a new field without
    a source, and for an old field without a place that is not in *remove*.
    """

    def __init__(
        self,
        old: TypeVersion,
        new: TypeVersion,
        changes: Mapping[tuple[str, ...], FieldChange],
        remove: frozenset[str],
    ) -> None:
        self.old, self.new, self.changes = old, new, changes
        self.parts: list[tuple[TypeVersion, TypeVersion]] = []
        for path in changes:
            field_type(new, [(name, None) for name in path], DefinitionError)
        self._check_places(remove)
        # What is missing is found when the rule is bound, not with the first message.
        self._update(_Collecting(self.parts))

    def make(self, nested: Nested) -> Update:
        """Return the function from old to new values."""
        update = self._update(nested)
        return lambda values: update([values])

    def make_columns(self, nested: NestedColumns) -> ColumnUpdate:
        """Return the update of columns of many messages; raises NotColumnsError if there is none."""
        if any(len(path) > 1 for path in self.changes):
            raise NotColumnsError
        makers = {name: self._column(name, new_type, nested) for name, new_type in self.new.fields.items()}
        return lambda columns, count: {name: make(columns, count) for name, make in makers.items()}

    def _column(
        self, name: str, new_type: FieldType, nested: NestedColumns
    ) -> Callable[[Columns, int], Column]:
        change = self.changes.get((name,))
        if change is not None and change.source is None:
            value, node = constant(change.value, new_type, change.name), node_of(self.new, [name])
            return lambda columns, count: constant_column(value() if callable(value) else value, node, count)
        path = [name] if change is None or change.source is None else [part for part, _ in change.source]
        indexed = change is not None and any(at is not None for _, at in change.source or ())
        if indexed or (change is not None and change.values) or not is_struct_path(self.old, path):
            raise NotColumnsError
        before = field_type(self.old, [(part, None) for part in path], MissingSourceError)
        update: Callable[[Column], Column] | None = None
        if before.nested is not None and new_type.nested is not None:
            if (before.array, before.count) != (new_type.array, new_type.count):
                raise NotColumnsError
            if not _has_same_fields(before.nested, new_type.nested):
                inner = nested.convert_columns(before.nested, new_type.nested)
                update = None if inner is None else part_update(new_type, inner)
        elif before.spelled != new_type.spelled or (change is not None and not change.is_plain):
            numbers = REAL_NUMBERS | _RANGES.keys()
            if (
                change is None
                or not {before.base, new_type.base} <= numbers - TIMES
                or before.count != new_type.count
            ):
                raise NotColumnsError
            low, high = _RANGES.get(new_type.base, (0, 0))
            update = number_update(before, new_type, change.scale, change.offset, change.clamp, low, high)
        if update is None:
            return lambda columns, count: member(columns, path)
        return lambda columns, count: update(member(columns, path))

    def _check_places(self, remove: frozenset[str]) -> None:
        for name in remove:
            field_type(self.old, parse_path(name), MissingSourceError)
        used = {change.source[0][0] for change in self.changes.values() if change.source}
        kept = {name for name in self.old.fields if name in self.new.fields and (name,) not in self.changes}
        kept |= {path[0] for path in self.changes if len(path) > 1 and path[0] in self.old.fields}
        gone = [name for name in self.old.fields if name not in used | kept | remove]
        if gone:
            raise DefinitionError(
                f"old fields without a place in the new type: {listed(gone)}; name them in remove"
            )

    def _update(self, nested: Nested) -> Callable[[list[Values]], Values]:
        return self._struct(self.new, self.old, (), [((), self.old)], nested)

    def _struct(
        self,
        new: TypeVersion,
        old: TypeVersion | None,
        path: tuple[str, ...],
        scopes: list[tuple[tuple[str, ...], TypeVersion]],
        nested: Nested,
    ) -> Callable[[list[Values]], Values]:
        """Return a function that makes the values of *new* at *path*.

        old     the struct at the same path of the old message, whose values are last on the stack; None: there is none
        scopes  path and type of each old struct on the stack
        """
        makers: list[tuple[str, Read]] = []
        for name, new_type in new.fields.items():
            here = (*path, name)
            change = self.changes.get(here)
            inner = any(
                len(changed_path) > len(here) and changed_path[: len(here)] == here
                for changed_path in self.changes
            )
            before = None if old is None else old.fields.get(name)
            if change is not None:
                makers.append((name, self._changed(change, new_type, scopes, nested)))
            elif inner:
                makers.append((name, self._inner(here, new_type, before, scopes, nested)))
            elif before is None:
                raise DefinitionError(f"{'.'.join(here)} is new: it needs from or value")
            else:
                makers.append((name, self._kept(name, before, new_type, ".".join(here), nested)))
        return lambda stack: {name: make(stack) for name, make in makers}

    def _kept(self, name: str, before: FieldType, new_type: FieldType, label: str, nested: Nested) -> Read:
        convert = conversion(before, new_type, label, nested)
        if convert is None:
            return lambda stack: stack[-1][name]
        return lambda stack: convert(stack[-1][name])

    def _inner(
        self,
        path: tuple[str, ...],
        new_type: FieldType,
        before: FieldType | None,
        scopes: list[tuple[tuple[str, ...], TypeVersion]],
        nested: Nested,
    ) -> Read:
        """Return a function that makes a struct, or an array of these, some of whose fields change."""
        if new_type.nested is None:
            raise DefinitionError(f"{'.'.join(path)} has no fields")
        old = None if before is None else before.nested
        if (
            before is not None
            and old is not None
            and (before.array, before.count) != (new_type.array, new_type.count)
        ):
            raise DefinitionError(f"{'.'.join(path)} was {before.spelled} and is {new_type.spelled}")
        if new_type.array and old is None:
            raise DefinitionError(f"{'.'.join(path)} is a new array: its fields have no sources")
        if old is None:
            return self._struct(new_type.nested, None, path, scopes, nested)
        name = path[-1]
        make = self._struct(new_type.nested, old, path, [*scopes, (path, old)], nested)
        if not new_type.array:
            return lambda stack: make([*stack, stack[-1][name]])
        return lambda stack: [make([*stack, item]) for item in stack[-1][name]]

    def _changed(
        self,
        change: FieldChange,
        new_type: FieldType,
        scopes: list[tuple[tuple[str, ...], TypeVersion]],
        nested: Nested,
    ) -> Read:
        if change.source is None:
            value = constant(change.value, new_type, change.name)
            return lambda stack: value() if callable(value) else value
        names = tuple(name for name, _ in change.source)
        level = max(n for n, (prefix, _) in enumerate(scopes) if names[: len(prefix)] == prefix)
        depth, scope = len(scopes[level][0]), scopes[level][1]
        rest = change.source[depth:]
        if not rest:
            raise DefinitionError(f"{change.name} cannot be made from {'.'.join(names)}")
        before = field_type(scope, rest, MissingSourceError)
        convert = conversion(before, new_type, change.name, nested, change)
        parts = [(name, at) for name, at in rest]

        def read(stack: list[Values]) -> Any:
            value: Any = stack[level]
            for name, at in parts:
                value = value[name]
                if at is not None:
                    if at >= len(value):
                        raise RuleError(f"{change.name}: there is no item {at} among {len(value)} of {name}")
                    value = value[at]
            return value if convert is None else convert(value)

        return read


class _Collecting:
    """Collects the parts of a message that other rules migrate."""

    def __init__(self, parts: list[tuple[TypeVersion, TypeVersion]]) -> None:
        self._parts = parts

    def convert(self, old: TypeVersion, new: TypeVersion) -> Update:
        """Note a pair of types."""
        self._parts.append((old, new))
        return lambda values: values


def field_type(
    version: TypeVersion, path: FieldPath, missing: type[UsageError | DefinitionError]
) -> FieldType:
    """Return the type of the field at *path*; raises *missing* if there is none, or no index of an array."""
    at: TypeVersion | None = version
    step_type: FieldType | None = None
    for number, (name, index) in enumerate(path):
        label = ".".join(part for part, _ in path[: number + 1])
        step_type = None if at is None else at.fields.get(name)
        if step_type is None:
            raise missing(f"{version.name} has no field {label!r}; there are {listed(version.fields)}")
        at = step_type.nested
        if index is not None:
            if not step_type.array or (step_type.count is not None and index >= step_type.count):
                raise missing(f"{label}: {step_type.spelled} has no item {index}")
            step_type = FieldType(step_type.base, step_type.nested)
        elif step_type.array and number + 1 < len(path) and missing is MissingSourceError:
            raise missing(f"{label} is an array: give the number of an item, as in {label}[0]")
    if step_type is None:
        raise missing("a path without fields")
    return step_type


def conversion(
    old: FieldType, new: FieldType, label: str, nested: Nested, change: FieldChange | None = None
) -> Callable[[Any], Any] | None:
    """Return the function from values of *old* to values of *new*; None if values stay the same.

    Raises DefinitionError if there is no such conversion.
    """
    plain = change is None or change.is_plain
    if old.array != new.array or (None not in (old.count, new.count) and old.count != new.count):
        raise DefinitionError(f"{label} was {old.spelled} and is {new.spelled}")
    if old.nested is not None and new.nested is not None and plain:
        if old.nested.identity == new.nested.identity or _has_same_fields(old.nested, new.nested):
            convert = None
        else:
            convert = nested.convert(old.nested, new.nested)
    elif old.nested is not None or new.nested is not None:
        raise DefinitionError(f"{label} was {old.spelled} and is {new.spelled}")
    elif old.base == new.base and plain:
        convert = None
    else:
        if change is None:
            raise DefinitionError(f"{label} was {old.spelled} and is {new.spelled}: name it in fields")
        convert = _of_values(old, new, label, change)
    if not new.array:
        return convert
    count, as_bytes = new.count, new.is_bytes
    if convert is None and old.is_bytes == as_bytes and (count is None or count == old.count):
        return None

    def of_items(values: Any) -> Any:
        if count is not None and len(values) != count:
            raise RuleError(f"{label}: {len(values)} items where {count} are needed")
        items: list[Any] = list(values) if convert is None else [convert(item) for item in values]
        return bytes(items) if as_bytes else items

    return of_items


def _has_same_fields(old: TypeVersion, new: TypeVersion) -> bool:
    """Return whether an update by names changes nothing; for types whose parts have no names of their own."""
    update = implicit(old, new, lambda before, after: True)
    return (
        not update.reasons
        and [*old.fields] == [*new.fields]
        and all(
            _has_same_fields(before.nested, new_type.nested)
            for _, before, new_type in update.nested
            if before.nested is not None and new_type.nested is not None
        )
    )


def _of_values(old: FieldType, new: FieldType, label: str, change: FieldChange) -> Callable[[Any], Any]:
    """Return the function for values of builtin types: first by ``values``, then scale and offset, then the type."""
    table = {_key(key, old, label): value for key, value in (change.values or {}).items()}
    scale, offset = change.scale, change.offset
    scaled = scale != 1 or offset != 0
    is_text = old.base == "string"
    if scaled and (is_text or new.base == "string"):
        raise DefinitionError(f"{label}: a text has no scale")
    finish = _to_type(new, label, change.clamp)

    def convert(value: Any) -> Any:
        if is_text:
            value = as_text(value)
        if value in table:
            return finish(table[value])
        return finish(value * scale + offset if scaled else value)

    return convert


def _key(key: str, old: FieldType, label: str) -> Any:
    """Return an old value as it is named in ``values``."""
    if old.base == "string":
        return key
    if old.base == "bool" and key.lower() in ("true", "false"):
        return key.lower() == "true"
    try:
        return float(key) if old.base in REAL_NUMBERS else int(key)
    except ValueError:
        raise DefinitionError(f"{label}: {key!r:.40} is no value of {old.base}") from None


def _to_type(new: FieldType, label: str, clamp: bool) -> Callable[[Any], Any]:
    """Return the function that makes a number or text a value of *new*."""
    if new.base == "string":
        return lambda value: str(value).encode("utf-8", "surrogateescape")
    if new.base == "bool":
        return lambda value: bool(_number(value, label))
    if new.base in REAL_NUMBERS:
        return lambda value: float(_number(value, label))
    if new.base not in WHOLE_NUMBERS | TIMES:
        raise DefinitionError(f"{label}: no value becomes {new.spelled}")
    low, high = _RANGES[new.base]

    def whole(value: Any) -> int:
        number = _number(value, label)
        if isinstance(number, float):
            if not math.isfinite(number):
                raise RuleError(f"{label}: {number} is no {new.base}")
            number = round(number)
        if clamp:
            return int(min(max(number, low), high))
        if not low <= number <= high:
            raise RuleError(f"{label}: a value does not fit {new.base}")
        return int(number)

    return whole


def _number(value: Any, label: str) -> int | float:
    if isinstance(value, int | float):
        return value
    try:
        text = as_text(value).strip()
        return float(text) if set(text) & set(".eEnN") else int(text)
    except (ValueError, TypeError, AttributeError):
        raise RuleError(f"{label}: {value!r:.40} is no number") from None


def constant(value: Any, new_type: FieldType, label: str) -> Any:
    """Return the value of a new field, or a function that makes it; raises DefinitionError if it does not fit."""
    if new_type.nested is not None and not new_type.array:
        inner = new_type.nested
        if not isinstance(value, Mapping) or value.keys() - inner.fields.keys():
            raise DefinitionError(f"{label}: the value is a table with fields of {inner.name}")
        members = {
            name: constant(element, inner.fields[name], f"{label}.{name}") for name, element in value.items()
        }
        return lambda: (
            inner.default()
            | {name: element() if callable(element) else element for name, element in members.items()}
        )
    if new_type.array:
        if new_type.is_bytes and isinstance(value, list):
            return _checked_bytes(value, new_type, label)
        if not isinstance(value, list):
            raise DefinitionError(f"{label}: the value is a list, since it is {new_type.spelled}")
        if new_type.count is not None and len(value) != new_type.count:
            if value:
                raise DefinitionError(f"{label}: {len(value)} values for {new_type.spelled}")
            return new_type.default
        item = FieldType(new_type.base, new_type.nested)
        items = [constant(element, item, label) for element in value]
        return lambda: [element() if callable(element) else element for element in items]
    if value is None or isinstance(value, list | dict):
        raise DefinitionError(f"{label}: the value {value!r:.40} is no {new_type.spelled}")
    if isinstance(value, str) != (new_type.base == "string"):
        raise DefinitionError(f"{label}: the value {value!r:.40} is no {new_type.spelled}")
    try:
        return _to_type(new_type, label, clamp=False)(value)
    except RuleError as error:
        raise DefinitionError(error.text) from None


def _checked_bytes(value: list[Any], new_type: FieldType, label: str) -> bytes:
    try:
        made = bytes(value)
    except (ValueError, TypeError):
        raise DefinitionError(
            f"{label}: the values of {new_type.spelled} are numbers from 0 to 255"
        ) from None
    if new_type.count is not None and len(made) != new_type.count:
        if made:
            raise DefinitionError(f"{label}: {len(made)} values for {new_type.spelled}")
        return bytes(new_type.count)
    return made
