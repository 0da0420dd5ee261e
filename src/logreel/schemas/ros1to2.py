"""Messages of ROS 1 as messages of ROS 2 and back: types, definitions, and which field becomes which, by written rules.

Both directions are made of one list of fields per type, ``Struct1to2``. Types that ROS 2 has in another form get that
form; all others keep their fields. ``docs/howto/convert.md`` has the rules as a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError
from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, FixedArray, Node, Scalar, Struct, Time
from logreel.layout.nodes import Sequence as Counted
from logreel.layout.numpy_columns import ARRAY, BYTES, LIST, STRUCT, Column, list_column, type_of
from logreel.log.scan import Schema
from logreel.schemas import ros1msg, ros2idl, ros2msg
from logreel.schemas.languages import language_named
from logreel.schemas.ros1msg import known
from logreel.schemas.ros1msg.definition import (
    BUILTIN,
    Definition,
    DefinitionText,
    MessageDefinition,
    join_text,
    short_name,
    split_text,
)
from logreel.schemas.ros2msg import NUMBERS, Ros2Definition, Ros2Field

ROS1, ROS2 = "ros1msg", ("ros2msg", "ros2idl")
HEADER, LOG = "std_msgs/Header", "rosgraph_msgs/Log"
#: Types of ROS 2 for those with other names in ROS 1, where the first one is that of today.
NEW_NAMES = {
    "rosgraph_msgs/Log": "rcl_interfaces/Log",
    "roslib/Log": "rcl_interfaces/Log",
    "roslib/Header": HEADER,
    "rostools/Header": HEADER,
    "roslib/Clock": "rosgraph_msgs/Clock",
    "tf/tfMessage": "tf2_msgs/TFMessage",
}
#: New names of fields by type of ROS 2.
NEW_FIELDS = {
    "sensor_msgs/CameraInfo": {"D": "d", "K": "k", "R": "r", "P": "p"},
    "stereo_msgs/DisparityImage": {"T": "t"},
}
#: Fields that ROS 2 has no place for, by type of ROS 2.
GONE = {HEADER: ("seq",), "rcl_interfaces/Log": ("header", "topics")}
#: Members of fields of ``GONE`` that are fields of ROS 2.
RAISED = {"rcl_interfaces/Log": (("header", "stamp"), "stamp")}
#: Levels of lines of text in both.
LEVELS = ((1, 10), (2, 20), (4, 30), (8, 40), (16, 50))
MOMENTS = {"time": "builtin_interfaces/Time", "duration": "builtin_interfaces/Duration"}
#: Rules by which a value becomes another one.
SIGN, LEVEL = "byte", "level"
Path = tuple[str, ...]


@dataclass(frozen=True)
class Pair:
    """A field of both.

    ros1, ros2  paths from the struct that has it
    rule        by which its numbers become others; empty: they stay
    inner       of the structs that it holds
    """

    ros1: Path
    ros2: Path
    rule: str = ""
    inner: Struct1to2 | None = None


@dataclass(frozen=True)
class Struct1to2:
    """The fields of a type of ROS 1 and of the type of ROS 2 that it becomes, by their short names.

    only1, only2  paths of fields that the other one has no place for
    in_order  whether the fields have the same order in both
    """

    ros1: str
    ros2: str
    pairs: tuple[Pair, ...]
    only1: tuple[Path, ...] = ()
    only2: tuple[Path, ...] = ()
    in_order: bool = True

    @property
    def is_same(self) -> bool:
        """Whether all values stay, under the same names, one after another."""
        return (
            self.in_order
            and not (self.only1 or self.only2)
            and all(
                pair.ros1 == pair.ros2 and not pair.rule and (pair.inner is None or pair.inner.is_same)
                for pair in self.pairs
            )
        )


@dataclass(frozen=True)
class LeafPair:
    """The paths of a value that is no struct in the source and the target of a conversion; None: it is not there.

    rule  by which numbers become others
    """

    source: Path | None
    target: Path | None
    rule: str = ""


@dataclass(frozen=True)
class Conversion:
    """How messages of a channel are converted.

    source, target  schemas
    source_layout, target_layout  of their payloads
    fields   of the type
    forward  True: from ROS 1 to ROS 2
    """

    source: Schema
    target: Schema
    source_layout: Layout
    target_layout: Layout
    fields: Struct1to2
    forward: bool

    def columns(self, columns: Sequence[Column]) -> list[Column]:
        """Return settled columns of the target, one per member, from those of the source."""
        names = tuple(f.name for f in self.source_layout.record.visible())
        n = len(columns[0]) if columns else 0
        made = self._struct(self.fields, Column(STRUCT, n, children=tuple(columns), names=names), self._root)
        return [*made.children]

    @property
    def _root(self) -> Struct:
        root = self.target_layout.root
        if not isinstance(root, Struct):
            raise DefinitionError("a message of many records")
        return root

    def _struct(self, fields: Struct1to2, column: Column, node: Struct, prefix: Path = ()) -> Column:
        """Return the structs of the target, or the struct at *prefix* in it, from those of the source."""
        made = {(p.ros2 if self.forward else p.ros1): p for p in fields.pairs}
        children = list[Column]()
        for f in node.visible():
            path = (*prefix, f.name)
            if path in made:
                pair = made[path]
                values = _at(column, pair.ros1 if self.forward else pair.ros2)
                children.append(self._value(pair, values, f.node))
            elif isinstance(f.node, Struct) and any(to[: len(path)] == path for to in made):
                children.append(self._struct(fields, column, f.node, path))
            else:
                children.append(zeros(f.node, len(column)))
        return Column(
            STRUCT, len(column), children=tuple(children), names=tuple(f.name for f in node.visible())
        )

    def _value(self, pair: Pair, column: Column, node: Node) -> Column:
        if pair.inner is not None and not pair.inner.is_same:
            return self._inner(pair.inner, column, node)
        if pair.rule == LEVEL:
            return Column(type_of(node), len(column), _levels(column.values, self.forward))
        return _signed(column, node) if pair.rule == SIGN else column

    def _inner(self, fields: Struct1to2, column: Column, node: Node) -> Column:
        if isinstance(node, Counted):
            return list_column(column.ends, self._inner(fields, column.item, node.item))
        if isinstance(node, FixedArray):
            items = self._inner(fields, column.item, node.item)
            return Column(ARRAY, len(column), children=(items,), size=node.count)
        if not isinstance(node, Struct):
            raise DefinitionError("structs become no structs")
        return self._struct(fields, column, node)

    def leaves(self) -> Iterator[LeafPair]:
        """Yield all values of a message that are no structs, in the order of their fields."""
        source, target = self.source_layout.record, self.target_layout.record
        yield from self._leaves(self.fields, source, target, (), ())

    def _leaves(
        self, fields: Struct1to2, source: Struct, target: Struct, before: Path, after: Path
    ) -> Iterator[LeafPair]:
        for pair in fields.pairs:
            old, new = (pair.ros1, pair.ros2) if self.forward else (pair.ros2, pair.ros1)
            if pair.inner is None:
                yield LeafPair((*before, *old), (*after, *new), pair.rule)
                continue
            inside = _struct_at(source, old), _struct_at(target, new)
            yield from self._leaves(pair.inner, *inside, (*before, *old), (*after, *new))
        gone, added = (fields.only1, fields.only2) if self.forward else (fields.only2, fields.only1)
        for path in gone:
            yield from (LeafPair((*before, *leaf), None) for leaf in _leaves_at(source, path))
        for path in added:
            yield from (LeafPair(None, (*after, *leaf)) for leaf in _leaves_at(target, path))


def _at(column: Column, path: Path) -> Column:
    for name in path:
        column = column.children[column.names.index(name)]
    return column


def _item(node: Node) -> Node:
    while isinstance(node, Counted | FixedArray):
        node = node.item
    return node


def _node_at(struct: Struct, path: Path) -> Node:
    node: Node = struct
    for name in path:
        members = _item(node)
        if not isinstance(members, Struct):
            raise DefinitionError(f"no field {name!r}")
        node = next(f.node for f in members.visible() if f.name == name)
    return node


def _struct_at(struct: Struct, path: Path) -> Struct:
    node = _item(_node_at(struct, path))
    if not isinstance(node, Struct):
        raise DefinitionError(f"{'.'.join(path)} is no struct")
    return node


def _leaves_at(struct: Struct, path: Path) -> Iterator[Path]:
    node = _item(_node_at(struct, path))
    if not isinstance(node, Struct):
        yield path
        return
    for f in node.visible():
        yield from _leaves_at(struct, (*path, f.name))


def _levels(values: NDArray[np.number], forward: bool) -> NDArray[np.number]:
    """Return the levels of the other generation; numbers that are no levels stay, as the same bits."""
    table = np.arange(256, dtype=np.uint8)
    for old, new in LEVELS:
        table[old if forward else new] = new if forward else old
    made = table[values.view(np.uint8)]
    return made if forward else made.view(np.int8)


def _signed(column: Column, node: Node) -> Column:
    """Return bytes, which are signed in ROS 1 and unsigned in ROS 2, with the same bits."""
    if isinstance(node, Bytes):
        return Column(BYTES, len(column), column.item.values.view(np.uint8), column.ends)
    if column.type == BYTES and isinstance(node, Counted):
        items = column.values[: int(column.ends[-1])]
        return list_column(column.ends, _signed(Column("uint8", len(items), items), node.item))
    if isinstance(node, FixedArray):
        return Column(ARRAY, len(column), children=(_signed(column.item, node.item),), size=column.size)
    if not isinstance(node, Scalar):
        raise DefinitionError("a byte becomes no number")
    return Column(node.type, len(column), column.values.view(np.int8 if node.type == "int8" else np.uint8))


def zeros(node: Node, n: int) -> Column:
    """Return *n* values of a field that the source has not: zeros, empty texts and lists."""
    name = type_of(node)
    match node:
        case Struct():
            children = tuple(zeros(f.node, n) for f in node.visible())
            return Column(name, n, children=children, names=tuple(f.name for f in node.visible()))
        case FixedArray(item=item, count=count) if name == ARRAY:
            return Column(name, n, children=(zeros(item, n * count),), size=count)
        case Counted(item=item) if name == LIST:
            return list_column(np.zeros(n + 1, np.int32), zeros(item, 0))
        case Time():
            return Column(name, n, np.zeros(n, np.int64))
        case Scalar():
            return Column(name, n, np.zeros(n, bool if name == "bool" else name.replace("char", "int8")))
    return Column(name, n, np.zeros(0, np.uint8), np.zeros(n + 1, np.int32))


# ------------------------------------------------------------------------------------------------------ which types


def to_ros2(schema: Schema, checksum: str = "*") -> Conversion:
    """Return how messages of ROS 1 with *schema* become messages of ROS 2.

    checksum  of the definition, which decides between known ones if *schema* has no text

    Raises DefinitionError if the definition is missing, or has what ROS 2 cannot say.
    """
    definition = ros1msg.define(schema.name, schema.text, checksum, ros1msg.standard())
    made = _ToRos2(definition)
    fields = made.types[definition.name]
    text = ros2msg.full_text(fields.ros2, made.texts)
    package, _, name = fields.ros2.partition("/")
    target = Schema(f"{package}/msg/{name}", "ros2msg", text)
    return Conversion(
        schema, target, ros1msg.layout(definition), ros2msg.layout(target.name, text), fields, True
    )


def to_ros1(schema: Schema) -> Conversion:
    """Return how messages of ROS 2 with *schema* become messages of ROS 1; raises as ``to_ros2``."""
    language = language_named(schema.encoding)
    layout = None if language is None else language.layout(schema)
    if layout is None:
        raise DefinitionError(f"{schema.name}: nothing reads its definition")
    parse = ros2idl.parse if schema.encoding == "ros2idl" else ros2msg.parse
    messages = parse(schema.text, schema.name)
    made = _ToRos1(messages, schema.text if schema.encoding == "ros2msg" else "", schema.name)
    fields = made.types[short_name(schema.name)]
    definition = ros1msg.parse(made.text(fields.ros1), fields.ros1)
    target = Schema(fields.ros1, ROS1, definition.text)
    return Conversion(schema, target, layout, ros1msg.layout(definition), fields, False)


def back(source: Schema, before: Schema, checksum: str = "*") -> Conversion | None:
    """Return how messages that were made of those of *before* become what they were; None if they were not."""
    try:
        if before.encoding == ROS1 and source.encoding in ROS2:
            made = to_ros2(before, checksum)
        elif before.encoding in ROS2 and source.encoding == ROS1:
            made = to_ros1(before)
        else:
            return None
    except DefinitionError:
        return None
    if (made.target.name, made.target.text.split()) != (source.name, source.text.split()):
        return None
    return Conversion(source, before, made.target_layout, made.source_layout, made.fields, not made.forward)


class _ToRos2:
    """The types of a definition of ROS 1 in ROS 2.

    types  by name in ROS 1
    texts  definitions of types that are not among the known ones of ROS 2, by short name there
    """

    def __init__(self, definition: Definition) -> None:
        self.types: dict[str, Struct1to2] = {}
        self.texts: dict[str, str] = {}
        for name in definition.users:
            self.types[name] = self._type(definition.messages[name], definition.uses[name])

    def _type(self, message: MessageDefinition, uses: Mapping[str, str]) -> Struct1to2:
        name = NEW_NAMES.get(message.name, message.name)
        text = ros2msg.standard().get(name)
        if text is not None:
            fields = ros2msg.parse(ros2msg.full_text(name, {}), name)[name].fields
            made = paired(message, fields, name, {used: self.types[n] for used, n in uses.items()})
            if made is not None:
                return made
            # The name is that of other fields.
            name = f"{ros1msg.PACKAGE}/{_camel(name)}"
        pairs = tuple(
            Pair((f.name,), (f.name,), "", self.types[uses[f.type]] if f.type in uses else None)
            for f in message.fields
        )
        self.texts[name] = "\n".join(self._lines(message, uses)).strip("\n") or "# no fields"
        return Struct1to2(message.name, name, pairs)

    def _lines(self, message: MessageDefinition, uses: Mapping[str, str]) -> Iterator[str]:
        """Yield the lines of the definition in ROS 2."""
        constants = {constant.name: constant for constant in message.constants}
        for line in message.text.split("\n"):
            code, mark, comment = line.partition("#")
            if not code.strip():
                yield line.rstrip()
                continue
            if "=" in code:
                name = code.partition("=")[0].split()[1]
                constant = constants[name]
                if constant.type == "string":
                    quoted = constant.text.replace('"', '\\"')
                    yield f'string {name}="{quoted}"'
                else:
                    value = constant.text if constant.type != "bool" else str(bool(constant.value)).lower()
                    word = {"byte": "int8", "char": "uint8"}.get(constant.type, constant.type)
                    yield f"{word} {name}={value}{f'  #{comment}' if mark else ''}".rstrip()
                continue
            written, name = code.split()
            base, bracket, count = written.partition("[")
            if base in uses:
                base = self.types[uses[base]].ros2
            # Bytes of ROS 1 are signed.
            base = {**MOMENTS, "byte": "int8", "char": "uint8"}.get(base, base)
            yield f"{base}{bracket}{count} {name}{f'  #{comment}' if mark else ''}".rstrip()


def _camel(name: str) -> str:
    """Return ``SensorMsgsImu`` for ``sensor_msgs/Imu``."""
    package, _, rest = name.partition("/")
    return "".join(word.capitalize() for word in package.split("_")) + rest.replace("_", "")


def paired(
    message: MessageDefinition, fields: Sequence[Ros2Field], name: str, uses: Mapping[str, Struct1to2]
) -> Struct1to2 | None:
    """Return how fields of a message of ROS 1 are those of type *name* of ROS 2; None if one has no place there.

    uses  the types of its fields, as written
    """
    by_name, pairs, only1 = {f.name: f for f in fields}, list[Pair](), list[Path]()
    renamed = NEW_FIELDS.get(name, {})
    for f in message.fields:
        new = by_name.get(renamed.get(f.name, f.name))
        if new is None:
            if f.name not in GONE.get(name, ()):
                return None
            raised = RAISED.get(name)
            if raised is None or raised[0][0] != f.name:
                only1.append((f.name,))
                continue
            path, to = raised
            inner = uses.get(f.type)
            if inner is None or to not in by_name:
                return None
            pairs.append(Pair(path, (to,)))
            only1 += [(f.name, *p.ros1) for p in inner.pairs if p.ros1 != path[1:]]
            only1 += [(f.name, *p) for p in inner.only1]
            continue
        if (f.array, f.count) != (new.array, new.count):
            return None
        inner, rule = uses.get(f.type), ""
        if inner is not None:
            if inner.ros2 != new.type:
                return None
        else:
            old_type, new_type = _plain(f.type, 1), _plain(new.type, 2)
            if name == NEW_NAMES[LOG] and f.name == "level" and (old_type, new_type) == ("int8", "uint8"):
                rule = LEVEL
            elif f.type == "byte" and new_type == "uint8":
                rule = SIGN
            elif old_type != new_type:
                return None
        pairs.append(Pair((f.name,), (new.name,), rule, inner))
    used = [pair.ros2[0] for pair in pairs]
    only2 = tuple((f.name,) for f in fields if f.name not in used)
    if fields and not pairs:
        return None
    in_order = used == [f.name for f in fields if f.name in used]
    return Struct1to2(message.name, name, tuple(pairs), tuple(only1), only2, in_order)


def _plain(word: str, generation: int) -> str:
    """Return the type of a field that is no message, in words that both generations mean alike."""
    if generation == 1:
        return {**MOMENTS, "byte": "int8", "char": "uint8"}.get(word, word)
    return {"byte": "uint8", "char": "uint8"}.get(word, word)


class _ToRos1:
    """The types of a definition of ROS 2 in ROS 1.

    types  by short name in ROS 2
    """

    def __init__(self, messages: Mapping[str, Ros2Definition], text: str, name: str) -> None:
        self._messages = messages
        self._sections = {section.name: section.text for section in split_text(text, name)} if text else {}
        self.types: dict[str, Struct1to2] = {}
        #: Definitions by name in ROS 1.
        self._texts: dict[str, str] = {}
        self._uses: dict[str, list[str]] = {}
        self._add(short_name(name), 0)

    def _add(self, name: str, depth: int) -> None:
        if name in self.types:
            return
        if name not in self._messages or depth > 64:
            raise DefinitionError(f"the definition of {name[:80]} is missing, or contains itself")
        fields = self._messages[name].fields
        for f in fields:
            if f.type == "wstring":
                raise DefinitionError("ROS 1 has no wide text")
            if f.type not in NUMBERS and f.type != "string" and f.type not in MOMENTS.values():
                self._add(f.type, depth + 1)
        self.types[name] = self._known(name, fields) or self._own(name, fields)

    def _known(self, name: str, fields: Sequence[Ros2Field]) -> Struct1to2 | None:
        """Return the type as the known one of ROS 1; None if it has other fields."""
        old = LOG if name == NEW_NAMES[LOG] else name
        entry = known.latest(old) if ros2msg.is_known(name) else None
        if entry is None:
            return None
        definition = entry.definition
        try:
            types = _ToRos2(definition).types
        except DefinitionError:
            return None
        made = types[definition.name]
        if made.ros2 != name or not self._is_as_known(made):
            return None
        for message_name, message in definition.messages.items():
            self._texts.setdefault(message_name, message.text)
            self._uses[message_name] = [*definition.uses[message_name].values()]
        return made

    def _is_as_known(self, made: Struct1to2) -> bool:
        """Return whether the fields of a type are those by which *made* was made, also those of all inner types."""
        here = self._messages.get(made.ros2)
        standard = ros2msg.parse(ros2msg.full_text(made.ros2, {}), made.ros2)[made.ros2]
        if here is None:
            return made.ros2 in MOMENTS.values()
        return here.fields == standard.fields and all(
            pair.inner is None or self._is_as_known(pair.inner) for pair in made.pairs
        )

    def _own(self, name: str, fields: Sequence[Ros2Field]) -> Struct1to2:
        package, _, rest = name.partition("/")
        old = f"{package}/{rest.removeprefix('srv/').removeprefix('action/')}"
        if old in BUILTIN or (known.latest(old) is not None and ros2msg.is_known(name)):
            old = f"{ros1msg.PACKAGE}/{_camel(old)}"
        pairs = list[Pair]()
        lines = [*self._comments(name)]
        for f in fields:
            inner = self.types.get(f.type)
            word = inner.ros1 if inner is not None else _old_word(f.type)
            brackets = f"[{'' if f.count is None else f.count}]" if f.array else ""
            lines.append(f"{word}{brackets} {f.name}")
            pairs.append(Pair((f.name,), (f.name,), "", inner))
        self._texts[old] = "".join(f"{line}\n" for line in lines or ["# no fields"])
        self._uses[old] = [pair.inner.ros1 for pair in pairs if pair.inner is not None]
        return Struct1to2(old, name, tuple(pairs))

    def _comments(self, name: str) -> Iterator[str]:
        """Yield the constants of a definition."""
        for line in self._sections.get(name, "").splitlines():
            words = line.partition("=")
            left = words[0].split()
            if words[1] and len(left) == 2 and left[0] in (*NUMBERS, "string") and "#" not in words[0]:
                value = words[2].strip()
                if left[0] == "string":
                    value = value[1:-1].replace('\\"', '"') if value[:1] in ("'", '"') else value
                else:
                    value = value.partition("#")[0].strip()
                yield f"{_old_word(left[0])} {left[1]}={value}"

    def text(self, name: str) -> str:
        """Return the concatenated definition of a type of ROS 1."""
        order, waiting = list[str](), [name]
        while waiting:
            type_name = waiting.pop(0)
            if type_name not in order:
                order.append(type_name)
                waiting += self._uses[type_name]
        return join_text(DefinitionText(type_name, self._texts[type_name]) for type_name in order)


def _old_word(word: str) -> str:
    """Return the word of ROS 1 for a type that is no message, so that all values stay."""
    words = {new: old for old, new in MOMENTS.items()}
    return {**words, "byte": "uint8", "char": "uint8"}.get(word, word)
