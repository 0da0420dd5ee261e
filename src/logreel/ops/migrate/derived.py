"""Definitions of new types that follow from the old ones by changes of fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from logreel.errors import DefinitionError
from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, Field, FixedArray, Node, Scalar, String, Struct, Time
from logreel.layout.nodes import Sequence as Many
from logreel.ops.migrate.field_changes import Change, MissingSourceError, field_type
from logreel.ops.migrate.paths import Path
from logreel.ops.migrate.types import NAMED, TypeVersion, from_layout, from_text
from logreel.schemas import ros1msg

_TYPE = re.compile(r"([A-Za-z]\w*)(?:(\[)(\d{0,7})\])?", re.ASCII)
_BUILTIN: dict[str, Node] = {
    **{name: Scalar(name) for name in ("bool", "char", "float32", "float64")},
    **{f"{sign}int{bits}": Scalar(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "byte": Scalar("int8"),
    "string": String(4),
    "time": Time(),
    "duration": Time(signed=True),
}
Changes = Mapping[tuple[str, ...], Change]


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
    deep = [".".join(path) for path in changes if len(path) > 1] + [one for one in remove if "." in one]
    if deep:
        raise DefinitionError(f"{deep[0]} is in a type of its own: the rule needs a definition")
    todo = dict(changes)
    definition = ros1msg.parse(old.text, old.name, ros1msg.Registry(known=False))
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
        place = next((path for path, one in todo.items() if _is_renamed(one, field, old, todo)), None)
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
    return from_text("\n".join(["\n".join([*lines, *end]), *others]), name, ros1msg.Registry(known=False))


def with_new_parts(old: TypeVersion, end: Callable[[TypeVersion], Path]) -> TypeVersion | None:
    """Return the version of a type of ROS 1 whose parts are what rules make of them; None if no rule applies to them.

    end  returns the way of a version by all rules for it
    """
    definition = ros1msg.parse(old.text, old.name, ros1msg.Registry(known=False))
    texts: dict[str, str] = {}
    names: dict[str, str] = {}
    for name in definition.users:
        path = end(old.types[name]) if name != definition.name else None
        if path is None or not path.steps or path.gaps:
            texts[name] = _respelled(definition, name, names)
            continue
        names[name] = path.new.name
        made = ros1msg.parse(path.new.text, path.new.name, ros1msg.Registry(known=False))
        texts |= {one: message.text for one, message in made.messages.items()}
    if not names:
        return None
    root = texts.pop(definition.name)
    others = [f"{'=' * 80}\nMSG: {name}\n{text}" for name, text in texts.items()]
    return from_text("\n".join([root, *others]), old.name, ros1msg.Registry(known=False))


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


def _is_renamed(change: Change, field: str, old: TypeVersion, todo: Changes) -> bool:
    """Return whether *change* gives the old *field* a new name in its place."""
    source = change.source
    return source is not None and source == [(field, None)] and (field,) not in todo


def _line(change: Change, name: str, old: TypeVersion, line: str) -> str:
    """Return the line of a changed field, with the comment of the old *line*."""
    kind = change.kind or _type_of(change, name, old)
    comment = f"  # [{change.unit}]" if change.unit is not None else ""
    _, mark, text = line.partition("#")
    return f"{kind} {name}{comment or f'  #{text}' * bool(mark)}"


def _type_of(change: Change, name: str, old: TypeVersion) -> str:
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
    todo: dict[tuple[str, ...], Change],
    remove: set[str],
) -> Struct:
    fields = []
    for f in node.visible():
        here = (*path, f.name)
        change = todo.pop(here, None)
        if change is not None:
            fields.append(_field(change, f.name, f, old))
            continue
        place = next((one for one in todo if _takes_place(todo[one], one, here)), None)
        if place is not None:
            fields.append(_field(todo.pop(place), place[-1], f, old))
        elif ".".join(here) not in remove:
            fields.append(Field(f.name, _inner(f.node, here, old, todo, remove), f.unit))
    for new in [one for one in todo if one[:-1] == path]:
        fields.append(_field(todo.pop(new), new[-1], None, old))
    return Struct(tuple(fields))


def _takes_place(change: Change, new: tuple[str, ...], old: tuple[str, ...]) -> bool:
    source = change.source
    return new[:-1] == old[:-1] and source is not None and source == [(name, None) for name in old]


def _inner(
    node: Node, path: tuple[str, ...], old: TypeVersion, todo: dict[tuple[str, ...], Change], remove: set[str]
) -> Node:
    if not any(one[: len(path)] == path for one in todo) and not any(
        one.startswith(".".join(path) + ".") for one in remove
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


def _field(change: Change, name: str, before: Field | None, old: TypeVersion) -> Field:
    unit = change.unit if change.unit is not None else before.unit if before is not None else ""
    if change.kind:
        return Field(name, _node(change.kind, name), unit)
    if before is not None and (change.source is None or change.source[-1] == (before.name, None)):
        return Field(name, before.node, unit)
    return Field(name, _node(_type_of(change, name, old), name), unit)


def _node(kind: str, name: str) -> Node:
    """Return the node of a type as in a definition: ``float32``, ``uint8[4]``, ``char[16]`` for a text."""
    match = _TYPE.fullmatch(kind)
    if match is None or match[1] not in _BUILTIN:
        raise DefinitionError(f"{name}: {kind!r:.40} is no type; there are {', '.join(_BUILTIN)}")
    item = _BUILTIN[match[1]]
    if not match[2]:
        return item
    if match[3]:
        return FixedArray(item, int(match[3]))
    return Bytes(4) if item == Scalar("uint8") else Many(item, 4)
