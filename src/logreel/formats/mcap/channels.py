"""Channel records as channels of a log, with names that are unique, and metadata that is more than text."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from logreel.formats.mcap.definitions import Decoders
from logreel.formats.mcap.found import FoundFile
from logreel.formats.mcap.records import Channel
from logreel.log.scan import ChannelInfo
from logreel.log.schema import Schema

#: Key of what is no text in the metadata of a channel, and name of the record of what a log was converted from.
OWN = "logreel"
ENCODING = "message_encoding"
#: Says of a channel that its log had no definition of its messages, a standard one that was added.
ADDED = "definition_added"
#: Says of a channel in what language its schema would be, had its log a definition of its messages.
UNDEFINED = "undefined_in"
NO_SCHEMA = Schema("", "")


def infos(file: FoundFile, decoders: Decoders) -> tuple[dict[int, int], list[ChannelInfo]]:
    """The number of each channel id, and channels as the model wants them, by id: writers number them as they come.

    Further channels of a topic are marked by an instance number.
    """
    channels = [file.channels[number] for number in sorted(file.channels)]
    names, made = unique(channel.topic for channel in channels), []
    for name, channel in zip(names, channels, strict=True):
        schema = file.schemas.get(channel.schema, NO_SCHEMA)
        if channel.schema and channel.schema not in file.schemas:
            file.note("schema", 0, 0, False, f"{channel.topic}: there is no schema {channel.schema}")
        told = channel_metadata(channel) | ({"topic": channel.topic} if name != channel.topic else {})
        if told.get(ADDED) is True:
            told.pop(ADDED)
            schema = Schema(schema.name, schema.encoding)
        if isinstance(told.get(UNDEFINED), str):
            schema = Schema(schema.name, told.pop(UNDEFINED))
        stated = str(told.get("md5sum", "*"))
        schema, md5 = decoders.given(name, channel, schema, stated)
        told |= {"md5sum": md5} if md5 != stated else {}
        find = partial(decoders.find, channel, schema)
        made.append(
            ChannelInfo(name, schema, lambda find=find: find()[0], told, lambda find=find: find()[1])  # type: ignore[misc]
        )
    return {channel.id: number for number, channel in enumerate(channels)}, made


def unique(names: Iterable[str]) -> list[str]:
    """The same names, of which repeated ones end in ``[1]``, ``[2]`` …"""
    wanted = list(names)
    taken, found = set(wanted), list[str]()
    used = set[str]()
    for name in wanted:
        n, one = 0, name
        while one in used or (n and one in taken):
            n += 1
            one = f"{name}[{n}]"
        used.add(one)
        found.append(one)
    return found


def channel_metadata(channel: Channel) -> dict[str, Any]:
    """The metadata of a channel: text as it stands there, and what was no text when logreel wrote it."""
    told: dict[str, Any] = {name: value for name, value in channel.metadata.items() if name != OWN}
    return told | from_json(channel.metadata.get(OWN, "")) | {ENCODING: channel.encoding}


def metadata_to_text(told: Mapping[str, Any]) -> dict[str, str]:
    """The way back: metadata as a channel record holds it."""
    text = {name: value for name, value in told.items() if isinstance(value, str) and name != ENCODING}
    other = {name: value for name, value in told.items() if not isinstance(value, str)}
    return text | ({OWN: to_json(other)} if other else {})


def to_json(values: Any) -> str:
    """Plain values as JSON; bytes become an object with their base64."""
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
    """The values again; none where the text is not what ``dumped`` gives."""
    try:
        found = json.loads(text or "{}", object_hook=_hook)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _hook(found: dict[str, Any]) -> Any:
    if found.keys() != {"$base64"}:
        return found
    return base64.b64decode(str(found["$base64"]))
