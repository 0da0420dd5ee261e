"""Layouts and decoders of the messages of an MCAP, by message encoding and schema encoding."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from logreel.dataclass import replace
from logreel.errors import DefinitionError, Problem
from logreel.formats.mcap.found import OWN, FoundFile
from logreel.formats.mcap.records import ChannelRecord
from logreel.io.source import Source
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Rest, Struct
from logreel.log.scan import ChannelInfo, Noted, PayloadDecoder, Schema
from logreel.registry.registry import layout_by_format
from logreel.schemas.languages import Hints, language_of

#: Layout of messages without a usable definition.
RAW = Layout(Struct((Field("data", Rest()),)), "raw")


class Decoders:
    """Layouts and PayloadDecoders of one file's channels; each unusable definition is added to *problems* once."""

    def __init__(self, source: Source, problems: list[Problem]) -> None:
        self._source, self._problems = source, problems
        self._hints = Hints(tuple(source.definitions), note=self._note)
        self._noted = Noted()
        self._decoded: dict[int, tuple[Layout, PayloadDecoder | None]] = {}

    def given(self, topic: str, channel: ChannelRecord, schema: Schema, md5: str) -> tuple[Schema, str]:
        """Return schema and md5 of the channel named *topic*: those of the file, completed by what the user gave.

        Raises UsageError if the given type is no type name of the language.
        """
        type_name = self._source.types.get(topic)
        if type_name is None and not self._source.definitions:
            return schema, md5
        language = language_of(schema, channel.encoding, schemaless=not schema.encoding)
        if language is None:
            return schema, md5
        return language.given(schema, type_name, replace(self._hints, checksum=md5))

    def find(self, channel: ChannelRecord, schema: Schema) -> tuple[Layout, PayloadDecoder | None]:
        """Return Layout and PayloadDecoder of a channel's messages; None: the Layout describes their bytes."""
        if channel.id not in self._decoded:
            try:
                self._decoded[channel.id] = self._make(channel, schema)
            except DefinitionError as error:
                self._note(f"{channel.topic}: {error.text}; its messages are raw bytes")
                self._decoded[channel.id] = RAW, None
        return self._decoded[channel.id]

    def _make(self, channel: ChannelRecord, schema: Schema) -> tuple[Layout, PayloadDecoder | None]:
        language = language_of(schema, channel.encoding, schemaless=True)
        if language is not None:
            hints = replace(self._hints, checksum=channel.metadata.get("md5sum", "*"))
            layout = language.layout(schema, hints)
            if layout is not None:
                return layout, None
            decoder = language.decoder(schema, hints)
            if decoder is not None:
                return decoder.layout, decoder
        return layout_by_format(schema, channel.topic) or RAW, None

    def _note(self, text: str) -> None:
        problem = Problem("definition", 0, 0, False, text)
        self._noted.add(self._problems, problem)


ENCODING = "message_encoding"
#: Metadata of a channel whose converted log had no definition of its messages: True if a standard one was added …
ADDED = "definition_added"
#: … or the encoding of the missing schema.
UNDEFINED = "undefined_in"
NO_SCHEMA = Schema("", "")


def channel_infos(
    file: FoundFile, decoders: Decoders, ids: Iterable[int] | None = None
) -> tuple[dict[int, int], list[ChannelInfo]]:
    """Return the channel number of each channel id, and the ChannelInfos in the order of *ids*, or by id for None.

    The second, third … channel of a topic is named ``topic[1]``, ``topic[2]`` …
    """
    channels = [file.channels[number] for number in (sorted(file.channels) if ids is None else ids)]
    names, made = unique(channel.topic for channel in channels), []
    for name, channel in zip(names, channels, strict=True):
        schema = file.schemas.get(channel.schema, NO_SCHEMA)
        if channel.schema and channel.schema not in file.schemas:
            file.note("schema", 0, 0, False, f"{channel.topic}: there is no schema {channel.schema}")
        metadata = channel_metadata(channel) | ({"topic": channel.topic} if name != channel.topic else {})
        if metadata.get(ADDED) is True:
            metadata.pop(ADDED)
            schema = Schema(schema.name, schema.encoding)
        if isinstance(metadata.get(UNDEFINED), str):
            schema = Schema(schema.name, metadata.pop(UNDEFINED))
        stated = str(metadata.get("md5sum", "*"))
        schema, md5 = decoders.given(name, channel, schema, stated)
        metadata |= {"md5sum": md5} if md5 != stated else {}
        find = partial(decoders.find, channel, schema)
        made.append(
            ChannelInfo(name, schema, lambda find=find: find()[0], metadata, lambda find=find: find()[1])  # type: ignore[misc]
        )
    return {channel.id: number for number, channel in enumerate(channels)}, made


def unique(names: Iterable[str]) -> list[str]:
    """Return the names with ``[1]``, ``[2]`` … appended to repeated ones."""
    wanted = list(names)
    taken, distinct = set(wanted), list[str]()
    used = set[str]()
    # The last number of each name: counting from 0 again is quadratic where all names are the same.
    last = dict[str, int]()
    for name in wanted:
        n = last.get(name, 0)
        distinct_name = f"{name}[{n}]" if n else name
        while distinct_name in used or (n and distinct_name in taken):
            n += 1
            distinct_name = f"{name}[{n}]"
        last[name] = n
        used.add(distinct_name)
        distinct.append(distinct_name)
    return distinct


def channel_metadata(channel: ChannelRecord) -> dict[str, Any]:
    """Return the metadata of a channel: text, values other than text that logreel wrote, and the message encoding."""
    text: dict[str, Any] = {name: value for name, value in channel.metadata.items() if name != OWN}
    return text | from_json(channel.metadata.get(OWN, "")) | {ENCODING: channel.encoding}


def metadata_to_text(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return metadata as a channel record contains it, the inverse of ``channel_metadata``."""
    text = {name: value for name, value in metadata.items() if isinstance(value, str) and name != ENCODING}
    other = {name: value for name, value in metadata.items() if not isinstance(value, str)}
    return text | ({OWN: to_json(other)} if other else {})


def to_json(values: Any) -> str:
    """Return plain values as JSON; bytes become ``{"$base64": …}``."""
    return json.dumps(values, default=_default, ensure_ascii=False, separators=(",", ":"))


def _default(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"$base64": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "item"):
        return value.item()
    return list(value)


def from_json(text: str) -> dict[str, Any]:
    """Return the values of JSON from ``to_json``; an empty dict if the text is no JSON object."""
    try:
        value = json.loads(text or "{}", object_hook=_hook)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _hook(values: dict[str, Any]) -> Any:
    if values.keys() != {"$base64"}:
        return values
    return base64.b64decode(str(values["$base64"]))
