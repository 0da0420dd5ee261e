"""Side columns: numbers stored outside payloads, one per message, repeated for each of its records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from logreel.dataclass import replace
from logreel.index.gather import PayloadRange
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64, repeated
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Struct
from logreel.layout.nodes import Sequence as Records
from logreel.log.scan import PayloadDecoder

if TYPE_CHECKING:
    from logreel.layout.arrow import Decoded
    from logreel.log.log import Channel

#: Returns one array of n numbers per column for the messages with these n row numbers.
Values = Callable[[MessageIndex, I64], Sequence[NDArray[Any]]]


class LayoutDecoder:
    """Decodes payloads that a Layout describes.

    layout  the Layout of the payloads; subclasses that convert values have None
    """

    layout: Layout | None

    def __init__(self, layout: Layout) -> None:
        self.layout, self._decode = layout, layout.decoder()

    def decode_batch(self, index: MessageIndex, layout: Layout, piece: PayloadRange, rows: I64) -> Decoded:
        """See PayloadDecoder."""
        from logreel.layout.arrow import decode_variable
        from logreel.layout.numpy_columns import NumpyFields

        return decode_variable(NumpyFields(layout), piece.data, piece.offset, piece.offset + piece.size)

    def decode_message(self, index: MessageIndex, data: memoryview, row: int | None) -> dict[str, Any]:
        """See PayloadDecoder."""
        return self._decode(data)


def lost_side_columns(ch: Channel) -> list[str]:
    """Return a sentence that names the side columns lost if only the payloads of *ch* are written; [] if none."""
    names = getattr(ch.decoder, "logged", ())
    text = (
        f"{', '.join(names)} of channel {ch.topic!r} left out: these numbers are stored outside its messages"
    )
    return [text] if names else []


def payload_layout(ch: Channel) -> Layout | None:
    """Return the Layout of the payloads of *ch*, without side columns; None if no Layout describes them.

    Raises DefinitionError if the schema cannot be used.
    """
    body = ch.decoder
    if body is None:
        return ch.layout
    while isinstance(body, SideColumnsDecoder):
        body = body.body
    return body.layout if isinstance(body, LayoutDecoder) else None


def with_members(layout: Layout, members: Sequence[Field]) -> Layout:
    """Return *layout* with *members* before those of its records."""
    record = Struct((*members, *layout.record.fields))
    return Layout(
        Records(record, layout.root.width) if isinstance(layout.root, Records) else record, layout.name
    )


class SideColumnsDecoder:
    """Decoder of a channel whose Layout is ``with_members(…)``: side columns, then the columns of *body*.

    names   names of the side columns
    values  function that returns their numbers for chosen messages
    body    decoder of the payload
    logged  names of the side columns that cannot be derived from anything else in the log
    """

    logged: tuple[str, ...] = ()

    def __init__(self, names: Sequence[str], values: Values, body: PayloadDecoder) -> None:
        self._names, self._values, self.body = names, values, body

    def decode_batch(self, index: MessageIndex, layout: Layout, piece: PayloadRange, rows: I64) -> Decoded:
        """See PayloadDecoder."""
        import numpy as np

        from logreel.layout.numpy_columns import Column, type_of

        fields = layout.record.fields
        k = len(self._names)
        inner = Struct(fields[k:])
        root = Records(inner, layout.root.width) if isinstance(layout.root, Records) else inner
        got = self.body.decode_batch(index, Layout(root, layout.name), piece, rows)
        wanted = [i for i, f in enumerate(fields[:k]) if f.name]
        if not wanted:
            return got
        values = self._values(index, rows if got.kept is None else rows[got.kept])
        arrays = []
        for i in wanted:
            numbers = values[i] if got.records is None else repeated(values[i], got.records)
            arrays.append(Column(type_of(fields[i].node), len(numbers), np.ascontiguousarray(numbers)))
        return replace(got, arrays=[*arrays, *got.arrays])

    def decode_message(self, index: MessageIndex, data: memoryview, row: int | None) -> dict[str, Any]:
        """See PayloadDecoder; without *row* the side columns are unknown and left out."""
        import numpy as np

        body_fields = self.body.decode_message(index, data, row)
        if row is None:
            return body_fields
        values = self._values(index, np.array([row], np.int64))
        return {name: value[0].item() for name, value in zip(self._names, values, strict=True)} | body_fields
