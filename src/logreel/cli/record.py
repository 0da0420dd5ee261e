"""The verb record: messages as they come, with a status line, until a signal ends it."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

import click

from logreel.cli import draw, inputs, options
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.ops.record import Recorded, Ring
    from logreel.ops.selection import Selection


def _recording(
    split_size: str | None,
    buffer_size: str,
    flush: str,
    schemas: tuple[str, ...],
    pairs: tuple[str, ...],
    **members: Any,
) -> dict[str, Any]:
    """Return the options of record as keyword arguments of the library."""
    from logreel.errors import UsageError
    from logreel.log.times import duration_ns

    for pair in schemas:
        if "=" not in pair:
            raise UsageError(f"--schema {pair!r}: write TOPIC=FILE")
    windows = {name: members.pop(name) for name in _RING}
    return {
        **members,
        "ring": _ring(**windows),
        "split_size": None if split_size is None else options.bytes_of(split_size),
        "buffer_size": options.bytes_of(buffer_size),
        "flush_every": duration_ns(flush) / 1e9,
        "schemas": {topic: file for topic, _, file in (pair.rpartition("=") for pair in schemas)},
        "metadata": options.metadata_of(pairs, "--metadata "),
    }


def _ring(
    ring: str | None,
    triggers: tuple[str, ...],
    after: str | None,
    debounce: str | None,
    ring_size: str | None,
    max_windows: int | None,
) -> Ring | None:
    """Return the ring that the options describe; None if there is none."""
    from logreel.errors import UsageError
    from logreel.ops.record import Ring

    others = {"after": after, "debounce": debounce, "size": ring_size, "max_windows": max_windows}
    chosen: dict[str, Any] = {name: value for name, value in others.items() if value is not None}
    if ring is None and not triggers and not chosen:
        return None
    if ring is None or not triggers:
        raise UsageError('windows need a length and a trigger: --ring 60s --trigger "TOPIC.FIELD < 14"')
    if ring_size is not None:
        chosen["size"] = options.bytes_of(ring_size)
    return Ring(triggers, ring, **chosen)


#: Options of windows around triggers, and their names.
_RING = ("ring", "triggers", "after", "debounce", "ring_size", "max_windows")
_windows = (
    click.option(
        "--ring",
        metavar="TIME",
        help="Write only windows around triggers: the messages of this time before each are kept in memory.",
    ),
    click.option(
        "--trigger",
        "triggers",
        multiple=True,
        metavar="CONDITION",
        help='With --ring: begin a window when this begins to hold, "TOPIC.FIELD < 14 and not TOPIC.FIELD = 2", or '
        'each "changed(TOPIC.FIELD)"; several allowed.',
    ),
    click.option(
        "--after", metavar="TIME", help="With --ring: length of windows after a trigger; default 30s."
    ),
    click.option(
        "--debounce",
        metavar="TIME",
        help="With --ring: the condition has to have been false for so long before it begins to hold; default 0s.",
    ),
    click.option(
        "--ring-size",
        metavar="SIZE",
        help="With --ring: most messages, in bytes, that are kept in memory; default 64MiB.",
    ),
    click.option(
        "--max-windows",
        type=click.IntRange(min=1),
        metavar="N",
        help="With --ring: keep only the newest N windows.",
    ),
)


@verb(
    examples={
        "logreel record notes.bag --from messages.ndjson": "write a log from lines of JSON",
        "logreel record robot.bag --from ros -t /imu --split-size 1GB": "record a topic of a running ROS system",
        'logreel record a.bag --from ros --ring 60s --trigger "battery.voltage < 14"': "only around such moments",
    },
)
@click.argument("target", metavar="[OUT]", required=False, type=options.FILE)
@click.option(
    "--from",
    "sources",
    metavar="SOURCE",
    multiple=True,
    type=options.FILE,
    help="Source of messages, several allowed: a file with lines of JSON, - for stdin (default), a trajectory (x.tum, "
    "x.euroc), udp://HOST:PORT, tcp://HOST:PORT, serial:DEVICE, or another one that `docs/howto/record.md` lists.",
)
@click.option(
    "--append",
    is_flag=True,
    help="Continue OUT if it exists; it stays as it is until the new messages are complete.",
)
@options.selection("topics", "exclude")
@click.option(
    "-e",
    "--regex",
    "regexes",
    multiple=True,
    metavar="REGEX",
    help="Only topics that this fits; same as -t re:REGEX.",
)
@click.option("--node", metavar="NAME", help="Only topics that this node subscribes to; for ROS.")
@options.as_object(
    "recording",
    _recording,
    click.option(
        "--limit", type=click.IntRange(min=1), metavar="N", help="At most N messages of each topic."
    ),
    click.option("--duration", metavar="TIME", help="End after this time: 60s, 00:05:00."),
    click.option(
        "--split-size", metavar="SIZE", help="Begin a new file, OUT_0, OUT_1 …, after about so much: 1GB."
    ),
    click.option(
        "--split-duration", metavar="TIME", help="Begin a new file after this time of the messages: 60s."
    ),
    click.option(
        "--max-splits",
        type=click.IntRange(min=1),
        metavar="N",
        help="Keep only the newest N files of a split log.",
    ),
    click.option(
        "--repeat-latched",
        is_flag=True,
        help="Repeat the last message of latched topics in each file of a split log.",
    ),
    click.option(
        "--buffer-size",
        metavar="SIZE",
        default="256MiB",
        show_default=True,
        help="Most messages, in bytes, that wait to be written; more are lost, and counted.",
    ),
    click.option(
        "--like", metavar="LOG", type=options.FILE, help="Use the schemas of the channels in this log."
    ),
    click.option(
        "--schema",
        "schemas",
        multiple=True,
        metavar="TOPIC=FILE",
        help="Definition of a topic, in the language of OUT.",
    ),
    click.option(
        "--ahead",
        type=click.IntRange(min=0),
        default=10_000,
        show_default=True,
        metavar="N",
        help="Infer types from the first N messages, or those of the first ten seconds.",
    ),
    click.option(
        "--flush",
        metavar="TIME",
        default="1s",
        show_default=True,
        help="Interval at which data is written to the file.",
    ),
    click.option("--sync", is_flag=True, help="Wait until the disk has the data, each time."),
    click.option(
        "--metadata",
        "pairs",
        multiple=True,
        metavar="NAME=VALUE",
        help='Metadata of the new log: a number or a text; "7" in quotes is a text.',
    ),
    *_windows,
)
@options.output(
    click.option("-o", "--output", "out", metavar="OUT", type=options.FILE, help="Same as OUT; - is stdout."),
    click.option("--format", metavar="NAME", help="Format of OUT, if the suffix does not tell it."),
    click.option("--compression", metavar="NAME", help="Compression of the new log, if its format has any."),
    "chunk_bytes",
    "options",
    click.option("--strict", is_flag=True, help="Stop at the first line that cannot be written."),
    "force",
)
@options.definitions
@options.json_and_fields
def record(
    target: str | None,
    sources: tuple[str, ...],
    append: bool,
    selection: Selection,
    regexes: tuple[str, ...],
    node: str | None,
    recording: dict[str, Any],
    output: options.LogToWrite,
    definitions: Definitions,
    as_json: bool,
) -> int:
    """Write a log from messages as they come: from sensors, sockets, ROS, or as lines of JSON.

    Lines have the form of cat --format ndjson; their types come from --schema and --like, or are inferred. Ctrl-C
    completes the log; a second Ctrl-C ends at once. x/ is a bag of ROS 2, a folder; --append adds a file to it.
    """
    from logreel.cli.console import say_above_status, status_line, stop_requested
    from logreel.ops.record import record as write

    out = inputs.one_output(target, output.out)
    _check_stdout(out, append, recording, output.format)
    recording |= {name: output.options.pop(name) for name in ("strict", "force")}
    recording |= output.options.pop("options")
    recording |= {name: value for name, value in output.options.items() if value is not None}
    topics = tuple(selection.topics or ())
    wanted = [*topics, *(f"re:{regex}" for regex in regexes)]
    with contextlib.ExitStack() as stack:
        source_options = {"node": node, "topics": topics, "buffer": recording["buffer_size"]}
        source, live = _opened(sources or ("-",), source_options, stack)
        done = write(
            source,
            inputs.destination(out, inputs.suffix_of(output.format or ""), as_json),
            mode="a" if append else "w",
            topics=wanted or None,
            exclude=selection.exclude,
            format=output.format,
            definitions=definitions,
            stop=stack.enter_context(stop_requested()),
            progress=stack.enter_context(status_line()),
            say=say_above_status,
            **recording,
        )
    if as_json:
        names = list(sources or ("-",))
        draw.echo_json({"source": names[0], "sources": names, **done.as_dict()})
    return _finish(done, out, live, as_json, recording["ring"] is not None)


def _check_stdout(out: str, append: bool, recording: dict[str, Any], format: str | None) -> None:
    """Raise UsageError for what stdout cannot be."""
    from logreel.errors import UsageError

    if out != inputs.STDOUT:
        return
    if recording["ring"] is not None:
        raise UsageError("windows are several files, which do not fit on stdout: give OUT")
    if recording["split_size"] or recording["split_duration"]:
        raise UsageError("a split log is several files, which do not fit on stdout: give OUT")
    if append:
        raise UsageError("--append continues a file: give OUT")
    if format is None:
        raise UsageError("say as what it goes to stdout: --format mcap, rosbag, …")


def _finish(done: Recorded, out: str, live: bool, as_json: bool, is_ring: bool) -> int:
    """Say what was written and what was lost; return the exit code."""
    from logreel.cli.exits import INTERRUPTED, LOST

    if not as_json:
        parts = done.parts
        where = f"{len(parts)} files, {parts[0]} to {parts[-1]}" if len(parts) > 1 else out
        if is_ring:
            where = f"{len(parts)} windows" if len(parts) != 1 else parts[0]
        draw.show_written(done, where)
    for sentence in done.skipped[: draw.NOTES]:
        draw.say(sentence)
    if done.broken:
        lines = "" if live else f" of {done.lines} lines"
        draw.say(f"{done.broken}{lines} were left out")
    for loss in done.losses[: draw.NOTES]:
        draw.say(f"{loss.messages} messages of {loss.topic} were lost ({loss.source})")
    if done.stopped and not live:
        draw.say("interrupted; the log is complete up to there")
        return INTERRUPTED
    return LOST if done.skipped or done.losses else 0


def _opened(names: tuple[str, ...], values: dict[str, Any], stack: contextlib.ExitStack) -> tuple[Any, bool]:
    """Return what ``record`` takes for the sources with these names, and whether these are live sources.

    values  options for those sources that have them
    """
    from logreel.errors import UsageError
    from logreel.ops.record import live_source
    from logreel.ops.record.sources import has_option, names_source
    from logreel.ops.record.sources.trajectories import spelling_of

    def spelled(name: str) -> str:
        return name if names_source(name) else spelling_of(name) or f"lines:{name}"

    spellings = [spelled(name) for name in names]
    if values["node"] is not None and not any(has_option(name, "node") for name in spellings):
        raise UsageError("--node is for ROS: record --from ros --node NAME")
    if len(spellings) == 1 and spellings[0].startswith("lines:"):
        path = spellings[0].removeprefix("lines:")
        return sys.stdin.buffer if path == "-" else stack.enter_context(open(path, "rb")), False
    if len(set(spellings)) < len(spellings):
        raise UsageError("the same source is given twice")
    # Middleware can wait for topics without a publisher yet.
    topics = values["topics"]
    plain = [topic for topic in topics if not set("*?[") & set(topic) and not topic.startswith("re:")]
    values = {**values, "topics": plain or None}
    return [
        live_source(spelling, **{k: v for k, v in values.items() if has_option(spelling, k)})
        for spelling in spellings
    ], True
