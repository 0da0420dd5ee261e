"""What can be written into a Koblenz log: which type a channel is of, and whether payloads are of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, UsageError
from logreel.formats.koblenz.definitions import RAW, UNCOMPRESSED, USUAL_VERSION, registered_types, type_id
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
#: Where a picture says whether it is of the described kind.
_COMPRESSED = FieldAt(4, 4)


def kind_of(topic: str, schema: Schema, metadata: Mapping[str, Any]) -> Kind:
    """Type and version of a channel.

    They are what *metadata* says (``type_id``, ``version``), else those of the class that *schema* names, in the
    version that the topic or the description of the type has. Raises DefinitionError for what is no type, UsageError
    for a topic that reading would not give: it follows from the type.
    """
    if schema.encoding != "koblenz":
        raise DefinitionError(f"channel {topic!r} of a Koblenz log needs a schema of encoding 'koblenz'")
    number = _ID.fullmatch(str(metadata.get("type_id", schema.name)))
    kind_id = int(number[1], 16) if number else type_id(schema.name)
    if not 0 < kind_id < MAX_ID:
        raise DefinitionError(f"channel {topic!r}: {schema.name!r:.60} cannot be the name of a message type")
    known = registered_types().get(kind_id)
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
    """What fields of a channel are encoded by."""
    return UNCOMPRESSED if topic.endswith("@uncompressed") else kind.layout


def misfits(kind: Kind, data: NDArray[np.uint8], start: I64, size: I64) -> NDArray[np.bool_]:
    """bool[n]: payloads whose content does not end where they do."""
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
