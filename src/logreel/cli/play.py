"""The verb play: a replay to sinks in real time, also with the options of ``rosbag play``."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from logreel.cli import draw, inputs, options
from logreel.cli.help import WithExamples, verb

if TYPE_CHECKING:
    from logreel.ops.replay import Player, Sink
    from logreel.ops.selection import Selection


#: Rate of ``/clock`` where none is given, Hz.
CLOCK_HZ = 100.0


#: Options that ``rosbag play`` gives several values at once, with the option here for each value; empty: files.
_LISTS = {"--topics": "--topic", "--pause-topics": "--pause-topics", "--bags": ""}


def translated(words: Sequence[str]) -> list[str]:
    """Return the words of a command line with options of ``rosbag play`` as ``logreel play`` has them.

    ``/old:=/new``, which is no file, becomes ``--rename``; ``--topics A B`` becomes an option for each name; ``--bags``
    is left out, so that its values are files; ``--clock`` without a number gets one.
    """
    translation: list[str] = []
    option: str | None = None
    for n, word in enumerate(words):
        if word == "--":
            return [*translation, *words[n:]]
        name, equals, value = word.partition("=")
        if name in _LISTS:
            option = None if equals else _LISTS[name]
            translation += ([f"{_LISTS[name]}={value}"] if _LISTS[name] else [value]) if equals else []
        elif word[:1] == "-" and word != "-":
            option = None
            translation.append(word)
            if word == "--clock" and not _is_number(words[n + 1 : n + 2]):
                translation[-1] = f"--clock={CLOCK_HZ:g}"
        elif option:
            translation.append(f"{option}={word}")
        elif ":=" in word and not os.path.exists(word) and words[n - 1 : n] != ["--rename"]:
            translation.append(f"--rename={word}")
        else:
            translation.append(word)
    return translation


def _is_number(words: Sequence[str]) -> bool:
    try:
        return bool(words) and float(words[0]) == float(words[0])
    except ValueError:
        return False


class PlayCommand(WithExamples):
    """Command that also understands the options of ``rosbag play``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse *args* after their translation."""
        return super().parse_args(ctx, translated(args))


@verb(
    examples={
        "logreel play drive.bag -r 2 -t /imu": "print a channel at double speed",
        "logreel play drive.bag --to foxglove --loop": "replay to Foxglove, again and again",
    },
    cls=PlayCommand,
)
@options.as_object(
    "playing",
    dict,
    click.option(
        "-r",
        "--rate",
        type=float,
        default=1.0,
        show_default=True,
        metavar="RATE",
        help="Speed factor; 0: as fast as possible; negative: backwards.",
    ),
    click.option(
        "-s", "offset", metavar="TIME", help="Start so long after the start of the log: 5, 90s, 00:01:30."
    ),
    click.option("-u", "--duration", metavar="TIME", help="Stop after this time of the log: 60s, 00:01:30."),
    click.option("-i", "--immediate", is_flag=True, help="As fast as possible, as -r 0."),
    click.option("-l", "--loop", is_flag=True, help="Restart at the end."),
    click.option(
        "-k", "--keep-alive", "stay", is_flag=True, help="Stay after the last message until Ctrl-C or q."
    ),
    click.option("--pause", "paused", is_flag=True, help="Start paused."),
    click.option(
        "--pause-topics",
        multiple=True,
        metavar="TOPIC",
        type=options.TOPIC,
        help="Pause before each message of this channel; key t switches this off and on.",
    ),
    click.option(
        "--skip-silence",
        "--skip-empty",
        "skip_silence",
        metavar="TIME",
        help="Shorten gaps without messages to this.",
    ),
    click.option(
        "-d", "--delay", metavar="TIME", help="Wait before the first message; default 0, to ros 0.2s."
    ),
    click.option("-p", "--prefix", default="", metavar="TEXT", help="Text in front of all topics."),
    click.option(
        "--rename",
        multiple=True,
        metavar="OLD:=NEW",
        help="Play a topic with another name; also OLD=NEW, and /old:=/new.",
    ),
    click.option(
        "--latched", multiple=True, metavar="TOPIC", type=options.TOPIC, help="Treat this topic as latched."
    ),
    click.option(
        "--clock",
        type=float,
        metavar="[HZ]",
        help="Also publish the time of the log on /clock, HZ times per second; default 100.",
    ),
    click.option("--hz", type=float, metavar="HZ", help="Rate of --clock."),
    click.option(
        "--align", metavar="HOW", help="Shift the clocks of all logs but the first: utc, start, or by +2.5s."
    ),
)
@options.selection("topics", "exclude", "start", "end", "count")
@options.as_object(
    "to",
    dict,
    click.option(
        "--to",
        "name",
        metavar="SINK",
        help="Sink: stdout, null, frames, foxglove, rerun, ros, or a plug-in; default stdout, on a terminal null.",
    ),
    click.option(
        "--frames", metavar="KIND", help="Output on stdout: ndjson, lines of JSON, or raw, binary frames."
    ),
    click.option(
        "--queue", type=click.IntRange(min=0), metavar="SIZE", help="To ros: length of the outgoing queues."
    ),
    click.option(
        "--wait-for-subscribers", is_flag=True, help="To ros, foxglove: start when there are subscribers."
    ),
    click.option(
        "--rate-control-topic", metavar="TOPIC", help="To ros: wait while this topic of the system is behind."
    ),
    click.option(
        "--rate-control-max-delay", metavar="TIME", help="To ros: greatest delay of that topic; default 1s."
    ),
    click.option(
        "--read-only",
        is_flag=True,
        help="To foxglove: clients watch, but cannot pause, seek or set the rate.",
    ),
    click.option(
        "--token", metavar="TEXT", help="To foxglove: token instead of a random one; or set LOGREEL_TOKEN."
    ),
    click.option(
        "--allow-host", multiple=True, metavar="NAME", help="To foxglove: accept this further host name."
    ),
    click.option(
        "--allow-origin",
        multiple=True,
        metavar="URL",
        help="To foxglove: accept pages of this further origin.",
    ),
    click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set an option of the sink."),
)
@click.option("-q", "--quiet", is_flag=True, help="No status and no summary on stderr.")
@click.option(
    "--try-future-version", is_flag=True, help="Ignored: bags of unknown versions are always tried."
)
@options.follow
@inputs.logs("segment", "ros_axes", "decrypt", "definitions")
def play(
    logs: inputs.Logs,
    playing: dict[str, Any],
    selection: Selection,
    to: dict[str, Any],
    quiet: bool,
    try_future_version: bool,
    follow: bool,
) -> int:
    """Replay logs with the timing of the recording.

    -f plays one log while it is written: existing messages with their timing, then new ones as they come.

    Keys on a terminal: space pause, . and , step, arrows seek and change the rate, q quit, ? help.

    Command lines of rosbag play work: --topics A B, --clock without number, /old:=/new, -s 5, -u 10, -i, -l, -k, -q.
    """
    from logreel.ops.replay import Player
    from logreel.outputs.sinks import sink
    from logreel.registry.open import open_many

    name, values = _sink_options(**to)
    chosen = _player_options(selection, **playing)
    if follow:
        return _follow(logs, sink(name, **values), selection, chosen)
    with contextlib.ExitStack() as stack:
        played = open_many(logs.each, stack, parts=True, anyway=logs.anyway, **logs.opening)
        for log in played:
            logs.saw(log)
        logs.offer()
        player = Player(played, sink=sink(name, **values), **chosen)
        _note_decrypted(player)
        play_to_end(player, quiet)
        return max(draw.finish(log, player.sink.skipped if n == 0 else ()) for n, log in enumerate(played))


def _player_options(
    selection: Selection,
    rate: float,
    offset: str | None,
    immediate: bool,
    hz: float | None,
    rename: tuple[str, ...],
    **members: Any,
) -> dict[str, Any]:
    """Return the keyword arguments of the Player; raises UsageError for options that contradict each other."""
    from logreel.errors import UsageError

    chosen = options.members_of(selection)
    if offset is not None:
        if selection.start is not None:
            raise UsageError("-s and -S are both the start: give one of them")
        chosen["start"] = f"+{offset}"
    if immediate:
        if rate not in (1.0, 0.0):
            raise UsageError("-i is as fast as possible: leave -r out")
        rate = 0.0
    if hz is not None:
        if members["clock"] is None:
            raise UsageError("--hz is the rate of /clock: add --clock")
        members["clock"] = hz
    members["stay"] = members["stay"] or None
    return {**chosen, **members, "rate": rate, "rename": _new_names(rename)}


def _sink_options(
    name: str | None,
    frames: str | None,
    read_only: bool,
    token: str | None,
    allow_host: tuple[str, ...],
    allow_origin: tuple[str, ...],
    settings: tuple[str, ...],
    **rosbag: Any,
) -> tuple[str, dict[str, Any]]:
    """Return the name of the sink, and its options."""
    chosen = name or ("null" if sys.stdout.isatty() and frames is None else "stdout")
    values: dict[str, Any] = {**sink_options(settings), **_options_of_rosbag(**rosbag)}
    if frames is not None:
        values["frames"] = frames
    if read_only:
        values["read_only"] = True
    if token is None and chosen == "foxglove":
        token = os.environ.get("LOGREEL_TOKEN")
    if token is not None:
        values["token"] = token
    if allow_host:
        values["allow_host"] = ",".join(allow_host)
    if allow_origin:
        values["allow_origin"] = ",".join(allow_origin)
    return chosen, values


def _note_decrypted(player: Player) -> None:
    """Show which of the logs that go to another program are encrypted."""
    from logreel.log.source_files import decrypted_notes

    if player.sink.sends:
        draw.show_notes([text for log in player.logs for text in decrypted_notes(log)])


def _options_of_rosbag(
    queue: int | None,
    wait_for_subscribers: bool,
    rate_control_topic: str | None,
    rate_control_max_delay: str | None,
) -> dict[str, Any]:
    """Return options of a sink for options of ``rosbag play``."""
    from logreel.errors import UsageError
    from logreel.log.times import SECOND, duration_ns

    values: dict[str, Any] = {}
    if queue is not None:
        values["queue"] = queue
    if wait_for_subscribers:
        values["wait"] = math.inf
    if rate_control_topic is not None:
        values["rate_control"] = rate_control_topic
    if rate_control_max_delay is not None:
        if rate_control_topic is None:
            raise UsageError("--rate-control-max-delay belongs to --rate-control-topic: add it")
        values["max_delay"] = duration_ns(rate_control_max_delay) / SECOND
    return values


def _new_names(pairs: tuple[str, ...]) -> dict[str, str]:
    """Return new topics by old ones from OLD:=NEW or OLD=NEW."""
    from logreel.errors import UsageError

    values = {}
    for pair in pairs:
        old, sign, new = pair.partition(":=" if ":=" in pair else "=")
        if not (old and sign and new):
            raise UsageError(f"--rename {pair!r}: write OLD:=NEW")
        values[old] = new
    return values


def sink_options(settings: Sequence[str]) -> dict[str, str]:
    """Return the options of a sink from texts ``NAME=VALUE``; raises UsageError for other texts."""
    from logreel.errors import UsageError

    for pair in settings:
        if "=" not in pair:
            raise UsageError(f"--set {pair!r}: write NAME=VALUE")
    return {option: value for option, _, value in (pair.partition("=") for pair in settings)}


#: Options of the Player that a log that is still written refuses, with the reason.
_REFUSED = {
    "loop": "needs the end of the log",
    "duration": "needs the end of the log",
    "skip_silence": "needs the end of the log",
    "align": "needs the end of the log",
    "paused": "needs keys to go on, which -f does not have",
    "pause_topics": "needs keys to go on, which -f does not have",
    "clock": "runs ahead to the next message, which may not have come",
}


def _follow(logs: inputs.Logs, sink: Sink, selection: Selection, chosen: dict[str, Any]) -> int:
    """Play one log while it is written; *chosen* are options of the Player."""
    from logreel.cli import following
    from logreel.errors import UsageError
    from logreel.ops.replay.player import play_growing

    for name, why in _REFUSED.items():
        if chosen[name]:
            raise UsageError(f"{options.flag(name)} {why}: leave it or -f out")
    if len(logs.names) != 1:
        raise UsageError(f"-f plays one log, not {len(logs.names)}")
    sink.say = draw.say
    names = ("rate", "start", "end", "count", "delay", "prefix", "rename", "latched")
    values = {name: chosen[name] for name in names if name in chosen}
    with following.ending() as event, following.opened(logs, event) as log:
        count = play_growing(
            log,
            sink,
            choose=following.Choice(selection),
            stay=bool(chosen["stay"]),
            poll=following.POLL,
            stop=event,
            **values,
        )
        draw.say(f"played {count} message{'s' * (count != 1)}")
        return following.finish(log, event, sink.skipped)


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
    summary = f"played {tally.messages} message{'s' * (tally.messages != 1)}"
    if tally.timed:
        summary += f", {tally.late} more than 1 ms late (worst {tally.worst / 1e6:.2f} ms"
        summary += f", mean {tally.mean / 1e6:.3f} ms)"
    return summary
