"""Verbs that write other files from logs: convert, also while a log comes through a pipe, and geotag."""

from __future__ import annotations

import os
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from logreel.cli import draw, inputs, options
from logreel.cli.help import verb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from logreel.cli.following import Ending
    from logreel.io.output_stream import Destination, OutputStream
    from logreel.log.log import Channel, Log
    from logreel.log.scan import Schema
    from logreel.ops.rewrite.proof import Ledger
    from logreel.ops.selection import Selection
    from logreel.outputs.registry import Output
    from logreel.outputs.tables.ndjson import Decoder


#: Parameters with which lines of JSON and tables are written while the log comes: all others may need the whole log.
_WHILE_IT_COMES = {
    "files",
    "out",
    "format",
    "topics",
    "exclude",
    "msgdef",
    "segment",
    "ros_axes",
    "force",
    "flatten",
    "safe_csv",
    "decrypt",
}


#: Channels whose values are listed.
MOST_LINES = 20
#: The same for copies of logs, which have all channels.
_FOR_LOGS = {"files", "out", "format", "msgdef", "force", "decrypt"}


@verb(
    examples={
        "logreel convert flight.ulg flight.parquet/": "one table per channel",
        "logreel convert drive.bag drive.mcap -x '/camera/*'": "another log format, without the pictures",
    },
)
@click.argument("files", metavar="IN… [OUT]", nargs=-1, required=True, type=options.FILE)
@inputs.as_one_flag
@inputs.anyway_flag
@options.selection("fields", "exclude", "start", "end", "where", "around", "count")
@options.as_object(
    "rendering",
    dict,
    options.utc,
    options.interpolate,
    click.option(
        "--nested",
        "flatten",
        flag_value=False,
        default=True,
        help="In Parquet: keep structs instead of one column per member.",
    ),
    options.safe_csv,
    click.option(
        "--layout",
        type=click.Choice(["wide", "long", "foxglove", "plotjuggler", "rerun"]),
        default="wide",
        show_default=True,
        help="Tables: wide has a column per field; long is one table of all channels with a row per value. Beside a "
        "log, or x.rrd for rerun: also write a layout for this program.",
    ),
    click.option(
        "--align",
        type=click.Choice(["previous", "nearest", "linear", "slerp"]),
        help="One table of all channels with a row per moment: the last row before it, the nearest one, or a value "
        "between two rows: linear for floats, slerp also for quaternions.",
    ),
    click.option("--rate", metavar="RATE", help="With --align: rate of the moments: 50Hz."),
    click.option(
        "--clock",
        metavar="TOPIC|utc|log",
        type=options.TOPIC,
        help="With --align: use the times of this channel as moments. Into an MCAP: write UTC or the clock of the log.",
    ),
    click.option(
        "--tolerance", metavar="TIME", help="With --align: ignore rows further away than this: 20ms."
    ),
    click.option(
        "--frames",
        metavar="FIXED:BODY",
        help="Trajectories: the poses of one frame in another one, from transforms: map:base_link.",
    ),
    click.option(
        "--names",
        type=click.Choice(["logreel", "mcap"]),
        default="logreel",
        show_default=True,
        help="From a ULog into an MCAP: names of channels and schemas, ours or those of the mcap tool.",
    ),
)
@click.option("--raw", is_flag=True, help="Into a log: copy payloads and schemas unchanged, and add nothing.")
@options.as_object(
    "proof",
    dict,
    click.option(
        "--no-verify",
        "verify",
        flag_value=False,
        default=True,
        help="Between ROS 1 and ROS 2: do not read all values back and compare them.",
    ),
    click.option(
        "--manifest",
        metavar="FILE",
        type=options.FILE,
        help="Write digests of source and output, and what became of the values, for 'logreel verify'.",
    ),
)
@options.output(
    click.option("-o", "--output", "out", metavar="OUT", type=options.FILE, help="Same as OUT; - is stdout."),
    "format",
    "strict",
    "compression",
    "chunk_bytes",
    "options",
    "force",
)
@options.opening("segment", "ros_axes", "decrypt", "definitions")
@options.as_json
def convert(
    files: tuple[str, ...],
    as_one: bool,
    anyway: bool,
    opening: dict[str, Any],
    selection: Selection,
    rendering: dict[str, Any],
    raw: bool,
    proof: dict[str, Any],
    output: options.LogToWrite,
    as_json: bool,
) -> int:
    """Convert a log to tables, JSON, pictures, videos, point clouds, tracks, a Rerun recording, or another log format.

    The suffix of OUT chooses the output; for stdout (-o -), --format does.

    x.parquet/ x.csv/ x.arrow/ are folders with a file per channel and a manifest.json. Without the slash, the output
    is one file with one channel (-t), or with all channels in one table (--layout long, --align). x.ndjson is one file
    with all messages.

    x.jpg/ x.ply/ are folders with a file per picture or point cloud. x.kml x.gpx x.geojson are single files with the
    tracks of all positions. x.tum x.kitti x.euroc are one trajectory: the poses of a channel (-t), of a frame in
    another one (--frames), or the best that the log has. x.xosc is a scenario with the actors of a CARLA recording,
    x.osi.mcap a trace of OSI with its traffic.

    x.mp4 is a video of the pictures of one channel (-t), x.mp4/ a folder with a video per channel. x.rrd is a
    Rerun recording.

    x.mcap x.bag x.ulg are logs with the same messages. Everything that the other format cannot store is reported. An
    x.mcap can be read by other tools: positions, poses, pictures, clouds, texts and actors get Foxglove's schemas.
    With --raw, messages are copied unchanged, so that they can be converted back.
    x/ without a suffix is a bag of ROS 2: a folder with metadata.yaml and x_0.db3. Messages of ROS 1 get the types of
    ROS 2, and back. Then all values are read back, compared and counted.

    Of several logs, x.csv x.arrow x.parquet and x.ndjson are one table of all, with a column log; every other OUT is a
    folder with an output for each log: x.mcap/ or, with --format, any folder.

    From a pipe (-), lines of JSON, tables and some logs are written while data arrives. Other outputs, and most
    options, need the whole log, and are written after its end.
    """
    from logreel.outputs.registry import Shape, find_output, is_log_folder
    from logreel.outputs.tables.table_of_logs import table_of_logs

    names, out = inputs.inputs_and_output(files, output.out)
    logs = inputs.Logs(tuple(names), as_one, anyway, opening)
    suffix = (_suffix_for_several if logs.several else _suffix)(output.format, out)
    target = find_output(suffix or (out.rstrip("/") if logs.several else out))
    written = {"raw": raw, "selection": selection, **proof, **output.options}
    job = _Conversion(logs, out, output.format, suffix, target, rendering, written, as_json)
    is_one_log = not logs.several and not suffix and is_log_folder(out)
    if not is_one_log and _can_come_slowly(names, target):
        return _convert_as_it_comes(job, selection)
    into_folder = not is_one_log and inputs.is_folder(out) and target.shape in (Shape.WHOLE, Shape.LOG)
    if not (logs.several or into_folder):
        return inputs.each_log(logs, lambda log: job.write(log, job.destination(), out), False)
    if not inputs.is_folder(out) and table_of_logs(target) is not None:
        return job.write_one_table()
    is_table = rendering["layout"] == "long" or rendering["align"] is not None
    ending = "" if is_table or target.shape in (Shape.WHOLE, Shape.LOG) else "/"
    return inputs.write_each(logs, out, job.write, target.suffix + ending, as_json)


@dataclass(frozen=True)
class _Conversion:
    """What convert writes of logs.

    suffix     suffix of the output on stdout, and of outputs in a folder; empty: *out* has one
    target     what the suffix of the output stands for
    rendering  members of the library's ``Rendering``
    written    further keyword arguments of ``convert``
    """

    logs: inputs.Logs
    out: str
    format: str | None
    suffix: str
    target: Output
    rendering: dict[str, Any]
    written: dict[str, Any]
    as_json: bool

    def destination(self) -> str | OutputStream:
        """Return the path, or stdout as a stream."""
        return inputs.destination(self.out, self.suffix, self.as_json, _is_text(self.target))

    def rendered(self) -> Output:
        """Return *target* with its options for tables."""
        from logreel.outputs.convert import Rendering

        chosen = {name: self.rendering[name] for name in ("flatten", "safe_csv")}
        return Rendering(**chosen).applied(self.target, is_one_table=False)

    def write(self, log: Log, path: Destination, name: str) -> int:
        """Convert one log, say what was written to *name*, and return the exit code."""
        if self.written["manifest"] is not None:
            self.logs.only("a manifest is that of one conversion")
        with draw.progress(name) as progress:
            done = self._convert(log, path, name, progress=progress)
        if self.as_json:
            draw.echo_answer(log, self.logs.several, **done.as_dict())
        else:
            files = sum(channel.file is not None for channel in done.channels)
            _say_written(done.rows, self.target, files, "stdout" if name == inputs.STDOUT else name)
            _say_compared(done.ledger)
            draw.show_windows(log, done)
            draw.show_notes(done.notes)
        return draw.finish(log, done.skipped)

    def _convert(self, log: Log, path: Destination, name: str, **more: Any) -> Any:
        from logreel.outputs.convert import convert

        form = self.format if name == inputs.STDOUT else None
        return convert(log, path, format=form, **{**self.rendering, **self.written, **more})

    def write_one_table(self) -> int:
        """Write one table of all logs, with a column for the log; return the exit code."""
        from logreel.errors import LogError
        from logreel.outputs.tables.table_of_logs import table_of_logs

        table = table_of_logs(self.target)
        if table is None:
            raise TypeError(f"{self.target.suffix} has no rows")
        with table(self.destination(), self.logs.files, self.written["force"]) as rows:

            def add(log: Log) -> int:
                part = rows.part(log.name)
                try:
                    with draw.progress(self.out) as progress:
                        done = self._convert(log, part, "", flatten=True, safe_csv=False, progress=progress)
                except LogError as error:
                    error.hint = error.hint.replace(part, self.out.removesuffix("/"))
                    raise
                if self.as_json:
                    draw.echo_answer(log, self.logs.several, **done.as_dict())
                else:
                    draw.show_notes(done.notes)
                return draw.finish(log, done.skipped)

            code = inputs.each_log(self.logs, add, False)
            count = rows.write(self.rendered())
        if rows.parts and not self.as_json:
            draw.say(f"wrote {count} row{'s' * (count != 1)} of {len(rows.parts)} logs to {self.out}")
        return code


def _say_written(rows: int, target: Output, channels: int, path: str) -> None:
    """Say on stderr how much was written."""
    items = f"{rows} {target.item}{'s' * (rows != 1)}"
    draw.say(f"wrote {items} of {channels} channel{'s' * (channels != 1)} to {path}")


def _say_compared(ledger: Sequence[Ledger]) -> None:
    """Say on stderr what became of the values, with a line for each channel that has others than equal ones."""
    if not ledger:
        return
    equal, values = sum(entry.equal for entry in ledger), sum(entry.values for entry in ledger)
    draw.say(f"read back and compared: {equal} of {values} values of {len(ledger)} channels are equal")
    rows = []
    for entry in ledger:
        counts = [entry.changed.total(), entry.dropped.total(), entry.unequal]
        if any(counts):
            rows.append((entry.topic, *map(str, (entry.messages, entry.values, entry.equal, *counts))))
    if rows:
        head = ("channel", "messages", "values", "equal", "by rule", "dropped", "unequal")
        for line in draw.table_lines(head, rows[:MOST_LINES], range(1, 7)):
            draw.say(f"  {line}")
    if len(rows) > MOST_LINES:
        draw.say(f"  and {len(rows) - MOST_LINES} more; --json has them all")


def _can_come_slowly(names: list[str], output: Output) -> bool:
    """Return whether the only log is a pipe that may be converted while it comes: no option needs all of it."""
    from click.core import ParameterSource

    from logreel.cli import following
    from logreel.outputs.convert import CSV, NESTED
    from logreel.outputs.registry import Shape
    from logreel.outputs.write import LINES

    context = click.get_current_context()
    able = output.suffix == LINES or output.shape is Shape.LOG or output.table is not None
    return (
        context is not None
        and able
        and all(
            context.get_parameter_source(name) is ParameterSource.DEFAULT
            for name in context.params
            if name not in (_FOR_LOGS if output.shape is Shape.LOG else _WHILE_IT_COMES)
        )
        and (output.suffix == NESTED or context.params["flatten"])
        and (output.suffix == CSV or not context.params["safe_csv"])
        and following.comes_slowly(names, to_file=True)
    )


def _suffix(format: str | None, out: str) -> str:
    """Return the suffix of an output to stdout, or empty for a file; raises UsageError for folders or no --format."""
    from logreel.errors import UsageError
    from logreel.outputs.registry import Shape, find_output

    inputs.check_form(format, out)
    if out != inputs.STDOUT:
        return ""
    if format is None:
        raise UsageError("say as what it goes to stdout: --format csv, ndjson, mcap, …")
    suffix = inputs.suffix_of(format)
    if suffix.endswith("/") or find_output(suffix).shape is Shape.ITEMS:
        inputs.no_folder(out, f"{suffix.rstrip('/')}/ and its like")
    return suffix


def _suffix_for_several(format: str | None, out: str) -> str:
    """Return the suffix of the outputs of several logs, or empty if OUT has one."""
    from logreel.errors import UsageError
    from logreel.outputs.registry import OUTPUTS
    from logreel.registry.registry import log_suffixes

    if out == inputs.STDOUT:
        return _suffix(format, out)
    if format is not None:
        if not (out.endswith("/") or os.path.isdir(out)):
            inputs.check_form(format, out)
        return inputs.suffix_of(format)
    known = (*OUTPUTS.all(), *log_suffixes())
    if out.rstrip("/").lower().endswith(known) or not (out.endswith("/") or os.path.isdir(out)):
        return ""
    raise UsageError(f"{out} gets an output of each log: say as what with --format, or call it OUT.mcap/")


def _is_text(output: Output) -> bool:
    """Return whether *output* is text that a terminal can show."""
    return output.media.startswith("text/") or any(word in output.media for word in ("json", "xml"))


def _convert_as_it_comes(job: _Conversion, selection: Selection) -> int:
    """Write the messages of the only log, a pipe, when they are complete; return the exit code.

    A file or folder is called ``path.active`` until the log is complete. What -t and -x name and no channel has at the
    end is an error, as for a whole log.
    """
    from logreel.cli import following
    from logreel.log.source_files import decrypted_notes
    from logreel.outputs.registry import Shape

    with following.ending() as event, following.opened(job.logs, event) as log:
        path = job.destination()
        draw.show_notes(decrypted_notes(log))
        if job.target.shape is Shape.LOG:
            return _copy_log(log, event, job.target, path, job.written["force"])
        if job.target.shape is Shape.TABLES:
            return _write_tables(log, event, job, path, selection)
        return _write_lines(log, event, job, path, selection)


def _write_lines(
    log: Log, event: Ending, job: _Conversion, path: str | OutputStream, selection: Selection
) -> int:
    """Write lines of JSON; see ``_convert_as_it_comes``."""
    if not isinstance(path, str):
        safe = sys.stdout.isatty()
        return _pass_lines(log, event, job.target, "stdout", lambda text: _print(text, safe), selection)
    from logreel.io.append_file import Appender

    out = Appender(path, job.written["force"])
    event.flush = out.flush
    try:
        code = _pass_lines(
            log, event, job.target, path, lambda text: out.put(text.encode("ascii")), selection
        )
    except BaseException:
        # What came until an error is kept under the name of an unfinished file.
        (out.leave if out.tell() else out.discard)()
        raise
    (out.leave if event.is_set() else out.finish)()
    return code


def _copy_log(log: Log, event: Ending, target: Output, path: str | OutputStream, force: bool) -> int:
    """Write a log: a copy of the same format while it comes, any other one when it is complete."""
    from logreel.cli import following
    from logreel.ops.rewrite.target import format_to_write
    from logreel.outputs.convert import convert
    from logreel.outputs.slice_stream import copies_bytes, copy_growing

    # The name of a stream is that of a file with its suffix.
    name = path if isinstance(path, str) else path.name
    copy = None
    if copies_bytes(log, format_to_write(name, log)):
        copy = copy_growing(log, path, force, following.POLL, event)
    else:
        for _ in log.changes(poll=following.POLL, stop=event):
            pass
    if event.is_set():
        return following.finish(log, event)
    skipped: list[str] = []
    is_equal = False
    if copy is not None:
        is_equal, done = copy.is_what(lambda stream: convert(log, stream), target.suffix)
        if is_equal:
            copy.finish()
        elif isinstance(path, str):
            copy.discard()
        else:
            skipped.append(
                "the copy is not the conversion of the whole log: save the log as a file, and convert that"
            )
    if copy is None or (isinstance(path, str) and not is_equal):
        with draw.progress(name if isinstance(path, str) else "-") as progress:
            done = convert(log, path, force=force, progress=progress)
    files = sum(channel.file is not None for channel in done.channels)
    _say_written(done.rows, target, files, path if isinstance(path, str) else "stdout")
    draw.show_notes(done.notes)
    return draw.finish(log, [*done.skipped, *skipped])


def _write_tables(
    log: Log, event: Ending, job: _Conversion, path: str | OutputStream, selection: Selection
) -> int:
    """Write tables; see ``_convert_as_it_comes``."""
    from logreel.cli import following
    from logreel.log.topic_match import listed
    from logreel.outputs.convert import is_folder
    from logreel.outputs.registry import channels_for
    from logreel.outputs.tables.growing import convert_growing

    target, topics, exclude = job.rendered(), selection.topics, selection.exclude

    def chosen(log: Log) -> tuple[list[Channel], dict[str, list[str] | None]]:
        fields = _chosen(log, topics)
        return channels_for(log, listed(fields) if topics else None, target, exclude), fields

    done = convert_growing(
        log,
        target,
        path,
        isinstance(path, str) and is_folder(target, path),
        lambda log: _chosen_so_far(log, topics, exclude),
        chosen,
        force=job.written["force"],
        poll=following.POLL,
        stop=event,
    )
    if done is None:
        return following.finish(log, event)
    files = sum(channel.file is not None for channel in done.channels)
    _say_written(done.rows, target, files, path if isinstance(path, str) else "stdout")
    return following.finish(log, event, list(done.skipped))


def _print(text: str, is_terminal: bool) -> None:
    sys.stdout.write((draw.safe(text[:-1]) + "\n") if is_terminal else text)


def _pass_lines(
    log: Log,
    event: Ending,
    target: Output,
    path: str,
    write: Callable[[str], None],
    selection: Selection,
) -> int:
    """Pass the lines to *write*; see ``_convert_as_it_comes``.

    The lines are those of the whole log, in the order of the log instead of by time. What turns out to be different
    at the end, because a later part of the log gives channels another meaning, is reported as skipped.
    """
    from logreel.cli import following
    from logreel.log.topic_match import listed
    from logreel.outputs.registry import channels_for
    from logreel.outputs.tables.ndjson import Decoder, line

    topics, exclude = selection.topics, selection.exclude
    skipped: list[str] = []
    decoders: dict[str, Decoder] = {}
    fields: dict[str, list[str] | None] = {}
    used: dict[str, tuple[Schema, list[str] | None]] = {}
    seen: Counter[str] = Counter()
    rows: Counter[str] = Counter()

    def choose(log: Log) -> list[Channel]:
        fields.clear()
        fields.update(_chosen_so_far(log, topics, exclude))
        return [log[topic] for topic in fields]

    for message in log.follow(choose, poll=following.POLL, stop=event):
        ch = message.channel
        seen[ch.topic] += 1
        if ch.topic not in decoders:
            decoders[ch.topic] = Decoder([ch], skipped, fields)
            used[ch.topic] = ch.schema, fields[ch.topic]
        data = decoders[ch.topic](message)
        if data is not None:
            write(line(message, data) + "\n")
            rows[ch.topic] += 1
    if log.is_complete:
        fields = _chosen(log, topics)
        channels = channels_for(log, listed(fields) if topics else None, target, exclude)
        _ = Decoder((ch for ch in channels if ch.topic not in decoders), skipped)
        for decoder in decoders.values():
            decoder.report()
        expected = {ch.topic: (len(ch), (ch.schema, fields.get(ch.topic))) for ch in channels if len(ch)}
        for topic in {**expected, **seen}:
            if expected.get(topic) != (seen[topic], used.get(topic)):
                count = expected[topic][0] if topic in expected else 0
                skipped.append(
                    f"the lines of {topic!r} are not those of the whole log, which has {count} messages of it: "
                    "save the log as a file and convert that"
                )
        _say_written(rows.total(), target, len(rows), path)
    return following.finish(log, event, skipped)


def _chosen(log: Log, topics: Iterable[str] | None) -> dict[str, list[str] | None]:
    """Return the channels and fields that -t chooses, all channels without -t; raises TopicError, NotFoundError."""
    from logreel.log.topic_fields import fields_by_topic

    return dict(fields_by_topic(log, topics)) if topics else dict.fromkeys(log.channels)


def _chosen_so_far(
    log: Log, topics: Iterable[str] | None, exclude: Iterable[str]
) -> dict[str, list[str] | None]:
    """Return the chosen channels of the log so far, with their fields; names that no channel has may come later."""
    from logreel.errors import LogError

    known = []
    for topic in topics or ():
        with suppress(LogError):
            _chosen(log, [topic])
            known.append(topic)
    kept = _chosen(log, known) if known or not topics else {}
    for topic in exclude:
        with suppress(LogError):
            without = {ch.topic for ch in log.match(topic)}
            kept = {name: paths for name, paths in kept.items() if name not in without}
    return kept


@verb(
    examples={
        "logreel geotag camera.ulg --pictures pictures -o tagged": "copies of pictures with positions",
        "logreel geotag camera.ulg --pictures pictures -o again --by order": "match pictures and triggers by order",
    },
)
@click.option(
    "--pictures",
    metavar="DIR",
    required=True,
    type=options.FOLDER,
    help="Folder of pictures, .jpg or .jpeg.",
)
@click.option(
    "-o",
    "--output",
    "out",
    metavar="DIR",
    required=True,
    type=options.FOLDER,
    help="Folder for the tagged copies.",
)
@options.as_object(
    "matching",
    dict,
    click.option(
        "--positions",
        "topic",
        metavar="TOPIC",
        type=options.TOPIC,
        help="Channel with positions; default that of a camera.",
    ),
    click.option("--by", type=click.Choice(("order", "time")), help="Match by order or by EXIF time."),
    click.option(
        "--offset", metavar="TIME", default="0s", help="Add this to the times of the pictures to get UTC."
    ),
    click.option(
        "--tolerance", metavar="TIME", default="1s", help="Greatest time between picture and position."
    ),
    options.force,
)
@inputs.logs("segment", "decrypt", "definitions")
@options.as_json
def geotag(logs: inputs.Logs, pictures: str, out: str, matching: dict[str, Any], as_json: bool) -> int:
    """Write positions of a log into the EXIF tags of pictures.

    The pictures themselves are not changed: copies are written.
    """
    from logreel.outputs.media.geotag import geotag as write

    logs.only("pictures get the positions of one log")

    def answer(log: Log) -> int:
        done = write(log, pictures, out, **matching)
        if as_json:
            draw.echo_answer(log, **done.as_dict())
        else:
            count = len(done.pictures)
            draw.say(f"wrote {count} picture{'s' * (count != 1)} with positions of {done.topic!r} to {out}")
        return draw.finish(log, done.skipped)

    return inputs.each_log(logs, answer, False)


@verb(
    examples={
        "logreel verify drive.json": "whether the files of a conversion are what they were",
        "logreel verify drive.json --values": "also compare all values again",
    },
)
@click.argument("manifests", metavar="MANIFEST…", nargs=-1, required=True, type=options.FILE)
@click.option("--values", is_flag=True, help="Also read both logs, and compare all values again.")
@options.as_json
def verify(manifests: tuple[str, ...], values: bool, as_json: bool) -> int:
    """Compare the files of a conversion with the digests in the manifest that convert --manifest wrote."""
    from logreel.cli.exits import FOUND
    from logreel.ops.rewrite.proof import verify as compare

    code = 0
    for manifest in manifests:
        done = compare(manifest, values=values)
        code = code if done.is_good else FOUND
        if as_json:
            draw.echo_json(done.as_dict(), line=len(manifests) > 1)
            continue
        rows = [(file.state, file.role, file.path) for file in done.files]
        draw.table(("", "", ""), rows)
        _say_compared(done.ledger)
    return code
