"""Folders with a file per picture or point cloud, named by its time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from logreel.errors import UnsupportedError
from logreel.log.times import shift_of
from logreel.outputs.registry import Job, Output, SkipCounter, readers

if TYPE_CHECKING:
    from logreel.log.log import Channel


@dataclass(frozen=True, slots=True)
class MediaItem:
    """Content of one file.

    suffix  suffix of the file name
    parts   bytes to write, one after the other
    lacks   description of content that the log lost; empty if it is complete
    """

    suffix: str
    parts: Sequence[bytes]
    lacks: str = ""


def write_items(folder: Path, job: Job, ch: Channel, output: Output) -> None:
    """Write each item that the lens of *ch* reads to a file in *folder*, which is created for the first one.

    Items that cannot be written are skipped and reported to *job*. The files are not synced to disk.
    """
    encode = output.write
    name, shift = time_namer(), shift_of(job.log, job.utc) or 0
    bad, short, done = SkipCounter(), SkipCounter(), 0
    for content in chain.from_iterable(read(ch, job.start, job.end) for read in readers(ch, output.reads)):
        done += 1
        try:
            item: MediaItem = encode(content)
        except UnsupportedError as error:
            bad.add(error.text)
        else:
            folder.mkdir(exist_ok=True)
            with open(folder / (name(content.time + shift) + item.suffix), "xb") as out:
                out.writelines(item.parts)
            job.rows[ch.topic] = job.rows.get(ch.topic, 0) + 1
            if item.lacks:
                short.add(item.lacks)
        job.advance(1)
    # A lens may combine several messages into one cloud.
    job.advance(max(0, len(ch) - done))
    job.skipped += bad.sentences(output.item, f"of {ch.topic!r} left out")
    job.skipped += short.sentences(output.item, f"of {ch.topic!r} not whole")


def time_namer() -> Callable[[int], str]:
    """Return a function from a time (ns) to a unique file name; names sort like times from 0 on."""
    seen: dict[int, int] = {}

    def name(time: int) -> str:
        seen[time] = before = seen.get(time, -1) + 1
        text = f"{time:019d}" if time >= 0 else f"_{-time:019d}"
        return f"{text}_{before:06d}" if before else text

    return name
