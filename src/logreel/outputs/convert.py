"""Converting a log to another kind of file, chosen by the suffix."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, Unpack

from logreel.errors import LogError, UsageError
from logreel.io.atomic_file import exists, keep_sources, target_of
from logreel.io.output_stream import Destination
from logreel.log.joined_log import JOINED, JoinedLog
from logreel.log.log import Log
from logreel.log.scan import LATIN_1
from logreel.log.source_files import decrypted_notes, inputs_of
from logreel.log.times import Length, interval, shift_of, utc_shift
from logreel.log.topic_fields import check_fields, fields_by_topic
from logreel.log.topic_match import listed
from logreel.meaning.notes import METADATA, metadata_of
from logreel.meaning.notes import notes as notes_on
from logreel.ops.query.align import Alignment
from logreel.ops.rewrite.engine import NewChannel, NewLog, Transform, rewrite
from logreel.ops.rewrite.parts import Part, select_part, whole_log
from logreel.ops.rewrite.target import (
    LOG,
    UTC,
    CopyOptions,
    Rewritten,
    Target,
    WindowsWritten,
    check_names,
    checked_clock,
    file_of,
    format_to_write,
    is_folder_name,
    offset_for,
    output_of,
)
from logreel.ops.selection import Selection, check_keywords, keywords
from logreel.outputs.registry import (
    CSV_WITHOUT_FORMULAS,
    PARQUET_WITH_STRUCTS,
    POSE,
    Job,
    Output,
    Shape,
    channels_for,
    find_output,
)
from logreel.outputs.write import (
    LINES,
    Converted,
    Written,
    one_channel,
    one_folder,
    one_for_all,
    one_table,
    one_video,
)
from logreel.registry.open import as_log_to_copy
from logreel.registry.open_parts import join
from logreel.registry.registry import formats
from logreel.write.log_copier import original_of

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable
    from logreel.log.topic_fields import FieldsByTopic
    from logreel.meaning.notes import Note
    from logreel.ops.query.windows import OnsetWindow
    from logreel.ops.rewrite.proof import Ledger
    from logreel.ops.rewrite.transformed import Changes, Edit, Migrate

#: The output that can be written with structs (*flatten* False).
NESTED = ".parquet"
#: The output with *names*.
MCAP = ".mcap"
#: The output whose text a spreadsheet may run (*safe_csv*).
CSV = ".csv"
#: Names of the channels of a ULog in an MCAP: those of this project, and those of the mcap tool.
NAMES = ("logreel", "mcap")
#: Layouts of tables, and programs for which a layout is written beside the output.
LAYOUTS = ("wide", "long")
PROGRAMS = ("foxglove", "plotjuggler", "rerun")


class RenderingOptions(TypedDict, total=False):
    """Members of a Rendering as keyword arguments."""

    utc: bool
    interpolate: bool
    flatten: bool
    safe_csv: bool
    layout: str
    align: str | None
    rate: str | float | None
    clock: str | None
    tolerance: Length | None
    frames: str | None
    names: str


class ConvertOptions(RenderingOptions, CopyOptions, total=False):
    """What to convert, how it looks, and how it is written, as keyword arguments."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """How messages become rows of tables, and what their times are.

    utc       True: UTC times
    interpolate  True: spread the times of the records in a message evenly up to the next message; only for tables
    flatten   ``x.parquet``: one column per member of a struct, ``pose.position.x``; False: structs
    safe_csv  ``x.csv``: put ``'`` in front of text that a spreadsheet would run as a formula
    layout    ``wide``: a column per field; ``long``: one table of all channels with a row per value; for ``x.parquet``,
              ``x.csv``, ``x.arrow``, ``x.ndjson``. Beside a log ``foxglove`` or ``plotjuggler``, beside ``x.rrd``
              ``rerun``: also write a layout for this program, named as the output with another suffix
    align     ``previous`` or ``nearest``: one table of all channels with a row per time, for the same outputs;
              *rate*, *clock* and *tolerance* as for ``logreel.align``
    clock     with *align*: the channel with the times of the rows. For an MCAP: the clock of its times, ``utc`` for
              Unix time or ``log`` for the clock of the source; None: UTC if it is known, with *raw* the clock of the
              source
    frames    ``x.tum``, ``x.kitti``, ``x.euroc``: the poses of one frame in another one, ``map:base_link``, from
              transforms; None: the best trajectory of the channels
    names     of a ULog as ``x.mcap``: ``mcap`` for topics, schemas, profile and metadata as foxglove/mcap#1751 has them
    """

    utc: bool = False
    interpolate: bool = False
    flatten: bool = True
    safe_csv: bool = False
    layout: str = "wide"
    align: str | None = None
    rate: str | float | None = None
    clock: str | None = None
    tolerance: Length | None = None
    frames: str | None = None
    names: str = NAMES[0]

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Return the Rendering whose members are among *options*."""
        return cls(**{name: options[name] for name in RenderingOptions.__annotations__ if name in options})

    def alignment(self, is_log: bool) -> Alignment | None:
        """Return the Alignment, None without *align*; raises UsageError for other options without one.

        is_log  the clock is that of a log
        """
        clock = None if is_log else self.clock
        if self.align is not None:
            return Alignment(self.align, self.rate, clock, self.tolerance)
        if (self.rate, clock, self.tolerance) != (None, None, None):
            raise UsageError(
                "a rate, a clock and a tolerance are for tables aligned in time",
                hint='choose how with align="previous" or "nearest"',
            )
        return None

    def applied(self, output: Output, is_one_table: bool) -> Output:
        """Return *output* as it is written; raises UsageError if it cannot be as wanted."""
        if self.interpolate and output.shape is not Shape.TABLES and not is_one_table:
            raise UsageError(
                f"{output.suffix} has no rows whose times could be spread",
                hint="leave out interpolate=True",
            )
        if not self.flatten:
            if output.suffix != NESTED:
                raise UsageError(
                    f"only {NESTED} is written with or without structs, not {output.suffix}",
                    hint="leave out flatten=False",
                )
            output = PARQUET_WITH_STRUCTS
        if self.safe_csv:
            if output.suffix != CSV:
                raise UsageError(
                    f"{output.suffix} holds no formulas, only {CSV} may",
                    hint="leave out safe_csv=True",
                )
            output = CSV_WITHOUT_FORMULAS
        if self.frames is not None and output.item != POSE:
            raise UsageError(
                f"{output.suffix} is no trajectory of one frame in another one", hint="leave out frames="
            )
        if self.names not in NAMES:
            raise UsageError(f"there are no names={self.names!r}; known: {', '.join(NAMES)}")
        if self.names != NAMES[0] and output.suffix != MCAP:
            raise UsageError(
                f"only {MCAP} has the names of a ULog, not {output.suffix}", hint="leave out names="
            )
        if self.utc and output.shape is Shape.LOG:
            raise UsageError(f"{output.suffix} has times of its own", hint="leave out utc=True")
        return output


@keywords(ConvertOptions, Selection, Rendering, Target)
def convert(
    src: Openable | Log,
    dst: Destination,
    *,
    format: str | None = None,
    raw: bool = False,
    edit: Edit | None = None,
    migrate: Migrate | None = None,
    verify: bool = True,
    manifest: str | os.PathLike[str] | None = None,
    selection: Selection | None = None,
    definitions: Definitions = (),
    **options: Unpack[ConvertOptions],
) -> Converted:
    """Convert a log to *dst*, whose suffix chooses the output; return a summary.

    src       an open Log, or anything that ``logreel.open`` takes
    dst       ``x.parquet/``, ``x.csv/``, ``x.arrow/``: a folder with a file per channel and a manifest.json; without
              the slash, one file with a single channel. ``x.ndjson``: one file with all messages. ``x.jpg/``,
              ``x.ply/``: a folder with a folder per channel with pictures or clouds, and a file for each of them.
              ``x.mp4``: a video of the pictures of one channel, with a slash a folder with a video per channel.
              ``x.rrd``: a Rerun recording. ``x.kml``, ``x.gpx``, ``x.geojson``: one file with the tracks. ``x.tum``,
              ``x.kitti``, ``x.euroc``: one trajectory. ``x.xosc``: a scenario with all actors. ``x.osi.mcap``: a
              trace of OSI with the traffic of each frame. ``x.mcap``, ``x.bag`` …: a log with the same messages. Or a
              binary file object, which is written in order
    format    for a file object: the output, as a suffix or the name of a format: ``csv``, ``mcap``, ``rosbag``
    raw       only for logs: copy payloads and schemas unchanged, without added channels. Otherwise messages whose
              definitions the format cannot hold are encoded again with definitions that it can hold, and an MCAP gets
              channels in well-known schemas for all that lenses recognise, and messages that other tools cannot decode
              become protobuf
    edit      changes that are made first, in the same pass: a Recipe, the path of one, or a dict of parameters of
              ``logreel.edit``: ``{"rename": {"/a": "/b"}, "shift": "2s"}``
    migrate   True, or a dict of parameters of ``logreel.migrate`` (rules, to, known, partial): then types of messages
              are migrated. What follows, such as conditions, is about the changed log
    verify    False: values of messages of ROS 1 that become messages of ROS 2, or back, are not read back and compared
    manifest  path of a JSON file with digests of source and output, and with the ledger: ``logreel.verify`` reads it
    selection  what to convert; its members can be given as keyword arguments instead. Of *topics*, None means all
              channels that *dst* can be written from, and reserved ones with messages. For tables and ``x.ndjson`` also
              fields, ``topic.field`` or ``topic:field,field``, or a mapping of names to field paths
    definitions  as for ``logreel.open``; a new log contains the definitions that it needs
    options   members of ``Selection`` and ``Rendering``; force to replace *dst*, a file, or a folder
              that logreel wrote; progress, called with the number of messages done and in all; and only for logs strict
              (write nothing if something would have to be left out), compression and chunk_bytes (None: as in the
              source, or the default of the format), options of their format, as for ``logreel.create``:
              ``{"version": "1.2"}``

    *dst* appears only when it is complete, and is no output if a value reads differently; ``ledger`` says what became
    of all values between ROS 1 and ROS 2. Channels that cannot be decoded are left out and reported in ``skipped``.
    Raises UsageError for an unknown suffix, several channels for one file, or unreadable times; MissingDependencyError
    if *dst* needs an extra that is not installed; LogError if *dst* exists, or no channel can be decoded or has the
    content that *dst* needs; IncompleteOutputError, a LogError, if another log format can store none of the messages.
    """
    check_keywords(convert, options)
    chosen, rendering = Selection.of(selection, options), Rendering.of(options)
    if rendering.layout in PROGRAMS:
        from logreel.outputs.program_layouts import with_layout

        options["layout"] = LAYOUTS[0]
        again = partial(
            convert,
            dst=dst,
            format=format,
            raw=raw,
            edit=edit,
            migrate=migrate,
            selection=selection,
            verify=verify,
            manifest=manifest,
            **options,
        )
        return with_layout(src, dst, rendering.layout, bool(options.get("force")), definitions, again)
    name, stream, named = output_of(dst, format)
    output = find_output(name)
    if stream is not None and output.shape is Shape.ITEMS:
        raise UsageError(
            f"{output.suffix} is a folder with a file per {output.item}: it does not fit into a stream"
        )
    alignment = rendering.alignment(output.shape is Shape.LOG and rendering.align is None)
    is_one_table = _is_one_table(output, name, rendering.layout, alignment)
    chosen, fields = _fields_of(chosen, output)
    output = rendering.applied(output, is_one_table)
    target = Target.of(name, options, stream=stream, format=named, foreign=True)
    changes = None
    if edit is not None or migrate:
        from logreel.ops.rewrite.transformed import Changes

        changes = Changes.of(edit, migrate)
    if manifest is not None:
        _check_manifest(manifest, name, stream is not None, target.force)
    if output.shape is Shape.LOG:
        with as_log_to_copy(src, definitions) as opened:
            if raw and rendering.names != NAMES[0]:
                raise UsageError(
                    "messages that are copied unchanged keep their names", hint="leave out names="
                )
            logs = _log(opened, target, chosen, raw, rendering, changes, verify)
            return _with_manifest(logs, opened, manifest, target.force)
    if raw or target.strict or target.options or (target.compression, target.chunk_bytes) != (None, None):
        raise UsageError(
            f"{output.suffix} is no log",
            hint="leave out raw=, strict=, compression=, chunk_bytes= and options=",
        )
    chosen.refuse(output.suffix, "latched", "keep_latched")
    with as_log_to_copy(src, definitions) as log, ExitStack() as files:
        log = log if chosen.segment is None else log.segment(chosen.segment)
        if target.stream is None:
            keep_sources(target.path, inputs_of(log))
        else:
            target.stream.keep_sources(inputs_of(log))
        made = None if changes is None else changes.made_of(log, files)
        log = log if made is None else made.log
        shift_of(log, rendering.utc)
        job = _job(log, output, target, chosen, fields)
        job.utc, job.interpolate, job.frames = rendering.utc, rendering.interpolate, rendering.frames
        if made is not None:
            job.notes, job.skipped = [*made.notes, *job.notes], [*made.skipped, *job.skipped]
        if is_one_table:
            done = one_table(job, output, name, target.force, alignment)
        else:
            done = _written(job, output, name, target.force)
        return _with_manifest(done, log, manifest, target.force)


def _written(job: Job, output: Output, name: str, force: bool) -> Converted:
    """Write the channels of *job*: a file for all, a folder with a file for each, or a file for the only one."""
    into_folder = is_folder(output, name)
    if output.shape is Shape.WHOLE:
        return one_for_all(job, output, name, force)
    if into_folder:
        return one_folder(job, output, name, force)
    if len(job.channels) != 1:
        raise UsageError(
            f"{len(job.channels)} channels do not fit into one file",
            hint=f"write the folder {name}/, or choose one channel with topics=",
        )
    write = one_video if output.shape is Shape.VIDEOS else one_channel
    return write(job, output, name, force)


def _check_manifest(manifest: str | os.PathLike[str], name: str, is_stream: bool, force: bool) -> None:
    """Raise for a manifest that cannot be written, before the output is."""
    if is_stream:
        raise UsageError("a manifest has the digest of a file: the output is a stream")
    place = os.path.realpath(manifest)
    if place == os.path.realpath(name) or place.startswith(os.path.join(os.path.realpath(name), "")):
        raise UsageError("the manifest lies beside the output, not in it", path=os.fspath(manifest))
    if os.path.lexists(place) and not force:
        raise exists(manifest)


def _with_manifest(
    done: Converted, log: Log, manifest: str | os.PathLike[str] | None, force: bool
) -> Converted:
    """Write the manifest of a conversion if there is to be one; return its summary."""
    if manifest is not None:
        from logreel.ops.rewrite.proof import write_manifest

        facts = {"skipped": list(done.skipped), "notes": list(done.notes)}
        write_manifest(manifest, inputs_of(log), done.path, done.ledger, facts, force)
    return done


def _fields_of(chosen: Selection, output: Output) -> tuple[Selection, FieldsByTopic]:
    """Return *chosen* with a list of topics, and the fields by topic that its topics, a mapping, name."""
    topics, fields = chosen.topics, dict[str, Any]()
    if isinstance(topics, Mapping):
        fields = {topic: None if paths is None else listed(paths) for topic, paths in topics.items()}
        if any(paths is not None for paths in fields.values()) and not takes_fields(output):
            raise UsageError(f"{output.suffix} is made of whole messages: choose channels, not fields")
        topics = listed(fields)
    return replace(chosen, topics=None if topics is None else listed(topics)), fields


def _job(log: Log, output: Output, target: Target, chosen: Selection, fields: FieldsByTopic) -> Job:
    """Return what of *log* is written to an output that is no log."""
    notes = decrypted_notes(log)
    first, last = interval(log, chosen.start, chosen.end)
    topics = chosen.topics
    if topics is not None and not fields and takes_fields(output):
        fields = {**fields_by_topic(log, listed(topics))}
        topics = listed(fields)
    channels = channels_for(log, topics, output, chosen.exclude)
    limited = log
    windows: tuple[OnsetWindow, ...] = ()
    if chosen.count is not None or chosen.where or chosen.around is not None:
        part = select_part(
            log,
            replace(chosen, topics=[ch.topic for ch in channels], exclude=(), start=first, end=last),
        )
        # Outputs select messages by interval, so give them a log with only these messages.
        limited, last = log.derive(index=log.index.restricted_to(part.rows)), part.end
        windows = part.windows
        channels, notes = [limited[ch.topic] for ch in part.channels], [*notes, *part.notes]
    for ch in channels:
        if (paths := fields.get(ch.topic)) is not None:
            check_fields(ch, paths)
    return Job(
        limited,
        channels,
        first,
        last,
        progress=target.progress,
        fields=fields,
        stream=target.stream,
        notes=notes,
        windows=windows,
    )


def takes_fields(output: Output) -> bool:
    """Return whether fields can be chosen for *output*: tables and lines of JSON."""
    return output.shape is Shape.TABLES or output.suffix == LINES


def _log(
    opened: Log,
    target: Target,
    chosen: Selection,
    raw: bool,
    rendering: Rendering,
    changes: Changes | None,
    verify: bool,
) -> Converted:
    plain = decrypted_notes(opened)
    if changes is None:
        log = _with_shifted_messages(opened)
        part = part_to_convert(log, target, chosen, raw, rendering.clock)
        try:
            carried = _carried_notes(log, part, target)
        except LogError as error:
            # A file beside the log must not keep it from being converted.
            carried, plain = [], [*plain, f"notes on the log are left out: {error}"]
        transforms = carried + ([] if raw else _transforms(part, target, rendering.names, verify))
        done = WindowsWritten.of(rewrite([part], target, transforms=transforms), part.windows)
        ledger = _ledger(transforms)
    else:
        done, ledger = _changed(opened, target, chosen, raw, rendering, changes, verify)
    file = file_of(target.path, format_to_write(target.path, opened, target.format), target.options)
    channels = tuple(Written(copied.topic, file, copied.messages) for copied in done.channels)
    # Several files with changes are written from a temporary file, which is not encrypted.
    notes = tuple(dict.fromkeys((*done.notes, *plain)))
    windows = done.windows if isinstance(done, WindowsWritten) else ()
    return Converted(target.path, channels, done.skipped, notes, windows=windows, ledger=tuple(ledger))


def _ledger(transforms: Sequence[Transform]) -> list[Ledger]:
    """Return what became of values that a transform compared."""
    return [entry for transform in transforms for entry in getattr(transform, "ledger", ())]


def _changed(
    log: Log,
    target: Target,
    chosen: Selection,
    raw: bool,
    rendering: Rendering,
    changes: Changes,
    verify: bool,
) -> tuple[Rewritten, list[Ledger]]:
    """Write a log with changes, in one pass; also return what became of values."""
    from logreel.ops.rewrite.transformed import ChangedContent

    log = log if chosen.segment is None else log.segment(chosen.segment)
    chosen, fmt = replace(chosen, segment=None), format_to_write(target.path, log, target.format)
    _check_output(log, target)
    # A stream gets the log after it was verified as a file.
    target = replace(target, thorough=target.stream is not None)
    folder = None if target.stream is not None else os.path.dirname(os.path.abspath(target.path))
    with ExitStack() as files:
        if fmt.name == log.format and (raw or not fmt.exchange) and not changes.renames_before_migration:
            part, transforms, skipped = changes.part_of(log, chosen, files, folder)
            done = rewrite([part], target, transforms=transforms, skipped=skipped)
            return WindowsWritten.of(done, part.windows), []
        is_copied = fmt.name == log.format
        made = changes.made_of(log, files, folder, keeps_content=is_copied)
        part = part_to_convert(made.log, target, chosen, raw, rendering.clock)
        part = replace(part, notes=(*made.notes, *part.notes))
        content = [ChangedContent(transform, is_copied) for transform in made.transforms]
        stays = raw or (is_copied and not fmt.exchange)
        transforms = [*content, *([] if stays else _transforms(part, target, rendering.names, verify))]
        done = rewrite([part], target, transforms=transforms, skipped=list(made.skipped))
        return WindowsWritten.of(done, part.windows), _ledger(transforms)


def part_to_convert(
    log: Log, target: Target, chosen: Selection, raw: bool = False, clock: str | None = None
) -> Part:
    """Return what of *log* is written to a log *target*, with its times by the clock of that; as for ``convert``."""
    log = log if chosen.segment is None else log.segment(chosen.segment)
    moved, recoded = dict[str, int](), list[str]()
    if not raw and format_to_write(target.path, log, target.format).name != log.format:
        log, moved = _with_logged_times(log)
        recoded = [ch.topic for ch in log.channels.values() if LATIN_1 in ch.metadata and not original_of(ch)]
    first, last = interval(log, chosen.start, chosen.end)
    part = select_part(log, replace(chosen.for_log, start=first, end=last))
    if chosen.count is not None or chosen.where or part.windows:
        limited = log.derive(index=log.index.restricted_to(part.rows))
        topics = [ch.topic for ch in part.channels]
        # What is in force at the start comes from before it.
        begins = part.start if part.floor is None else None
        again = select_part(limited, Selection(topics, start=begins, end=part.end))
        part = replace(part, log=limited, rows=again.rows)
    shift, clock_of_times = _clock(log, target, raw, clock)
    return replace(
        part,
        filtered=bool(chosen.where or part.windows),
        restamped=[log[topic].number for topic in moved],
        notes=(*part.notes, *_moved_notes(part, moved), *_recoded_notes(part, recoded)),
        shift=shift,
        clock=clock_of_times,
    )


def _with_logged_times(log: Log) -> tuple[Log, dict[str, int]]:
    """Return the same open log with ``Scan.logged_times``, and the number of messages whose times differ, by topic."""
    if not isinstance(log, JoinedLog):
        times = log.scan.logged_times()
        if not times:
            return log, {}
        index = log.index.with_times(times)
        differ = {number: int((log.index.times(number) != logged).sum()) for number, logged in times.items()}
        topics = {ch.number: ch.topic for ch in log.channels.values()}
        return log.derive(index=index), {topics[number]: n for number, n in differ.items()}
    parts, counts = list[Log](), Counter[str]()
    for file in log.parts:
        part, moved = _with_logged_times(file)
        parts.append(part)
        counts.update(moved)
    if not counts:
        return log, {}
    strangers: Literal["note", "ignore"] = "note" if JOINED in log.metadata else "ignore"
    return join(parts, None, formats(), strangers), dict(counts)


def _moved_notes(part: Part, moved: Mapping[str, int]) -> Iterator[str]:
    """Yield a note about messages that were not stamped while the log was recorded."""
    chosen = [ch.topic for ch in part.channels if ch.topic in moved]
    shown = ", ".join(f"{moved[topic]} of {topic!r}" for topic in chosen[:5]) + " …" * (len(chosen) > 5)
    if chosen:
        yield f"messages with times outside of the log have the time at which they were logged: {shown}"


def _recoded_notes(part: Part, topics: Collection[str]) -> Iterator[str]:
    """Yield a note about each channel with texts in another encoding than those of other formats."""
    for ch in part.channels:
        if ch.topic in topics:
            names = ", ".join(ch.metadata[LATIN_1])
            yield f"{names} of channel {ch.topic!r}: Latin-1 in {part.log.name}, UTF-8 in the new log"


def _with_shifted_messages(log: Log) -> Log:
    """Return *log*; where clocks of several files are shifted, the times in their messages are then shifted, too."""
    if not isinstance(log, JoinedLog) or not any(log.shifts):
        return log
    from logreel.ops.rewrite.transformed import transformed

    parts = [
        transformed(replace(whole_log(part), shift=shift), []).log if shift else part
        for part, shift in zip(log.parts, log.shifts, strict=True)
    ]
    # They share already what only the first has to say.
    known = {log.format: replace(formats()[log.format], share=None)}
    shifted = join(parts, None, known, "note" if JOINED in log.metadata else "ignore")
    return shifted.derive(text=lambda: list(log.text))


def _check_output(log: Log, target: Target) -> None:
    """Raise for an output that cannot be written, before a log between is."""
    parts = [whole_log(file) for file in log.parts]
    check_names(parts, target, format_to_write(target.path, log, target.format))
    if is_folder_name(target.path):
        return
    if target.stream is None and target_of(target.path).exists() and not target.force:
        raise exists(target.path)


def _clock(log: Log, target: Target, raw: bool, clock: str | None) -> tuple[int, str]:
    """Return ns to add to the times of *log*, and the clock that they have then: ``utc`` or ``log``.

    Raises UsageError for an unknown clock, and if the log or the target cannot have UTC.
    """
    checked_clock(clock)
    fmt = format_to_write(target.path, log, target.format)
    if not fmt.exchange:
        if clock == UTC:
            raise UsageError(
                f"{fmt.title} has times of its own, not those of another clock", path=target.path
            )
        return _shift_to_original_clock(log, fmt.name), LOG
    if raw and clock is None:
        return 0, LOG
    offset = offset_for(clock, utc_shift(log), log.name)
    # Unix times stay as they are, and so does the clock that a converted log states.
    return offset, UTC if log.epoch != "unix" and clock != LOG and utc_shift(log) is not None else LOG


def _shift_to_original_clock(log: Log, fmt: str) -> int:
    """Return ns to add to a log that was converted from *fmt* to UTC, to restore its original clock; else 0."""
    metadata = log.metadata.get(log.format) if log.converted_from == fmt != log.format else None
    before = metadata.get("converted_from") if isinstance(metadata, Mapping) else None
    if not isinstance(before, Mapping) or before.get("clock") != UTC:
        return 0
    offset = str(before.get("utc_offset"))
    return -int(offset) if re.fullmatch(r"-?\d{1,19}", offset) else 0


def _is_one_table(output: Output, name: str, layout: str, how: Alignment | None) -> bool:
    """Return whether all channels become one table; raises UsageError if *output* cannot hold that."""
    if layout not in LAYOUTS:
        raise UsageError(
            f"{layout!r} is no layout of tables; known: {', '.join(LAYOUTS)}; programs: {', '.join(PROGRAMS)}"
        )
    if layout == "wide" and how is None:
        return False
    if layout == "long" and how is not None:
        raise UsageError(
            "a table aligned in time is wide",
            hint="leave out layout='long', or align=",
        )
    if output.shape is not Shape.TABLES and output.suffix != LINES:
        raise UsageError(
            f"{output.suffix} holds no table of several channels",
            hint="leave out layout= and align=",
        )
    if name.endswith(("/", os.sep)):
        raise UsageError(
            f"one table of several channels is one file: leave out the slash at the end of {name!r}"
        )
    return True


def _transforms(part: Part, target: Target, names: str, verify: bool) -> list[Transform]:
    """Return what makes a log of *part* that tools of its format read; in a format for exchange, that all tools read.

    Channels that were in that format before are converted back to what they were.
    """
    fmt = format_to_write(target.path, part.log, target.format)
    before = {was.format for ch in part.channels if (was := original_of(ch)) is not None}
    if not fmt.exchange or (fmt.name in before and fmt.name != part.log.format):
        from logreel.ops.rewrite.transcode import Transcode

        return [Transcode(verifies=verify)]
    if names != NAMES[0]:
        from logreel.outputs.foxglove.px4_names import Px4Names

        return [Px4Names()]
    from logreel.outputs.foxglove.exchange import Exchange

    return [Exchange()]


class NotesTransform(Transform):
    """Puts notes of people into the metadata of an MCAP; messages stay as they are.

    listed  the notes
    shift   ns to add to their times
    """

    def __init__(self, listed: Sequence[Note], shift: int) -> None:
        self._record = metadata_of(listed, shift)

    def channels(self, new: NewLog, channels: Sequence[NewChannel]) -> Sequence[NewChannel]:
        """Return *channels*, and set the metadata."""
        new.copier.replaced_metadata |= {METADATA}
        new.metadata[METADATA] = self._record
        return channels


def _carried_notes(log: Log, part: Part, target: Target) -> list[Transform]:
    """Return what puts the notes on *part* into a log that has metadata for them; an MCAP keeps those that it has."""
    fmt = format_to_write(target.path, log, target.format)
    if not fmt.exchange:
        return []
    every = notes_on(log)
    is_kept = fmt.name == log.format and not part.shift and not (every.path and every.path.exists())
    inside = [note for note in every if note.touches(part.start, part.end)]
    return [NotesTransform(inside, part.shift)] if inside and not is_kept else []


def is_folder(output: Output, name: str) -> bool:
    """Return whether *name* is a folder; raises UsageError if *output* cannot be, or must be, a folder."""
    slash = name.endswith(("/", os.sep))
    if output.shape is Shape.WHOLE and slash:
        raise UsageError(f"{output.suffix} is one file: leave out the slash at the end of {name!r}")
    if output.shape is Shape.ITEMS and not slash:
        raise UsageError(f"{output.suffix} is a folder with a file per {output.item}: write {name}/")
    return slash or (output.shape in (Shape.TABLES, Shape.VIDEOS) and os.path.isdir(name))
