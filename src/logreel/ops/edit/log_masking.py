"""Masks applied to what a log holds besides messages: metadata, parameters, attachments, topics, definitions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from logreel.dataclass import dataclass, field, replace
from logreel.io.arrays import I64
from logreel.log.scan import Schema
from logreel.ops.edit.masks import IdentityMask, Mask, TimeMask, content, masked
from logreel.ops.edit.place_mask import PlaceMask

DAY = 86400 * 10**9
#: Metadata of channels that definitions and formats need as they are.
_STRUCTURE = {
    *(
        "md5sum",
        "type",
        "message_definition",
        "topic",
        "hash",
        "content_type",
        "type_name",
        "latching",
        "packet",
    ),
    *("series_type", "type_id", "version", "multi_id", "axes", "connections", "offered_qos_profiles"),
}
_COMMENT = re.compile(rb"(?:#|//)[^\r\n]*|/\*.*?\*/", re.DOTALL)
_DESCRIPTION = re.compile(rb'"(?:description|title|\$comment|\$id)"\s*:\s*"(?:[^"\\]|\\.)*"')


@dataclass(slots=True)
class LogMasking:
    """All masks of one log; implements ``write.log_copier.Masking``.

    changes  kind, the word for what changed and its name, in the order of changes
    """

    masks: Sequence[Mask]
    changes: dict[tuple[str, str, str], None] = field(default_factory=dict)

    @property
    def identity(self) -> IdentityMask | None:
        """The mask of identities, if there is one."""
        return next((item for item in self.masks if isinstance(item, IdentityMask)), None)

    @property
    def place(self) -> PlaceMask | None:
        """The mask of places, if there is one."""
        return next((item for item in self.masks if isinstance(item, PlaceMask)), None)

    @property
    def offset(self) -> int:
        """Nanoseconds that are added to times."""
        return next((item.offset for item in self.masks if isinstance(item, TimeMask)), 0)

    def value(self, name: str, value: Any) -> Any:
        """See Masking."""
        for mask in self.masks:
            new = masked(mask, name, value)
            if new != value:
                self.changes[mask.kind, "entry", name] = None
                value = new
        return value

    def name(self, what: str, name: str) -> str:
        """See Masking."""
        raw = name.encode("utf-8", "surrogateescape")
        for mask in self.masks:
            new = named(mask, raw) if what == "topic" else mask.text(raw)
            if new != raw:
                self.changes[mask.kind, f"name of {what}", name] = None
                raw = new
        return raw.decode("utf-8", "surrogateescape")

    def content(self, name: str, data: bytes) -> bytes:
        """See Masking."""
        for mask in self.masks:
            new = content(mask, data)
            if new != data:
                self.changes[mask.kind, "attachment", name] = None
                data = new
        return data

    def time(self, time: int) -> int:
        """See Masking."""
        return max(0, time + self.offset) if time > 0 else time

    def moved_times(self, values: I64) -> I64:
        """Return whole numbers, of which those that are times of the log in any unit move."""
        mask = next((item for item in self.masks if isinstance(item, TimeMask)), None)
        if mask is None or mask.start is None or mask.end is None:
            return values
        made = values.copy()
        for unit in (1, 1000, 10**6, 10**9):
            rows = (values > (mask.start - DAY) // unit) & (values < (mask.end + DAY) // unit)
            made[rows] += mask.offset // unit
        return made

    def channel_metadata(self, topic: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Return the metadata of a channel; what formats need stays."""
        made: dict[str, Any] = {}
        for name, value in metadata.items():
            if name in _STRUCTURE:
                made[name] = value
            elif name == "headers" and isinstance(value, Sequence):
                made[name] = [self.channel_metadata(topic, item) for item in value]
            else:
                made[name] = self.value(name, value)
        return made

    def schema(self, topic: str, schema: Schema) -> Schema:
        """Return the definition of messages with comments and descriptions masked."""
        if not schema.text:
            return schema
        pattern = _DESCRIPTION if schema.text.lstrip()[:1] == "{" else _COMMENT
        raw = schema.raw
        for mask in self.masks:
            new = pattern.sub(lambda match, mask=mask: _in_comment(mask, match[0]), raw)  # type: ignore[misc]
            if new != raw:
                self.changes[mask.kind, "comments of the definition of", topic] = None
                raw = new
        return schema if raw == schema.raw else replace(schema, text=raw.decode("utf-8", "replace"))


def _in_comment(mask: Mask, text: bytes) -> bytes:
    return mask.text(text).replace(b"\n", b" ") if b"\n" not in text else mask.text(text)


def named(mask: Mask, name: bytes) -> bytes:
    """Return the name of a topic or frame without what *mask* hides."""
    return mask.name(name) if isinstance(mask, IdentityMask | PlaceMask) else mask.text(name)
