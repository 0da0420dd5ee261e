"""Find the message kind of a channel to be written, and check payloads against it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, UsageError
from logreel.formats.koblenz.definitions import (
    RAW,
    UNCOMPRESSED,
    USUAL_VERSION,
    MessageType,
    registered_types,
    type_id,
)
from logreel.formats.koblenz.kinds import Kind
from logreel.formats.koblenz.records import MAX_ID, MAX_VERSION
from logreel.index.rules import FieldAt
from logreel.io.arrays import I64
from logreel.kernels import layout as kernel
from logreel.layout.layout import Layout
from logreel.layout.program import compile_layout
from logreel.log.schema import Schema

_VERSION = re.compile(r"[^/]*@(\d{1,5})(/.*)?", re.DOTALL)
_ID = re.compile(r"0x([0-9A-Fa-f]{1,8})")
#: The field ``compressed`` of a picture.
_COMPRESSED = FieldAt(4, 4)


def kind_of(
    topic: str,
    schema: Schema,
    metadata: Mapping[str, Any],
    own: Mapping[int, MessageType] = MappingProxyType({}),
) -> Kind:
    """Return type and version of a channel.

    Both come from *metadata* (``type_id``, ``version``); else the type is the class that *schema* names, and the
    version that of the topic or of the description. Raises DefinitionError for an invalid type, UsageError for a topic
    that reading would not give: topics follow from types.

    own  types that the log describes, by id
    """
    if schema.encoding != "koblenz":
        raise DefinitionError(f"channel {topic!r} of a Koblenz log needs a schema of encoding 'koblenz'")
    number = _ID.fullmatch(str(metadata.get("type_id", schema.name)))
    kind_id = int(number[1], 16) if number else type_id(schema.name)
    if not 0 < kind_id < MAX_ID:
        raise DefinitionError(f"channel {topic!r}: {schema.name!r:.60} cannot be the name of a message type")
    known = registered_types().get(kind_id) or own.get(kind_id)
    stated = _VERSION.fullmatch(topic)
    usual = known.version if known else USUAL_VERSION
    version = int(metadata.get("version", stated[1] if stated else usual))
    if not 0 <= version < MAX_VERSION:
        raise DefinitionError(f"channel {topic!r}: there is no version {version}")
    kind = Kind(kind_id, version, known)
    several = kind.is_described and known is not None and known.instance
    if not (topic.startswith(f"{kind.name}/") if several else topic == kind.name):
        due = f"'{kind.name}/' and a sensor" if several else repr(kind.name)
        raise UsageError(f"{topic!r}: a Koblenz log names channels by their types; this one is {due}")
    return kind


def layout_of(kind: Kind, topic: str) -> Layout:
    """Return the Layout that encodes fields of a channel."""
    return UNCOMPRESSED if topic.endswith("@uncompressed") else kind.layout


def misfits(kind: Kind, data: NDArray[np.uint8], start: I64, size: I64) -> NDArray[np.bool_]:
    """Return bool[n]: whether the content of each payload ends elsewhere than the payload."""
    layout = kind.layout
    bad = size < layout.measure.least
    if layout is RAW:
        return bad
    described = ~bad
    if kind.is_described and kind.known and "compressed" in kind.known.instance:
        described[described] = _COMPRESSED.read(data, start[described]) != 0
    some, ends = start[described], (start + size)[described]
    program = compile_layout(layout)
    status = np.zeros(len(some), np.uint8)
    kernel.count(data, some, ends, program.ops, np.zeros(len(program.columns), np.int64), status)
    bad[described] = status != kernel.OK
    return bad
