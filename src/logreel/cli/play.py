"""``logreel play``."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import rich_click as click

from logreel.cli import common, draw, following
from logreel.cli import files as paths

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.log import Channel, Log
    from logreel.ops.replay import Player, Sink


@click.command()
@common.files
@click.option(
    "-r", "--rate", type=float, default=1.0, show_default=True, metavar="RATE",
    help="Speed factor; 0: as fast as possible; negative: backwards.",
)  # fmt: skip
@common.topics
@common.exclude
@common.start
@common.end
@common.count
@common.as_one
@common.segment
@click.option("--duration", metavar="TIME", help="Stop after this time of the log: 60s, 00:01:30.")
@click.option("--loop", is_flag=True, help="Restart at the end.")
@click.option("--pause", is_flag=True, help="Start paused.")
@click.option("--skip-silence", metavar="TIME", help="Shorten gaps without messages to this.")
@click.option(
    "--clock",
    type=float,
    metavar="HZ",
    help="Also publish the time of the log on /clock, HZ times per second.",
)
@click.option(
    "--align", metavar="HOW", help="Shift the clocks of all logs but the first: utc, start, or by +2.5s."
)
@click.option(
    "--to",
    "name",
    metavar="SINK",
    help="Sink: stdout, null, frames, foxglove, rerun, ros, or a plug-in; default stdout, on a terminal null.",
)
@click.option(
    "--frames", metavar="KIND", help="Output on stdout: ndjson, lines of JSON, or raw, binary frames."
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set an option of the sink.")
@common.ros_axes
@common.msgdef
@following.follow
def play(
    files: tuple[str, ...],
    rate: float,
    topics: tuple[str, ...],
    exclude: tuple[str, ...],
    start: str | None,
    end: str | None,
    count: int | None,
    as_one: bool,
    segment: int | None,
    duration: str | None,
    loop: bool,
    pause: bool,
    skip_silence: str | None,
    clock: float | None,
    align: str | None,
    name: str | None,
    frames: str | None,
    settings: tuple[str, ...],
    ros_axes: bool,
    msgdef: Definitions,
    follow: bool,
) -> int:
    """Replay logs with the timing of the recording.

    -f plays one log while it is written: what is there with its timing, then messages as they come.

    Keys on a terminal: space pause, . and , step, arrows seek and change the rate, q quit, ? help.
    """
    from logreel.errors import UsageError
    from logreel.ops.open_logs import open_many
    from logreel.ops.replay import Player
    from logreel.outputs.live.registry import sink

    options = sink_options(settings)
    if frames is not None:
        options["frames"] = frames
    chosen = name or ("null" if sys.stdout.isatty() and frames is None else "stdout")
    if follow:
        given = {
            "--loop": loop, "--pause": pause, "--duration": duration, "--skip-silence": skip_silence,
            "--clock": clock, "--align": align,
        }  # fmt: skip
        if wrong := [option for option, value in given.items() if value]:
            raise UsageError(f"{wrong[0]} needs the whole log: leave it or -f out")
        if len(files) != 1:
            raise UsageError(f"-f plays one log, not {len(files)}")
        return _follow(
            files[0], sink(chosen, **options), rate, (topics, exclude), (start, end), count,
            {"definitions": msgdef, "ros_axes": ros_axes, "segment": segment},
        )  # fmt: skip
    with contextlib.ExitStack() as stack:
        names = [paths.file_of(name) for name in paths.given_logs(files, as_one)]
        logs = open_many(names, stack, msgdef, ros_axes, segment)
        player = Player(
            logs,
            rate=rate,
            topics=topics or None,
            exclude=exclude,
            start=start,
            end=end,
            count=count,
            duration=duration,
            loop=loop,
            paused=pause,
            skip_silence=skip_silence,
            clock=clock,
            align=align,
            sink=sink(chosen, **options),
        )
        play_to_end(player)
        return max(draw.finish(log, player.sink.skipped if n == 0 else ()) for n, log in enumerate(logs))


def sink_options(settings: Sequence[str]) -> dict[str, str]:
    """Return the options of a sink from texts ``NAME=VALUE``; raises UsageError for other texts."""
    from logreel.errors import UsageError

    for pair in settings:
        if "=" not in pair:
            raise UsageError(f"--set {pair!r}: write NAME=VALUE")
    return {option: value for option, _, value in (pair.partition("=") for pair in settings)}


def _follow(
    file: str,
    to: Sink,
    rate: float,
    chosen: tuple[tuple[str, ...], tuple[str, ...]],
    bounds: tuple[str | None, str | None],
    count: int | None,
    options: dict[str, Any],
) -> int:
    """Play one log while it is written."""
    from logreel.ops.replay.growing import play_growing

    def choose(log: Log) -> list[Channel]:
        fields = following.chosen_fields(log, *chosen)
        return [ch for topic, ch in log.channels.items() if topic in fields]

    to.say = draw.say
    start, end = bounds
    with following.ending() as event, following.opened(file, event, **options) as log:
        many = play_growing(
            log,
            to,
            choose=choose,
            rate=rate,
            start=start,
            end=end,
            count=count,
            poll=following.POLL,
            stop=event,
        )
        draw.say(f"played {many} message{'s' * (many != 1)}")
        return following.finish(log, event, to.skipped)


def play_to_end(player: Player) -> None:
    """Play in this thread, with keys and a status line on a terminal; report the number of messages at the end."""
    from logreel.cli.console import console

    player.sink.say = draw.say
    try:
        with _exit_on_signals(), console(player):
            player.run()
    finally:
        tally = player.tally
        many = f"played {tally.messages} message{'s' * (tally.messages != 1)}"
        if tally.timed:
            many += f", {tally.late} more than 1 ms late (worst {tally.worst / 1e6:.2f} ms"
            many += f", mean {tally.mean / 1e6:.3f} ms)"
        draw.say(many)


@contextlib.contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Raise SystemExit on SIGTERM and SIGHUP, so that the terminal is restored."""

    def end(number: int, frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    old = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
