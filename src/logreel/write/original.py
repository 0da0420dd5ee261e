"""What a channel was before a conversion to another format, kept in its metadata so that it can be converted back."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from logreel.log.log import Channel
from logreel.log.scan import ORIGINAL
from logreel.log.schema import Schema


@dataclass(frozen=True, slots=True)
class Original:
    """A channel of a log of the format called *format*.

    restamped  whether messages got other times than those in their fields (``Scan.logged_times``)
    """

    format: str
    topic: str
    schema: Schema
    metadata: Mapping[str, Any]
    restamped: bool = False

    def text(self) -> str:
        """Return JSON text of it; metadata that JSON cannot hold are left out."""
        raw = self.schema.raw
        definition = (
            {"data": base64.b64encode(raw).decode()} if self.schema.data else {"definition": self.schema.text}
        )
        return json.dumps(
            {
                "format": self.format,
                "topic": self.topic,
                "type": self.schema.name,
                "encoding": self.schema.encoding,
                **definition,
                "metadata": {name: value for name, value in self.metadata.items() if _is_plain(value)},
                **({"restamped": True} if self.restamped else {}),
            },
            separators=(",", ":"),
        )


def original_of(ch: Channel) -> Original | None:
    """Return what *ch* was, by its metadata, or else by that of its log; None if it was not converted."""
    text = ch.metadata.get(ORIGINAL, ch.log.metadata.get(f"{ORIGINAL}/{ch.topic}"))
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    words = [found.get(name) for name in ("format", "topic", "type", "encoding")]
    metadata, definition = found.get("metadata"), found.get("definition", "")
    if not all(isinstance(word, str) for word in (*words, definition)) or not isinstance(metadata, dict):
        return None
    data = b""
    if isinstance(found.get("data"), str):
        try:
            data = base64.b64decode(found["data"], validate=True)
        except ValueError:
            return None
    fmt, topic, name, encoding = (str(word) for word in words)
    return Original(
        fmt, topic, Schema(name, encoding, definition, data), metadata, found.get("restamped") is True
    )


def _is_plain(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError, RecursionError):
        return False
