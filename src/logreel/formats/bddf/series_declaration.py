"""Declarations of series from channels that are to be written."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from logreel.errors import DefinitionError, UsageError
from logreel.formats.bddf.content_types import (
    BEFORE,
    DESCRIPTORS,
    JSON,
    JSON_SCHEMA,
    PROTOBUF,
    schema_in_annotations,
)
from logreel.formats.bddf.descriptors import (
    POD_TYPES,
    Identifier,
    MessageType,
    PodType,
    Series,
    StructType,
)
from logreel.formats.bddf.encode_blocks import series_descriptor
from logreel.formats.bddf.records import MAX_DESCRIPTOR
from logreel.formats.bddf.scan_builder import topic_of
from logreel.log.joined_channels import channel_key
from logreel.log.scan import ORIGINAL
from logreel.log.schema import Schema

CHANNEL = "bosdyn:channel"
#: The only annotation without an organization that the format defines.
UNITS = "units"
_POD = re.compile(rf"({'|'.join(POD_TYPES[1:])})((\[\d{{1,10}}\])*)")
_MIME = re.compile(r"[\w.+-]+/[\w.+-]+(\s*;.*)?", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{16}")


def declare(topic: str, schema: Schema, metadata: Mapping[str, Any]) -> Series:
    """Return the declaration of a channel, without a series number; hashes of struct members are from *metadata*.

    Raises DefinitionError or UsageError for a channel that a file cannot hold.
    """
    if not topic or topic.startswith("~"):
        raise UsageError(f"{topic!r} cannot be the topic of a series: it must not be empty or begin with '~'")
    series = Series(
        identifier=Identifier(
            str(metadata.get("series_type", CHANNEL)),
            _text_dict(metadata.get("spec", {CHANNEL: topic}), "spec"),
        ),
        type=_type(topic, schema, metadata),
        annotations=_text_dict(metadata.get("annotations", {}), "annotations"),
        names=tuple(map(str, metadata.get("additional_indexes", ()))),
        description=str(metadata.get("description", "")),
    )
    if schema.encoding == JSON and schema.text and schema_in_annotations(series.annotations) is None:
        series = replace(series, annotations={JSON_SCHEMA: schema.text, **series.annotations})
    if schema.encoding == "protobuf" and schema.raw and "series_type" not in metadata:
        own = {DESCRIPTORS: base64.b64encode(schema.raw).decode()}
        series = replace(series, annotations={**own, **series.annotations})
    if ORIGINAL in metadata and "series_type" not in metadata:
        series = replace(series, annotations={BEFORE: str(metadata[ORIGINAL]), **series.annotations})
    series = with_topic(series, topic)
    series = replace(series, hash=series.identifier.hash)
    check_descriptor(lambda: series_descriptor(series), f"channel {topic!r:.60}")
    return series


def series_key(topic: str, schema: Schema, metadata: Mapping[str, Any]) -> Hashable:
    """Return a key that is equal for channels of several logs that become one series."""
    try:
        return identity(declare(topic, schema, metadata))
    except DefinitionError:
        # A channel that cannot be declared is refused when it is added.
        return channel_key(topic, schema, metadata)


def check_keys(annotations: Iterable[str]) -> None:
    """Raise UsageError for reserved keys of annotations: those without an organization, except ``units``."""
    for key in annotations:
        if (key != UNITS and not key.partition(":")[1]) or key.startswith(":"):
            text = "keys without an organization are reserved by the format: call it 'ORGANIZATION:NAME'"
            raise UsageError(f"annotation {key!r:.60}: {text}")


def check_descriptor(encode: Callable[[], bytes], what: str) -> None:
    """Raise UsageError if the descriptor that *encode* returns is one that readers would refuse."""
    try:
        size = len(encode())
    except UnicodeEncodeError as error:
        raise UsageError(f"{what}: what it says of itself is no text: {error.reason}") from None
    if size > MAX_DESCRIPTOR:
        raise UsageError(
            f"{what}: what it says of itself has {size} bytes; at most {MAX_DESCRIPTOR} are read"
        )


def with_topic(series: Series, topic: str) -> Series:
    """Return *series* with a spec that readers show as *topic*; suffixes such as ``[1]`` are added by readers."""
    name = topic_of(series)
    if re.fullmatch(re.escape(name) + r"(\[\d+\])*", topic):
        return series
    spec = {**series.identifier.spec, CHANNEL: topic}
    return replace(series, identifier=Identifier(series.identifier.type, spec))


def _text_dict(given: object, what: str) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise UsageError(f"metadata {what!r} is a dict of texts")
    return {str(key): str(value) for key, value in given.items()}


def _type(
    topic: str, schema: Schema, metadata: Mapping[str, Any]
) -> MessageType | PodType | StructType | None:
    if schema.encoding == "bddf":
        return _bddf_type(topic, schema, metadata)
    content = PROTOBUF if schema.encoding == "protobuf" else schema.encoding
    if not _MIME.fullmatch(content) and metadata.get("content_type") != content:
        text = "needs a schema of encoding 'protobuf', 'bddf' or a content type such as 'text/plain'"
        raise DefinitionError(f"channel {topic!r} of a BDDF file {text}")
    # A series without a type name is shown under its content type.
    name = str(metadata.get("type_name", "")) if schema.name == content else schema.name
    return MessageType(content, name, bool(metadata.get("is_metadata")))


def _bddf_type(topic: str, schema: Schema, metadata: Mapping[str, Any]) -> PodType | StructType | None:
    if schema.name == "struct":
        return StructType(_members(topic, metadata.get("members", {})))
    if schema.name.startswith("unknown"):
        dimension = metadata.get("dimension")
        return None if dimension is None else PodType("", tuple(map(int, dimension)))
    found = _POD.fullmatch(schema.name)
    if found is None:
        text = "a type such as 'float64' or 'float32[3]', or 'struct'"
        raise DefinitionError(
            f"channel {topic!r}: {schema.name!r:.60} is no type of plain values: expected {text}"
        )
    dimension = tuple(int(n) for n in re.findall(r"\d+", found[2]))
    if any(n >= 1 << 32 for n in dimension):
        raise DefinitionError(f"channel {topic!r}: a dimension of {max(dimension)}")
    return PodType(found[1], dimension)


def _members(topic: str, given: object) -> dict[str, int]:
    if not isinstance(given, Mapping) or not all(_HASH.fullmatch(str(value)) for value in given.values()):
        raise DefinitionError(
            f"struct {topic!r}: metadata 'members' names a channel added before for each member"
        )
    return {str(name): int(str(value), 16) for name, value in given.items()}


def identity(series: Series) -> Hashable:
    """Return a key that is equal for series that readers treat as one."""
    kind = series.type
    parts: Hashable = kind if not isinstance(kind, StructType) else tuple(sorted(kind.members.items()))
    texts = (series.identifier.spec, series.annotations)
    return series.identifier.type, parts, series.names, *(tuple(sorted(one.items())) for one in texts)


class MemberHashes:
    """Hashes of struct members in the new file, by topic and by the hash that they have in the source."""

    def __init__(self) -> None:
        self._new: dict[str, str] = {}

    def add(self, series: Series, metadata: Mapping[str, Any]) -> None:
        """Add a declared series; ``hash`` in its *metadata* is the hash that it has in the source."""
        new = f"{series.hash:016x}"
        self._new.setdefault(topic_of(series), new)
        self._new[str(metadata.get("hash", new))] = new

    def resolved(self, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return *metadata* of a struct with the hashes that its members have in the new file."""
        members = metadata.get("members")
        if not isinstance(members, Mapping):
            return metadata
        return {
            **metadata,
            "members": {name: self._new.get(str(one), one) for name, one in members.items()},
        }
