"""Read the messages of a Koblenz log from front to back into a block table, and step over damage.

The reader is incremental: ``feed`` reads the complete messages that the file has more than before, ``finish`` takes the
rest as the end of the file.

The compiled walker collects messages of declared kinds, and returns what it cannot accept to this module, which decides
by evidence. Messages whose content does not end where their size says are found after a pass over the file, and refused
in the next one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator
from functools import lru_cache

import numpy as np

from logreel.dataclass import replace
from logreel.errors import Problem
from logreel.formats.koblenz.definitions import RAW
from logreel.formats.koblenz.framing import HEADERS_AFTER_KNOWN, Found, Framing, Variant
from logreel.formats.koblenz.records import HEAD, Head, is_end, read_head
from logreel.index.block_table import CUT, END, BlockBuilder
from logreel.io.source import Source
from logreel.kernels import layout as kernel
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Padding, Skip, Struct
from logreel.layout.program import Program, compile_layout
from logreel.log.scan import ENOUGH, IncrementalReader, UndecidedError

#: Largest number of passes over a file because contents and sizes do not agree.
MAX_PASSES = 16
#: A message that needs more bytes than this is one whose size is damaged.
LONGEST = 64 << 20


def read(source: Source, variant: Variant) -> Found:
    """Read a whole file."""
    refused: set[int] = set()
    raw: set[tuple[int, int]] = set()
    for _ in range(MAX_PASSES):
        content = Reader(source, variant, refused, raw).finish()
        wrong = [head for head, _ in disagreeing(content)]
        if not wrong:
            return content
        # A version far from the described one may have other fields.
        others = {(head.type, head.version) for head in wrong if not content.framing.is_believed(head)}
        raw |= others
        refused.update(head.pos for head in wrong if (head.type, head.version) not in others)
    return _withoutdisagreeing(content)


def disagreeing(content: Found, since: int = 0) -> Iterator[tuple[Head, int]]:
    """Yield the messages whose content does not end where their size says, and their rows in the block table.

    since  position of the first message to be checked
    """
    framing = content.framing
    for number in content.blocks.live():
        message_kind = content.kinds[number]
        exact = message_kind.layout.size is not None and not message_kind.longer
        if exact or message_kind.layout is RAW:
            continue
        offset = content.blocks.offsets(number)
        first = int(offset.searchsorted(since))
        offset = offset[first:]
        program = _without_columns(message_kind.layout)
        status = np.zeros(len(offset), np.uint8)
        counts = np.zeros(len(program.columns), np.int64)
        data, ends = framing.source.data, offset + content.sizes(offset)
        kernel.count(data, offset, ends, program.ops, counts, status)
        doubtful = np.flatnonzero(status != kernel.OK)
        if len(doubtful):
            _, places = content.blocks.rows(number)
            for row in doubtful.tolist():
                head = read_head(framing.source, int(offset[row]) - HEAD)
                if head is not None and not framing.agrees(head):
                    yield head, int(places[first + row])


@lru_cache(64)
def _without_columns(layout: Layout) -> Program:
    """Return the Program of a Layout of the same bytes without columns: only their end counts."""
    node = Skip(layout.root) if layout.size is None else Padding(layout.size)
    return compile_layout(Layout(Struct((Field("", node),))))


def _withoutdisagreeing(content: Found) -> Found:
    """Return *content* without the messages that still disagree, with a problem for each of them."""
    lost, entries = [], []
    for head, entry in disagreeing(content):
        size = head.end(content.framing.size_reading) - head.pos
        text = f"{size} bytes of a message whose content does not fit its size"
        lost.append(Problem("garbage", head.pos, size, True, text))
        entries.append(entry)
    blocks = content.blocks.without(np.array(entries, np.int64))
    return replace(content, blocks=blocks, problems=content.problems + lost)


class Reader(IncrementalReader):
    """Reads one file; no messages begin at the positions *refused*.

    pos  position after the last message that was read
    """

    def __init__(
        self,
        source: Source,
        variant: Variant,
        refused: Collection[int] = (),
        raw: Collection[tuple[int, int]] = (),
    ) -> None:
        self._source, self.pos = source, variant.first
        self._framing = Framing(source, variant.size_reading, variant.types, variant.mark, variant.named, raw)
        self._refused, self._places = refused, sorted(refused)
        self._size_reading = variant.size_reading
        self._blocks = BlockBuilder(source.data, self._framing.spec, (HEAD, HEAD))
        self._blocks.declare(len(self._framing.kinds))
        self._end: int | None = None
        self._problems = list(variant.problems)

    def _extend(self, source: Source) -> None:
        self._source = self._framing.source = source
        self._blocks.extend(source.data)

    def finish(self) -> Found:
        """Read the rest as the end of the file, and return everything that was found."""
        self._end = None
        self._is_final = True
        self._read()
        kinds = self._framing.kinds
        blocks, _ = self._blocks.finish(len(kinds))
        return Found(self._framing, kinds, blocks, self._end, self._problems)

    def found(self) -> Found:
        """Return what was found so far; it does not change when reading goes on."""
        kinds = list(self._framing.kinds)
        blocks, _, _ = self._blocks.snapshot(len(kinds))
        known = len(self._problems)
        if self._end is not None:
            self._end_of_log(self._end)
        elif self.pos < self._source.size:
            self._report_lost(self.pos, self._source.size)
        problems = list(self._problems)
        del self._problems[known:]
        return Found(self._framing, kinds, blocks, self._end, problems)

    def _read(self) -> None:
        """Read messages from ``pos`` on, up to one that is not complete, the end mark, or the end of the file."""
        while self.pos < self._source.size and self._end is None:
            if self.pos in self._refused:
                self.pos = self._recover(self.pos)
            elif self._walk() != END:
                if not self._is_final and self._is_incomplete(self.pos):
                    break
                self.pos = self._decide(self.pos)

    def _walk(self) -> int:
        """Collect messages from ``pos`` on, up to one that the walker does not accept; return why it stopped."""
        source, framing = self._source, self._framing
        places, size = self._places, source.size
        next_one = bisect_right(places, self.pos)
        limit = places[next_one] if next_one < len(places) else size
        why, self.pos = self._blocks.walk(self.pos, limit, framing.tags, framing.keys)
        head = read_head(source, self.pos)
        if why == CUT and head is not None and limit < head.end(self._size_reading) <= size:
            # The message contains a refused position.
            why, self.pos = self._blocks.walk(
                self.pos, head.end(self._size_reading), framing.tags, framing.keys
            )
        return why

    def _is_incomplete(self, pos: int) -> bool:
        """Return whether the end mark is at *pos*, or a message that the file does not have to its end."""
        size = self._source.size
        if is_end(self._source, pos):
            self._end = pos if size - pos >= 4 else None
            return True
        head = read_head(self._source, pos)
        is_cut = head is None or (
            head.is_plausible(self._size_reading) and head.end(self._size_reading) > size
        )
        if is_cut and size - pos > LONGEST:
            raise UndecidedError
        return is_cut

    def _problem(self, code: str, pos: int, stop: int, lost: bool, text: str) -> None:
        self._problems.append(Problem(code, pos, stop - pos, lost, text))

    # ------------------------------------------------------------------------------------------- decisions

    def _decide(self, pos: int) -> int:
        """Decide about the bytes at *pos*, which the walker does not accept; return where to go on."""
        source, framing = self._source, self._framing
        if is_end(source, pos):
            return self._end_of_log(pos)
        head = read_head(source, pos)
        if head is None or not head.is_plausible(self._size_reading):
            return self._recover(pos)
        after, message_kind = head.end(self._size_reading), framing.kind_of(head)
        new = message_kind is None and head.mark == framing.mark
        if not (framing.leads_on(after, HEADERS_AFTER_KNOWN) or (new and framing.is_blank(after))):
            return self._recover(pos)
        if head.mark != framing.mark:
            return self._invalid(head, after)
        if message_kind is None and framing.declare(head):
            self._blocks.declare(len(framing.kinds))
            self._blocks.follow(framing.spec)
            return pos
        if message_kind is not None and framing.is_longer(head):
            text = f"{message_kind.name}: messages are longer than version {message_kind.version} is"
            text += "; the first fields are read"
            self._problem("longer", pos, after, False, text)
            framing.allow_longer(message_kind)
            self._blocks.follow(framing.spec)
            return pos
        return self._recover(pos)

    def _end_of_log(self, pos: int) -> int:
        """Note the end of the log at *pos*; return the size of the file."""
        size = self._source.size
        if size - pos < 4:
            self._problem(
                "truncated", pos, size, True, f"the file ends inside a message, {size - pos} bytes of it"
            )
        else:
            self._end = pos
            rest = self._framing.search(pos + 4, size)
            if rest >= 0:
                text = f"messages lie behind the end mark, the first at byte {rest}; they are not read"
                self._problem("after end", pos + 4, size, False, text)
        return size

    def _invalid(self, head: Head, after: int) -> int:
        """Step over a message without the valid mark if the rest of it is sound; return where to go on."""
        message_kind = self._framing.kind_of(head)
        if message_kind is None or self._framing.content_end(head) < 0:
            return self._recover(head.pos)
        text = f"{message_kind.name}: a message that is not marked as valid (0x{head.mark:02X})"
        self._problem("invalid", head.pos, after, True, text)
        return after

    # ---------------------------------------------------------------------------------------------- damage

    def _recover(self, pos: int) -> int:
        """Report the bytes from *pos* on that are no messages; return where the next message begins."""
        if not self._is_final and self._source.size - pos < ENOUGH:
            raise UndecidedError
        framing, size = self._framing, self._source.size
        before = read_head(self._source, self._blocks.last) if self._blocks.last >= 0 else None
        hit = -1
        if before is not None and before.end(self._size_reading) == pos and not framing.is_exact(before):
            # The damage may be in the size of the message before: sound messages inside it prove that.
            hit = framing.search(before.pos + 1, pos - 1)
            if hit >= 0:
                self._blocks.drop_last()
                pos = before.pos
        if hit < 0:
            hit = framing.search(pos + 1, size)
        self._blocks.last = -1
        stop = hit if hit >= 0 else size
        self._report_lost(pos, stop)
        return stop

    def _report_lost(self, pos: int, stop: int) -> None:
        head, size = read_head(self._source, pos), stop - pos
        if not self._source.data[pos:stop].any():
            self._problem("zeros", pos, stop, True, f"{size} bytes of zeros where messages should be")
        elif stop < self._source.size:
            self._problem("garbage", pos, stop, True, f"{size} bytes that are no sound message")
        elif head is None:
            self._problem(
                "truncated", pos, stop, True, f"the file ends inside the header of a message, {size} bytes"
            )
        elif (
            head.mark == self._framing.mark
            and head.is_plausible(self._size_reading)
            and head.end(self._size_reading) > stop
        ):
            message_kind = self._framing.kind_of(head)
            what = message_kind.name if message_kind else f"0x{head.type:08X}"
            need = head.end(self._size_reading) - pos
            text = f"the file ends inside a message: {what} needs {need} bytes, {size} are there"
            self._problem("truncated", pos, stop, True, text)
        else:
            self._problem("garbage", pos, stop, True, f"{size} bytes at the end that are no sound message")
