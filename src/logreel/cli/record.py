"""``logreel record``."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

import rich_click as click

from logreel.cli import arguments, common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.source import Definitions


@verb(
    examples={
        "logreel record notes.bag --from messages.ndjson": "write a log from lines of JSON",
        "logreel record robot.bag --from ros -t /imu --split-size 1GB": "record a topic of a running ROS system",
    },
)
@click.argument("target", metavar="[OUT]", required=False, type=arguments.FILE)
@click.option("-o", "--output", "out", metavar="OUT", type=arguments.FILE, help="Same as OUT; - is stdout.")
@click.option(
    "--from",
    "sources",
    metavar="SOURCE",
    multiple=True,
    type=arguments.FILE,
    help="Source of messages, several allowed: a file with lines of JSON, - for stdin (default), udp://HOST:PORT, "
    "tcp://HOST:PORT, serial:DEVICE, or another one that `docs/howto/record.md` lists.",
)
@click.option(
    "--append",
    is_flag=True,
    help="Continue OUT if it exists; it stays as it is until the new messages are complete.",
)
@common.topics
@click.option(
    "-e",
    "--regex",
    "regexes",
    multiple=True,
    metavar="REGEX",
    help="Only topics that this fits; same as -t re:REGEX.",
)
@common.exclude
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N messages of each topic.")
@click.option("--duration", metavar="TIME", help="End after this time: 60s, 00:05:00.")
@click.option(
    "--split-size", metavar="SIZE", help="Begin a new file, OUT_0, OUT_1 …, after about so much: 1GB."
)
@click.option(
    "--split-duration", metavar="TIME", help="Begin a new file after this time of the messages: 60s."
)
@click.option(
    "--max-splits",
    type=click.IntRange(min=1),
    metavar="N",
    help="Keep only the newest N files of a split log.",
)
@click.option(
    "--repeat-latched",
    is_flag=True,
    help="Repeat the last message of latched topics in each file of a split log.",
)
@click.option(
    "--buffer-size",
    metavar="SIZE",
    default="256MiB",
    show_default=True,
    help="Most messages, in bytes, that wait to be written; more are lost, and counted.",
)
@click.option("--node", metavar="NAME", help="Only topics that this node subscribes to; for ROS.")
@click.option(
    "--like", metavar="LOG", type=arguments.FILE, help="Use the schemas of the channels in this log."
)
@click.option(
    "--schema",
    "schemas",
    multiple=True,
    metavar="TOPIC=FILE",
    help="Definition of a topic, in the language of OUT.",
)
@click.option(
    "--ahead", type=click.IntRange(min=0), default=10_000, show_default=True, metavar="N",
    help="Infer types from the first N messages, or those of the first ten seconds.",
)  # fmt: skip
@click.option("--format", metavar="NAME", help="Format of OUT, if the suffix does not tell it.")
@click.option("--compression", metavar="NAME", help="Compression of the new log, if its format has any.")
@common.chunk_size
@common.options
@click.option(
    "--flush",
    metavar="TIME",
    default="1s",
    show_default=True,
    help="Interval at which data is written to the file.",
)
@click.option("--sync", is_flag=True, help="Wait until the disk has the data, each time.")
@click.option("--strict", is_flag=True, help="Stop at the first line that cannot be written.")
@click.option(
    "--metadata",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help='Metadata of the new log: a number or a text; "7" in quotes is a text.',
)
@common.force
@common.msgdef
@common.as_json
def record(
    target: str | None,
    out: str | None,
    sources: tuple[str, ...],
    append: bool,
    topics: tuple[str, ...],
    regexes: tuple[str, ...],
    exclude: tuple[str, ...],
    limit: int | None,
    duration: str | None,
    split_size: str | None,
    split_duration: str | None,
    max_splits: int | None,
    repeat_latched: bool,
    buffer_size: str,
    node: str | None,
    like: str | None,
    schemas: tuple[str, ...],
    ahead: int,
    format: str | None,
    compression: str | None,
    chunk_bytes: int | None,
    options: dict[str, Any],
    flush: str,
    sync: bool,
    strict: bool,
    pairs: tuple[str, ...],
    force: bool,
    msgdef: Definitions,
    as_json: bool,
) -> int:
    """Write a log from messages as they come: from sensors, sockets, ROS, or as lines of JSON.

    Lines have the form of cat --format ndjson; their types come from --schema and --like, or are inferred. Ctrl-C
    completes the log; a second Ctrl-C ends at once.
    """
    from logreel.cli.exits import INTERRUPTED, LOST
    from logreel.cli.recording import say_above_status, status_line, stop_requested
    from logreel.errors import UsageError
    from logreel.log.times import duration_ns
    from logreel.ops.record import record as write

    out = paths.one_output(target, out)
    if out == paths.STDOUT and (split_size or split_duration):
        raise UsageError("a split log is several files, which do not fit on stdout: give OUT")
    if append and out == paths.STDOUT:
        raise UsageError("--append continues a file: give OUT")
    if out == paths.STDOUT and format is None:
        raise UsageError("say as what it goes to stdout: --format mcap, rosbag, …")
    for pair in schemas:
        if "=" not in pair:
            raise UsageError(f"--schema {pair!r}: write TOPIC=FILE")
    files = {topic: file for topic, _, file in (pair.rpartition("=") for pair in schemas)}
    metadata = common.metadata_of(pairs, "--metadata ")
    if compression is not None:
        options["compression"] = compression
    if chunk_bytes is not None:
        options["chunk_bytes"] = chunk_bytes
    wanted = [*topics, *(f"re:{regex}" for regex in regexes)]
    with contextlib.ExitStack() as stack:
        given = {"node": node, "topics": topics, "buffer": common.bytes_of(buffer_size)}
        source, live = _opened(sources or ("-",), given, stack)
        path = paths.destination(out, paths.suffix_of(format or ""), as_json)
        done = write(
            source,
            path,
            mode="a" if append else "w",
            topics=wanted or None,
            exclude=exclude,
            limit=limit,
            duration=duration,
            split_size=None if split_size is None else common.bytes_of(split_size),
            split_duration=split_duration,
            max_splits=max_splits,
            repeat_latched=repeat_latched,
            buffer_size=common.bytes_of(buffer_size),
            like=like,
            schemas=files,
            format=format,
            ahead=ahead,
            flush_every=duration_ns(flush) / 1e9,
            sync=sync,
            strict=strict,
            force=force,
            definitions=msgdef,
            metadata=metadata,
            stop=stack.enter_context(stop_requested()),
            progress=stack.enter_context(status_line()),
            say=say_above_status,
            **options,
        )
    if as_json:
        names = list(sources or ("-",))
        draw.echo_json({"source": names[0], "sources": names, **done.as_dict()})
    else:
        draw.show_written(
            done,
            out if len(done.parts) < 2 else f"{len(done.parts)} files, {done.parts[0]} to {done.parts[-1]}",
        )
    for sentence in done.skipped[: draw.NOTES]:
        draw.say(sentence)
    if done.broken:
        draw.say(
            f"{done.broken} of {done.lines} lines were left out"
            if not live
            else f"{done.broken} were left out"
        )
    for loss in done.losses[: draw.NOTES]:
        draw.say(f"{loss.messages} messages of {loss.topic} were lost ({loss.source})")
    if done.stopped and not live:
        draw.say("interrupted; the log is complete up to there")
        return INTERRUPTED
    return LOST if done.skipped or done.losses else 0


def _opened(names: tuple[str, ...], options: dict[str, Any], stack: contextlib.ExitStack) -> tuple[Any, bool]:
    """Return what ``record`` takes for the sources with these names, and whether these are live sources.

    options  for those sources that have them
    """
    from logreel.errors import UsageError
    from logreel.ops.record import live_source
    from logreel.ops.record.sources.registry import has_option, names_source

    def spelled(name: str) -> str:
        return name if names_source(name) else f"lines:{name}"

    found = [spelled(name) for name in names]
    if options["node"] is not None and not any(has_option(name, "node") for name in found):
        raise UsageError("--node is for ROS: record --from ros --node NAME")
    if len(found) == 1 and found[0].startswith("lines:"):
        path = found[0].removeprefix("lines:")
        return sys.stdin.buffer if path == "-" else stack.enter_context(open(path, "rb")), False
    if len(set(found)) < len(found):
        raise UsageError("the same source is given twice")
    # Middleware can wait for topics without a publisher yet.
    topics = options["topics"]
    plain = [topic for topic in topics if not set("*?[") & set(topic) and not topic.startswith("re:")]
    options = {**options, "topics": plain or None}
    return [
        live_source(one, **{k: v for k, v in options.items() if has_option(one, k)}) for one in found
    ], True
