"""``logreel convert``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from logreel.cli import arguments, common, draw
from logreel.cli import files as paths

if TYPE_CHECKING:
    from collections.abc import Iterable

    from logreel.io.source import Definitions
    from logreel.log.log import Log
    from logreel.ops.query.topic_fields import FieldsByTopic
    from logreel.outputs.registry import Output


@click.command()
@click.argument("file", metavar="IN", type=arguments.FILE)
@click.argument("target", metavar="[OUT]", required=False, type=arguments.FILE)
@click.option("-o", "--output", "out", metavar="OUT", type=arguments.FILE, help="OUT, too; - is stdout.")
@common.form
@common.topics_or_fields
@common.exclude
@common.start
@common.end
@common.count
@common.segment
@common.utc
@common.interpolate
@click.option("--nested", is_flag=True, help="In Parquet: keep structs, instead of a column per member.")
@click.option(
    "--layout",
    type=click.Choice(["wide", "long"]),
    default="wide",
    show_default=True,
    help="Of tables: a column per field, or all channels in one table with a row per value.",
)
@click.option(
    "--align",
    type=click.Choice(["previous", "nearest"]),
    help="All channels in one table with a row per moment: their last row before it, or the closest one.",
)
@click.option("--rate", metavar="RATE", help="Moments to align to: 50Hz.")
@click.option(
    "--clock",
    metavar="TOPIC|utc|log",
    type=arguments.TOPIC,
    help="Align to the messages of a channel instead; into an MCAP: times since 1970, or those of the log.",
)
@click.option("--tolerance", metavar="TIME", help="Align to nothing further away: 20ms.")
@click.option("--raw", is_flag=True, help="Into a log: payloads and schemas byte for byte, and nothing else.")
@click.option("--strict", is_flag=True, help="Into a log: refuse where something would be left out.")
@common.compression
@common.chunk_size
@common.force
@common.ros_axes
@common.msgdef
@common.as_json
def convert(
    file: str,
    ros_axes: bool,
    msgdef: Definitions,
    target: str | None,
    out: str | None,
    form: str | None,
    topics: tuple[str, ...],
    exclude: tuple[str, ...],
    start: str | None,
    end: str | None,
    count: int | None,
    segment: int | None,
    utc: bool,
    interpolate: bool,
    nested: bool,
    layout: str,
    align: str | None,
    rate: str | None,
    clock: str | None,
    tolerance: str | None,
    raw: bool,
    strict: bool,
    compression: str | None,
    chunk_bytes: int | None,
    force: bool,
    as_json: bool,
) -> int:
    """Write a log as tables, JSON, pictures, videos, clouds, tracks or a Rerun recording, or as another log.

    The suffix of OUT says as which, and --format for stdout: -o -.

    x.parquet/ x.csv/ x.arrow/ are folders with a file per channel and a manifest.json; without the slash one
    file with one channel (-t), or with all in one table (--layout long, --align). x.ndjson is one file with all
    messages.

    x.jpg/ x.ply/ are folders with a file per picture or point cloud. x.kml x.gpx x.geojson are one file with the
    tracks of all positions.

    x.mp4 is a video of the pictures of one channel (-t), x.mp4/ a folder with a video per channel. x.rrd is a
    recording of Rerun.

    x.mcap x.bag x.ulg are logs with the same messages. What the other format cannot hold is told. In x.mcap other
    tools can read them all, and find positions, poses, pictures, clouds, texts and actors in Foxglove's schemas;
    --raw keeps messages byte for byte instead, so that they can be converted back.
    """
    from logreel.outputs.convert import convert as write
    from logreel.outputs.registry import find_output
    from logreel.registry.open import open_log

    out = paths.one_output(target, out)
    suffix = _suffix(form, out)
    output = find_output(suffix or out)
    with (
        open_log(file, definitions=msgdef, ros_axes=ros_axes, segment=segment) as log,
        paths.destination(out, suffix, as_json, _is_text(output)) as path,
    ):
        with draw.progress(out) as progress:
            done = write(
                log,
                path,
                topics=_topics(log, topics, output) or None,
                exclude=exclude,
                start=start,
                end=end,
                count=count,
                utc=utc,
                interpolate=interpolate,
                flatten=not nested,
                layout=layout,
                align=align,
                rate=rate,
                clock=clock,
                tolerance=tolerance,
                raw=raw,
                strict=strict,
                compression=compression,
                chunk_bytes=chunk_bytes,
                force=force,
                progress=progress,
            )
        files = sum(one.file is not None for one in done.channels)
        if as_json:
            draw.echo_answer(log, **done.as_dict())
        else:
            many = f"{done.rows} {output.item}{'s' * (done.rows != 1)} of {files} channel{'s' * (files != 1)}"
            draw.say(f"wrote {many} to {'stdout' if out == paths.STDOUT else out}")
            for note in done.notes:
                draw.say(note)
        return draw.finish(log, done.skipped)


def _topics(log: Log, topics: tuple[str, ...], output: Output) -> Iterable[str] | FieldsByTopic:
    """Return what -t means, as ``convert`` takes it: a mapping only where fields are named, and OUT can hold them."""
    from logreel.outputs.convert import takes_fields

    if not takes_fields(output):
        return topics
    from logreel.ops.query.topic_fields import fields_by_topic

    fields = fields_by_topic(log, topics)
    return fields if any(paths is not None for paths in fields.values()) else topics


def _suffix(form: str | None, out: str) -> str:
    """The suffix of what goes to stdout; nothing for a file. Raises UsageError for folders, and where none is said."""
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


def _is_text(output: Output) -> bool:
    """Whether a terminal can show it."""
    return output.media.startswith("text/") or any(kind in output.media for kind in ("json", "xml"))
