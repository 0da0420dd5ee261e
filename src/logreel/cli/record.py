"""``logreel record``."""

from __future__ import annotations

import contextlib
import re
import signal
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import rich_click as click

from logreel.cli import arguments, common, draw
from logreel.cli import files as paths

if TYPE_CHECKING:
    from logreel.io.source import Definitions


#: Numbers without leading zeros; with these, the value is a text.
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")
_REAL = re.compile(r"-?(0|[1-9]\d*)\.\d+(e-?\d+)?")


@click.command()
@click.argument("target", metavar="[OUT]", required=False, type=arguments.FILE)
@click.option("-o", "--output", "out", metavar="OUT", type=arguments.FILE, help="Same as OUT; - is stdout.")
@click.option(
    "--from",
    "source",
    metavar="FILE",
    type=arguments.FILE,
    default="-",
    show_default=True,
    help="Lines of JSON to read.",
)
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
    source: str,
    like: str | None,
    schemas: tuple[str, ...],
    ahead: int,
    format: str | None,
    compression: str | None,
    flush: str,
    sync: bool,
    strict: bool,
    pairs: tuple[str, ...],
    force: bool,
    msgdef: Definitions,
    as_json: bool,
) -> int:
    """Write a log from messages that are lines of JSON.

    Lines have the form of cat --format ndjson. Types come from --schema and --like, or are inferred. Ctrl-C completes
    the log.
    """
    from logreel.cli.exits import INTERRUPTED, LOST
    from logreel.errors import UsageError
    from logreel.log.times import duration_ns
    from logreel.ops.record import record as write

    out = paths.one_output(target, out)
    if out == paths.STDOUT and format is None:
        raise UsageError("say as what it goes to stdout: --format mcap, rosbag, …")
    for pair in schemas:
        if "=" not in pair:
            raise UsageError(f"--schema {pair!r}: write TOPIC=FILE")
    files = {topic: file for topic, _, file in (pair.rpartition("=") for pair in schemas)}
    for pair in pairs:
        if not pair.partition("=")[0] or "=" not in pair:
            raise UsageError(f"--metadata {pair!r}: write NAME=VALUE")
    metadata = {name: _metadata_value(text) for name, _, text in (pair.partition("=") for pair in pairs)}
    options = {} if compression is None else {"compression": compression}
    with contextlib.ExitStack() as stack:
        lines = sys.stdin.buffer if source == "-" else stack.enter_context(open(source, "rb"))
        path = paths.destination(out, paths.suffix_of(format or ""), as_json)
        done = write(
            lines,
            path,
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
            stop=stack.enter_context(_stop_requested()),
            **options,
        )
    if as_json:
        draw.echo_json({"source": source, **done.as_dict()})
    else:
        draw.show_written(done, out)
    for sentence in done.skipped[: draw.NOTES]:
        draw.say(sentence)
    if done.broken:
        draw.say(f"{done.broken} of {done.lines} lines were left out")
    if done.stopped:
        draw.say("interrupted; the log is complete up to there")
        return INTERRUPTED
    return LOST if done.skipped else 0


def _metadata_value(text: str) -> int | float | str:
    """Return a metadata value as int, float or text."""
    if _WHOLE.fullmatch(text):
        return int(text)
    if _REAL.fullmatch(text):
        return float(text)
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


@contextlib.contextmanager
def _stop_requested() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether SIGINT (Ctrl-C) or SIGTERM was received."""
    asked = False

    def ask(number: int, frame: object) -> None:
        nonlocal asked
        asked = True

    old = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
