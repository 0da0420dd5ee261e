"""``logreel play``."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import rich_click as click

from logreel.cli import arguments, common, draw, following
from logreel.cli import files as paths
from logreel.cli.help import verb
from logreel.cli.rosbag_options import PlayCommand

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.ops.replay import Player, Sink


@verb(
    examples={
        "logreel play drive.bag -r 2 -t /imu": "print a channel at double speed",
        "logreel play drive.bag --to foxglove --loop": "replay to Foxglove, again and again",
    },
    cls=PlayCommand,
)
@common.logs
@click.option(
    "-r", "--rate", type=float, default=1.0, show_default=True, metavar="RATE",
    help="Speed factor; 0: as fast as possible; negative: backwards.",
)  # fmt: skip
@common.topics
@common.exclude
@common.start
@common.end
@common.count
@common.segment
@click.option(
    "-s", "offset", metavar="TIME", help="Start so long after the start of the log: 5, 90s, 00:01:30."
)
@click.option("-u", "--duration", metavar="TIME", help="Stop after this time of the log: 60s, 00:01:30.")
@click.option("-i", "--immediate", is_flag=True, help="As fast as possible, as -r 0.")
@click.option("-l", "--loop", is_flag=True, help="Restart at the end.")
@click.option("-k", "--keep-alive", is_flag=True, help="Stay after the last message until Ctrl-C or q.")
@click.option("--pause", is_flag=True, help="Start paused.")
@click.option(
    "--pause-topics",
    multiple=True,
    metavar="TOPIC",
    type=arguments.TOPIC,
    help="Pause before each message of this channel; key t switches this off and on.",
)
@click.option(
    "--skip-silence",
    "--skip-empty",
    "skip_silence",
    metavar="TIME",
    help="Shorten gaps without messages to this.",
)
@click.option("-d", "--delay", metavar="TIME", help="Wait before the first message; default 0, to ros 0.2s.")
@click.option("-p", "--prefix", default="", metavar="TEXT", help="Text in front of all topics.")
@click.option(
    "--rename",
    multiple=True,
    metavar="OLD:=NEW",
    help="Play a topic with another name; also OLD=NEW, and /old:=/new.",
)
@click.option(
    "--latched", multiple=True, metavar="TOPIC", type=arguments.TOPIC, help="Treat this topic as latched."
)
@click.option(
    "--clock",
    type=float,
    metavar="[HZ]",
    help="Also publish the time of the log on /clock, HZ times per second; default 100.",
)
@click.option("--hz", type=float, metavar="HZ", help="Rate of --clock.")
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
@click.option(
    "--queue", type=click.IntRange(min=0), metavar="SIZE", help="To ros: length of the outgoing queues."
)
@click.option(
    "--wait-for-subscribers", is_flag=True, help="To ros, foxglove: start when there are subscribers."
)
@click.option(
    "--rate-control-topic", metavar="TOPIC", help="To ros: wait while this topic of the system is behind."
)
@click.option(
    "--rate-control-max-delay", metavar="TIME", help="To ros: greatest delay of that topic; default 1s."
)
@click.option(
    "--read-only", is_flag=True, help="To foxglove: clients watch, but cannot pause, seek or set the rate."
)
@click.option(
    "--token", metavar="TEXT", help="To foxglove: token instead of a random one; or set LOGREEL_TOKEN."
)
@click.option(
    "--allow-host", multiple=True, metavar="NAME", help="To foxglove: accept this further host name."
)
@click.option(
    "--allow-origin", multiple=True, metavar="URL", help="To foxglove: accept pages of this further origin."
)
@click.option("-q", "--quiet", is_flag=True, help="No status and no summary on stderr.")
@click.option(
    "--try-future-version", is_flag=True, help="Ignored: bags of unknown versions are always tried."
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set an option of the sink.")
@common.ros_axes
@common.decrypt
@common.msgdef
@following.follow
def play(
    logs: paths.Logs,
    rate: float,
    topics: tuple[str, ...],
    exclude: tuple[str, ...],
    start: str | None,
    end: str | None,
    count: int | None,
    segment: int | None,
    offset: str | None,
    duration: str | None,
    immediate: bool,
    loop: bool,
    keep_alive: bool,
    pause: bool,
    pause_topics: tuple[str, ...],
    skip_silence: str | None,
    delay: str | None,
    prefix: str,
    rename: tuple[str, ...],
    latched: tuple[str, ...],
    clock: float | None,
    hz: float | None,
    align: str | None,
    name: str | None,
    frames: str | None,
    queue: int | None,
    wait_for_subscribers: bool,
    rate_control_topic: str | None,
    rate_control_max_delay: str | None,
    read_only: bool,
    token: str | None,
    allow_host: tuple[str, ...],
    allow_origin: tuple[str, ...],
    quiet: bool,
    try_future_version: bool,
    settings: tuple[str, ...],
    ros_axes: bool,
    decrypt: bool,
    msgdef: Definitions,
    follow: bool,
) -> int:
    """Replay logs with the timing of the recording.

    -f plays one log while it is written: what is there with its timing, then messages as they come.

    Keys on a terminal: space pause, . and , step, arrows seek and change the rate, q quit, ? help.

    Command lines of rosbag play work: --topics A B, --clock without number, /old:=/new, -s 5, -u 10, -i, -l, -k, -q.
    """
    from logreel.errors import UsageError
    from logreel.ops.replay import Player
    from logreel.outputs.sinks.registry import sink
    from logreel.registry.open_logs import open_many

    options: dict[str, Any] = {**sink_options(settings)}
    options |= _options_of_rosbag(queue, wait_for_subscribers, rate_control_topic, rate_control_max_delay)
    if offset is not None:
        if start is not None:
            raise UsageError("-s and -S are both the start: give one of them")
        start = f"+{offset}"
    if immediate:
        if rate not in (1.0, 0.0):
            raise UsageError("-i is as fast as possible: leave -r out")
        rate = 0.0
    if hz is not None:
        if clock is None:
            raise UsageError("--hz is the rate of /clock: add --clock")
        clock = hz
    names = _new_names(rename)
    if frames is not None:
        options["frames"] = frames
    chosen = name or ("null" if sys.stdout.isatty() and frames is None else "stdout")
    options |= _options_of_server(chosen, read_only, token, allow_host, allow_origin)
    if follow:
        _refuse_with_follow(
            {"--loop": loop, "--duration": duration, "--skip-silence": skip_silence, "--align": align},
            "needs the end of the log",
        )
        _refuse_with_follow(
            {"--pause": pause, "--pause-topics": pause_topics}, "needs keys to go on, which -f does not have"
        )
        _refuse_with_follow({"--clock": clock}, "runs ahead to the next message, which may not have come")
        if len(logs.names) != 1:
            raise UsageError(f"-f plays one log, not {len(logs.names)}")
        return _follow(
            logs.names[0], sink(chosen, **options), rate, (topics, exclude), (start, end), count,
            {"definitions": msgdef, "ros_axes": ros_axes, "segment": segment, "decrypt": decrypt},
            {"delay": delay, "prefix": prefix, "rename": names, "latched": latched, "stay": keep_alive},
        )  # fmt: skip
    with contextlib.ExitStack() as stack:
        played = open_many(
            logs.each, stack, msgdef, ros_axes, segment, decrypt, parts=True, anyway=logs.anyway
        )
        for log in played:
            logs.saw(log)
        logs.offer()
        player = Player(
            played,
            rate=rate,
            topics=topics or None,
            exclude=exclude,
            start=start,
            end=end,
            count=count,
            duration=duration,
            loop=loop,
            stay=True if keep_alive else None,
            paused=pause,
            pause_topics=pause_topics,
            delay=delay,
            prefix=prefix,
            rename=names,
            latched=latched,
            skip_silence=skip_silence,
            clock=clock,
            align=align,
            sink=sink(chosen, **options),
        )
        _note_decrypted(player)
        play_to_end(player, quiet)
        return max(draw.finish(log, player.sink.skipped if n == 0 else ()) for n, log in enumerate(played))


def _note_decrypted(player: Player) -> None:
    """Show which of the logs that go to another program are encrypted."""
    from logreel.log.decrypted import decrypted_notes

    if player.sink.sends:
        draw.show_notes([text for log in player.logs for text in decrypted_notes(log)])


def _refuse_with_follow(options: dict[str, Any], why: str) -> None:
    """Raise UsageError, which says *why*, for the first of *options* that is given together with -f."""
    from logreel.errors import UsageError

    for option, value in options.items():
        if value:
            raise UsageError(f"{option} {why}: leave it or -f out")


def _options_of_rosbag(
    queue: int | None, wait: bool, rate_control: str | None, max_delay: str | None
) -> dict[str, Any]:
    """Return options of a sink for options of ``rosbag play``."""
    from logreel.errors import UsageError
    from logreel.log.times import SECOND, duration_ns

    found: dict[str, Any] = {}
    if queue is not None:
        found["queue"] = queue
    if wait:
        found["wait"] = math.inf
    if rate_control is not None:
        found["rate_control"] = rate_control
    if max_delay is not None:
        if rate_control is None:
            raise UsageError("--rate-control-max-delay belongs to --rate-control-topic: add it")
        found["max_delay"] = duration_ns(max_delay) / SECOND
    return found


def _options_of_server(
    name: str, read_only: bool, token: str | None, hosts: tuple[str, ...], origins: tuple[str, ...]
) -> dict[str, Any]:
    """Return the options of the sink *name* that say who may connect to it."""
    found: dict[str, Any] = {}
    if read_only:
        found["read_only"] = True
    if token is None and name == "foxglove":
        token = os.environ.get("LOGREEL_TOKEN")
    if token is not None:
        found["token"] = token
    if hosts:
        found["allow_host"] = ",".join(hosts)
    if origins:
        found["allow_origin"] = ",".join(origins)
    return found


def _new_names(pairs: tuple[str, ...]) -> dict[str, str]:
    """Return new topics by old ones from OLD:=NEW or OLD=NEW."""
    from logreel.errors import UsageError

    found = {}
    for pair in pairs:
        old, sign, new = pair.partition(":=" if ":=" in pair else "=")
        if not (old and sign and new):
            raise UsageError(f"--rename {pair!r}: write OLD:=NEW")
        found[old] = new
    return found


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
    more: dict[str, Any],
) -> int:
    """Play one log while it is written; *options* are for opening it, *more* for ``play_growing``."""
    from logreel.ops.replay.growing import play_growing

    to.say = draw.say
    start, end = bounds
    with following.ending() as event, following.opened((file,), event, **options) as log:
        many = play_growing(
            log,
            to,
            choose=following.Choice(*chosen),
            rate=rate,
            start=start,
            end=end,
            count=count,
            poll=following.POLL,
            stop=event,
            **more,
        )
        draw.say(f"played {many} message{'s' * (many != 1)}")
        return following.finish(log, event, to.skipped)


def play_to_end(player: Player, quiet: bool = False) -> None:
    """Play in this thread, with keys and a status line on a terminal; report the number of messages at the end."""
    from logreel.cli.console import console

    if not quiet:
        player.sink.say = draw.say
    try:
        with console(player, quiet):
            player.run()
    finally:
        if not quiet:
            draw.say(_summary(player))


def _summary(player: Player) -> str:
    """Return the number of messages, and how late they were."""
    tally = player.tally
    many = f"played {tally.messages} message{'s' * (tally.messages != 1)}"
    if tally.timed:
        many += f", {tally.late} more than 1 ms late (worst {tally.worst / 1e6:.2f} ms"
        many += f", mean {tally.mean / 1e6:.3f} ms)"
    return many
