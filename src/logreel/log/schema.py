"""The definition of the messages of a channel, as the log contains it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from logreel.layout.layout import Layout
from logreel.layout.nodes import FixedArray, Node, Sequence, Struct

#: Values with a longer repr are counted or cut.
LONG = 100


class Brief:
    """Mixin for dataclasses with ``repr=False``: long values are counted or cut in the repr."""

    __slots__ = ()

    def __repr__(self) -> str:
        shown = (f"{one.name}={_short(getattr(self, one.name))}" for one in fields(self) if one.repr)  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(shown)})"


def _short(value: Any) -> str:
    if isinstance(value, (tuple, list, Mapping, set, frozenset)) and len(value) > 3:
        return f"<{len(value)} items>"
    text = repr(value)
    if len(text) <= LONG:
        return text
    if isinstance(value, (tuple, list, Mapping, set, frozenset)):
        return f"<{len(value)} item{'s' * (len(value) != 1)}>"
    return f"{text[:LONG]}…"


@dataclass(frozen=True, slots=True, repr=False)
class Schema(Brief):
    """A message type, as the log defines it.

    name      name of the type, such as ``vehicle_attitude`` or ``sensor_msgs/Imu``
    encoding  definition language, such as ``ulog``, ``ros1msg``
    text      the definition verbatim; empty if the log contains none
    data      a binary definition, such as compiled descriptors; else empty
    """

    name: str
    encoding: str
    text: str = ""
    data: bytes = b""

    @classmethod
    def of(cls, name: str, encoding: str, raw: bytes) -> Schema:
        """Return the Schema with the definition *raw*: text if it is UTF-8, else data."""
        try:
            return cls(name, encoding, raw.decode("utf-8"))
        except UnicodeDecodeError:
            return cls(name, encoding, "", raw)

    @property
    def raw(self) -> bytes:
        """The definition as bytes."""
        return self.data or self.text.encode("utf-8", "surrogateescape")


#: Keys that every channel has.
TOPIC, TYPE, ENCODING, UNITS = "topic", "type", "encoding", "units"
#: Key of channels of logs: the names of their lenses.
LENS = "lens"
#: Latched in the quality of service of ROS 2, which recorders store as text.
_TRANSIENT = re.compile(r"durability:\s*(1\b|transient_local)")
#: Other names of keys.
ALIASES = {"unit": UNITS, "lenses": LENS}


class Facts(Mapping[str, tuple[str, ...]]):
    """Texts by key, for conditions such as ``type=sensor_msgs/Imu``; a key may have several values.

    The keys are ``topic``, ``type`` (name of the schema), ``encoding``, ``units`` (of all fields), and those of the
    metadata. A nested entry has its path (``spec.bosdyn:grpc:service``), its own name (``bosdyn:grpc:service``) and the
    part of this after the last colon (``service``). Items of lists are values of the list's key.

    units   returns the units of the fields; called when they are first needed
    lenses  returns the names of the lenses of *channel*, values of ``lens``; None: there is no such key
    """

    def __init__(
        self,
        topic: str,
        schema: Schema | None = None,
        metadata: Mapping[str, Any] | None = None,
        units: Callable[[], Iterable[str]] = tuple,
        lenses: Callable[[Any], Iterable[str]] | None = None,
        channel: Any = None,
    ) -> None:
        self._topic, self._schema, self._metadata, self._units = topic, schema, metadata or {}, units
        self._lenses, self._channel = lenses, channel

    @cached_property
    def _texts(self) -> Mapping[str, dict[str, None]]:
        found: dict[str, dict[str, None]] = {key: {} for key in (TOPIC, TYPE, ENCODING, UNITS)}
        found[TOPIC][self._topic] = None
        if self._schema is not None:
            found[TYPE][self._schema.name] = found[ENCODING][self._schema.encoding] = None
        for path, value in _entries(self._metadata, ()):
            text = _text(value)
            for key in (".".join(path), path[-1], path[-1].rpartition(":")[2]):
                if key:
                    found.setdefault(ALIASES.get(key, key), {})[text] = None
        if self._lenses is not None:
            found.setdefault(LENS, {})
        return found

    @cached_property
    def _with_lenses(self) -> tuple[str, ...]:
        found = () if self._lenses is None else self._lenses(self._channel)
        return tuple({**self._texts[LENS], **dict.fromkeys(found)})

    @cached_property
    def _with_units(self) -> tuple[str, ...]:
        return tuple({**self._texts[UNITS], **dict.fromkeys(self._units())})

    def __getitem__(self, key: str) -> tuple[str, ...]:
        key = ALIASES.get(key, key)
        if key == UNITS:
            return self._with_units
        return self._with_lenses if key == LENS else tuple(self._texts[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def units_of(layout: Layout) -> list[str]:
    """Return the units of all fields of *layout*, without repeats, in the order of the fields."""
    found: dict[str, None] = {}
    # Trees may share parts: each node is visited once.
    seen: set[int] = set()
    nodes: list[Node] = [layout.root]
    while nodes:
        node = nodes.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Struct):
            found |= {field.unit: None for field in node.fields if field.unit}
            nodes += [field.node for field in reversed(node.fields)]
        elif isinstance(node, (FixedArray, Sequence)):
            nodes.append(node.item)
    return list(found)


def is_marked_latched(ch: Any) -> bool:
    """Return whether the log marks *ch* as latched."""
    profiles = ch.metadata.get("offered_qos_profiles")
    return bool(ch.metadata.get("latching")) or (
        isinstance(profiles, str) and _TRANSIENT.search(profiles) is not None
    )


def _entries(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield path and value of everything in nested mappings and lists, except None."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _entries(item, (*path, str(key)))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _entries(item, path)
    elif value is not None and path:
        yield path, value


def _text(value: Any) -> str:
    """Return the text of a value; of bool as in JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "backslashreplace")
    return str(value)


def channel_key(topic: str, schema: Schema, metadata: Mapping[str, Any]) -> Hashable:
    """Return a key that is equal for channels of several logs which become one channel."""
    return topic, schema, metadata.get("md5sum")


def free_name(topic: str, taken: Collection[str]) -> str:
    """Return *topic*, followed by ``[1]``, ``[2]`` … if the name is among those *taken*."""
    names = itertools.chain([topic], (f"{topic}[{n}]" for n in itertools.count(1)))
    return next(name for name in names if name not in taken)
