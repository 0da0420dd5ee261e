"""Rule files of ROS (``.bmr``): classes of Python, parsed and interpreted here, never executed."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from logreel.errors import DefinitionError, UsageError
from logreel.layout.numpy_columns import Column
from logreel.ops.migrate.field_changes import (
    constant_column,
    is_struct_path,
    member,
    node_of,
    part_update,
    struct_column,
)
from logreel.ops.migrate.interpreter import MAX_STEPS, Compiler, Method
from logreel.ops.migrate.types import (
    BoundRule,
    Columns,
    ColumnUpdate,
    FieldType,
    Nested,
    NestedColumns,
    NotColumnsError,
    Records,
    RuleError,
    StructValue,
    TypeVersion,
    Update,
    UpdateRule,
    Values,
    from_text,
)
from logreel.ops.migrate.vocabulary import Constructor
from logreel.schemas.ros1msg import DefinitionRegistry

BASE = "MessageUpdateRule"
#: Methods of the base class that rules use.
SERVICES = frozenset({"migrate", "migrate_array", "get_new_class", "get_old_class"})
_TEXTS = ("old_type", "old_full_text", "new_type", "new_full_text")
#: Largest rule file.
MAX_BYTES = 16 << 20


def read_bmr(path: str | os.PathLike[str]) -> list[UpdateRule]:
    """Return the rules of a file, in its order.

    Raises UsageError for a file that is no Python or has rules that are marked as not valid, UnsupportedError for
    constructs that are not read, DefinitionError for message definitions that cannot be used.
    """
    name = os.fspath(path)
    if Path(path).stat().st_size > MAX_BYTES:
        raise UsageError(f"a rule file of more than {MAX_BYTES >> 20} MiB", path=name)
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    return _RuleFile(name, _parse(text, name)).rules()


def _parse(text: str, name: str) -> ast.Module:
    # Files written for Python 2 mix tabs and blanks, where a tab reaches to the next multiple of 8.
    last: SyntaxError | ValueError | None = None
    for source in (text, _without_tabs(text)):
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError) as error:
            last = error
        except (MemoryError, RecursionError):
            raise UsageError("the rule file is nested too deep", path=name) from None
    line = f"line {last.lineno}: " if isinstance(last, SyntaxError) and last.lineno else ""
    why = last.msg if isinstance(last, SyntaxError) else last
    raise UsageError(f"{line}no Python 3 that can be read as rules: {why}", path=name) from None


def _without_tabs(text: str) -> str:
    lines = []
    for line in text.split("\n"):
        body = line.lstrip(" \t")
        lines.append(line[: len(line) - len(body)].expandtabs(8) + body)
    return "\n".join(lines)


class _RuleFile:
    """The classes and names of one file."""

    def __init__(self, name: str, tree: ast.Module) -> None:
        self.name, self.tree = name, tree
        self.compiler = Compiler(name, {})

    def rules(self) -> list[UpdateRule]:
        """Return the rules; names of the module are known to all of them."""
        functions: list[tuple[ast.FunctionDef, Method]] = []
        classes: list[ast.ClassDef] = []
        for node in self.tree.body:
            match node:
                case ast.Import() | ast.ImportFrom():
                    self.compiler.globals.update(self.compiler.import_names(node))
                case ast.ClassDef(bases=[ast.Name(id=base)]) if base == BASE:
                    classes.append(node)
                case ast.FunctionDef():
                    method = self.compiler.method(node, is_method=False)
                    self.compiler.globals[node.name] = method
                    functions.append((node, method))
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.compiler.globals[name] = self.compiler.constant(value)
                case ast.Expr(value=ast.Constant()):
                    pass
                case _:
                    raise self.compiler.unsupported(node)
        for function, method in functions:
            method.body += self.compiler.body(function.body)
        return [self._rule(node) for node in classes]

    def _rule(self, node: ast.ClassDef) -> UpdateRule:
        compiler = Compiler(self.name, self.compiler.globals, SERVICES)
        methods: dict[str, Method] = {}
        values: dict[str, Any] = {}
        bodies = []
        compiler.own, compiler.constants = methods, values
        for statement in node.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    values[name] = compiler.constant(value)
                case ast.FunctionDef(name=name):
                    methods[name] = compiler.method(statement)
                    bodies.append((statement, methods[name]))
                case ast.Expr(value=ast.Constant()) | ast.Pass():
                    pass
                case ast.Import() | ast.ImportFrom():
                    compiler.globals = compiler.globals | dict(compiler.import_names(statement))
                case _:
                    raise compiler.unsupported(statement)
        for body, method in bodies:
            method.body += compiler.body(body.body)
        function = next((body for body, method in bodies if method.name == "update"), None)
        return self._checked(node, values, methods, function)

    def _checked(
        self,
        node: ast.ClassDef,
        values: Mapping[str, Any],
        methods: Mapping[str, Method],
        function: ast.FunctionDef | None,
    ) -> UpdateRule:
        """Return the rule of a class; raises UsageError if something is missing or wrong."""
        location = f"{self.name}:{node.name}"

        def wrong(text: str) -> UsageError:
            return UsageError(f"line {node.lineno}: rule {node.name} {text}", path=self.name)

        for name in _TEXTS:
            if not isinstance(values.get(name), str) or (not values[name] and name.endswith("type")):
                raise wrong(f"has no text {name!r}")
        if values.get("valid") is not True:
            raise wrong("is not complete: fill in its update, then set valid = True")
        if "update" not in methods or len(methods["update"].parameters) != 2:
            raise wrong("has no method update(self, old_msg, new_msg)")
        order = values.get("order", -1)
        if not isinstance(order, int):
            raise wrong(f"has the order {order!r:.20}, which is no whole number")
        pairs = values.get("migrated_types", [])
        if not isinstance(pairs, list | tuple) or not all(
            isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(name, str) for name in pair)
            for pair in pairs
        ):
            raise wrong("needs pairs of types in migrated_types")
        old = self._type(values["old_full_text"], values["old_type"], location)
        new = self._type(values["new_full_text"], values["new_type"], location)
        bound = _BmrUpdate(location, old, new, methods["update"], function).bound(pairs, wrong)
        return UpdateRule(
            location,
            old.name,
            new.name,
            order,
            lambda version: bound if version.identity == old.identity else None,
            bound,
        )

    def _type(self, text: str, name: str, location: str) -> TypeVersion:
        try:
            return from_text(text.strip("\n") + "\n" if text.strip() else "", name, _NOTHING)
        except DefinitionError as error:
            raise DefinitionError(f"{location}: {error.text}", path=self.name) from None


#: Rules define all types that they use.
_NOTHING = DefinitionRegistry(known=False)


@dataclass(frozen=True, eq=False)
class _BmrUpdate:
    """The method ``update`` of a rule."""

    location: str
    old: TypeVersion
    new: TypeVersion
    update: Method
    function: ast.FunctionDef | None

    def make_columns(self, nested: NestedColumns) -> ColumnUpdate:
        """Return the update by columns; raises NotColumnsError if there is none."""

        if self.function is None:
            raise NotColumnsError
        return bmr_columns(self.function, self.old, self.new, nested)

    def bound(self, pairs: Sequence[tuple[str, str]], wrong: Any) -> BoundRule:
        """Return the rule; *pairs*: names of types of parts that it migrates."""
        parts = []
        for names in pairs:
            versions = self.old.used(names[0]), self.new.used(names[1])
            for name, version, which in zip(names, versions, ("old", "new"), strict=True):
                if version is None:
                    raise wrong(f"migrates {name}, which its {which} definition does not use")
            first, other = versions
            if first is not None and other is not None and (first, other) != (self.old, self.new):
                parts.append((first, other))
        return BoundRule(
            self.location, self.old, self.new, self.make, tuple(parts), make_columns=self.make_columns
        )

    def make(self, nested: Nested) -> Update:
        """Return the function from old to new values."""
        services = _Services(self.old, self.new, nested)

        def apply(values: Values) -> Values:
            made = StructValue(self.new, self.new.default())
            self.update.call(services, (StructValue(self.old, values), made), [MAX_STEPS])
            return made.values

        return apply


@dataclass(frozen=True, eq=False)
class _Services:
    """What a rule calls through ``self``."""

    old: TypeVersion
    new: TypeVersion
    nested: Nested

    def migrate(self, source: Any, target: Any) -> None:
        """Fill in *target*, a part of the new message, from a part of the old one."""
        if not isinstance(source, StructValue) or not isinstance(target, StructValue):
            raise RuleError("self.migrate takes a message of the old type and one of the new type")
        values = self.nested.convert(source.type, target.type)(source.values)
        if values is not target.values:
            target.values.clear()
            target.values.update(values)

    def migrate_array(self, source: Any, target: Any, name: str) -> None:
        """Fill in the array *target* of messages of type *name* from an array of the old message."""
        made = self.get_new_class(name).type
        if not isinstance(target, Records) or not isinstance(source, Records | list):
            raise RuleError("self.migrate_array takes arrays of messages, and the name of the new type")
        items = [item for item in source if isinstance(item, StructValue)]
        if len(items) != len(source):
            raise RuleError("self.migrate_array takes arrays of messages, and the name of the new type")
        if items:
            convert = self.nested.convert(items[0].type, made)
            target.items[:] = [convert(item.values) for item in items]
        else:
            target.items.clear()

    def get_new_class(self, name: str) -> Constructor:
        """Return the class of a type that the new message uses."""
        return self._constructor(self.new, name)

    def get_old_class(self, name: str) -> Constructor:
        """Return the class of a type that the old message uses."""
        return self._constructor(self.old, name)

    def _constructor(self, version: TypeVersion, name: Any) -> Constructor:
        used = version.used(name) if isinstance(name, str) else None
        if used is None:
            raise RuleError(f"{version.name} uses no type {name!r:.80}")
        return Constructor(used)


FieldPath = tuple[str, ...]
Make = Callable[[Columns, int], Column]


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
    names = [argument.arg for argument in function.args.args]
    if len(names) != 3:
        raise NotColumnsError
    makers: dict[FieldPath, Make] = {}
    for statement in function.body:
        assigned = _simple(statement, *names)
        if assigned is None:
            continue
        if any(assigned.target[: len(path)] == path and path != assigned.target for path in makers):
            raise NotColumnsError
        makers = {
            path: make for path, make in makers.items() if path[: len(assigned.target)] != assigned.target
        }
        makers[assigned.target] = _maker(assigned, old, new, nested)
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
                func=ast.Attribute(value=ast.Name(id=owner), attr="migrate"),
                args=[source, other],
                keywords=[],
            )
        ) if owner == itself:
            return _Simple(_path(other, new), _path(source, old), migrates=True)
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id=owner), attr="migrate_array"),
                args=[source, other, ast.Constant(value=str(name))],
                keywords=[],
            )
        ) if owner == itself:
            return _Simple(_path(other, new), _path(source, old), migrates=True, type=name)
    raise NotColumnsError


def _path(node: ast.expr, root: str) -> FieldPath:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not names or not isinstance(node, ast.Name) or node.id != root:
        raise NotColumnsError
    return tuple(reversed(names))


def _maker(assigned: _Simple, old: TypeVersion, new: TypeVersion, nested: NestedColumns) -> Make:
    field_type = _type(new, assigned.target)
    if assigned.source is None:
        return _constant(assigned, new, field_type)
    before, source = _type(old, assigned.source), assigned.source
    if (before.array, before.count) != (field_type.array, field_type.count):
        raise NotColumnsError
    if before.nested is None or field_type.nested is None:
        if assigned.migrates or before.spelled != field_type.spelled:
            raise NotColumnsError
        return lambda columns, count: member(columns, source)
    if assigned.type and _identity(new.used(assigned.type)) != field_type.nested.identity:
        raise NotColumnsError
    if assigned.migrates is not True:
        if before.nested.identity != field_type.nested.identity:
            raise NotColumnsError
        return lambda columns, count: member(columns, source)
    update = nested.convert_columns(before.nested, field_type.nested)
    if update is None:
        return lambda columns, count: member(columns, source)
    convert = part_update(field_type, update)
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


def _constant(assigned: _Simple, new: TypeVersion, field_type: FieldType) -> Make:
    """Return the maker of a constant, which has to fit the field as it does message by message."""
    owner = TypeVersion(new.name, new.encoding, new.key, {assigned.target[-1]: field_type}, new.make_layout)
    made = StructValue(owner, {})
    try:
        made.set(assigned.target[-1], assigned.value)
    except RuleError:
        raise NotColumnsError from None
    value, node = made.values[assigned.target[-1]], node_of(new, assigned.target)
    value = bool(value) if field_type.base == "bool" and not field_type.array else value
    return lambda columns, count: constant_column(value, node, count)


def _struct(
    version: TypeVersion, path: FieldPath, root: TypeVersion, makers: dict[FieldPath, Make]
) -> ColumnUpdate:
    """Return the update that makes the fields of *version*, at *path* of *root*; those without a maker are zero."""
    parts: list[tuple[str, Make]] = []
    for name, field_type in version.fields.items():
        here = (*path, name)
        if here in makers:
            parts.append((name, makers[here]))
        elif (
            any(made_path[: len(here)] == here for made_path in makers)
            and field_type.nested is not None
            and not field_type.array
        ):
            parts.append((name, _as_struct(_struct(field_type.nested, here, root, makers))))
        else:
            parts.append((name, _zero(field_type, root, here)))
    return lambda columns, count: {name: make(columns, count) for name, make in parts}


def _as_struct(update: ColumnUpdate) -> Make:
    return lambda columns, count: struct_column(update(columns, count))


def _zero(field_type: FieldType, root: TypeVersion, path: Sequence[str]) -> Make:
    node = node_of(root, path)
    return lambda columns, count: constant_column(field_type.default(), node, count)
