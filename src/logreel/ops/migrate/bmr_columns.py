"""Updates of rule files of ROS by columns, where they only take over, migrate and set fields."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from logreel.ops.migrate.columns import constant_column, is_struct_path, member, node_of, part_update
from logreel.ops.migrate.rule import Columns, ColumnUpdate, NestedColumns, NotColumnsError
from logreel.ops.migrate.types import FieldType, TypeVersion
from logreel.ops.migrate.values import Record, RuleError

FieldPath = tuple[str, ...]
Make = Callable[[Columns, int], Any]


@dataclass(frozen=True, slots=True)
class _Simple:
    """One statement: *target* gets the field *source*, or the constant *value*.

    migrates  whether it is migrated by other rules
    type      name of the new type of an array, as written
    """

    target: FieldPath
    source: FieldPath | None = None
    value: Any = None
    migrates: bool = False
    type: str = ""


def bmr_columns(
    function: ast.FunctionDef, old: TypeVersion, new: TypeVersion, nested: NestedColumns
) -> ColumnUpdate:
    """Return the update by columns that *function* describes; raises NotColumnsError if it does anything else."""
    names = [one.arg for one in function.args.args]
    if len(names) != 3:
        raise NotColumnsError
    makers: dict[FieldPath, Make] = {}
    for statement in function.body:
        one = _simple(statement, *names)
        if one is None:
            continue
        if any(one.target[: len(path)] == path and path != one.target for path in makers):
            raise NotColumnsError
        makers = {path: make for path, make in makers.items() if path[: len(one.target)] != one.target}
        makers[one.target] = _maker(one, old, new, nested)
    return _struct(new, (), new, makers)


def _simple(node: ast.stmt, itself: str, old: str, new: str) -> _Simple | None:
    """Return a statement as data, None if it does nothing; raises NotColumnsError for others."""
    match node:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return None
        case ast.Assign(targets=[target], value=ast.Constant(value=value)) if isinstance(
            value, int | float | str | bytes
        ):
            return _Simple(_path(target, new), None, value)
        case ast.Assign(targets=[target], value=ast.List(elts=[])):
            return _Simple(_path(target, new), None, [])
        case ast.Assign(targets=[target], value=value):
            return _Simple(_path(target, new), _path(value, old))
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id=owner), attr="migrate"), args=[one, other], keywords=[]
            )
        ) if owner == itself:
            return _Simple(_path(other, new), _path(one, old), migrates=True)
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id=owner), attr="migrate_array"),
                args=[one, other, ast.Constant(value=str(name))],
                keywords=[],
            )
        ) if owner == itself:
            return _Simple(_path(other, new), _path(one, old), migrates=True, type=name)
    raise NotColumnsError


def _path(node: ast.expr, root: str) -> FieldPath:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not names or not isinstance(node, ast.Name) or node.id != root:
        raise NotColumnsError
    return tuple(reversed(names))


def _maker(one: _Simple, old: TypeVersion, new: TypeVersion, nested: NestedColumns) -> Make:
    kind = _type(new, one.target)
    if one.source is None:
        return _constant(one, new, kind)
    before, source = _type(old, one.source), one.source
    if (before.array, before.count) != (kind.array, kind.count):
        raise NotColumnsError
    if before.nested is None or kind.nested is None:
        if one.migrates or before.spelled != kind.spelled:
            raise NotColumnsError
        return lambda columns, count: member(columns, source)
    if one.type and _identity(new.used(one.type)) != kind.nested.identity:
        raise NotColumnsError
    if one.migrates is not True:
        if before.nested.identity != kind.nested.identity:
            raise NotColumnsError
        return lambda columns, count: member(columns, source)
    update = nested.convert_columns(before.nested, kind.nested)
    if update is None:
        return lambda columns, count: member(columns, source)
    convert = part_update(kind, update)
    return lambda columns, count: convert(member(columns, source))


def _identity(version: TypeVersion | None) -> tuple[str, str] | None:
    return None if version is None else version.identity


def _type(version: TypeVersion, path: FieldPath) -> FieldType:
    if not is_struct_path(version, path):
        raise NotColumnsError
    for name in path[:-1]:
        inner = version.fields[name].nested
        if inner is None:
            raise NotColumnsError
        version = inner
    return version.fields[path[-1]]


def _constant(one: _Simple, new: TypeVersion, kind: FieldType) -> Make:
    """Return the maker of a constant, which has to fit the field as it does message by message."""
    owner = TypeVersion(new.name, new.encoding, new.key, {one.target[-1]: kind}, new.make_layout)
    made = Record(owner, {})
    try:
        made.set(one.target[-1], one.value)
    except RuleError:
        raise NotColumnsError from None
    value, node = made.values[one.target[-1]], node_of(new, one.target)
    value = bool(value) if kind.base == "bool" and not kind.array else value
    return lambda columns, count: constant_column(value, node, count)


def _struct(
    version: TypeVersion, path: FieldPath, root: TypeVersion, makers: dict[FieldPath, Make]
) -> ColumnUpdate:
    """Return the update that makes the fields of *version*, at *path* of *root*; those without a maker are zero."""
    parts: list[tuple[str, Make]] = []
    for name, kind in version.fields.items():
        here = (*path, name)
        if here in makers:
            parts.append((name, makers[here]))
        elif any(one[: len(here)] == here for one in makers) and kind.nested is not None and not kind.array:
            parts.append((name, _as_struct(_struct(kind.nested, here, root, makers))))
        else:
            parts.append((name, _zero(kind, root, here)))
    return lambda columns, count: {name: make(columns, count) for name, make in parts}


def _as_struct(update: ColumnUpdate) -> Make:
    import pyarrow as pa

    def make(columns: Columns, count: int) -> Any:
        made = update(columns, count)
        return pa.StructArray.from_arrays(list(made.values()), list(made))

    return make


def _zero(kind: FieldType, root: TypeVersion, path: Sequence[str]) -> Make:
    node = node_of(root, path)
    return lambda columns, count: constant_column(kind.default(), node, count)
