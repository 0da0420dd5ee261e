"""What has to be migrated in a log: for each channel the version of its type, the one wanted, and the way to it."""

from __future__ import annotations

import os
import pathlib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NoReturn

from logreel.errors import DefinitionError, UsageError
from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, Field, FixedArray, Node, Scalar, String, Struct, Time
from logreel.layout.nodes import Sequence as Many
from logreel.log.log import Channel, Log
from logreel.ops.migrate.bmr import read_bmr
from logreel.ops.migrate.field_changes import FieldChange, Mapped, MissingSourceError, field_type, parse_path
from logreel.ops.migrate.paths import Path, Paths
from logreel.ops.migrate.types import (
    NAMED,
    BoundRule,
    TypeVersion,
    UpdateRule,
    current_name,
    from_definition,
    from_layout,
    from_text,
)
from logreel.schemas import ros1msg
from logreel.schemas.ros1msg import DefinitionRegistry

#: Suffixes of rule files of ROS.
ROS_SUFFIXES = (".bmr", ".py")
SUFFIXES = (*ROS_SUFFIXES, ".toml")


def read_rules(paths: Iterable[str | os.PathLike[str]]) -> list[UpdateRule]:
    """Return the rules of all files; of a folder, those of the rule files in and below it, by name.

    Raises UsageError for a path without rules, and the errors of ``read_bmr`` and ``read_toml``.
    """
    rules = []
    for path in map(pathlib.Path, paths):
        files = [path]
        if path.is_dir():
            files = sorted(
                rule_file for rule_file in path.rglob("*") if rule_file.suffix in (".bmr", ".toml")
            )
            if not files:
                raise UsageError("there is no rule file (*.bmr, *.toml) in this folder", path=str(path))
        for file in files:
            rules += _read(file)
    return rules


def _read(file: pathlib.Path) -> list[UpdateRule]:
    if file.suffix not in SUFFIXES:
        raise UsageError(f"rules are read from files *{', *'.join(SUFFIXES)}", path=str(file))
    try:
        rules = read_toml(file) if file.suffix == ".toml" else read_bmr(file)
    except OSError as error:
        raise UsageError(f"the rules cannot be read: {error.strerror}", path=str(file)) from None
    if not rules:
        raise UsageError("there is no rule in this file", path=str(file))
    return rules


#: Largest rule file.
MAX_BYTES = 16 << 20
_RULE_KEYS = {
    *(
        "type",
        "to",
        "md5",
        "version",
        "to_version",
        "order",
        "definition",
        "old_definition",
        "fields",
        "rename",
    ),
    *("remove", "topic", "valid"),
}
_FIELD_KEYS = {"from", "type", "value", "scale", "offset", "values", "overflow", "unit"}
_MD5 = re.compile(r"[0-9a-f]{32}")


def read_toml(path: str | os.PathLike[str]) -> list[UpdateRule]:
    """Return the rules of a file, in its order; raises UsageError for a file that is no TOML or has unknown keys."""
    name = os.fspath(path)
    if pathlib.Path(path).stat().st_size > MAX_BYTES:
        raise UsageError(f"a rule file of more than {MAX_BYTES >> 20} MiB", path=name)
    try:
        content = tomllib.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"no TOML: {error}", path=name) from None
    rules = content.pop("rule", [])
    if content or not isinstance(rules, list) or not all(isinstance(table, dict) for table in rules):
        raise UsageError("a rule file has a table [[rule]] for each rule, and nothing else", path=name)
    return [_TomlRule(name, number, table).rule() for number, table in enumerate(rules, 1)]


class _TomlRule:
    """One table ``[[rule]]``."""

    def __init__(self, file: str, number: int, table: Mapping[str, Any]) -> None:
        self.file, self.number, self.table = file, number, table
        self.location = f"{file}:rule {number}"
        unknown = sorted(table.keys() - _RULE_KEYS)
        if unknown:
            self.wrong(f"there is no key {unknown[0]!r}; there are {', '.join(sorted(_RULE_KEYS))}")
        if table.get("valid", True) is not True:
            self.wrong("is not complete: fill in its fields, then remove valid")
        self.type = self.text("type") or self.wrong("needs type, the name of the type")
        self.to = self.text("to") or self.type
        self.md5, self.version = self.text("md5"), str(table.get("version", ""))
        if self.md5 and not _MD5.fullmatch(self.md5):
            self.wrong(f"md5 is {self.md5!r:.40}, not 32 digits of 0-9 a-f")
        self.definition, self.old_definition = self.text("definition"), self.text("old_definition")
        self.remove = self.names("remove")
        self.changes = self.field_changes()
        self.known: dict[str, BoundRule] = {}

    def wrong(self, text: str) -> NoReturn:
        raise UsageError(f"rule {self.number} {text}", path=self.file)

    def text(self, key: str) -> str:
        value = self.table.get(key, "")
        if not isinstance(value, str):
            self.wrong(f"needs a text as {key}")
        return value

    def names(self, key: str) -> tuple[str, ...]:
        value = self.table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.wrong(f"needs a list of fields as {key}")
        return tuple(value)

    def field_changes(self) -> dict[tuple[str, ...], FieldChange]:
        """Return the changes by path of the new field; ``rename`` is short for fields with ``from`` alone."""
        renamed, fields = self.table.get("rename", {}), self.table.get("fields", {})
        if not isinstance(renamed, dict) or not all(isinstance(old, str) for old in renamed.values()):
            self.wrong("needs a table of old = new names as rename")
        if not isinstance(fields, dict):
            self.wrong("needs a table of fields as fields")
        tables = {new: {"from": old} for old, new in renamed.items()} | fields
        changes: dict[tuple[str, ...], FieldChange] = {}
        for name, table in tables.items():
            path = tuple(part for part, _ in self.path(name))
            changes[path] = self.change(name, {"from": table} if isinstance(table, str) else table)
        return changes

    def path(self, text: str) -> list[tuple[str, int | None]]:
        try:
            return parse_path(text)
        except UsageError as error:
            self.wrong(error.text)

    def change(self, name: str, table: Any) -> FieldChange:
        if not isinstance(table, dict) or table.keys() - _FIELD_KEYS:
            self.wrong(f"field {name!r} needs some of: {', '.join(sorted(_FIELD_KEYS))}")
        if "from" in table and "value" in table:
            self.wrong(f"field {name!r} has both from and value")
        type_name, unit, values = table.get("type", ""), table.get("unit"), table.get("values", {})
        scale, offset = table.get("scale", 1), table.get("offset", 0)
        numbers = all(
            isinstance(number, int | float) and not isinstance(number, bool) for number in (scale, offset)
        )
        if not (isinstance(type_name, str) and isinstance(values, dict) and numbers):
            self.wrong(f"field {name!r}: type is a text, values a table, scale and offset are numbers")
        if table.get("overflow", "leave-out") not in ("leave-out", "clamp"):
            self.wrong(f"field {name!r}: overflow is 'leave-out' or 'clamp'")
        source = None if "value" in table else self.path(str(table.get("from", name)))
        return FieldChange(
            name,
            source,
            table.get("value"),
            type_name,
            scale,
            offset,
            values,
            table.get("overflow") == "clamp",
            None if unit is None else str(unit),
        )

    def rule(self) -> UpdateRule:
        order = self.table.get("order", self.number)
        if not isinstance(order, int):
            self.wrong("needs a whole number as order")
        fixed = None
        if self.old_definition and self.md5:
            old = self._typed(self.old_definition, self.type)
            fixed = self.bind(old)
        return UpdateRule(self.location, self.type, self.to, order, self.bind, fixed)

    def bind(self, old: TypeVersion) -> BoundRule | None:
        """Return the rule for *old*; None if it does not apply to this version.

        A rule without md5 and version applies to every version with the fields that it needs.
        """
        if (self.md5 and self.md5 != old.key) or (self.version and self.version != old.version):
            return None
        if old.identity[1] not in self.known:
            try:
                self.known[old.identity[1]] = self._bound(old)
            except MissingSourceError as error:
                if self.md5 or self.version:
                    self.wrong(f"does not fit {old.label}: {error.text}")
                return None
            except DefinitionError as error:
                self.wrong(f"does not fit {old.label}: {error.text}")
        return self.known[old.identity[1]]

    def _bound(self, version: TypeVersion) -> BoundRule:
        old = version
        if self.old_definition:
            old = self._typed(self.old_definition, self.type, version)
        if self.definition:
            new = self._typed(self.definition, self.to, version)
        else:
            new = derived(old, self.to, self.changes, self.remove)
        stated = str(self.table.get("to_version", ""))
        if stated:
            new = new.with_version(stated)
        elif old.version and not self.definition:
            new = new.with_version(old.version)
        if new.key == old.key and any(
            not change.is_plain or change.source is None for change in self.changes.values()
        ):
            # Other values in the same fields, such as another unit.
            new = replace(new, variant=self.location)
        mapped = Mapped(old, new, self.changes, frozenset(self.remove))
        return BoundRule(
            self.location,
            version,
            new,
            mapped.make,
            mapped.parts,
            exact=bool(self.md5 or self.version),
            layout=old.layout if self.old_definition else None,
            topic=self.text("topic"),
            make_columns=mapped.make_columns,
        )

    def _typed(self, text: str, name: str, like: TypeVersion | None = None) -> TypeVersion:
        """Return the version of a type from the text of its definition, in the language of messages of ROS 1."""
        encoding = NAMED if like is None else like.encoding
        made = from_text(text, name if "/" in name else f"x/{name}", DefinitionRegistry(known=False))
        return made if encoding == NAMED else made.as_plain(name, encoding)


__all__: Sequence[str] = ["read_toml"]


_TYPE = re.compile(r"([A-Za-z]\w*)(?:(\[)(\d{0,7})\])?", re.ASCII)
_BUILTIN: dict[str, Node] = {
    **{name: Scalar(name) for name in ("bool", "char", "float32", "float64")},
    **{f"{sign}int{bits}": Scalar(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "byte": Scalar("int8"),
    "string": String(4),
    "time": Time(),
    "duration": Time(signed=True),
}
Changes = Mapping[tuple[str, ...], FieldChange]


def derived(old: TypeVersion, name: str, changes: Changes, remove: Sequence[str]) -> TypeVersion:
    """Return the version called *name* of *old* with changed fields; new ones come last.

    Raises MissingSourceError for a field that *old* does not have, DefinitionError for changes that need a definition.
    """
    if old.encoding == NAMED:
        return _from_text(old, name, changes, remove)
    return _from_layout(old, name, changes, remove)


# --------------------------------------------------------------------------------------------- definitions


def _from_text(old: TypeVersion, name: str, changes: Changes, remove: Sequence[str]) -> TypeVersion:
    """Return the new version by changed lines of the definition, with its comments."""
    deep = [".".join(path) for path in changes if len(path) > 1] + [
        removed for removed in remove if "." in removed
    ]
    if deep:
        raise DefinitionError(f"{deep[0]} is in a type of its own: the rule needs a definition")
    todo = dict(changes)
    definition = ros1msg.parse(old.text, old.name, ros1msg.DefinitionRegistry(known=False))
    uses = definition.uses[definition.name]
    moved = old.name.rpartition("/")[0] != name.rpartition("/")[0]
    lines = []
    for line in definition.root.text.split("\n"):
        code = line.partition("#")[0]
        words = code.split()
        if not words or "=" in code:
            lines.append(line)
            continue
        written, field = words[0], words[1]
        change = todo.pop((field,), None)
        if change is not None:
            lines.append(_line(change, field, old, line))
            continue
        place = next((path for path, renamed in todo.items() if _is_renamed(renamed, field, old, todo)), None)
        if place is not None:
            lines.append(_line(todo.pop(place), place[0], old, line))
        elif field not in remove:
            base = written.partition("[")[0]
            # In another package, names of types need theirs.
            full = uses.get(base, base) if moved and base != "Header" else base
            lines.append(line.replace(base, full, 1))
    end = [] if not lines or lines[-1] else [lines.pop()]
    lines += [_line(change, path[0], old, "") for path, change in todo.items()]
    others = [
        f"{'=' * 80}\nMSG: {other}\n{message.text}"
        for other, message in definition.messages.items()
        if other != definition.name
    ]
    return from_text(
        "\n".join(["\n".join([*lines, *end]), *others]), name, ros1msg.DefinitionRegistry(known=False)
    )


def with_new_parts(old: TypeVersion, end: Callable[[TypeVersion], Path]) -> TypeVersion | None:
    """Return the version of a type of ROS 1 whose parts are what rules make of them; None if no rule applies to them.

    end  returns the way of a version by all rules for it
    """
    definition = ros1msg.parse(old.text, old.name, ros1msg.DefinitionRegistry(known=False))
    texts: dict[str, str] = {}
    names: dict[str, str] = {}
    for name in definition.users:
        path = end(old.types[name]) if name != definition.name else None
        if path is None or not path.steps or path.gaps:
            texts[name] = _respelled(definition, name, names)
            continue
        names[name] = path.new.name
        made = ros1msg.parse(path.new.text, path.new.name, ros1msg.DefinitionRegistry(known=False))
        texts |= {type_name: message.text for type_name, message in made.messages.items()}
    if not names:
        return None
    root = texts.pop(definition.name)
    others = [f"{'=' * 80}\nMSG: {name}\n{text}" for name, text in texts.items()]
    return from_text("\n".join([root, *others]), old.name, ros1msg.DefinitionRegistry(known=False))


def _respelled(definition: ros1msg.Definition, name: str, names: Mapping[str, str]) -> str:
    """Return the text of the message *name* with types renamed; *names*: new ones by old ones."""
    lines = definition.messages[name].text.split("\n")
    for n, line in enumerate(lines):
        words = line.partition("#")[0].split()
        if words and "=" not in line.partition("#")[0]:
            base = words[0].partition("[")[0]
            used = definition.uses[name].get(base)
            if used is not None and names.get(used, used) != used:
                lines[n] = line.replace(base, names[used], 1)
    return "\n".join(lines)


def _is_renamed(change: FieldChange, field: str, old: TypeVersion, todo: Changes) -> bool:
    """Return whether *change* gives the old *field* a new name in its place."""
    source = change.source
    return source is not None and source == [(field, None)] and (field,) not in todo


def _line(change: FieldChange, name: str, old: TypeVersion, line: str) -> str:
    """Return the line of a changed field, with the comment of the old *line*."""
    type_name = change.type_name or _type_of(change, name, old)
    comment = f"  # [{change.unit}]" if change.unit is not None else ""
    _, mark, text = line.partition("#")
    return f"{type_name} {name}{comment or f'  #{text}' * bool(mark)}"


def _type_of(change: FieldChange, name: str, old: TypeVersion) -> str:
    if change.source is None:
        raise DefinitionError(f"{name} is new: the rule needs its type, or a definition")
    return field_type(old, change.source, MissingSourceError).spelled


# ------------------------------------------------------------------------------------------------- layouts


def _from_layout(old: TypeVersion, name: str, changes: Changes, remove: Sequence[str]) -> TypeVersion:
    """Return the new version by changed fields of the Layout, also in nested structs."""
    root = old.layout.root
    if not isinstance(root, Struct):
        raise DefinitionError("messages of many records cannot be migrated")
    todo = dict(changes)
    made = _struct(root, (), old, todo, set(remove))
    return from_layout(name, old.encoding, Layout(made, name), "", "")


def _struct(
    node: Struct,
    path: tuple[str, ...],
    old: TypeVersion,
    todo: dict[tuple[str, ...], FieldChange],
    remove: set[str],
) -> Struct:
    fields = []
    for f in node.visible():
        here = (*path, f.name)
        change = todo.pop(here, None)
        if change is not None:
            fields.append(_field(change, f.name, f, old))
            continue
        place = next(
            (field_path for field_path in todo if _takes_place(todo[field_path], field_path, here)), None
        )
        if place is not None:
            fields.append(_field(todo.pop(place), place[-1], f, old))
        elif ".".join(here) not in remove:
            fields.append(Field(f.name, _inner(f.node, here, old, todo, remove), f.unit))
    for new in [field_path for field_path in todo if field_path[:-1] == path]:
        fields.append(_field(todo.pop(new), new[-1], None, old))
    return Struct(tuple(fields))


def _takes_place(change: FieldChange, new: tuple[str, ...], old: tuple[str, ...]) -> bool:
    source = change.source
    return new[:-1] == old[:-1] and source is not None and source == [(name, None) for name in old]


def _inner(
    node: Node,
    path: tuple[str, ...],
    old: TypeVersion,
    todo: dict[tuple[str, ...], FieldChange],
    remove: set[str],
) -> Node:
    if not any(field_path[: len(path)] == path for field_path in todo) and not any(
        field_path.startswith(".".join(path) + ".") for field_path in remove
    ):
        return node
    match node:
        case Struct():
            return _struct(node, path, old, todo, remove)
        case FixedArray(item=item, count=count):
            return FixedArray(_inner(item, path, old, todo, remove), count)
        case Many(item=item, width=width, grid=grid):
            return Many(_inner(item, path, old, todo, remove), width, grid)
        case _:
            raise DefinitionError(f"{'.'.join(path)} has no fields")


def _field(change: FieldChange, name: str, before: Field | None, old: TypeVersion) -> Field:
    unit = change.unit if change.unit is not None else before.unit if before is not None else ""
    if change.type_name:
        return Field(name, _node(change.type_name, name), unit)
    if before is not None and (change.source is None or change.source[-1] == (before.name, None)):
        return Field(name, before.node, unit)
    return Field(name, _node(_type_of(change, name, old), name), unit)


def _node(type_name: str, name: str) -> Node:
    """Return the node of a type as in a definition: ``float32``, ``uint8[4]``, ``char[16]`` for a text."""
    match = _TYPE.fullmatch(type_name)
    if match is None or match[1] not in _BUILTIN:
        raise DefinitionError(f"{name}: {type_name!r:.40} is no type; there are {', '.join(_BUILTIN)}")
    item = _BUILTIN[match[1]]
    if not match[2]:
        return item
    if match[3]:
        return FixedArray(item, int(match[3]))
    return Bytes(4) if item == Scalar("uint8") else Many(item, 4)


PathLike = str | os.PathLike[str]
#: Files or folders with rules or definitions.
Files = PathLike | Iterable[PathLike]
#: State of the type of a channel:
#: ``current`` it is the wanted one; ``migrates`` there is a way to the wanted one; ``missing`` a rule is missing for a
#: wanted one; ``differs`` another version is known, to which no rule leads; ``unknown`` no other version is known;
#: ``unusable`` the definition of the channel cannot be used.
State = Literal["current", "migrates", "missing", "differs", "unknown", "unusable"]


@dataclass(frozen=True, slots=True, eq=False)
class ChannelPlan:
    """What becomes of the type of a channel.

    old   version in the log; None if its definition cannot be used
    path  the way to the wanted version; None without one
    text  sentence for people why the type stays as it is; empty if it is migrated or current
    """

    channel: Channel
    state: State
    old: TypeVersion | None = None
    path: Path | None = None
    text: str = ""

    @property
    def rules(self) -> list[str]:
        """Where the rules of the path stand; an update without a rule has none."""
        return [] if self.path is None else [step.rule for step in self.path.steps if step.rule]


class Planner:
    """Plans by rules, given definitions and those that logreel knows.

    rules  files or folders with rules
    to     files or folders with the wanted definitions, as for ``logreel.open``; a type that they define has to be
           reached
    known  False: definitions that logreel knows are not wanted
    """

    def __init__(self, rules: Files = (), to: Files = (), known: bool = True) -> None:
        self.paths = Paths(read_rules(several(rules)))
        self._given, self._names = ros1msg.DefinitionRegistry(), set[str]()
        for path in several(to):
            try:
                self._names.update(self._given.add_path(os.fspath(path)))
            except OSError as error:
                raise UsageError(
                    f"the definitions cannot be read: {error.strerror}", path=os.fspath(path)
                ) from None
        self._known = known
        self._plans: dict[int, ChannelPlan] = {}

    @cached_property
    def _standard(self) -> ros1msg.DefinitionRegistry:
        return ros1msg.standard()

    def plans(self, log: Log) -> list[ChannelPlan]:
        """Return the plan of each channel except reserved ones, in file order."""
        return [self.plan(ch) for ch in log.channels.values() if not ch.reserved]

    def unused(self, plans: Iterable[ChannelPlan]) -> list[str]:
        """Return where rules stand for types that neither the channels of *plans* have, nor parts of them."""
        names = {current_name(name) for plan in plans if plan.old is not None for name in plan.old.types}
        todo = [*names]
        while todo:
            for rule in self.paths.chains.get(todo.pop(), ()):
                if (name := current_name(rule.new_name)) not in names:
                    names.add(name)
                    todo.append(name)
        chains = self.paths.chains.items()
        return [rule.location for name, rules in chains if name not in names for rule in rules]

    def plan(self, channel: Channel) -> ChannelPlan:
        """Return the plan of one channel."""
        if id(channel) not in self._plans:
            self._plans[id(channel)] = self._plan(channel)
        return self._plans[id(channel)]

    def _plan(self, ch: Channel) -> ChannelPlan:
        try:
            old = self._version(ch)
        except DefinitionError as error:
            wanted: State = "missing" if ch.schema.name in self.paths.chains else "unusable"
            return ChannelPlan(ch, wanted, text=error.text)
        wanted_type, ruled = self._wanted_of_user(old), self.paths.end(old)
        if wanted_type is not None and (ruled.gaps or not ruled.steps or ruled.new.key != wanted_type.key):
            return self._to(ch, old, wanted_type, "missing")
        if not ruled.steps:
            known = self._known_version(old)
            if old.name in self.paths.chains:
                text = f"the rules for {old.name} do not apply to this version of it"
                return ChannelPlan(ch, "differs", old, text=text)
            if known is None:
                made = with_new_parts(old, self.paths.end) if old.encoding == NAMED else None
                if made is not None:
                    return self._to(ch, old, made, "missing")
                return ChannelPlan(ch, "unknown", old, text=f"no other version of {old.name} is known")
            return self._to(ch, old, known, "differs")
        if ruled.gaps:
            return _planned(ch, ruled, "missing")
        # What the rules lead to may be an earlier version of a known type.
        known = self._known_version(ruled.new)
        if known is not None and known.key != ruled.new.key:
            further = self.paths.path(old, known)
            if not further.gaps:
                return _planned(ch, further, "missing")
        return _planned(ch, ruled, "missing")

    def _to(self, ch: Channel, old: TypeVersion, new: TypeVersion, otherwise: State) -> ChannelPlan:
        return _planned(ch, self.paths.path(old, new), otherwise)

    def _version(self, ch: Channel) -> TypeVersion:
        """Return the version of the type of a channel; raises DefinitionError if its definition cannot be used."""
        schema = ch.schema
        if schema.encoding == NAMED:
            return from_definition(
                ros1msg.define(schema.name, schema.text, str(ch.metadata.get("md5sum", "*")), self._standard)
            )
        if schema.encoding != ch.log.format:
            raise DefinitionError(f"messages of encoding {schema.encoding!r} are not migrated in this format")
        version = str(ch.metadata.get("version", ""))
        return from_layout(schema.name, schema.encoding, ch.layout, schema.text, version)

    def _wanted_of_user(self, old: TypeVersion) -> TypeVersion | None:
        """Return the given version of a type, by its name or that which rules give it; None if none is given."""
        if old.encoding != NAMED:
            return None
        for name in (self.paths.last_name(old.name), old.name):
            if name in self._names:
                definition = self._given.find(name)
                return None if definition is None else from_definition(definition)
        return None

    def _known_version(self, old: TypeVersion) -> TypeVersion | None:
        """Return the known version of a type, by its name or that which rules give it; None if unknown."""
        if old.encoding != NAMED or not self._known:
            return None
        last = self.paths.last_name(old.name)
        for name in dict.fromkeys((last, old.name)):
            try:
                definition = self._standard.find(name)
            except DefinitionError:
                continue
            if definition is not None:
                # A former name of a type is kept while its fields are the same.
                return (
                    from_definition(definition)
                    if definition.name == name or definition.md5 != old.key
                    else old
                )
        return None


def _planned(ch: Channel, path: Path, otherwise: State) -> ChannelPlan:
    """Return the plan for *path*; *otherwise*: state if it has gaps."""
    if path.old.identity == path.new.identity:
        return ChannelPlan(ch, "current", path.old, path)
    if not path.gaps:
        return ChannelPlan(ch, "migrates", path.old, path)
    text = "; ".join(dict.fromkeys(gap.text for gap in path.gaps))
    return ChannelPlan(ch, otherwise, path.old, path, text)


def several(paths: Files) -> Sequence[PathLike]:
    """Return one path or several as a list."""
    return [paths] if isinstance(paths, str | os.PathLike) else [*paths]
