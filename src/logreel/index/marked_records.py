"""Records that begin with a mark and a kind, and state no size: for authors of formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from logreel.errors import UsageError
from logreel.index.block_table import BlockBuilder
from logreel.kernels import framed

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Kinds of records that a byte can tell apart.
KINDS = 256


class MarkedRecords:
    """Records that begin with the same mark and a kind (u8) and state no size: it follows from the kind.

    Compiled code follows them, and stops at kinds that are not declared, or declared to be read by the caller.

    mark    1 to 7 bytes
    blocks  the BlockBuilder that collects them, with ``add``, ``drop_last``, ``last``, ``finish``
    """

    def __init__(self, data: NDArray[np.uint8], mark: bytes) -> None:
        if not 0 < len(mark) < 8:
            raise UsageError(f"a mark of {len(mark)} bytes: 1 to 7 are possible")
        self._data, self.head = data, len(mark) + 1
        bits = 8 * len(mark)
        # Multiplied by this, the kind is in the upper eight bits of the key, which is mark and kind.
        multiplier, mask = 1 << 56 - bits, (1 << bits + 8) - 1
        mask, multiplier = (n - (1 << 64) * (n >> 63) for n in (mask, multiplier))
        row = (self.head, 0, 0, self.head, len(mark), 0, mask, self.head, multiplier, 56)
        self._spec = np.array([row], framed.SPEC)
        self._mark = int.from_bytes(mark, "little")
        self._shift, self._bytes = bits, np.frombuffer(mark, np.uint8)
        self._tags = np.tile(np.array([(framed.REFUSE, 0, 0, 0, 255)], framed.TAG), KINDS)
        self._keys = np.tile(np.array([(framed.UNDECLARED, 0, 0, 0)], framed.KEY), KINDS)
        self.blocks = BlockBuilder(data, self._spec, (self.head, self.head))

    def declare(self, record_kind: int, size: int, channel: int | None) -> None:
        """Accept records of a kind with payloads of *size* bytes as messages of *channel*; None: stop at them."""
        action = framed.STOP if channel is None else framed.DATA
        self._tags[record_kind] = action, size, size, 0, 0 if channel is not None else 255
        if channel is not None:
            key = self._mark | record_kind << self._shift
            self._keys[record_kind] = channel, size, size, key - (1 << 64) * (key >> 63)
            self.blocks.declare(channel + 1)

    def walk(self, pos: int) -> int:
        """Collect messages from *pos*; return the end of the data, or where the caller must decide."""
        return self.blocks.walk(pos, len(self._data), self._tags, self._keys)[1]

    def find(self, pos: int, need: int = 3) -> int:
        """Return the first position from *pos* on where *need* declared records follow each other; else -1.

        Fewer are enough where they lead to the end of the data.
        """
        end = len(self._data)
        while 0 <= pos < end:
            pos = framed.resync(self._data, pos, end, need, self._spec, self._tags, self._keys, end)
            # Of records to stop at, only the kind was compared.
            if pos < 0 or np.array_equal(self._data[pos : pos + len(self._bytes)], self._bytes):
                return pos
            pos += 1
        return -1
