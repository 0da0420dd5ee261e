"""Open several files as one log: the parts of one recording."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from logreel.errors import Problem, UsageError
from logreel.index.joined import JoinedIndex, Member
from logreel.io.platform import pool
from logreel.io.source import Readable
from logreel.log.joined_log import CONNECTION, JoinedLog, clock_shifts, header_map, joined_metadata, scan_of
from logreel.log.log import Channel, Log
from logreel.log.part_checks import (
    RecordingFacts,
    differences,
    duplicates,
    natural_key,
    overlaps,
    problems_between,
)
from logreel.log.scan import ChannelInfo
from logreel.registry.format import Format
from logreel.registry.registry import formats


def open_parts(
    what: Sequence[Readable | Log],
    open_one: Callable[[Any], Log],
    align: str | None,
    anyway: bool = False,
) -> Log:
    """Return one Log of several files; a single file is the Log of that file.

    open_one       opens one file
    align, anyway  as for ``open_log``

    Raises UsageError for files of different formats, clocks or recordings.
    """
    seen: set[object] = set()
    names, repeated = list[Readable | Log](), list[str]()
    for one in what:
        is_path = isinstance(one, (str, os.PathLike))
        key = os.path.realpath(one) if is_path else id(one)  # type: ignore[arg-type]
        if key in seen:
            repeated.append(os.fspath(one) if is_path else str(getattr(one, "name", "<bytes>")))  # type: ignore[arg-type]
        else:
            names.append(one)
        seen.add(key)
    if len(what) == 1 and not isinstance(names[0], Log):
        return open_one(names[0])
    # Plug-ins are loaded once, not by each thread.
    known = formats()
    with pool(os.cpu_count() or 1) as threads:
        logs = list(threads.map(lambda one: one if isinstance(one, Log) else open_one(one), names))
    try:
        found = join(logs, align, known, "note" if anyway else "refuse")
    except UsageError:
        for log in logs:
            if log not in what:
                log.close()
        raise
    found.scan.problems[:0] = [_counted_once(name, name) for name in repeated]
    return found


def _counted_once(name: str, other: str) -> Problem:
    text = f"{name} was given more than once" if name == other else f"{name} has the same content as {other}"
    return Problem("duplicate-part", 0, 0, False, f"{text}: its messages count once")


def join(
    logs: Sequence[Log],
    align: str | None,
    known: Mapping[str, Format],
    strangers: Literal["refuse", "note", "ignore"] = "ignore",
) -> JoinedLog:
    """Return one Log of open logs, ordered by their start; see ``open_parts``.

    strangers  what to do about logs of different recordings
    """
    logs = sorted(
        (part for log in logs for part in log.parts),
        key=lambda log: natural_key(log.name),
    )
    _check_formats(logs, known)
    same = dict(duplicates(logs))
    problems = [_counted_once(logs[n].name, logs[other].name) for n, other in same.items()]
    for n, other in same.items():
        logs[other].source.copies.append(logs[n].name)
    logs = [log for n, log in enumerate(logs) if n not in same]
    _check_clocks(logs, align)
    shifts = clock_shifts(logs, align)
    order = sorted(range(len(logs)), key=lambda n: (logs[n].start is None, (logs[n].start or 0) + shifts[n]))
    parts, shifts = [logs[n] for n in order], [shifts[n] for n in order]
    if align == "utc" or (align is None and not any(shifts)):
        shifts = clock_shifts(parts, align)
        reference = 0
    else:
        # The other clocks were shifted to that of the first log by name.
        reference = order.index(0)
    between = partial(problems_between, tuple(parts), tuple(shifts))
    if (share := known[parts[0].format].share) is not None:
        parts = list(share(parts, shifts))
    notes: list[str] = []
    if strangers != "ignore":
        identity = known[parts[0].format].identity
        reasons = list(differences([RecordingFacts.of(log, identity) for log in parts], align is not None))
        if reasons and strangers == "refuse":
            raise UsageError(
                f"these files are of different recordings: {'; '.join(text for _, text in reasons)}",
                hint="open each as a log of its own, or insist with anyway=True",
            )
        notes = [text for _, text in reasons]
        # Clocks are compared by what is between the files.
        problems += [
            Problem(code, 0, 0, False, f"joined anyway: {text}")
            for code, text in reasons
            if code != "part-clock"
        ]
    infos, members, values = _joined_channels(parts, known[parts[0].format])
    index = JoinedIndex(
        [log.index for log in parts],
        [
            [
                Member(part, parts[part][topic].number, one)
                for (part, topic), one in zip(some, own, strict=True)
            ]
            for some, own in zip(members, values, strict=True)
        ],
        shifts,
        overlaps(parts, shifts),
    )
    scan = scan_of(parts, shifts, index, infos, problems, reference, notes)
    return JoinedLog(parts, shifts, scan, members, between)


def _check_formats(logs: Sequence[Log], known: Mapping[str, Format]) -> None:
    other = next((log for log in logs if log.format != logs[0].format), None)
    if other is not None:
        one, two = known[logs[0].format].title, known[other.format].title
        raise UsageError(
            f"{logs[0].name} is a {one}, {other.name} a {two}: the files of one log have one format",
            hint="merge them into an MCAP first, by logreel.merge",
        )


def _check_clocks(logs: Sequence[Log], align: str | None) -> None:
    kinds = {"boot": "since boot", "start": "since its start", "unix": "since 1970"}
    other = next((log for log in logs if log.epoch != logs[0].epoch), None)
    if align is None and other is not None:
        text = f"{logs[0].name} counts {kinds[logs[0].epoch]}, {other.name} {kinds[other.epoch]}"
        raise UsageError(
            f"{text}: their clocks have to be aligned",
            hint="merge them first, by logreel.merge(align='utc'), or 'start' or a length of time",
        )


def _joined_channels(
    parts: Sequence[Log], fmt: Format
) -> tuple[list[ChannelInfo], list[list[tuple[int, str]]], list[list[dict[str, Any]]]]:
    """Return the channels of one log of *parts*, their channels in these, and new values of side columns there.

    Channels are one if a merge would write them as one; see ``Format.channel_key``.
    """
    alike: dict[Any, list[tuple[int, Channel]]] = {}
    for n, log in enumerate(parts):
        for ch in log.channels.values():
            alike.setdefault(fmt.channel_key(ch.topic, ch.schema, ch.metadata), []).append((n, ch))
    infos, members, values = list[ChannelInfo](), list[list[tuple[int, str]]](), list[list[dict[str, Any]]]()
    taken: set[str] = set()
    for some in alike.values():
        first = some[0][1]
        name = first.topic if first.topic not in taken else fmt.free_name(first.topic, taken)
        taken.add(name)
        connected = all(CONNECTION in ch.log.index.rules[ch.number].side_columns for _, ch in some)
        metadata = joined_metadata([ch.metadata for _, ch in some]) if connected else first.metadata
        maps = [header_map(ch.metadata, metadata) if connected else None for _, ch in some]
        infos.append(replace(first.log.scan.channels[first.number], topic=name, metadata=metadata))
        members.append([(n, ch.topic) for n, ch in some])
        values.append([{} if one is None else {CONNECTION: one} for one in maps])
    return infos, members, values
