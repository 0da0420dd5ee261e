"""Recovery of damaged logs, with a list of losses."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from logreel.errors import LogError, Problem, UsageError
from logreel.index.merge import in_file_order
from logreel.io.append_file import ACTIVE
from logreel.io.output_stream import Destination
from logreel.io.source import FILE
from logreel.log.log import Log
from logreel.ops.rewrite.engine import rewrite
from logreel.ops.rewrite.folders import each_to_folder
from logreel.ops.rewrite.parts import part_of, whole_log
from logreel.ops.rewrite.target import CopyOptions, Rewritten, Target, is_folder_name, log_output_of
from logreel.ops.selection import Selection, check_keywords, keywords
from logreel.registry.open import as_open_log, read_itself

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable

#: Number of losses with times.
TIMED = 1000
#: Number of messages before and after a loss whose times are used.
NEAR = 3


@dataclass(frozen=True, slots=True)
class Loss:
    """A part of the damaged file that could not be read.

    start_ns, end_ns  latest time of the last three messages before it, and earliest time of the first three after it;
                      None if there are none
    """

    code: str
    offset: int
    size: int
    start_ns: int | None
    end_ns: int | None
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class Recovered(Rewritten):
    """Result of a recovery; *lost* lists the losses in file order."""

    lost: tuple[Loss, ...]

    @property
    def lost_bytes(self) -> int:
        """Bytes of the damaged file that could not be read."""
        return sum(loss.size for loss in self.lost)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``recover --json``."""
        data = Rewritten.as_dict(self)
        return data | {"lost_bytes": self.lost_bytes, "lost": [asdict(loss) for loss in self.lost]}


@keywords(CopyOptions, Selection, Target)
def recover(
    src: Openable | Log,
    dst: Destination | None = None,
    *,
    format: str | None = None,
    selection: Selection | None = None,
    definitions: Definitions = (),
    **options: Unpack[CopyOptions],
) -> Recovered:
    """Write all complete messages and definitions of a damaged log as an undamaged log.

    dst      path; its suffix may be that of another format, such as ``x.mcap``; None: the name without ``.active``, for
             an unfinished recording; with a slash at the end a folder, into which each file of a folder is recovered;
             or a binary file object, to which the new log is copied when it is verified
    format   for a file object: the format of the new log; None: that of the damaged log
    selection, definitions, options  as for ``slice``

    The new file gets its name only after it was read back without damage. The damaged file stays unchanged. Raises as
    ``slice`` does.
    """
    check_keywords(recover, options)
    chosen = Selection.of(selection, options)
    with as_open_log(src, definitions) as opened:
        if len(opened.parts) > 1 and isinstance(dst, str | os.PathLike) and is_folder_name(os.fspath(dst)):
            if chosen.is_part:
                raise UsageError("a folder is recovered as it is: choose from the new one by slice")
            return _folder_recovered(opened, os.fspath(dst), options)
        # An index may not list all messages.
        log = read_itself(opened).reread()
        path, stream, name = log_output_of(_finished_name(log.name) if dst is None else dst, format)
        is_folder = stream is None and is_folder_name(path)
        if is_folder and log is not opened:
            # What describes the files, they do not say themselves.
            stated = log.metadata
            log = log.derive(metadata=lambda: {**opened.metadata, **stated})
        target = Target.of(
            path, options, stream=stream, format=name, thorough=True, foreign=not is_folder, repairs=True
        )
        part = part_of(log, chosen)
        try:
            done = rewrite([part], target)
        except LogError:
            if len(part.log.segments) < 2 or (os.path.lexists(target.path) and not target.force):
                raise
            # Without the lost bytes between them, the records of several logs may be read in another way.
            done = rewrite([part_of(log, chosen)], target, by_time=True)
        # Reading the messages may have added problems.
        lost = losses(log, [problem for problem in log.problems if problem.lost])
        return Recovered(done.path, done.size, done.channels, done.notes, done.skipped, lost)


def _folder_recovered(opened: Log, dst: str, options: CopyOptions) -> Recovered:
    """Recover each file of a folder into a file of a new one, which is described anew."""
    lost = [
        Loss(p.code, p.offset, p.size, None, None, p.text) for p in opened.problems if p.lost and not p.file
    ]

    def write(log: Log, target: Target) -> Rewritten:
        log = read_itself(log).reread()
        done = rewrite([whole_log(log)], target)
        here = losses(log, [problem for problem in log.problems if problem.lost])
        lost.extend(replace(loss, text=f"{log.name}: {loss.text}") for loss in here)
        return done

    target = Target.of(dst, options, thorough=True, foreign=True, repairs=True)
    done = each_to_folder(opened, target, write)
    return Recovered(done.path, done.size, done.channels, done.notes, done.skipped, tuple(lost))


def _finished_name(name: str) -> str:
    if not name.endswith(ACTIVE):
        raise UsageError(f"say where to write: only for names that end in {ACTIVE} that is clear", path=name)
    return name.removesuffix(ACTIVE)


def losses(log: Log, problems: Sequence[Problem]) -> tuple[Loss, ...]:
    """Return *problems* of a log of one file with the times around them."""
    if not problems:
        return ()
    table = log.index.table
    place_of = log.index.chunks.place_of
    rows = zip(table.base.tolist(), table.chunk.tolist(), strict=True)
    places = np.array([base if chunk == FILE else place_of(chunk) for base, chunk in rows], np.int64)
    ends = np.zeros((len(places) + 1, len(log.index.rules)), np.int64)
    for n, rule_set in enumerate(log.index.rules):
        if rule_set.synthetic is None:
            first, last = table.run(n)
            ends[1:, n] = np.cumsum(last - first)
    timed = []
    for n, p in enumerate(problems):
        block = int(places.searchsorted(p.offset, side="right"))
        start, end = _around(log, ends, block, p.offset) if n < TIMED else (None, None)
        timed.append(Loss(p.code, p.offset, p.size, start, end, p.text))
    return tuple(timed)


def _around(log: Log, ends: np.ndarray, block: int, offset: int) -> tuple[int | None, int | None]:
    """Return the latest time of the last messages before *offset* and the earliest of the first after it, near *block*.

    Several messages are used because the last one may be torn, with a wrong time.
    """
    lo, hi = max(0, block - 2), min(len(ends) - 1, block + 1)
    # Synthetic channels have no messages in *ends*.
    near = np.flatnonzero(ends[hi] > ends[lo]).tolist()
    rows = {c: slice(int(ends[lo, c]), int(ends[hi, c])) for c in near}
    before, after = list[int](), list[int]()
    for batch in in_file_order(log.index, rows):
        for number in np.unique(batch.chunk).tolist():
            here = batch.chunk == number
            place = log.index.chunks.place_of(number)
            at = batch.offset[here] if number == FILE else np.full(int(here.sum()), place)
            cut, times = int(at.searchsorted(offset, side="right")), batch.time[here]
            before = (before + times[max(0, cut - NEAR) : cut].tolist())[-NEAR:]
            after = (after + times[cut : cut + NEAR].tolist())[:NEAR]
    return max(before, default=None), min(after, default=None)
