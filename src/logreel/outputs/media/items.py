"""A folder per channel with a file per picture or cloud, named by its time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from logreel.errors import UnsupportedError
from logreel.log.times import shift_of
from logreel.outputs.job import Job, LeftOut
from logreel.outputs.registry import Output, readers

if TYPE_CHECKING:
    from logreel.log.log import Channel


@dataclass(frozen=True, slots=True)
class Item:
    """What becomes one file.

    suffix  of its name
    parts   what is written, one after the other
    lacks   what the log should have held of it and did not, or nothing
    """

    suffix: str
    parts: Sequence[bytes]
    lacks: str = ""


def write_items(folder: Path, job: Job, ch: Channel, output: Output) -> None:
    """Fill *folder*, which is made if there is anything, with what the lens of *ch* gives one by one.

    What cannot be written is left out; *job* is told. The files need not be on disk yet.
    """
    encode = output.writer()
    name, shift = namer(), shift_of(job.log, job.utc) or 0
    bad, short, done = LeftOut(), LeftOut(), 0
    for one in chain.from_iterable(read(ch, job.start, job.end) for read in readers(ch, output.reads)):
        done += 1
        try:
            item: Item = encode(one)
        except UnsupportedError as error:
            bad.add(error.text)
        else:
            folder.mkdir(exist_ok=True)
            with open(folder / (name(one.time + shift) + item.suffix), "xb") as out:
                out.writelines(item.parts)
            job.rows[ch.topic] = job.rows.get(ch.topic, 0) + 1
            if item.lacks:
                short.add(item.lacks)
        job.went(1)
    # A lens may make one cloud of several messages.
    job.went(max(0, len(ch) - done))
    job.skipped += bad.told(output.item, f"of {ch.topic!r} left out")
    job.skipped += short.told(output.item, f"of {ch.topic!r} not whole")


def namer() -> Callable[[int], str]:
    """A function that gives each time a name, different ones for equal times; names sort like times from 0 on."""
    seen: dict[int, int] = {}

    def name(time: int) -> str:
        seen[time] = before = seen.get(time, -1) + 1
        text = f"{time:019d}" if time >= 0 else f"_{-time:019d}"
        return f"{text}_{before:06d}" if before else text

    return name
