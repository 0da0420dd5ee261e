"""``logreel convert``."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import rich_click as click

from logreel.cli import arguments, common, draw, following
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.output_stream import Destination
    from logreel.io.source import Definitions
    from logreel.log.log import Log
    from logreel.outputs.registry import Output


@verb(
    examples={
        "logreel convert flight.ulg flight.parquet/": "one table per channel",
        "logreel convert drive.bag drive.mcap -x '/camera/*'": "another log format, without the pictures",
    },
)
@click.argument("files", metavar="IN… [OUT]", nargs=-1, required=True, type=arguments.FILE)
@click.option("-o", "--output", "out", metavar="OUT", type=arguments.FILE, help="Same as OUT; - is stdout.")
@common.form
@common.as_one_flag
@common.anyway_flag
@common.topics_or_fields
@common.exclude
@common.start
@common.end
@common.where
@common.count
@common.segment
@common.utc
@common.interpolate
@click.option(
    "--nested",
    "flatten",
    flag_value=False,
    default=True,
    help="In Parquet: keep structs instead of one column per member.",
)
@common.safe_csv
@click.option(
    "--layout",
    type=click.Choice(["wide", "long"]),
    default="wide",
    show_default=True,
    help="Tables: wide has a column per field; long is one table of all channels with a row per value.",
)
@click.option(
    "--align",
    type=click.Choice(["previous", "nearest", "linear", "slerp"]),
    help="One table of all channels with a row per moment: the last row before it, the nearest one, or a value between "
    "two rows: linear for floats, slerp also for quaternions.",
)
@click.option("--rate", metavar="RATE", help="With --align: rate of the moments: 50Hz.")
@click.option(
    "--clock",
    metavar="TOPIC|utc|log",
    type=arguments.TOPIC,
    help="With --align: use the times of this channel as moments. Into an MCAP: write UTC or the clock of the log.",
)
@click.option("--tolerance", metavar="TIME", help="With --align: ignore rows further away than this: 20ms.")
@click.option("--raw", is_flag=True, help="Into a log: copy payloads and schemas unchanged, and add nothing.")
@click.option("--strict", is_flag=True, help="Into a log: fail if something would have to be left out.")
@common.compression
@common.chunk_size
@common.options
@common.force
@common.ros_axes
@common.decrypt
@common.msgdef
@common.as_json
def convert(
    files: tuple[str, ...],
    as_one: bool,
    anyway: bool,
    ros_axes: bool,
    decrypt: bool,
    msgdef: Definitions,
    out: str | None,
    form: str | None,
    topics: tuple[str, ...],
    exclude: tuple[str, ...],
    start: str | None,
    end: str | None,
    where: tuple[str, ...],
    count: int | None,
    segment: int | None,
    utc: bool,
    interpolate: bool,
    flatten: bool,
    safe_csv: bool,
    layout: str,
    align: str | None,
    rate: str | None,
    clock: str | None,
    tolerance: str | None,
    raw: bool,
    strict: bool,
    compression: str | None,
    chunk_bytes: int | None,
    options: dict[str, Any],
    force: bool,
    as_json: bool,
) -> int:
    """Convert a log to tables, JSON, pictures, videos, point clouds, tracks, a Rerun recording, or another log format.

    The suffix of OUT chooses the output; for stdout (-o -), --format does.

    x.parquet/ x.csv/ x.arrow/ are folders with a file per channel and a manifest.json. Without the slash, the output
    is one file with one channel (-t), or with all channels in one table (--layout long, --align). x.ndjson is one file
    with all messages.

    x.jpg/ x.ply/ are folders with a file per picture or point cloud. x.kml x.gpx x.geojson are single files with the
    tracks of all positions.

    x.mp4 is a video of the pictures of one channel (-t), x.mp4/ a folder with a video per channel. x.rrd is a
    Rerun recording.

    x.mcap x.bag x.ulg are logs with the same messages. Everything that the other format cannot store is reported. An
    x.mcap can be read by other tools: positions, poses, pictures, clouds, texts and actors get Foxglove's schemas.
    With --raw, messages are copied unchanged, so that they can be converted back.

    Of several logs, x.csv x.arrow x.parquet and x.ndjson are one table of all, with a column log; every other OUT is a
    folder with an output for each log: x.mcap/ or, with --format, any folder.

    From a pipe (-), lines of JSON, tables and some logs are written while it is open; everything else, and with most
    options, when all of it is there.
    """
    from logreel.errors import LogError
    from logreel.outputs.convert import convert as write
    from logreel.outputs.registry import Shape, find_output
    from logreel.outputs.tables.table_of_logs import table_of_logs

    names, out = paths.inputs_and_output(files, out)
    logs = paths.Logs(tuple(names), as_one, anyway)
    opening: dict[str, Any] = {
        "definitions": msgdef,
        "ros_axes": ros_axes,
        "segment": segment,
        "decrypt": decrypt,
    }
    suffix = _suffix_for_several(form, out) if logs.several else _suffix(form, out)
    output = find_output(suffix or (out.rstrip("/") if logs.several else out))
    if _can_come_slowly(names, output):
        from logreel.cli.convert_pipe import convert_as_it_comes

        with (
            following.ending() as event,
            following.opened(names, event, msgdef, ros_axes, segment, decrypt) as log,
        ):
            path = paths.destination(out, suffix, as_json, _is_text(output))
            output = (
                replace(output, nested=not flatten, safe=safe_csv) if output.shape is Shape.TABLES else output
            )
            return convert_as_it_comes(log, event, output, path, force, topics, exclude)

    def write_one(log: Log, path: Destination, name: str, plain: bool = False) -> int:
        with draw.progress(name) as progress:
            done = write(
                log,
                path,
                format=form if name == paths.STDOUT and not plain else None,
                topics=topics or None,
                exclude=exclude,
                start=start,
                end=end,
                where=where,
                count=count,
                utc=utc,
                interpolate=interpolate,
                flatten=plain or flatten,
                safe_csv=safe_csv and not plain,
                layout=layout,
                align=align,
                rate=rate,
                clock=clock,
                tolerance=tolerance,
                raw=raw,
                strict=strict,
                compression=compression,
                chunk_bytes=chunk_bytes,
                options=options,
                force=force,
                progress=progress,
            )
        made = sum(one.file is not None for one in done.channels)
        if as_json:
            draw.echo_answer(log, logs.several, **done.as_dict())
        elif plain:
            draw.show_notes(done.notes)
        else:
            many = f"{done.rows} {output.item}{'s' * (done.rows != 1)} of {made} channel{'s' * (made != 1)}"
            draw.say(f"wrote {many} to {'stdout' if name == paths.STDOUT else name}")
            draw.show_notes(done.notes)
        return draw.finish(log, done.skipped)

    into_folder = paths.is_folder(out) and output.shape in (Shape.WHOLE, Shape.LOG)
    if not (logs.several or into_folder):

        def write_only(log: Log) -> int:
            return write_one(log, paths.destination(out, suffix, as_json, _is_text(output)), out)

        return common.each_log(logs, write_only, False, **opening)
    if not paths.is_folder(out) and (table := table_of_logs(output)) is not None:
        with table(paths.destination(out, suffix, as_json, _is_text(output)), logs.files, force) as rows:

            def add(log: Log) -> int:
                part = rows.part(log.name)
                try:
                    return write_one(log, part, out, plain=True)
                except LogError as error:
                    error.hint = error.hint.replace(part, out.removesuffix("/"))
                    raise

            code = common.each_log(logs, add, False, **opening)
            count = rows.write(replace(output, nested=not flatten, safe=safe_csv))
        if rows.parts and not as_json:
            draw.say(f"wrote {count} row{'s' * (count != 1)} of {len(rows.parts)} logs to {out}")
        return code
    one_file = layout != "wide" or align is not None or output.shape in (Shape.WHOLE, Shape.LOG)
    ending = output.suffix if one_file else f"{output.suffix}/"
    return common.write_each(logs, out, write_one, ending, as_json, **opening)


#: Parameters with which lines of JSON and tables are written while the log comes: all others may need the whole log.
_WHILE_IT_COMES = {
    "files",
    "out",
    "form",
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
#: The same for copies of logs, which have all channels.
_FOR_LOGS = {"files", "out", "form", "msgdef", "force", "decrypt"}


def _can_come_slowly(names: list[str], output: Output) -> bool:
    """Return whether the only log is a pipe that may be converted while it comes: no option needs all of it."""
    from click.core import ParameterSource

    from logreel.outputs.convert import CSV, NESTED
    from logreel.outputs.registry import Shape
    from logreel.outputs.write import LINES

    context = click.get_current_context()
    able = output.suffix == LINES or output.shape in (Shape.TABLES, Shape.LOG)
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


def _suffix(form: str | None, out: str) -> str:
    """Return the suffix of an output to stdout, or empty for a file; raises UsageError for folders or no --format."""
    from logreel.errors import UsageError
    from logreel.outputs.registry import Shape, find_output

    paths.check_form(form, out)
    if out != paths.STDOUT:
        return ""
    if form is None:
        raise UsageError("say as what it goes to stdout: --format csv, ndjson, mcap, …")
    suffix = paths.suffix_of(form)
    if suffix.endswith("/") or find_output(suffix).shape is Shape.ITEMS:
        paths.no_folder(out, f"{suffix.rstrip('/')}/ and its like")
    return suffix


def _suffix_for_several(form: str | None, out: str) -> str:
    """Return the suffix of the outputs of several logs, or empty if OUT has one."""
    from logreel.errors import UsageError
    from logreel.outputs.registry import OUTPUTS
    from logreel.registry.registry import log_suffixes

    if out == paths.STDOUT:
        return _suffix(form, out)
    if form is not None:
        if not (out.endswith("/") or os.path.isdir(out)):
            paths.check_form(form, out)
        return paths.suffix_of(form)
    known = (*OUTPUTS.all(), *log_suffixes())
    if out.rstrip("/").lower().endswith(known) or not (out.endswith("/") or os.path.isdir(out)):
        return ""
    raise UsageError(f"{out} gets an output of each log: say as what with --format, or call it OUT.mcap/")


def _is_text(output: Output) -> bool:
    """Return whether *output* is text that a terminal can show."""
    return output.media.startswith("text/") or any(kind in output.media for kind in ("json", "xml"))
