"""Decoding of JSON payloads to columns and plain values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from logreel.errors import DamagedError, DefinitionError, Problem
from logreel.index.message_index import MessageIndex
from logreel.index.ranges import PayloadRange
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Rest, Struct
from logreel.log.payload_decoder import decoded, payloads
from logreel.schemas.json.shapes import Fit, shape

if TYPE_CHECKING:
    from logreel.layout.arrow import Decoded

#: Layout of messages without known fields: the whole text.
TEXT = Layout(Struct((Field("json", Rest(text=True)),)), "json")


class JsonDecoder:
    """Decodes payloads that are JSON objects.

    schema  their JSON Schema; without properties, tables have one column ``json`` with the whole text

    Raises DefinitionError for a schema that is no JSON, or describes too many fields.
    """

    def __init__(self, schema: str = "") -> None:
        self.layout, fit, self.has_untyped = TEXT, None, False
        try:
            node, fit, self.has_untyped = shape(json.loads(schema)) if schema.strip() else (None, None, False)
        except (ValueError, RecursionError) as error:
            raise DefinitionError(f"its JSON schema cannot be used: {error}") from None
        self._fit: Fit | None = None
        if isinstance(node, Struct):
            self.layout, self._fit = Layout(node, "json"), fit

    @property
    def has_fields(self) -> bool:
        """True if the schema names fields."""
        return self._fit is not None

    def decode_batch(self, index: MessageIndex, layout: Layout, piece: PayloadRange, rows: I64) -> Decoded:
        """Decode a batch of payloads; payloads that are not JSON objects are skipped (see PayloadDecoder).

        Members whose values do not have the type of the schema are null.
        """
        if self._fit is None:
            return decoded(
                layout, [{"json": d.decode("utf-8", "replace")} for d in payloads(piece)], [], len(rows)
            )
        found: list[dict[str, Any]] = []
        bad: list[tuple[int, str]] = []
        for i, data in enumerate(payloads(piece)):
            try:
                found.append(self._fit(self._object(data)))
            except (ValueError, RecursionError) as error:
                bad.append((i, f"no JSON object: {error}"))
        return decoded(layout, found, bad, len(rows))

    def decode_message(self, index: MessageIndex, data: memoryview, row: int | None) -> dict[str, Any]:
        """Decode one payload; a value that is no object becomes ``{"json": value}``."""
        try:
            value = json.loads(bytes(data))
        except (ValueError, RecursionError) as error:
            text = f"no JSON: {error}"
            raise DamagedError(Problem("payload", 0, len(data), True, text)) from None
        return value if isinstance(value, dict) else {"json": value}

    def _object(self, data: bytes) -> dict[str, Any]:
        value = json.loads(data)
        if not isinstance(value, dict):
            raise ValueError(f"it is {type(value).__name__}")
        return value
